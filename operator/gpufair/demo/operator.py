"""The operator with the day's clock: `gpufair run`, but windows open and close in compressed time.

A process of its own. Its standard input brings lines, each the day's clock as JSON; it stops when
that input ends, so that it never outlives the demo.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator
from datetime import datetime

import kopf

import gpufair.handlers  # noqa: F401 (registers the handlers)
from gpufair.cluster.client import Client
from gpufair.demo.clock import DayClock
from gpufair.errors import GpufairError
from gpufair.loops.runtime import Runtime
from gpufair.settings import Settings

_LOOK = 0.25
"""Real seconds between two looks at what the day's clock asks for."""


class PlayedClock:
    """The day's clock as last heard of."""

    def __init__(self, clock: DayClock) -> None:
        self.clock = clock

    def now(self) -> datetime:
        return self.clock.moment(time.monotonic())


async def _follow(runtime: Runtime) -> None:
    """Reconcile often: the queue's timers know nothing of a day that passes in minutes."""
    while True:
        await asyncio.sleep(_LOOK)
        runtime.reconcile_all()


async def _main(kubeconfig: str, clock: DayClock) -> None:
    stop = asyncio.Event()
    async with Client.from_kubeconfig(kubeconfig) as client:
        played = PlayedClock(clock)
        runtime = Runtime(client, Settings(), played.now)
        async with asyncio.TaskGroup() as group:
            loops = group.create_task(runtime.run())
            beside = [group.create_task(work) for work in (_follow(runtime), _listen(played, stop))]
            memo = kopf.Memo(runtime=runtime, task=loops)
            await kopf.operator(clusterwide=True, standalone=True, memo=memo, stop_flag=stop)
            for task in (loops, *beside):
                task.cancel()


async def _listen(played: PlayedClock, stop: asyncio.Event) -> None:
    async for line in _lines():
        played.clock = DayClock.from_json(line)
    stop.set()


async def _lines() -> AsyncIterator[str]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode()


def main() -> None:
    """Run until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--clock", required=True, type=DayClock.from_json)
    options = parser.parse_args()
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kopf").setLevel(logging.WARNING)
    try:
        asyncio.run(_main(options.kubeconfig, options.clock))
    except* GpufairError as group:
        sys.exit(f"gpufair: {group.exceptions[0]}")


if __name__ == "__main__":
    main()
