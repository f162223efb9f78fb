"""The queue: one worker per key, additions merged, failures with growing delays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpufair.errors import GpufairError
from gpufair.loops.workqueue import WorkQueue


class Worker:
    """Notes the keys worked on; a key waits at its gate while that is shut, and may fail."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.running: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers: list[float | Exception | None] = []

    async def __call__(self, key: str) -> float | None:
        assert key not in self.running, "two workers on one key"
        self.running.append(key)
        await self.gate.wait()
        self.running.remove(key)
        self.done.append(key)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.done) < count:
                await asyncio.sleep(0)

    async def began(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.running) < count:
                await asyncio.sleep(0)


@asynccontextmanager
async def running(queue: WorkQueue, workers: int = 4) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(workers))
    try:
        yield
        assert not task.done(), "the queue has ended by itself"
    finally:
        task.cancel()
        await asyncio.wait([task])


async def settle() -> None:
    """Let everything run that can run now."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_key_is_worked_on_once() -> None:
    worker = Worker()
    queue = WorkQueue(worker)
    queue.add("a")
    async with running(queue):
        await worker.reached(1)
        await settle()
    assert worker.done == ["a"]


async def test_additions_before_the_work_are_one() -> None:
    worker = Worker()
    queue = WorkQueue(worker)
    for _ in range(5):
        queue.add("a")
    async with running(queue):
        await worker.reached(1)
        await settle()
    assert worker.done == ["a"]


async def test_additions_during_the_work_are_one_more() -> None:
    worker = Worker()
    worker.gate.clear()
    queue = WorkQueue(worker)
    queue.add("a")
    async with running(queue):
        await worker.began(1)
        for _ in range(5):
            queue.add("a")
        worker.gate.set()
        await worker.reached(2)
        await settle()
    assert worker.done == ["a", "a"]


async def test_different_keys_run_at_once_and_a_key_never_twice() -> None:
    worker = Worker()
    worker.gate.clear()
    queue = WorkQueue(worker)
    async with running(queue, workers=3):
        for key in "abca":
            queue.add(key)
        await worker.began(3)
        queue.add("a")
        await settle()
        assert sorted(worker.running) == ["a", "b", "c"]
        worker.gate.set()
        await worker.reached(4)
    assert sorted(worker.done) == ["a", "a", "b", "c"]


async def test_the_answer_says_when_to_work_on_it_again() -> None:
    worker = Worker()
    worker.answers = [0.0, None]
    queue = WorkQueue(worker)
    queue.add("a")
    async with running(queue):
        await worker.reached(2)
        await settle()
    assert worker.done == ["a", "a"]


async def test_an_addition_overtakes_the_timer_and_cancels_it() -> None:
    worker = Worker()
    queue = WorkQueue(worker)
    async with running(queue):
        queue.add_after("a", 0.02)
        queue.add("a")
        await worker.reached(1)
        await _passed(0.04)
    assert worker.done == ["a"]


async def test_the_sooner_of_two_timers_counts() -> None:
    worker = Worker()
    queue = WorkQueue(worker)
    async with running(queue):
        queue.add_after("a", 3600)
        queue.add_after("a", 0)
        queue.add_after("a", 3600)
        await worker.reached(1)
    assert worker.done == ["a"]


async def test_a_timer_that_fires_during_the_work_brings_it_back() -> None:
    worker = Worker()
    worker.gate.clear()
    queue = WorkQueue(worker)
    queue.add("a")
    async with running(queue):
        await worker.began(1)
        queue.add_after("a", 0)
        await _passed(0.01)
        worker.gate.set()
        await worker.reached(2)


async def test_a_failure_comes_back_and_harms_no_other_key() -> None:
    worker = Worker()
    worker.answers = [RuntimeError("broken"), None, None]
    queue = WorkQueue(worker, first_delay=0)
    queue.add("a")
    queue.add("b")
    async with running(queue, workers=1):
        await worker.reached(3)
    assert worker.done == ["a", "b", "a"]


def delays(queue: WorkQueue, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(queue, "add_after", lambda _, delay: found.append(delay))
    return found


async def test_delays_double_up_to_a_most_and_success_resets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Worker()
    worker.answers = [*[GpufairError("No.")] * 5, None, GpufairError("No.")]
    queue = WorkQueue(worker, first_delay=1, most_delay=6)
    found = delays(queue, monkeypatch)
    async with running(queue):
        for count in range(1, 8):
            queue.add("a")
            await worker.reached(count)
            await settle()
    assert found == [1, 2, 4, 6, 6, 1]


async def test_thousands_of_failures_do_not_end_the_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Worker()
    worker.answers = [GpufairError("No.")]
    queue = WorkQueue(worker, most_delay=30)
    queue._failures["a"] = 5000
    found = delays(queue, monkeypatch)
    queue.add("a")
    async with running(queue):
        await worker.reached(1)
        await settle()
    assert found == [30]


@pytest.mark.parametrize(("failure", "trace"), [(GpufairError("No."), False), (KeyError(1), True)])
async def test_only_our_own_faults_leave_a_trace(
    failure: Exception, trace: bool, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker()
    worker.answers = [failure]
    queue = WorkQueue(worker, first_delay=3600, most_delay=3600)
    queue.add("a")
    async with running(queue):
        await worker.reached(1)
        await settle()
    (record,) = caplog.records
    assert record.getMessage().startswith("a, again in 3600.0 s: ")
    assert bool(record.exc_info) is trace


async def _passed(seconds: float) -> None:
    """Until the loop's own clock has passed a timer of that length."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, done.set)
    await done.wait()
