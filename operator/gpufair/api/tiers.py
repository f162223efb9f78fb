"""Tiers: classes of work, their priority bands, and what protects their running work."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.lists import unique_list
from gpufair.api.scalars import Duration, Name, Percentage, PositiveDuration

Priority = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
SCHEME = r"^[a-z][a-z0-9+.-]*$"
Scheme = Annotated[str, Field(min_length=1, max_length=32, pattern=SCHEME)]


class PodPreemption(StrEnum):
    NEVER = "Never"
    PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"


class Growth(StrEnum):
    LINEAR = "Linear"
    COMPOUND = "Compound"


class PreemptionMode(StrEnum):
    ANYTIME = "Anytime"
    AT_CHECKPOINT = "AtCheckpoint"
    NEVER = "Never"


class OnViolation(StrEnum):
    WARN = "Warn"
    UNPROTECT = "Unprotect"
    REJECT = "Reject"


class PodGroupKind(StrEnum):
    NONE = "None"
    VOLCANO = "Volcano"
    COSCHEDULING = "Coscheduling"


class GangBinding(StrEnum):
    TEMPLATE = "Template"
    ADMISSION_CHECK = "AdmissionCheck"


class Guard(StrEnum):
    DRAIN = "Drain"
    EVICT = "Evict"


class Rate(Model):
    """At most `count` within any stretch of `per`."""

    count: Count
    per: PositiveDuration


class Aging(Model):
    """How the priority of waiting work grows (Slurm's age factor, in steps)."""

    increase: Percentage
    """Percent of the tier's floor added at each step."""
    every: PositiveDuration
    """Length of a step."""
    growth: Growth = Growth.LINEAR
    """Linear adds the same at each step, Compound multiplies."""
    limit: Priority | None = None
    """The highest priority that aging reaches; default: just below the lift band."""


class Preemption(Model):
    """What may happen to running work of the tier as a victim of preemption."""

    mode: PreemptionMode = PreemptionMode.ANYTIME
    max_lost_work: Duration | None = None
    """AtCheckpoint: most work since the last checkpoint that a preemption may lose."""
    budget: Rate | None = None
    """Most preemptions of one workload per period."""
    min_runtime: Duration | None = None
    """Work that runs for less than this is not preempted."""
    protect_from: Name | None = None
    """The highest tier against which the protection holds."""


class Checkpoint(Model):
    """The checkpoint rule of the tier."""

    required_after: PositiveDuration
    """Work that runs longer than this must report checkpoints."""
    interval: PositiveDuration
    """Longest time between two checkpoints."""
    storage_schemes: Annotated[list[Scheme], unique_list(16)] = []
    """URI schemes that a checkpoint may be stored under; empty: any."""
    restart_cost: Duration = Duration("15m")
    """Time a restart takes, for figures and the simulator."""
    on_violation: OnViolation = OnViolation.UNPROTECT


class Gang(Model):
    """All-or-nothing starts."""

    pod_group: PodGroupKind = PodGroupKind.NONE
    min_member: Percentage = Percentage("100%")
    """Share of the pods that must start together."""
    binding: GangBinding = GangBinding.TEMPLATE


class Tier(Model):
    """A class of work; becomes a WorkloadPriorityClass and a PriorityClass of the same name."""

    name: Name
    priority: Priority
    """Floor of the tier's priority band; immutable for a name."""
    ceiling: Priority | None = None
    """Top of the band; default: one below the next tier's floor; immutable for a name."""
    pod_preemption: PodPreemption = PodPreemption.NEVER
    """preemptionPolicy of the PriorityClass; immutable for a name."""
    aging: Aging | None = None
    preemption: Preemption = Preemption()
    checkpoint: Checkpoint | None = None
    max_run_time: PositiveDuration | None = None
    """Longest run that the tier's jobs may ask for."""
    gang: Gang = Gang()
    max_wait: Duration | None = None
    """Starvation bound; default 24h below the top tier; `0s` switches it off."""
    guard: Guard = Guard.DRAIN
    """How the bound is kept: Drain idles GPUs, Evict loses work."""
