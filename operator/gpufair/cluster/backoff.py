"""How long to wait before the next attempt: exponential, capped, jittered."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Jitter = Callable[[], float]  # a number in [0, 1), as random.random


@dataclass(slots=True)
class Backoff:
    """Pauses that double from `first` to `cap` seconds, each between half and all of itself.

    A server that says how long to wait is taken at its word, with a little jitter on top so that
    those it turned away together do not return together.
    """

    first: float = 0.2
    cap: float = 30.0
    jitter: Jitter = random.random
    attempt: int = 0

    def pause(self, retry_after: float | None = None) -> float:
        """Seconds to wait before the next attempt; every call counts as a failed one."""
        full = min(self.cap, self.first * 2.0 ** min(self.attempt, 32))
        self.attempt += 1
        if retry_after is not None:
            return retry_after + self.jitter() * min(1.0, 0.1 * retry_after)
        return full * (0.5 + 0.5 * self.jitter())

    def reset(self) -> None:
        """Start over after a success."""
        self.attempt = 0
