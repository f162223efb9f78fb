"""What running work has against its peers and against more urgent tiers.

The peer shield is c - 1 of the band that a workload had reached when it got its quota: equal
priority never preempts, so aging orders the queue of a band and evicts nobody in it. Protection
lifts it to c, or with `protectFrom` X to the most that waiting work of X can have.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpufair.api.bands import Band, Bands
from gpufair.api.tiers import OnViolation, PreemptionMode, Tier
from gpufair.policies import checkpoint
from gpufair.policies.budget import room
from gpufair.policies.workload import Workload


class Reason(StrEnum):
    """Why running work is protected, or is not although its tier could be."""

    MODE_NEVER = "ModeNever"
    YOUNG = "YoungerThanMinRuntime"
    BUDGET_SPENT = "BudgetSpent"
    WORK_AT_RISK = "WorkAtRisk"
    CHECKPOINT_OVERDUE = "CheckpointOverdue"


@dataclass(frozen=True, slots=True)
class Protection:
    """Why running work is protected now (no reason: it is not), and when that may change."""

    reasons: tuple[Reason, ...]
    next_change: float | None
    overdue: bool = False

    @property
    def holds(self) -> bool:
        return bool(self.reasons)


def shield(workload: Workload, bands: Bands) -> int:
    """The peer shield: of the band reached at reservation, or of the tier's own."""
    own = bands.by_name[workload.tier]
    if workload.band_priority is None:
        return own.shield
    return max(own.shield, bands.reached(workload.band_priority).shield)


def protected_priority(tier: Tier, workload: Workload, bands: Bands) -> int:
    """What protected work has: never below its shield.

    Own tier: c, so that more urgent work takes the unprotected first. `protectFrom` X: the most
    that X's waiting work can have, so that X cannot take it. Mode Never holds against every tier.
    """
    own = bands.by_name[tier.name]
    against = _against(tier, own, bands)
    guarded = own.ceiling if against.rank <= own.rank else against.shield
    return max(guarded, shield(workload, bands))


def _against(tier: Tier, own: Band, bands: Bands) -> Band:
    named = tier.preemption.protect_from
    if named is not None:
        return bands.by_name[named]
    return bands.top if tier.preemption.mode is PreemptionMode.NEVER else own


def protection(tier: Tier, workload: Workload, now: float) -> Protection:
    """Whether running work is protected at `now`.

    Work that violates the checkpoint rule loses all protection but that of mode Never, where the
    rule says Unprotect.
    """
    rule = tier.preemption
    if rule.mode is PreemptionMode.NEVER:
        return Protection((Reason.MODE_NEVER,), None)
    if workload.admitted_at is None:
        return Protection((), None)
    judged = checkpoint.verdict(tier.checkpoint, workload, now)
    unprotects = tier.checkpoint and tier.checkpoint.on_violation is OnViolation.UNPROTECT
    if judged.violated and unprotects:
        return Protection((), None, overdue=True)
    found = [_young(tier, workload, now), _spent(tier, workload, now), _risky(tier, workload, now)]
    reasons = tuple(reason for reason, _ in found if reason is not None)
    changes = [at for _, at in found if at is not None]
    if judged.next_change is not None:
        changes.append(judged.next_change)
    return Protection(reasons, min(changes, default=None), overdue=judged.violated)


_Finding = tuple[Reason | None, float | None]


def _young(tier: Tier, workload: Workload, now: float) -> _Finding:
    least = tier.preemption.min_runtime
    assert workload.admitted_at is not None
    if least is None:
        return None, None
    until = workload.admitted_at + least.delta.total_seconds()
    return (Reason.YOUNG, until) if now < until else (None, None)


def _spent(tier: Tier, workload: Workload, now: float) -> _Finding:
    left = room(tier.preemption.budget, workload.preempted_at, now)
    return (None, None) if left.left else (Reason.BUDGET_SPENT, left.next_change)


def _risky(tier: Tier, workload: Workload, now: float) -> _Finding:
    """AtCheckpoint: protected while a preemption would lose more than `maxLostWork`."""
    most = tier.preemption.max_lost_work
    if tier.preemption.mode is not PreemptionMode.AT_CHECKPOINT or most is None:
        return None, None
    bound = most.delta.total_seconds()
    risk = workload.at_risk(now)
    if risk > bound:
        return Reason.WORK_AT_RISK, None  # until it reports, which is an event
    return None, now + bound - risk
