"""Whose turn it is, and who makes room."""

from math import inf
from typing import Any

from gpufair.api.bands import bands_of
from gpufair.api.tiers import Guard, Tier
from gpufair.policies.starvation import Candidate, Running, bound, starves_from, turn
from gpufair.policies.workload import Phase, Workload

NOW = 1_000_000.0
HOUR = 3600.0


def tier(name: str, priority: int, **fields: Any) -> Tier:
    return Tier.model_validate({"name": name, "priority": priority, **fields})


TIERS = {
    "inference": tier("inference", 10_000),
    "prod": tier("prod", 1000, maxWait="12h", guard="Evict"),
    "dev": tier("dev", 200, maxWait="48h"),
    "best": tier("best", 10, maxWait="0s"),
}
BANDS = bands_of(TIERS.values())


def waiting(uid: str, tier: str, hours: float, *, fits: bool = True, needs: int = 8) -> Candidate:
    return Candidate(Workload(uid, tier, 0, Phase.PENDING, NOW - hours * HOUR), fits, needs)


def running(
    uid: str, tier: str, hours: float, gpus: int = 8, *, protected: bool = False
) -> Running:
    began = NOW - hours * HOUR
    workload = Workload(uid, tier, 0, Phase.ADMITTED, began, admitted_at=began)
    return Running(workload, gpus, protected)


def test_the_bound_is_the_tiers_and_a_day_by_default() -> None:
    assert bound(TIERS["prod"], BANDS) == 12 * HOUR
    assert bound(TIERS["best"], BANDS) == inf
    assert bound(TIERS["inference"], BANDS) == inf
    assert bound(tier("prod", 1000), BANDS) == 24 * HOUR


def test_time_on_hold_does_not_count() -> None:
    held = Workload("w", "prod", 0, Phase.PENDING, NOW - 20 * HOUR, held=10 * HOUR)
    assert starves_from(TIERS["prod"], BANDS, held, NOW) == NOW + 2 * HOUR
    on_hold = Workload("w", "prod", 0, Phase.PENDING, NOW - 20 * HOUR, held_from=NOW - HOUR)
    assert starves_from(TIERS["prod"], BANDS, on_hold, NOW) == inf


def test_nobody_has_a_turn_while_nobody_starves() -> None:
    assert (
        turn(TIERS, BANDS, [waiting("a", "prod", 11), waiting("b", "best", 900)], [], NOW) is None
    )


def test_the_first_to_starve_is_first_whatever_its_tier() -> None:
    found = turn(TIERS, BANDS, [waiting("a", "prod", 13), waiting("b", "dev", 50)], [], NOW)
    assert found is not None
    assert found.uid == "b"
    assert found.since == NOW - 2 * HOUR
    assert found.guard is Guard.DRAIN
    assert not found.victims


def test_work_that_can_never_fit_blocks_nobody() -> None:
    listed = [waiting("huge", "prod", 100, fits=False), waiting("a", "prod", 13)]
    found = turn(TIERS, BANDS, listed, [], NOW)
    assert found is not None
    assert found.uid == "a"


def test_the_order_of_the_input_does_not_matter() -> None:
    listed = [waiting("b", "prod", 13), waiting("a", "prod", 13), waiting("c", "dev", 48)]
    turns = {turn(TIERS, BANDS, order, [], NOW) for order in (listed, listed[::-1])}
    assert len(turns) == 1


def test_evict_takes_only_those_who_jumped_the_queue_lowest_tier_and_smallest_first() -> None:
    there = [
        running("older", "dev", 5),
        running("urgent", "inference", 0.1),
        running("safe", "dev", 0.1, protected=True),
        running("big", "dev", 0.1, 16),
        running("small", "dev", 0.1, 4),
        running("lowest", "best", 0.1, 8),
    ]
    found = turn(TIERS, BANDS, [waiting("a", "prod", 13, needs=12)], there, NOW)
    assert found is not None
    assert found.victims == {"lowest", "small"}
