"""Where the live view goes: redrawn on a terminal, a line now and then in a pipe."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from gpufair.demo import view
from gpufair.demo.events import Event
from gpufair.demo.view import Now

if TYPE_CHECKING:
    from rich.live import Live

LINE_EVERY = 5.0
"""Real seconds between two lines in a pipe."""


class Screen(Protocol):
    """Shows the day as it goes on."""

    def show(self, now: Now) -> None:
        """Show a moment."""

    def tell(self, event: Event) -> None:
        """An event's text is final."""


class Lines:
    """For pipes and CI logs."""

    def __init__(self, stream: TextIO, every: float = LINE_EVERY) -> None:
        self._stream = stream
        self._every = every
        self._last = float("-inf")

    def show(self, now: Now) -> None:
        """Print the moment, unless the last one was just printed."""
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self._print(view.line(now))

    def tell(self, event: Event) -> None:
        """Print the event."""
        self._print(view.event_line(event))

    def _print(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Redrawn:
    """For terminals."""

    def __init__(self, live: "Live") -> None:
        self._live = live

    def show(self, now: Now) -> None:
        """Draw the moment."""
        self._live.update(view.frame(now, self._live.console.height), refresh=True)

    def tell(self, event: Event) -> None:
        """Nothing: the frame has it."""


@contextmanager
def shown(stream: TextIO) -> Iterator[Screen]:
    """Yield the screen that suits the stream."""
    if not stream.isatty():
        yield Lines(stream)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), auto_refresh=False, transient=True) as live:
        yield Redrawn(live)
