"""Tenants (teams), cohorts (departments) and their quotas."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.lists import atomic_list, unique_list
from gpufair.api.scalars import MAX_RESOURCE_LENGTH, Label, LabelKey, LabelValue, Name, Quantity

Weight = Annotated[float, Field(ge=0.001, le=1_000_000)]


class Quota(Model):
    """What one owner has of one resource of one flavor."""

    flavor: Name
    resource: Annotated[str, Field(max_length=MAX_RESOURCE_LENGTH)] = ""
    """May be omitted for a flavor of one resource."""
    nominal: Quantity
    """Units that are the owner's whenever it wants them."""
    borrowing_limit: Quantity | None = None
    """Most it may use beyond nominal; omitted: no limit."""
    lending_limit: Quantity | None = None
    """Most of nominal that others may use while it is idle; omitted: no limit."""


class Cohort(Model):
    """A department: tenants and cohorts below it borrow from each other first."""

    name: Name
    parent: Name | None = None
    """Cohort above; omitted: the pool itself."""
    weight: Weight = 1
    quota: Annotated[list[Quota], unique_list(64, "flavor", "resource")] = []
    """Quota of the department as a whole, beside that of its tenants."""


class SelectorOperator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SelectorRequirement(Model):
    key: LabelKey
    operator: SelectorOperator
    values: Annotated[list[LabelValue], atomic_list(32)] = []


class LabelSelector(Model):
    """A selector of namespaces by label (meta/v1 LabelSelector); all parts must hold."""

    match_labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=16)] = {}
    match_expressions: Annotated[list[SelectorRequirement], atomic_list(16)] = []


class FungibilityWhenBorrow(StrEnum):
    MAY_STOP_SEARCH = "MayStopSearch"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class FungibilityPreference(StrEnum):
    BORROWING_OVER_PREEMPTION = "BorrowingOverPreemption"
    PREEMPTION_OVER_BORROWING = "PreemptionOverBorrowing"


class FlavorFungibility(Model):
    """Passed through to the ClusterQueue's flavorFungibility."""

    when_can_borrow: FungibilityWhenBorrow | None = None
    when_can_preempt: FungibilityWhenBorrow | None = None
    preference: FungibilityPreference | None = None


class BorrowWithinCohortPolicy(StrEnum):
    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class BorrowWithinCohort(Model):
    """Passed through to the ClusterQueue's preemption.borrowWithinCohort."""

    policy: BorrowWithinCohortPolicy = BorrowWithinCohortPolicy.NEVER
    max_priority_threshold: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None


class Tenant(Model):
    """A team; becomes a ClusterQueue, and a LocalQueue in each of its namespaces."""

    name: Name
    """Name of the ClusterQueue."""
    namespaces: Annotated[list[Label], unique_list(64)] = []
    namespace_selector: LabelSelector | None = None
    """Instead of namespaces: those that match, also later ones."""
    cohort: Name | None = None
    """Department; omitted: directly below the pool."""
    weight: Weight = 1
    """Share of what is idle, relative to the others at its level."""
    tiers: Annotated[list[Name], unique_list(16)] = []
    """Tiers that the tenant may use; empty: all."""
    hold: bool = False
    """Admit nothing new; running work stays."""
    quota: Annotated[list[Quota], unique_list(64, "flavor", "resource")] = []
    admission_checks: Annotated[list[Name], unique_list(8)] = []
    """AdmissionChecks of others that the tenant's work must pass."""
    flavor_fungibility: FlavorFungibility | None = None
    borrow_within_cohort: BorrowWithinCohort | None = None
