"""A queue of keys to reconcile: level-based, one worker per key, as controllers expect.

A key that is added while it is worked on is worked on once more afterwards; additions in between
are one. Failures come back with a growing delay. Modelled on client-go's rate-limited work queue.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gpufair.errors import GpufairError

_LOG = logging.getLogger(__name__)
Work = Callable[[str], Awaitable[float | None]]
"""Does the work of a key; returns after how many seconds to do it again, None for never."""


class WorkQueue:
    """Runs `work(key)` for added keys until cancelled.

    `first_delay` and `most_delay` bound the seconds between repeated failures of a key.
    """

    def __init__(self, work: Work, *, first_delay: float = 0.5, most_delay: float = 30.0) -> None:
        self._work = work
        self._first_delay = first_delay
        self._most_delay = most_delay
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def add(self, key: str) -> None:
        """Work on the key as soon as possible."""
        if key in self._running:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.put_nowait(key)

    def add_after(self, key: str, delay: float) -> None:
        """Work on the key in `delay` seconds, or sooner when something else asks for it sooner."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= loop.time() + delay:
                return
            timer.cancel()
        self._timers[key] = loop.call_later(delay, self._due, key)

    async def run(self, workers: int = 4) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker())

    def _due(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def _worker(self) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            self._running.add(key)
            try:
                await self._once(key)
            finally:
                self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    async def _once(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        try:
            again = await self._work(key)
        except Exception as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(self._first_delay * 2 ** min(failures - 1, 30), self._most_delay)
            # What the cluster answered is told in a line; only our own faults need a trace.
            trace = None if isinstance(error, GpufairError) else error
            _LOG.warning("%s, again in %.1f s: %s", key, delay, error, exc_info=trace)
            self.add_after(key, delay)
            return
        self._failures.pop(key, None)
        if again is not None:
            self.add_after(key, again)
