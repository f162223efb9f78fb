"""The checkpoint rule: work that runs long must report checkpoints, and keep reporting."""

from dataclasses import dataclass

from gpufair.api.tiers import Checkpoint
from gpufair.policies.workload import Workload


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the rule is violated, and when (Unix seconds) that would next change by itself."""

    violated: bool
    next_change: float | None


def verdict(rule: Checkpoint | None, workload: Workload, now: float) -> Verdict:
    """Judge running work by the rule.

    It is violated by what has run for longer than `requiredAfter` in this admission with no
    checkpoint in the last `interval`.
    """
    if rule is None or workload.admitted_at is None:
        return Verdict(False, None)
    required = workload.admitted_at + rule.required_after.delta.total_seconds()
    last = max(workload.admitted_at, workload.last_checkpoint or workload.admitted_at)
    due = max(required, last + rule.interval.delta.total_seconds())
    return Verdict(True, None) if now > due else Verdict(False, due)
