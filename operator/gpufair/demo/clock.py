"""The day's time: 24 hours pass in a few minutes. Pure: the machine's clock is an argument.

Real times are readings of the monotonic clock, in seconds: all processes of a machine share it.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

ZONE = "America/New_York"
DATE = date(2026, 11, 17)
"""A Tuesday without a change of the clocks, and past: nothing on the cluster is from the future."""


@dataclass(frozen=True, slots=True)
class DayClock:
    """`minutes` real minutes are 24 hours; the day stands at midnight until `began`."""

    minutes: float
    began: float | None = None

    @property
    def speed(self) -> float:
        """How many seconds of the day pass in one real second."""
        return 24 * 60 / self.minutes

    def hour(self, real: float) -> float:
        """The hour of the day at a real time; it goes on past 24."""
        if self.began is None:
            return 0.0
        return max(0.0, real - self.began) * self.speed / 3600

    def due(self, hour: float) -> float:
        """The real time of an hour of the day.

        Raises ValueError when the day has not begun.
        """
        if self.began is None:
            raise ValueError("The day has not begun.")
        return self.began + self.real(hour)

    def real(self, hours: float) -> float:
        """How many real seconds so many hours of the day take."""
        return hours * 3600 / self.speed

    def moment(self, real: float) -> datetime:
        """The instant that the day's clock shows, in UTC."""
        midnight = datetime(DATE.year, DATE.month, DATE.day, tzinfo=ZoneInfo(ZONE))
        return midnight.astimezone(UTC) + timedelta(hours=self.hour(real))

    def to_json(self) -> str:
        """One line, for another process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "DayClock":
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def time_of_day(hour: float) -> str:
    """`07:30`; the end of the day is 24:00."""
    minutes = int(hour * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def span(hours: float) -> str:
    """A length of time: `45m`, `3h05m`."""
    minutes = round(hours * 60)
    return f"{minutes // 60}h{minutes % 60:02d}m" if minutes >= 60 else f"{minutes}m"
