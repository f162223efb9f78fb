"""Priority bands: the arithmetic of tiers, from their floors and ceilings alone.

Below the top tier (floor T) lie k tiers. The band of a tier reaches from its floor p to its
ceiling c: by default the next floor - 1, just below the top T - 2k - 1. Above that is the lift
band, [T - 2k, T - 1], with two values for each tier below the top. Waiting work gets at most
c - 1 of the band that it reached, running work is shielded at c - 1 and protected at c.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

LEAST_WIDTH: Final = 3
"""c - p of a tier below the top: room for the floor, the shield and the protection."""


class TierLike(Protocol):
    """What of a tier the bands need; `gpufair.api.tiers.Tier` is one."""

    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def ceiling(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Band:
    """The priorities of one tier; all are whole Kubernetes priorities."""

    name: str
    rank: int
    """0 is the lowest tier."""
    floor: int
    ceiling: int
    """c: what protected work of the tier has. The top tier's is its floor."""
    lifted: int
    """What running work gets while a guard lifts it. The top tier's is its floor."""
    top: bool

    @property
    def shield(self) -> int:
        """What running work of the tier has, and the most that waiting work in it can have."""
        return self.floor if self.top else self.ceiling - 1

    @property
    def lifted_protected(self) -> int:
        """What protected running work gets while a guard lifts it."""
        return self.floor if self.top else self.lifted + 1

    @property
    def width(self) -> int:
        return self.ceiling - self.floor


@dataclass(frozen=True)
class Bands:
    """The bands of a policy, lowest tier first. Tiers need distinct priorities."""

    bands: tuple[Band, ...]

    @property
    def top(self) -> Band:
        return self.bands[-1]

    @property
    def limit(self) -> int | None:
        """L: the highest priority that aging reaches; None for a single tier, which has none."""
        return self.bands[-2].shield if len(self.bands) > 1 else None

    @cached_property
    def by_name(self) -> dict[str, Band]:
        return {band.name: band for band in self.bands}

    @cached_property
    def _floors(self) -> list[int]:
        return [band.floor for band in self.bands]

    def reached(self, priority: int) -> Band:
        """Return the band that a priority lies in or above; below all floors, the lowest."""
        return self.bands[max(bisect_right(self._floors, priority) - 1, 0)]

    def settled(self, priority: int) -> int:
        """Return the priority that waiting work gets for an aged one: at most its band's shield."""
        return min(priority, self.reached(priority).shield)


def bands_of(tiers: Iterable[TierLike]) -> Bands:
    """Return the bands of a policy's tiers, in whatever order they are given.

    Raises ValueError without tiers or when two have the same priority. Bands that are too narrow
    or overlap are computed all the same: `check` refuses them.
    """
    ordered = sorted(tiers, key=lambda tier: tier.priority)
    if not ordered or len({tier.priority for tier in ordered}) < len(ordered):
        raise ValueError("Bands need at least one tier, and a distinct priority for each.")
    below, top = len(ordered) - 1, ordered[-1]
    bands = [
        Band(
            name=tier.name,
            rank=rank,
            floor=tier.priority,
            ceiling=highest_ceiling(ordered, rank) if tier.ceiling is None else tier.ceiling,
            lifted=top.priority - 2 * below + 2 * rank,
            top=False,
        )
        for rank, tier in enumerate(ordered[:-1])
    ]
    bands.append(Band(top.name, below, top.priority, top.priority, top.priority, top=True))
    return Bands(tuple(bands))


def highest_ceiling(ordered: list[TierLike], rank: int) -> int:
    """Return the highest ceiling, which is the default one, of a tier below the top.

    `ordered` are the tiers by priority, `rank` the position of the tier in it.
    """
    below = len(ordered) - 1
    above = ordered[rank + 1].priority
    return above - 2 * below - 1 if rank == below - 1 else above - 1
