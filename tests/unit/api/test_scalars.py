"""Durations, percentages and quantities: exact values, kept as written."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import pytest

from gpufair.api.load import parse_policy
from gpufair.api.scalars import Duration, Percentage, Quantity, parse_duration
from tests.unit.api.cases import base, edited


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("90m", 5400),
        ("30s1h", 3630),
        ("0.5s", 0.5),
        ("87840h", 87840 * 3600),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert Duration.check(text).delta == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "1", "h", "1d", "-1h", "+1h", "1h ", " 1h", "1H", "1h\n", "٣h", "1.h", ".5h", "1ms"],
)
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["87841h", "9" * 400 + "h"])
def test_too_long_durations(text: str) -> None:
    with pytest.raises(ValueError, match="longer than ten years"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("10%", Fraction(1, 10)), ("2.5%", Fraction(1, 40)), ("0%", 0), ("100%", 1)],
)
def test_percentages(text: str, fraction: Fraction) -> None:
    assert Percentage.check(text).fraction == fraction


@pytest.mark.parametrize(
    "text", ["", "10", "%", "-1%", "10 %", ".5%", "1.%", "1%%", "1" * 16 + "%"]
)
def test_no_percentages(text: str) -> None:
    with pytest.raises(ValueError, match="is not a percentage"):
        Percentage.check(text)


@pytest.mark.parametrize(("written", "value"), [(8, 8), ("8", 8), ("1k", 1000), ("500m", "1/2")])
def test_quantities(written: int | str, value: int | str) -> None:
    policy = parse_policy(edited(base(), {"spec.tenants[1].quota[0].nominal": written}))
    quantity = policy.spec.tenants[1].quota[0].nominal
    assert isinstance(quantity, Quantity)
    assert quantity.value == Fraction(value)
    dumped = policy.model_dump(mode="json", by_alias=True)
    assert dumped["spec"]["tenants"][1]["quota"][0]["nominal"] == (8 if written == "8" else written)
