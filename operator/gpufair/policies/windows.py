"""When windows hold: half-open stretches of time in an IANA zone, right across DST.

A local time that a zone skips means the first instant after the gap. One that occurs twice
starts a window at the first and ends it at the second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from whenever import (
    Date,
    Instant,
    PlainDateTime,
    RepeatedTime,
    SkippedTime,
    Time,
    ZonedDateTime,
)

from gpufair.api.windows import Day, Window

_WEEKDAYS = tuple(Day)
_LOOK_BACK = 2  # days: a window of 24 h in any zone that began earlier has ended
_LOOK_AHEAD = 17  # days: a weekly window starts again within 14, also where a gap voids one start
_HORIZON = timedelta(days=15)
_EARLIEST = Date(1900, 1, 1)  # in the year 1 some zones' midnights lie before what UTC can say


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in UTC, `end` excluded."""

    start: datetime
    end: datetime

    def holds(self, now: datetime) -> bool:
        return self.start <= now < self.end


def active(windows: Sequence[Window], now: datetime) -> tuple[Window, ...]:
    """The windows that hold at `now`, in the order of the list."""
    return tuple(w for w in windows if any(span.holds(now) for span in spans(w, now)))


def next_transition(windows: Sequence[Window], now: datetime) -> datetime | None:
    """The first instant after `now` at which a window starts or ends; None when none will."""
    return min((edge for w in windows for edge in _edges(w, now) if edge > now), default=None)


def _edges(window: Window, now: datetime) -> Iterator[datetime]:
    # A weekly window that never closes is looked at for a few days only: where that view ends,
    # the window does not.
    horizon = now + _HORIZON if window.weekly else datetime.max.replace(tzinfo=UTC)
    for span in spans(window, now):
        yield from (edge for edge in (span.start, span.end) if edge <= horizon)


def spans(window: Window, now: datetime) -> list[Span]:
    """The stretches of the window about `now`: the present one, if any, and at least the next.

    Stretches that touch or overlap are one, so that no transition is reported where none is.
    """
    zone = window.time_zone
    local = Instant(now).to_tz(zone).date()
    pairs = _weekly(window, local) if window.weekly else _dated(window)
    found = sorted(
        (
            Span(_resolve(start, zone, ending=False), _resolve(end, zone, ending=True))
            for start, end in pairs
        ),
        key=lambda span: span.start,
    )
    return _merged([span for span in found if span.start < span.end])


def _weekly(window: Window, today: Date) -> Iterator[tuple[PlainDateTime, PlainDateTime]]:
    assert window.weekly is not None
    begin, end = Time(window.weekly.from_), Time(window.weekly.to)
    for offset in range(-_LOOK_BACK, _LOOK_AHEAD + 1):
        date = today.add(days=offset)
        if _WEEKDAYS[date.day_of_week().value - 1] in window.weekly.days:
            last = date if end > begin else date.add(days=1)
            yield date.at(begin), last.at(end)


def _dated(window: Window) -> Iterator[tuple[PlainDateTime, PlainDateTime]]:
    assert window.dates is not None
    start, end = (max(Date(day), _EARLIEST) for day in (window.dates.from_, window.dates.to))
    midnight = Time(0)
    yield start.at(midnight), end.at(midnight)


def _resolve(local: PlainDateTime, zone: str, *, ending: bool) -> datetime:
    try:
        exact = local.assume_tz(zone, disambiguation="raise")
    except RepeatedTime:
        exact = local.assume_tz(zone, disambiguation="later" if ending else "earlier")
    except SkippedTime:
        exact = _after_gap(local, zone)
    return exact.to_stdlib().astimezone(UTC)


def _after_gap(local: PlainDateTime, zone: str) -> ZonedDateTime:
    """The instant at which the zone's clocks jumped over `local`, found by bisection."""
    low = local.assume_tz(zone, disambiguation="earlier").timestamp()
    high = local.assume_tz(zone, disambiguation="later").timestamp()
    before = Instant.from_timestamp(low).to_tz(zone).offset
    while high - low > 1:
        middle = (low + high) // 2
        if Instant.from_timestamp(middle).to_tz(zone).offset == before:
            low = middle
        else:
            high = middle
    return Instant.from_timestamp(high).to_tz(zone)


def _merged(found: list[Span]) -> list[Span]:
    merged = found[:1]
    for _, span in pairwise(found):
        if span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
