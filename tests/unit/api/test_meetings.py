"""Which windows can hold at one moment."""

from typing import Any

import pytest

from gpufair.api.checks.meetings import may_meet
from gpufair.api.windows import Window


def weekly(days: str, start: str, end: str, zone: str = "UTC") -> Window:
    times = {"days": days.split(), "from": start, "to": end}
    return _window(zone, weekly=times)


def dated(start: str, end: str, zone: str = "UTC") -> Window:
    return _window(zone, dates={"from": start, "to": end})


def _window(zone: str, **when: Any) -> Window:
    return Window.model_validate({"name": "w", "timeZone": zone, **when})


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (weekly("Mon", "09:00", "12:00"), weekly("Mon", "12:00", "14:00"), False),
        (weekly("Mon", "09:00", "12:01"), weekly("Mon", "12:00", "14:00"), True),
        (weekly("Mon", "09:00", "12:00"), weekly("Tue", "09:00", "12:00"), False),
        (weekly("Sun", "22:00", "06:00"), weekly("Mon", "05:00", "07:00"), True),
        (weekly("Sun", "22:00", "06:00"), weekly("Mon", "06:00", "07:00"), False),
        (weekly("Mon", "09:00", "09:00"), weekly("Tue", "08:00", "08:30"), True),
        (weekly("Mon", "09:00", "10:00"), weekly("Mon", "09:00", "10:00", "Asia/Tokyo"), True),
        (dated("2027-01-01", "2027-02-01"), dated("2027-02-01", "2027-03-01"), False),
        (dated("2027-01-01", "2027-02-02"), dated("2027-02-01", "2027-03-01"), True),
        (
            dated("2027-01-01", "2027-02-01"),
            dated("2027-02-01", "2027-03-01", "Asia/Tokyo"),
            True,
        ),
        (
            dated("2027-01-01", "2027-02-01"),
            dated("2027-03-01", "2027-04-01", "Asia/Tokyo"),
            False,
        ),
        # 2027-01-04 is a Monday.
        (dated("2027-01-04", "2027-01-05"), weekly("Mon", "09:00", "10:00"), True),
        (dated("2027-01-04", "2027-01-05"), weekly("Tue", "00:00", "10:00"), False),
        (dated("2027-01-04", "2027-01-05"), weekly("Sun", "23:00", "01:00"), True),
        (dated("2027-01-04", "2027-01-11"), weekly("Wed", "00:00", "10:00"), True),
    ],
)
def test_windows_meet(one: Window, other: Window, meet: bool) -> None:
    assert may_meet(one, other) is meet
    assert may_meet(other, one) is meet
