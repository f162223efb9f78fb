"""The band arithmetic, on the figures of the design."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gpufair.api.bands import bands_of


@dataclass(frozen=True)
class FakeTier:
    name: str
    priority: int
    ceiling: int | None = None


BANK = [
    FakeTier("inference", 10000),
    FakeTier("training-prod", 1000),
    FakeTier("training-dev", 200),
    FakeTier("best-effort", 10),
]


def test_the_bank() -> None:
    bands = bands_of(BANK)
    assert [(band.name, band.floor, band.ceiling) for band in bands.bands] == [
        ("best-effort", 10, 199),
        ("training-dev", 200, 999),
        ("training-prod", 1000, 9993),
        ("inference", 10000, 10000),
    ]
    assert [band.shield for band in bands.bands] == [198, 998, 9992, 10000]
    assert [band.lifted for band in bands.bands] == [9994, 9996, 9998, 10000]
    assert [band.lifted_protected for band in bands.bands] == [9995, 9997, 9999, 10000]
    assert bands.limit == 9992


def test_explicit_ceilings() -> None:
    bands = bands_of([FakeTier("a", 100), FakeTier("b", 50, 90), FakeTier("c", 10, 20)])
    assert [band.ceiling for band in bands.bands] == [20, 90, 100]
    assert bands.limit == 89
    assert bands.settled(19) == 19
    assert bands.settled(20) == 19
    assert bands.settled(49) == 19  # between a ceiling and the next floor
    assert bands.settled(50) == 50
    assert bands.settled(95) == 89


def test_reached() -> None:
    bands = bands_of(BANK)
    names = {priority: bands.reached(priority).name for priority in (0, 10, 199, 200, 999, 10**6)}
    assert names == {
        0: "best-effort",
        10: "best-effort",
        199: "best-effort",
        200: "training-dev",
        999: "training-dev",
        10**6: "inference",
    }
    assert bands.settled(999) == 998
    assert bands.settled(10000) == 10000


def test_a_single_tier_has_no_limit() -> None:
    bands = bands_of([FakeTier("only", 5)])
    assert bands.limit is None
    assert (bands.top.floor, bands.top.shield, bands.top.lifted) == (5, 5, 5)


@pytest.mark.parametrize("tiers", [[], [FakeTier("a", 1), FakeTier("b", 1)]])
def test_no_bands(tiers: list[FakeTier]) -> None:
    with pytest.raises(ValueError, match="distinct priority"):
        bands_of(tiers)
