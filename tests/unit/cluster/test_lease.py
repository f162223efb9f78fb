"""Leader election: one holder at a time, whatever clocks and networks do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from gpufair.cluster.lease import LeaderElection, NotLeaderError, default_identity


class LeaseServer:
    """One Lease with optimistic locking."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.writes = 0

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        found: dict[str, Any] = self.lease["spec"]
        return found

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            return web.json_response({}, status=500)
        if request.method == "GET":
            return web.json_response(self.lease or {}, status=200 if self.lease else 404)
        body = await request.json()
        if request.method == "POST":
            if self.lease is not None:
                return web.json_response({"reason": "AlreadyExists"}, status=409)
            self.lease = {"metadata": body["metadata"], "spec": {}}
        else:
            assert self.lease is not None
            if body["metadata"]["resourceVersion"] != str(self.version):
                return web.json_response({"reason": "Conflict"}, status=409)
        self.version += 1
        self.writes += 1
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        self.lease["spec"] |= body["spec"]
        return web.json_response(self.lease)


class Ticks:
    """A clock that tests move; sleepers wake when it has passed their time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleepers: list[tuple[float, asyncio.Event]] = []

    def clock(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 12, 1, tzinfo=UTC) + timedelta(seconds=self.now)

    async def sleep(self, seconds: float) -> None:
        due = asyncio.Event()
        entry = (self.now + seconds, due)
        self.sleepers.append(entry)
        try:
            await due.wait()
        finally:
            self.sleepers.remove(entry)

    async def advance(self, seconds: float, tools: Any, contenders: int) -> None:
        """Move on in small steps, each time letting everybody finish what they do."""
        end = self.now + seconds
        while self.now < end:
            await tools.until(lambda: len(self.sleepers) == contenders)
            self.now = min(end, self.now + 0.5)
            for at, due in list(self.sleepers):
                if at <= self.now:
                    due.set()
            await asyncio.sleep(0)
        await tools.until(
            lambda: len([s for s in self.sleepers if not s[1].is_set()]) == contenders
        )


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def server(stub: Any) -> LeaseServer:
    made = LeaseServer()
    stub.handler = made
    return made


def contender(client: Any, ticks: Ticks, identity: str, **options: Any) -> LeaderElection:
    return LeaderElection(
        client, namespace="gpufair-system", identity=identity, clock=ticks.clock,
        wall=ticks.wall, sleep=ticks.sleep, jitter=lambda: 0.5, **options,
    )  # fmt: skip


@asynccontextmanager
async def crashing(lease: LeaderElection) -> AsyncIterator[asyncio.Task[None]]:
    """Run without giving the Lease back at the end."""

    async def keep() -> None:
        pass

    lease._give_back = keep  # type: ignore[method-assign]
    task = asyncio.create_task(lease.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_first_takes_it_and_the_gate_opens(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    changes: list[bool] = []
    lease = contender(client, ticks, "a", on_change=changes.append)
    with pytest.raises(NotLeaderError, match=r"gpufair-system/gpufair is not held"):
        await lease.ensure_leader()
    async with lease.running():
        async with asyncio.timeout(5):
            await lease.acquired()
        await lease.ensure_leader()
        await tools.until(lambda: changes)
        assert server.spec["holderIdentity"] == "a"
        assert server.spec["leaseDurationSeconds"] == 15
        assert server.spec["leaseTransitions"] == 0
        assert server.spec["renewTime"] == "2026-12-01T00:00:00.000000Z"
        await ticks.advance(20, tools, 1)
        assert lease.is_leader
        assert server.spec["renewTime"] == "2026-12-01T00:00:20.000000Z"
        assert server.spec["acquireTime"] == "2026-12-01T00:00:00.000000Z"
        assert server.writes == 11
    assert changes == [True, False]
    assert server.spec["holderIdentity"] == ""
    with pytest.raises(NotLeaderError):
        await lease.ensure_leader()


async def test_the_second_waits_and_takes_over_after_a_stop(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    first, second = contender(client, ticks, "a"), contender(client, ticks, "b")
    async with first.running():
        await tools.until(lambda: first.is_leader)
        async with second.running():
            await ticks.advance(60, tools, 2)
            assert first.is_leader
            assert not second.is_leader
            with pytest.raises(NotLeaderError, match="held by a"):
                await second.ensure_leader()
    third = contender(client, ticks, "c")
    async with third.running():
        await tools.until(lambda: third.is_leader)
        assert server.spec["leaseTransitions"] == 1


async def test_a_crashed_holder_is_replaced_after_its_lease_and_not_before(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    first, second = contender(client, ticks, "a"), contender(client, ticks, "b")
    async with crashing(first):
        await tools.until(lambda: first.is_leader and ticks.sleepers)
    async with second.running():
        await ticks.advance(14, tools, 1)
        assert not second.is_leader
        await ticks.advance(4, tools, 1)
        assert second.is_leader
        assert server.spec["holderIdentity"] == "b"
        assert server.spec["leaseTransitions"] == 1


async def test_a_holder_cut_off_stops_before_another_starts(
    server: LeaseServer, stub: Any, client: Any, ticks: Ticks, tools: Any
) -> None:
    changes: list[bool] = []
    lease = contender(client, ticks, "a", on_change=changes.append)
    async with lease.running():
        await tools.until(lambda: lease.is_leader and ticks.sleepers)
        server.down = True
        await ticks.advance(9.5, tools, 1)
        await lease.ensure_leader()
        await ticks.advance(1, tools, 1)
        with pytest.raises(NotLeaderError):
            await lease.ensure_leader()
        assert changes == [True, False]
        server.down = False
        await ticks.advance(3, tools, 1)
        await lease.ensure_leader()
        assert changes == [True, False, True]


async def test_a_stolen_lease_closes_the_gate_when_it_runs_out(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    lease = contender(client, ticks, "a")
    async with lease.running():
        await tools.until(lambda: lease.is_leader and ticks.sleepers)
        server.version += 1
        assert server.lease is not None
        server.lease["metadata"]["resourceVersion"] = str(server.version)
        server.spec["holderIdentity"] = "thief"
        await ticks.advance(11, tools, 1)
        assert not lease.is_leader
        assert lease.holder == "thief"
        assert server.spec["holderIdentity"] == "thief"


async def test_two_that_start_together_never_lead_together(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    both = [contender(client, ticks, name) for name in "ab"]
    async with both[0].running(), both[1].running():
        for _ in range(40):
            await ticks.advance(1, tools, 2)
            assert sum(lease.is_leader for lease in both) == 1


async def test_the_end_of_a_task_group_gives_the_lease_back(
    server: LeaseServer, client: Any, ticks: Ticks, tools: Any
) -> None:
    lease = contender(client, ticks, "a")

    async def fail() -> None:
        await lease.acquired()
        raise RuntimeError("a loop died")

    async def loops() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(lease.run())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        await loops()
    assert server.spec["holderIdentity"] == ""


def test_durations_that_allow_two_holders_are_refused(client: Any) -> None:
    with pytest.raises(ValueError, match="retry_period < renew_deadline < lease_duration"):
        LeaderElection(client, namespace="x", lease_duration=10, renew_deadline=10)


def test_identities_differ_between_processes_of_one_host() -> None:
    assert default_identity() != default_identity()
