"""GpuSchedulingPolicy, version v1alpha1: the whole of what a platform team writes."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.fairness import Fairness
from gpufair.api.flavors import Flavor
from gpufair.api.lists import named_list
from gpufair.api.mig import MigList
from gpufair.api.scalars import Label, Name
from gpufair.api.tenants import Cohort, Tenant
from gpufair.api.tiers import Rate, Tier
from gpufair.api.windows import Window

GROUP = "gpufair.io"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "GpuSchedulingPolicy"


class Engine(StrEnum):
    KUEUE = "Kueue"
    VOLCANO = "Volcano"


class DeletionPolicy(StrEnum):
    WAIT = "Wait"
    ORPHAN = "Orphan"
    EVICT = "Evict"


class PolicySpec(Model):
    engine: Engine = Engine.KUEUE
    """The queueing system that is steered."""
    suspend: bool = False
    """Write nothing; objects stay as they are."""
    deletion_policy: DeletionPolicy = DeletionPolicy.WAIT
    """What becomes of the objects when the policy is deleted."""
    queue_name: Label = "gpu"
    """Name of the LocalQueue in each tenant namespace."""
    default_queue: bool = False
    """Name it `default`, the queue of work that names none."""
    flavors: Annotated[list[Flavor], named_list(16, least=1)]
    """Kinds of GPU node, in order of preference."""
    tiers: Annotated[list[Tier], named_list(16, least=1)]
    cohorts: Annotated[list[Cohort], named_list(64)] = []
    tenants: Annotated[list[Tenant], named_list(1000)] = []
    fairness: Fairness = Fairness()
    preemption_rate_limit: Rate | None = None
    """Over it, only the top tier still preempts."""
    windows: Annotated[list[Window], named_list(64)] = []
    mig: MigList = []

    @property
    def local_queue_name(self) -> str:
        return "default" if self.default_queue else self.queue_name


class Metadata(Model):
    """The part of the object's metadata that a policy needs; the rest is passed over."""

    model_config = {**Model.model_config, "extra": "ignore"}

    name: Name
    uid: str = ""
    generation: int = 0
    annotations: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: list[str] = []


class Policy(Model):
    """One GpuSchedulingPolicy."""

    api_version: Literal["gpufair.io/v1alpha1"]
    kind: Literal["GpuSchedulingPolicy"]
    metadata: Metadata
    spec: PolicySpec
    status: Annotated[dict[str, Any], Field(exclude=True)] = {}

    @property
    def name(self) -> str:
        return self.metadata.name

    def manifest(self) -> dict[str, Any]:
        """The policy as it was written: what was left out stays out, so no default is owned."""
        dumped = self.model_dump(mode="json", exclude_unset=True, exclude={"status"})
        metadata: dict[str, Any] = {"name": self.metadata.name}
        if self.metadata.annotations:
            metadata["annotations"] = dict(self.metadata.annotations)
        return dumped | {"metadata": metadata}
