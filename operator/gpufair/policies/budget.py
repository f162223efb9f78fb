"""Preemption budgets: at most so many evictions of one workload within any stretch of time."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpufair.api.tiers import Rate


@dataclass(frozen=True, slots=True)
class Room:
    """Whether the budget has room for one more eviction, and when that changes by itself."""

    left: int
    next_change: float | None


def room(budget: Rate | None, evictions: Sequence[float], now: float) -> Room:
    """Return what is left of the budget at `now` (Unix seconds) after `evictions`, oldest first.

    No budget has room for ever: `left` is then 1.
    """
    if budget is None:
        return Room(1, None)
    per = budget.per.delta.total_seconds()
    recent = [at for at in evictions if now - at < per]
    left = max(0, budget.count - len(recent))
    if left:
        return Room(left, None)
    # It has room again once fewer than `count` are within the period.
    return Room(0, recent[-budget.count] + per)
