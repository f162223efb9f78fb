"""How waiting work grows: in steps, within its limit, never above running work of its band."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufair.api.bands import bands_of
from gpufair.api.tiers import Tier
from gpufair.policies.aging import AgingRule

HOUR = 3600.0


def tier(name: str, priority: int, **fields: object) -> Tier:
    return Tier.model_validate({"name": name, "priority": priority, **fields})


def rule(**aging: object) -> AgingRule:
    """Dev at 200 below production at 1000 and inference at 10000."""
    dev = tier("dev", 200, aging={"increase": "10%", "every": "6h", **aging})
    return AgingRule(dev, bands_of([tier("inference", 10_000), tier("prod", 1000), dev]))


@pytest.mark.parametrize(
    ("hours", "priority"), [(0, 200), (5.99, 200), (6, 220), (13, 240), (239.9, 980), (240, 1000)]
)
def test_linear_growth_adds_the_same_at_each_step(hours: float, priority: int) -> None:
    assert rule().aged(hours * HOUR).priority == priority


@pytest.mark.parametrize(("steps", "priority"), [(0, 200), (1, 220), (2, 242), (16, 918)])
def test_compound_growth_multiplies(steps: int, priority: int) -> None:
    assert rule(growth="Compound").aged(steps * 6 * HOUR).priority == priority


def test_the_times_of_the_design_hold() -> None:
    assert rule().reaches(1000) == 240 * HOUR
    assert rule(growth="Compound").reaches(1000) == 102 * HOUR


def test_it_stops_below_the_shield_of_the_band_until_it_passes_the_next_floor() -> None:
    # One step before 1000 is 980; with steps of 1 the band's shield, 998, holds it back.
    fine = rule(increase="0.5%", every="1h")
    assert fine.aged(798 * HOUR).priority == 998
    assert fine.aged(799 * HOUR).priority == 998
    assert fine.aged(800 * HOUR).priority == 1000


def test_the_next_change_skips_steps_that_change_nothing() -> None:
    fine = rule(increase="0.5%", every="1h")
    assert fine.aged(798 * HOUR).next_change == 800 * HOUR


def test_the_limit_forbids_what_lies_beyond() -> None:
    assert rule(limit=400).aged(1e9).priority == 400
    assert rule(limit=400).aged(1e9).next_change is None
    assert rule(limit=400).reaches(1000) is None
    assert rule().highest == 9994
    assert rule().reaches(10_000) is None


def test_without_aging_and_at_the_top_nothing_grows() -> None:
    tiers = [tier("top", 1000, aging={"increase": "10%", "every": "1h"}), tier("low", 100)]
    bands = bands_of(tiers)
    assert AgingRule(tiers[0], bands).aged(1e9).priority == 1000
    assert AgingRule(tiers[1], bands).aged(1e9).next_change is None
    assert AgingRule(tiers[1], bands).reaches(1000) is None


def test_negative_waits_count_as_none() -> None:
    assert rule().aged(-5).priority == 200


@given(
    increase=st.decimals("0.1", "300", places=1),
    growth=st.sampled_from(["Linear", "Compound"]),
    limit=st.integers(200, 9994),
    first=st.floats(0, 1e8),
    more=st.floats(0, 1e8),
)
def test_aging_is_monotone_and_bounded(
    increase: object, growth: str, limit: int, first: float, more: float
) -> None:
    subject = rule(increase=f"{increase}%", growth=growth, limit=limit)
    before, after = subject.aged(first), subject.aged(first + more)
    assert 200 <= before.priority <= after.priority <= limit
    if before.next_change is not None:
        assert before.next_change > first
        assert subject.aged(before.next_change).priority > before.priority
        assert subject.aged(before.next_change - 0.001).priority == before.priority
