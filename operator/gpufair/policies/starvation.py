"""The starvation guard: whose turn it is next in a ClusterQueue, and what that asks of the others.

Below the top tier, work that waits longer than its tier's `maxWait` and could fit the queue's
potential quota gets its turn: one at a time, the longest waiting first. All running work below the
top tier is lifted first, then the starving one rises to L. Drain evicts nobody; Evict lets work
that was admitted after the other began to starve fall to its floor, as much of it as is needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from gpufair.api.bands import Bands
from gpufair.api.tiers import Guard, Tier
from gpufair.policies.workload import Phase, Workload

DEFAULT_MAX_WAIT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A waiting workload as the guard sees it.

    `fits` is whether the queue's potential quota could ever hold it: not gated, not backing off,
    not larger than nominal and borrowing limit allow. `needs` are its GPUs.
    """

    workload: Workload
    fits: bool
    needs: int


@dataclass(frozen=True, slots=True)
class Running:
    """Running work of the queue: what it holds, and whether its own protection holds."""

    workload: Workload
    gpus: int
    protected: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """The starving workload whose turn it is, since when (Unix seconds), and how it gets it."""

    uid: str
    since: float
    guard: Guard
    victims: frozenset[str] = frozenset()
    """Evict: the workloads that fall to their floor."""


def bound(tier: Tier, bands: Bands) -> float:
    """Seconds of waiting after which work of the tier starves; infinite for never."""
    if bands.by_name[tier.name].top:
        return inf
    stated = DEFAULT_MAX_WAIT if tier.max_wait is None else tier.max_wait.delta
    return stated.total_seconds() or inf


def starves_from(tier: Tier, bands: Bands, workload: Workload, now: float) -> float:
    """When it begins to starve, or began to, if it goes on waiting; infinite for never."""
    limit = bound(tier, bands)
    if limit == inf or not workload.accrues:
        return inf
    return now + limit - workload.waited(now)


def turn(
    tiers: Mapping[str, Tier],
    bands: Bands,
    waiting: Sequence[Candidate],
    running: Sequence[Running],
    now: float,
) -> Turn | None:
    """Whose turn it is in one ClusterQueue at `now`; None when nobody in it starves."""
    starving = [
        (since, candidate)
        for candidate in waiting
        if candidate.fits and candidate.workload.phase is Phase.PENDING
        for since in [starves_from(tiers[candidate.workload.tier], bands, candidate.workload, now)]
        if since <= now
    ]
    if not starving:
        return None
    since, first = min(starving, key=lambda found: (found[0], found[1].workload.uid))
    guard = tiers[first.workload.tier].guard
    victims = _victims(bands, first, since, running) if guard is Guard.EVICT else frozenset()
    return Turn(first.workload.uid, since, guard, victims)


def _victims(
    bands: Bands, starving: Candidate, since: float, running: Sequence[Running]
) -> frozenset[str]:
    """Of the work that jumped the starving one, as little as makes room: lowest tier and fewest
    GPUs first, none that is protected or of a more urgent tier."""
    own = bands.by_name[starving.workload.tier].rank
    jumped = [
        r
        for r in running
        if not r.protected
        and (r.workload.admitted_at or 0.0) > since
        and bands.by_name[r.workload.tier].rank <= own
    ]
    jumped.sort(key=lambda r: (bands.by_name[r.workload.tier].rank, r.gpus, r.workload.uid))
    chosen: list[str] = []
    freed = 0
    for victim in jumped:
        if freed >= starving.needs:
            break
        chosen.append(victim.workload.uid)
        freed += victim.gpus
    return frozenset(chosen)
