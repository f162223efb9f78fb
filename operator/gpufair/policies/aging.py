"""Aging: the priority of waiting work grows in steps (Slurm's age factor), within its bounds.

With floor p and n whole steps waited: Linear gives p + p*increase*n, Compound p*(1+increase)^n,
rounded down, at most `limit`, and at most the shield of the band that it reached, so that waiting
work never exceeds running work of that band.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, log1p
from math import log as ln

from gpufair.api.bands import Bands
from gpufair.api.tiers import Growth, Tier

# Wide enough that rounding down is right for every priority of ten digits after any number of
# steps that it takes to reach it.
_EXACT = Context(prec=80, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Aged:
    """A priority, and at how many seconds waited it next changes; None when it never does."""

    priority: int
    next_change: float | None


class AgingRule:
    """The aging of one tier among its policy's bands; it can be asked for any number of seconds."""

    def __init__(self, tier: Tier, bands: Bands) -> None:
        band = bands.by_name[tier.name]
        self._floor = band.floor
        self._aging = None if band.top else tier.aging
        self._bands = bands
        limit = bands.limit or band.floor
        chosen = self._aging.limit if self._aging else None
        self._limit = limit if chosen is None else min(chosen, limit)
        self._every = self._aging.every.delta.total_seconds() if self._aging else inf

    def aged(self, waited: float) -> Aged:
        """The priority of work of the tier after `waited` seconds (negative counts as none)."""
        if self._aging is None:
            return Aged(self._floor, None)
        steps = int(max(waited, 0.0) // self._every)
        now = self._settled(steps)
        later = self._first_step(lambda step: self._settled(step) > now, after=steps)
        return Aged(now, None if later is None else later * self._every)

    def reaches(self, priority: int) -> float | None:
        """Seconds waited until the priority is reached; None when the limit forbids it."""
        if priority <= self._floor:
            return 0.0
        if self._aging is None:
            return None
        step = self._first_step(lambda n: self._settled(n) >= priority, after=0)
        return None if step is None else step * self._every

    @property
    def highest(self) -> int:
        """The highest priority that work of the tier ever gets by waiting."""
        return self._bands.settled(self._limit) if self._aging else self._floor

    def _settled(self, steps: int) -> int:
        return self._bands.settled(min(self._grown(steps), self._limit))

    def _grown(self, steps: int) -> int:
        assert self._aging is not None
        if self._aging.growth is Growth.LINEAR:
            return self._floor + int(self._floor * self._aging.increase.fraction * steps)
        return _compound(self._floor, self._aging.increase.fraction, steps, self._limit)

    def _first_step(self, holds: Callable[[int], bool], after: int) -> int | None:
        """The first step behind `after` at which a monotone predicate holds, by bisection."""
        if self._settled_at_limit(after) and not holds(after):
            return None
        low, width = after, 1
        while not holds(low + width):
            if self._settled_at_limit(low + width):
                return None
            low, width = low + width, width * 2
        high = low + width
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def _settled_at_limit(self, steps: int) -> bool:
        return self._grown(steps) >= self._limit


def _compound(floor: int, increase: Fraction, steps: int, limit: int) -> int:
    if steps * log1p(increase) > ln(limit / floor) + 1.0:
        return limit  # far beyond, where the power itself would be too large to compute
    base = _EXACT.divide(Decimal(increase.numerator), Decimal(increase.denominator)) + 1
    return int(_EXACT.multiply(Decimal(floor), _EXACT.power(base, Decimal(steps))))
