"""What a user sees while something long runs: a live table on a terminal, lines in a pipe."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichBars
    from rich.progress import TaskID

LINE_EVERY = 30.0
"""Seconds between two lines about one step in a pipe."""


class Step(Protocol):
    """One piece of work, counted in units such as compiled packages."""

    def at(self, done: int, total: int) -> None:
        """Report how many of `total` units are done."""


class Progress(Protocol):
    """Reports steps; several may run at once."""

    def step(self, name: str, what: str) -> AbstractContextManager[Step]:
        """Report that `what` happens to `name` until the context ends."""

    def note(self, text: str) -> None:
        """Report something that is no step."""


class _Silent:
    def at(self, done: int, total: int) -> None:
        """Say nothing."""


class NoProgress:
    """Reports nothing: the default of the Python API."""

    @contextmanager
    def step(self, name: str, what: str) -> Iterator[Step]:  # noqa: ARG002
        """Say nothing."""
        yield _Silent()

    def note(self, text: str) -> None:
        """Say nothing."""


class _LineStep:
    def __init__(self, progress: "LineProgress", name: str) -> None:
        self._progress = progress
        self._name = name
        self._last = time.monotonic()

    def at(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last >= LINE_EVERY:
            self._last = now
            self._progress.note(f"{self._name}: {done} of {total}")


class LineProgress:
    """One line per beginning and end, and one every half minute, for pipes and CI logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @contextmanager
    def step(self, name: str, what: str) -> Iterator[Step]:
        """Print a line when the step begins and when it has ended well."""
        began = time.monotonic()
        self.note(f"{name}: {what} …")
        yield _LineStep(self, name)
        self.note(f"{name}: done in {_seconds(time.monotonic() - began)}")

    def note(self, text: str) -> None:
        """Print one line."""
        # One write, so that lines of steps that run at once do not mix.
        self._stream.write(f"{text}\n")
        self._stream.flush()


class _BarStep:
    def __init__(self, bars: "RichBars", task: "TaskID") -> None:
        self._bars = bars
        self._task = task

    def at(self, done: int, total: int) -> None:
        self._bars.update(self._task, completed=min(done, total), total=total)


class BarProgress:
    """A live table with a bar per step, for terminals. Use it as a context manager."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        self._bars = Progress(
            SpinnerColumn(finished_text="[green]✓[/green]"),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=stream),
        )

    def __enter__(self) -> "BarProgress":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def step(self, name: str, what: str) -> Iterator[Step]:
        """Show a bar that is full once the step has ended well."""
        task = self._bars.add_task(f"{name}: {what}", total=None)
        yield _BarStep(self._bars, task)
        total = self._bars.tasks[task].total or 1
        self._bars.update(task, total=total, completed=total)

    def note(self, text: str) -> None:
        """Print one line above the bars."""
        self._bars.console.print(text, markup=False, highlight=False)


@contextmanager
def shown(stream: TextIO = sys.stderr) -> Iterator[Progress]:
    """Yield the progress that suits the stream."""
    if stream.isatty():
        with BarProgress(stream) as bars:
            yield bars
    else:
        yield LineProgress(stream)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 60 else f"{int(value) // 60} min {int(value) % 60} s"
