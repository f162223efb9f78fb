"""MIG: how GPUs are cut into slices."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.flavors import NodeLabels
from gpufair.api.lists import atomic_list, unique_list
from gpufair.api.scalars import Duration

PROFILE = r"^[1-9]g\.[0-9]+gb(\+[a-z0-9.]+)?$"
Profile = Annotated[str, Field(min_length=1, max_length=32, pattern=PROFILE)]
NodeCount = Annotated[int, Field(ge=0, le=1_000_000)]


class Planning(StrEnum):
    DEMAND = "Demand"
    FIXED = "Fixed"


class ProfileCount(Model):
    """So many slices of one profile, such as 3g.40gb."""

    profile: Profile
    count: Annotated[int, Field(ge=1, le=1_000_000)]


class Mig(Model):
    """The layout of one pool of MIG nodes."""

    node_selector: Annotated[NodeLabels, Field(min_length=1)]
    planning: Planning = Planning.DEMAND
    layout: Annotated[list[ProfileCount], unique_list(16, "profile")] = []
    """Fixed: slices of each GPU."""
    guarantee: Annotated[list[ProfileCount], unique_list(16, "profile")] = []
    """Demand: slices of the pool that exist at all times."""
    keep_whole_gpus: NodeCount = 0
    """GPUs that are never cut."""
    max_unavailable_nodes: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    cooldown: Duration = Duration("30m")
    """Time between two changes of one node."""
    allow_mode_change: bool = False
    """Whether MIG may be switched on or off."""


MigList = Annotated[list[Mig], atomic_list(16)]
