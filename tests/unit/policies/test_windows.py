"""Windows: half-open, in their zone's local time, right where clocks jump."""

from datetime import datetime, timedelta
from fractions import Fraction

import pytest

from gpufair.api.windows import Window
from gpufair.policies.overrides import effective
from gpufair.policies.windows import active, next_transition, spans
from tests.unit.builders import policy, quota, utc, weekly, window, windows

MINUTE = timedelta(minutes=1)
INSTANT = timedelta(microseconds=1)
EVERY_DAY = "Mon Tue Wed Thu Fri Sat Sun"


def one(zone: str, days: str, start: str, end: str) -> list[Window]:
    return windows(window(zone=zone, weekly=weekly(days, start, end)))


def dated(zone: str, start: str, end: str) -> list[Window]:
    return windows(window(zone=zone, dates={"from": start, "to": end}))


def assert_holds_exactly(listed: list[Window], start: datetime, end: datetime) -> None:
    """The window holds from `start` to `end`, not an instant before or after, and says so."""
    assert not active(listed, start - INSTANT)
    assert active(listed, start)
    assert active(listed, end - INSTANT)
    assert not active(listed, end)
    assert next_transition(listed, start - INSTANT) == start
    assert next_transition(listed, start) == end
    assert next_transition(listed, end - INSTANT) == end


def test_weekly_holds_from_start_until_before_end() -> None:
    # 2026-12-01 is a Tuesday; New York is five hours behind UTC in winter.
    listed = one("America/New_York", "Tue", "09:00", "17:30")
    assert_holds_exactly(listed, utc("2026-12-01T14:00"), utc("2026-12-01T22:30"))


def test_weekly_holds_on_its_days_only() -> None:
    listed = one("UTC", "Mon Fri", "09:00", "10:00")
    held = [day for day in range(1, 8) if active(listed, utc(f"2026-12-0{day}T09:30"))]
    assert held == [4, 7]


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("UTC", "2026-12-01T09:00"),
        ("Asia/Kolkata", "2026-12-01T03:30"),
        ("Asia/Kathmandu", "2026-12-01T03:15"),
        ("Pacific/Kiritimati", "2026-11-30T19:00"),
        ("Pacific/Pago_Pago", "2026-12-01T20:00"),
        ("Pacific/Chatham", "2026-11-30T19:15"),
    ],
)
def test_weekly_is_local_time_of_its_zone(zone: str, start: str) -> None:
    begin = utc(start)
    assert_holds_exactly(one(zone, "Tue", "09:00", "10:00"), begin, begin + timedelta(hours=1))


def test_the_asking_zone_does_not_matter() -> None:
    listed = one("America/New_York", "Tue", "09:00", "17:30")
    moment = datetime.fromisoformat("2026-12-01T23:00:00+09:00")  # 14:00 UTC
    assert active(listed, moment)
    assert not active(listed, moment - INSTANT)


def test_across_midnight_belongs_to_the_day_it_starts_on() -> None:
    listed = one("Europe/Berlin", "Fri", "22:00", "06:00")
    assert_holds_exactly(listed, utc("2026-12-04T21:00"), utc("2026-12-05T05:00"))
    assert not active(listed, utc("2026-12-04T03:00"))  # Thursday's night is not Friday's


def test_from_equal_to_is_a_whole_day() -> None:
    listed = one("UTC", "Wed", "08:00", "08:00")
    assert_holds_exactly(listed, utc("2026-12-02T08:00"), utc("2026-12-03T08:00"))


def test_dates_hold_from_midnight_to_midnight() -> None:
    listed = dated("America/New_York", "2027-01-01", "2027-04-01")
    # The end is in summer time.
    assert_holds_exactly(listed, utc("2027-01-01T05:00"), utc("2027-04-01T04:00"))
    assert next_transition(listed, utc("2027-04-01T04:00")) is None


def test_dates_far_ahead_are_reported() -> None:
    assert next_transition(dated("UTC", "2031-01-01", "2031-01-02"), utc("2026-12-01T00:00")) == (
        utc("2031-01-01T00:00")
    )


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Europe/Berlin", "Pacific/Pago_Pago"])
def test_dates_at_the_ends_of_the_calendar(zone: str) -> None:
    always = dated(zone, "0001-01-01", "9999-12-31")
    assert active(always, utc("2026-12-01T00:00"))
    end = next_transition(always, utc("2026-12-01T00:00"))
    assert end is not None
    assert end.year == 9999
    assert not active(dated(zone, "0001-01-01", "0002-01-01"), utc("2026-12-01T00:00"))


def test_start_in_a_gap_is_the_first_instant_after_it() -> None:
    # Berlin's clocks jump from 02:00 to 03:00 at 01:00 UTC.
    listed = one("Europe/Berlin", "Sun", "02:20", "05:00")
    assert_holds_exactly(listed, utc("2026-03-29T01:00"), utc("2026-03-29T03:00"))


def test_end_in_a_gap_is_the_first_instant_after_it() -> None:
    listed = one("Europe/Berlin", "Sun", "01:00", "02:59")
    assert_holds_exactly(listed, utc("2026-03-29T00:00"), utc("2026-03-29T01:00"))


def test_gap_of_half_an_hour() -> None:
    # Lord Howe's clocks jump from 02:00 to 02:30, at 15:30 UTC of the day before.
    listed = one("Australia/Lord_Howe", "Sun", "02:10", "04:00")
    assert_holds_exactly(listed, utc("2026-10-03T15:30"), utc("2026-10-03T17:00"))


def test_gap_at_midnight() -> None:
    # Cairo's clocks jump from 00:00 to 01:00 on 2026-04-24, at 22:00 UTC of the day before.
    listed = dated("Africa/Cairo", "2026-04-24", "2026-04-25")
    assert_holds_exactly(listed, utc("2026-04-23T22:00"), utc("2026-04-24T21:00"))


def test_a_day_that_a_zone_skipped_never_was() -> None:
    # Samoa had no 2011-12-30, a Friday.
    listed = one("Pacific/Apia", "Fri", "09:00", "17:00")
    assert next_transition(listed, utc("2011-12-29T00:00")) == utc("2012-01-05T19:00")


def test_window_within_a_gap_is_void_and_the_next_one_is_reported() -> None:
    listed = one("Europe/Berlin", "Sun", "02:10", "02:50")
    after = utc("2026-03-22T12:00")
    assert not active(listed, utc("2026-03-29T01:00"))
    assert next_transition(listed, after) == utc("2026-04-05T00:10")


def test_repeated_hour_starts_at_the_first() -> None:
    # Berlin's clocks go from 03:00 back to 02:00 at 01:00 UTC.
    listed = one("Europe/Berlin", "Sun", "02:30", "06:00")
    assert_holds_exactly(listed, utc("2026-10-25T00:30"), utc("2026-10-25T05:00"))


def test_repeated_hour_ends_at_the_second() -> None:
    listed = one("Europe/Berlin", "Sun", "01:00", "02:30")
    assert_holds_exactly(listed, utc("2026-10-24T23:00"), utc("2026-10-25T01:30"))


def test_window_of_a_minute_in_a_repeated_hour_spans_both() -> None:
    listed = one("Europe/Berlin", "Sun", "02:30", "02:31")
    assert_holds_exactly(listed, utc("2026-10-25T00:30"), utc("2026-10-25T01:31"))


def test_always_open_has_no_transition() -> None:
    listed = one("Europe/Berlin", EVERY_DAY, "00:00", "00:00")
    start = utc("2026-03-20T00:00")
    for hours in range(0, 24 * 21, 5):  # across the gap
        now = start + timedelta(hours=hours)
        assert active(listed, now)
        assert next_transition(listed, now) is None


def test_days_that_touch_are_one_stretch() -> None:
    listed = one("UTC", "Mon Tue", "08:00", "08:00")
    assert next_transition(listed, utc("2026-11-30T08:00")) == utc("2026-12-02T08:00")


def test_all_but_one_day_ends_and_starts_again() -> None:
    listed = one("UTC", "Mon Tue Wed Thu Fri Sat", "00:00", "00:00")
    assert next_transition(listed, utc("2026-11-30T00:00")) == utc("2026-12-06T00:00")
    assert next_transition(listed, utc("2026-12-06T00:00")) == utc("2026-12-07T00:00")


def test_in_the_middle_of_a_window_the_answer_needs_no_past() -> None:
    """A restarted operator sees what one that ran all along sees."""
    listed = one("Asia/Tokyo", "Mon", "20:00", "19:59")
    assert [w.name for w in active(listed, utc("2026-12-01T10:58"))] == ["w"]
    assert next_transition(listed, utc("2026-12-01T10:58")) == utc("2026-12-01T10:59")


def test_active_keeps_the_order_of_the_list() -> None:
    always = weekly(EVERY_DAY, "00:00", "00:00")
    listed = windows(*(window(name, weekly=always) for name in ("z", "a", "m")))
    assert [w.name for w in active(listed, utc("2026-12-01T00:00"))] == ["z", "a", "m"]


def test_next_transition_is_the_earliest_of_all_windows() -> None:
    listed = windows(
        window("late", weekly=weekly("Tue", "15:00", "16:00")),
        window("early", weekly=weekly("Tue", "09:00", "13:00")),
    )
    assert next_transition(listed, utc("2026-12-01T12:00")) == utc("2026-12-01T13:00")


def test_no_windows_no_transition() -> None:
    assert active([], utc("2026-12-01T00:00")) == ()
    assert next_transition([], utc("2026-12-01T00:00")) is None


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-10-26", 24)]
)
def test_quota_over_a_day_counts_the_hours_that_the_day_has(day: str, hours: int) -> None:
    """GPU-hours of a tenant that has 10 at night (20:00 to 06:00) and 4 by day, over one day."""
    night = window(
        zone="Europe/Berlin",
        weekly=weekly(EVERY_DAY, "20:00", "06:00"),
        tenants=[{"name": "nlp", "quota": [quota(10)]}],
    )
    spec = policy(windows=[night]).spec
    (whole,) = spans(dated("Europe/Berlin", day, _next_day(day))[0], utc(f"{day}T12:00"))
    total, now = Fraction(0), whole.start
    while now < whole.end:
        until = min(next_transition(spec.windows, now) or whole.end, whole.end)
        there = effective(spec, active(spec.windows, now)).tenants[0].quota[0].nominal.value
        total += there * Fraction((until - now) // MINUTE, 60)
        now = until
    by_day = 14 * 4
    assert (whole.end - whole.start) == timedelta(hours=hours)
    assert total == by_day + (hours - 14) * 10


def _next_day(day: str) -> str:
    return (datetime.fromisoformat(day) + timedelta(days=1)).date().isoformat()
