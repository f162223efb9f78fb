"""Windows that meet: what they say together must be as valid as what each says alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from itertools import combinations

from gpufair.api.checks.context import Context
from gpufair.api.checks.quota import Key
from gpufair.api.problems import Problem, error
from gpufair.api.windows import Dates, Day, QuotaOverride, Weekly, Window

_WEEK = 7 * 24 * 60
_DAYS = tuple(Day)
_SLACK = timedelta(days=2)  # more than any two zones are apart


def lending_above_nominal_of_two(context: Context) -> Iterator[Problem]:
    """One window states nominal, another that meets it the lendingLimit; a later one wins."""
    windows = context.spec.windows
    for first, second in combinations(range(len(windows)), 2):
        if may_meet(windows[first], windows[second]):
            yield from _together(context, first, second)


def _together(context: Context, first: int, second: int) -> Iterator[Problem]:
    earlier, later = (_overrides(context, context.spec.windows[i]) for i in (first, second))
    for owner, key in sorted(earlier.keys() & later.keys()):
        (path, one), (other_path, two) = earlier[owner, key], later[owner, key]
        nominal = two.nominal or one.nominal
        limit = two.lending_limit or one.lending_limit
        mixed = (two.nominal is None) != (two.lending_limit is None)
        if mixed and nominal and limit and limit.value > nominal.value:
            field = "lendingLimit" if two.lending_limit else "nominal"
            yield error(
                f"{other_path}.{field}",
                f"leaves {owner} a lendingLimit of {limit} above nominal {nominal} while"
                f" {path.partition('.tenants')[0]} holds too: state both in the later window",
            )


def _overrides(
    context: Context, window: Window
) -> dict[tuple[str, Key], tuple[str, QuotaOverride]]:
    index = next(i for i, w in enumerate(context.spec.windows) if w is window)
    found = {}
    for position, tenant in enumerate(window.tenants):
        for number, quota in enumerate(tenant.quota):
            resource = context.resource(quota)
            if resource is not None:
                path = f"spec.windows[{index}].tenants[{position}].quota[{number}]"
                found[tenant.name, (quota.flavor, resource)] = (path, quota)
    return found


def may_meet(one: Window, other: Window) -> bool:
    """Whether there can be a moment at which both hold; in doubt, yes.

    Within one zone it is exact but for the hour that DST adds or takes; across zones, dates are
    compared with two days of slack, and weekly times are taken to meet.
    """
    same = one.time_zone == other.time_zone
    if one.dates and other.dates:
        return _dates_meet(one.dates, other.dates, timedelta(0) if same else _SLACK)
    if one.weekly and other.weekly:
        return not same or _weeks_meet(one.weekly, other.weekly)
    dates, weekly = one.dates or other.dates, one.weekly or other.weekly
    return not (same and dates and weekly) or _mixed_meet(dates, weekly)


def _dates_meet(one: Dates, other: Dates, slack: timedelta) -> bool:
    (a, b), (c, d) = _range(one), _range(other)
    return a < d + slack and c < b + slack


def _range(dates: Dates) -> tuple[datetime, datetime]:
    try:
        days = date.fromisoformat(dates.from_), date.fromisoformat(dates.to)
    except ValueError:  # refused elsewhere
        days = date.min, date.min
    return datetime.combine(days[0], time()), datetime.combine(days[1], time())


def _weeks_meet(one: Weekly, other: Weekly) -> bool:
    return any(
        (start - begin) % _WEEK < length or (begin - start) % _WEEK < duration
        for begin, length in _stretches(one)
        for start, duration in _stretches(other)
    )


def _stretches(weekly: Weekly) -> list[tuple[int, int]]:
    """Start and length of each day's stretch, in minutes of the week."""
    begin, end = _minutes(weekly.from_), _minutes(weekly.to)
    length = end - begin if end > begin else end - begin + 24 * 60
    return [(_DAYS.index(day) * 24 * 60 + begin, length) for day in weekly.days]


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)


def _mixed_meet(dates: Dates, weekly: Weekly) -> bool:
    begin, end = _range(dates)
    if end - begin >= timedelta(days=7):
        return True
    first = (begin.weekday() * 24 * 60, int((end - begin).total_seconds() // 60))
    return any(
        (start - first[0]) % _WEEK < first[1] or (first[0] - start) % _WEEK < length
        for start, length in _stretches(weekly)
    )


CHECKS = (lending_above_nominal_of_two,)
