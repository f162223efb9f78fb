"""Adds up a figure over time: its integral, its peak, its mean in each half hour. Pure."""

from collections.abc import Sequence

BUCKET = 0.5
"""Hours."""


class Meter:
    """A figure that stays as it is until it is set anew; times in hours, never backwards."""

    def __init__(self) -> None:
        self.value = 0
        self.peak = 0
        self.total = 0.0
        """Integral so far: units times hours."""
        self._hour = 0.0
        self._buckets: list[float] = []

    def set(self, hour: float, value: int) -> None:
        """From `hour` on, the figure is `value`."""
        self.advance(hour)
        self.value = value
        self.peak = max(self.peak, value)

    def advance(self, hour: float) -> None:
        """The figure has not changed until `hour`."""
        while self._hour < hour:
            index = int(self._hour / BUCKET)
            end = min(hour, (index + 1) * BUCKET)
            self._buckets.extend([0.0] * (index + 1 - len(self._buckets)))
            added = self.value * (end - self._hour)
            self._buckets[index] += added
            self.total += added
            self._hour = end

    def means(self) -> Sequence[float]:
        """The mean of each half hour from midnight on; the last may be a part of one."""
        lengths = [BUCKET] * len(self._buckets)
        if lengths:
            lengths[-1] = self._hour - BUCKET * (len(lengths) - 1)
        return [area / length for area, length in zip(self._buckets, lengths, strict=True)]
