"""Waiting for conditions, with deadlines."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SOON = 30.0
"""Seconds that anything may take on a busy machine of two cores."""


def until(
    check: Callable[[], T | None],
    what: str,
    seconds: float = SOON,
    hint: Callable[[], object] = str,
) -> T:
    """Return what `check` returns once that is true; fail with `what` and `hint()` otherwise."""
    give_up = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > give_up:
            raise AssertionError(f"after {seconds:.0f} s not true: {what}; {hint()}")
        time.sleep(0.05)


def elapsed(check: Callable[[], object], what: str, seconds: float = SOON) -> float:
    """Return after how many seconds `check` came true."""
    began = time.monotonic()
    until(check, what, seconds)
    return time.monotonic() - began
