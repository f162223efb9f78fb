"""Flavors: the kinds of GPU node that a policy governs."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.lists import atomic_list, unique_list
from gpufair.api.scalars import LabelKey, LabelValue, Name, Quantity, ResourceName

GPU = "nvidia.com/gpu"
NodeLabels = Annotated[dict[LabelKey, LabelValue], Field(max_length=8)]


class TaintEffect(StrEnum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class TolerationOperator(StrEnum):
    EXISTS = "Exists"
    EQUAL = "Equal"


class Taint(Model):
    """A taint of the flavor's nodes (core/v1 Taint)."""

    key: LabelKey
    value: LabelValue = ""
    effect: TaintEffect


class Toleration(Model):
    """A toleration that Kueue adds to the pods of admitted work (core/v1 Toleration)."""

    key: LabelKey | None = None
    operator: TolerationOperator = TolerationOperator.EQUAL
    value: LabelValue = ""
    effect: TaintEffect | None = None
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None


class Flavor(Model):
    """A kind of GPU node; becomes a ResourceFlavor, and a Topology when it has levels."""

    name: Name
    """Name of the ResourceFlavor."""
    node_labels: NodeLabels = {}
    """Labels that the flavor's nodes carry."""
    node_taints: Annotated[list[Taint], atomic_list(8)] = []
    """Taints of the flavor's nodes that work must tolerate by itself."""
    tolerations: Annotated[list[Toleration], atomic_list(8)] = []
    """Tolerations added to the pods of work that is admitted to the flavor."""
    resources: Annotated[list[ResourceName], unique_list(16, least=1)] = [GPU]
    """Resources that tenants have quota of; the same list, in the same order, in each flavor
    that shares one of them."""
    other_resources: Annotated[list[ResourceName], unique_list(16)] = [
        "cpu",
        "memory",
        "ephemeral-storage",
    ]
    """Resources that pods request beside them, covered by a quota that nobody reaches."""
    capacity: Annotated[int, Field(ge=0, le=10**9)] | None = None
    """Units of the flavor's one resource; omitted, it is counted from the nodes."""
    capacities: Annotated[dict[ResourceName, Quantity], Field(max_length=16)] | None = None
    """Units by resource, for a flavor of several."""
    topology_levels: Annotated[list[LabelKey], unique_list(16)] = []
    """Node label keys, widest first; sets up topology-aware scheduling."""


def other_flavor(policy: str) -> str:
    """Name of the ResourceFlavor for cpu, memory and the like where several groups share them."""
    return f"{policy}-other"
