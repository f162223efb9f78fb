"""Windows flip exactly at the transitions that they report, in any zone."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufair.api.windows import Day, Window
from gpufair.policies.windows import active, next_transition
from tests.unit.builders import utc, weekly, window, windows

ZONES = (
    "UTC",
    "America/New_York",
    "America/St_Johns",
    "America/Santiago",
    "Europe/Berlin",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Antarctica/Troll",
)
INSTANT = timedelta(microseconds=1)
times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.sampled_from((0, 1, 10, 30, 59)))
days = st.lists(st.sampled_from(list(Day)), min_size=1, unique=True).map(" ".join)
moments = st.datetimes(
    min_value=utc("2010-01-01T00:00").replace(tzinfo=None),
    max_value=utc("2035-01-01T00:00").replace(tzinfo=None),
    timezones=st.just(ZoneInfo("UTC")),
)
zones = st.sampled_from(ZONES)
dates = st.dates(min_value=utc("2010-01-01T00:00").date(), max_value=utc("2034-12-30T00:00").date())


@st.composite
def one_window(draw: st.DrawFn) -> Window:
    zone = draw(zones)
    if draw(st.booleans()):
        listed = windows(window(zone=zone, weekly=weekly(draw(days), draw(times), draw(times))))
    else:
        start = draw(dates)
        end = start + timedelta(days=draw(st.integers(1, 60)))
        listed = windows(window(zone=zone, dates={"from": str(start), "to": str(end)}))
    return listed[0]


@settings(deadline=None, max_examples=300)
@given(one_window(), moments)
def test_flips_exactly_at_the_reported_transitions(subject: Window, start: datetime) -> None:
    now, state = start, bool(active([subject], start))
    for _ in range(4):
        upcoming = next_transition([subject], now)
        if upcoming is None:
            return
        assert upcoming > now
        for portion in (0.25, 0.5, 0.75):
            assert bool(active([subject], now + (upcoming - now) * portion)) is state
        assert bool(active([subject], upcoming - INSTANT)) is state
        state = not state
        assert bool(active([subject], upcoming)) is state
        now = upcoming


@settings(deadline=None, max_examples=300)
@given(zones, days, times, times, moments)
def test_weekly_is_what_a_clock_on_the_wall_says(
    zone: str, listed: str, start: str, end: str, now: datetime
) -> None:
    """Away from jumps of the clock, the local time and weekday alone decide."""
    local = now.astimezone(ZoneInfo(zone))
    offsets = {
        (now + timedelta(hours=hours)).astimezone(ZoneInfo(zone)).utcoffset()
        for hours in range(-49, 50, 7)
    }
    if len(offsets) > 1:
        return
    names, clock = list(Day), local.strftime("%H:%M")
    today, yesterday = names[local.weekday()], names[local.weekday() - 1]
    if start < end:
        expected = today in listed and start <= clock < end
    else:
        expected = (today in listed and clock >= start) or (yesterday in listed and clock < end)
    subject = windows(window(zone=zone, weekly=weekly(listed, start, end)))
    assert bool(active(subject, now)) is expected


@settings(deadline=None, max_examples=200)
@given(zones, days, times, times, moments)
def test_a_weekly_window_that_is_shut_opens_within_two_weeks(
    zone: str, listed: str, start: str, end: str, now: datetime
) -> None:
    subject = windows(window(zone=zone, weekly=weekly(listed, start, end)))
    upcoming = next_transition(subject, now)
    if active(subject, now):
        return
    assert upcoming is not None
    assert upcoming - now <= timedelta(days=14, hours=2)
