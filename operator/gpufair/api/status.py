"""The status of a policy: what the operator reports, and the conditions it reports on."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.lists import atomic_list, named_list
from gpufair.api.scalars import Name, Quantity, ResourceName

Text = Annotated[str, Field(max_length=32)]
Timestamp = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
WholeNumber = Annotated[int, Field(ge=0)]
Amounts = Annotated[dict[ResourceName, Quantity], Field(max_length=64)]


class ConditionType(StrEnum):
    READY = "Ready"
    """Applied, and every queue is Active."""
    VALID = "Valid"
    """The policy agrees with itself."""
    SUPPORTED = "Supported"
    """No field of it is one that the operator does not act on yet."""
    ENGINE_AVAILABLE = "EngineAvailable"
    FAIR_SHARING_ACTIVE = "FairSharingActive"
    """False when ClusterQueues report no fair-sharing status: weights then have no effect."""
    BOOSTING_ACTIVE = "BoostingActive"
    QUOTA_WITHIN_CAPACITY = "QuotaWithinCapacity"
    MIG_CONVERGED = "MigConverged"
    CONFLICT = "Conflict"
    """An object that the policy needs belongs to someone else."""
    SUSPENDED = "Suspended"


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of the policy's state (meta/v1 Condition)."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: ConditionStatus
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """Machine-readable, in CamelCase."""
    message: Annotated[str, Field(max_length=32768)] = ""
    last_transition_time: Timestamp
    observed_generation: WholeNumber | None = None
    """Generation of the spec that it speaks of."""


class TenantStatus(Model):
    """What one tenant has and waits for."""

    name: Name
    weight: Annotated[float, Field(ge=0)] | None = None
    """As it holds now, windows included."""
    nominal: Amounts = {}
    """Quota by resource, over all flavors."""
    used: Amounts = {}
    borrowed: Amounts = {}
    """The part of used that is others' quota."""
    pending: Amounts = {}
    """What waiting workloads ask for."""
    share: Text | None = None
    """Percentage of the pool that it used over the fairness window."""
    entitled_share: Text | None = None
    """Percentage of the pool that it was entitled to and wanted."""
    share_error: Text | None = None
    """How far share lies below entitledShare, in percent of the pool."""


class TierStatus(Model):
    """The work of one tier."""

    name: Name
    pending: WholeNumber | None = None
    running: WholeNumber | None = None
    boosted: WholeNumber | None = None
    """Pending workloads whose priority has grown with age."""
    shielded: WholeNumber | None = None
    """Running workloads that are shielded or protected."""
    longest_wait: Text | None = None
    """A duration, as in `3h20m0s`."""
    starving: WholeNumber | None = None
    """Pending workloads beyond the tier's maxWait."""


class PolicyStatus(Model):
    observed_generation: WholeNumber | None = None
    """Generation of the spec that this status is of."""
    conditions: Annotated[list[Condition], named_list(32, "type")] = []
    active_windows: Annotated[list[Name], atomic_list(64)] = []
    next_transition_time: Timestamp | None = None
    """When a window next begins or ends."""
    tenant_count: WholeNumber | None = None
    utilization: Text | None = None
    """Percentage of the pool's GPUs that admitted work has."""
    worst_share_error: Text | None = None
    """The largest shareError of a tenant."""
    tenants: Annotated[list[TenantStatus], named_list(1000)] = []
    """All tenants, or beyond 100 those with an error or a share error."""
    tiers: Annotated[list[TierStatus], named_list(16)] = []
    applied_objects: Annotated[dict[str, WholeNumber], Field(max_length=32)] = {}
    """Number of objects by kind."""
