"""Events: few, well-formed, never in the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from gpufair.api.kinds import GPU_SCHEDULING_POLICY, LOCAL_QUEUE
from gpufair.cluster.events import EventRecorder

ABOUT = {"name": "bank", "uid": "u-1", "labels": {}}


@pytest.fixture
def server(stub: Any) -> Any:
    async def handler(request: web.Request) -> web.StreamResponse:
        return web.json_response(await request.json())

    stub.handler = handler
    return stub


def recorder(client: Any, time: Any, **options: Any) -> EventRecorder:
    return EventRecorder(
        client, instance="pod-1", clock=time.clock,
        wall=lambda: datetime(2026, 12, 1, 8, tzinfo=UTC), **options,
    )  # fmt: skip


async def test_an_event_about_a_cluster_scoped_object(server: Any, client: Any, time: Any) -> None:
    made = recorder(client, time)
    made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", "12 objects", type_="Warning")
    await made.flush()
    (seen,) = server.seen
    assert seen.path == "/apis/events.k8s.io/v1/namespaces/default/events"
    name = seen.body["metadata"].pop("name")
    assert name.startswith("bank.")
    assert seen.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2026-12-01T08:00:00.000000Z",
        "type": "Warning",
        "reason": "Applied",
        "action": "Reconcile",
        "note": "12 objects",
        "regarding": {
            "apiVersion": "gpufair.io/v1alpha1",
            "kind": "GpuSchedulingPolicy",
            "name": "bank",
            "uid": "u-1",
        },
        "reportingController": "gpufair.io/operator",
        "reportingInstance": "pod-1",
    }


async def test_events_of_namespaced_objects_live_beside_them(
    server: Any, client: Any, time: Any
) -> None:
    made = recorder(client, time)
    made.record(LOCAL_QUEUE, {"name": "gpu", "namespace": "fraud"}, "Held", "x")
    await made.flush()
    assert "/namespaces/fraud/events" in server.seen[0].path
    assert server.seen[0].body["regarding"]["namespace"] == "fraud"


async def test_the_same_event_becomes_a_count(server: Any, client: Any, time: Any) -> None:
    made = recorder(client, time)
    for _ in range(9):
        made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", "same")
    made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", "other")
    await made.flush()
    posts = [seen for seen in server.seen if seen.method == "POST"]
    counts = [s.body["series"]["count"] for s in server.seen if s.method == "PATCH"]
    assert [seen.body["note"] for seen in posts] == ["same", "other"]
    assert counts == [2, 4, 8]
    time.now += 601
    made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", "same")
    await made.flush()
    assert server.seen[-1].method == "POST"


async def test_one_object_cannot_flood(server: Any, client: Any, time: Any) -> None:
    made = recorder(client, time, burst=3, refill=60.0)
    for number in range(10):
        made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", f"message {number}")
    made.record(GPU_SCHEDULING_POLICY, {"name": "other", "uid": "u-2"}, "Applied", "x")
    await made.flush()
    assert len(server.seen) == 4
    assert made.dropped == 7
    time.now += 120
    for number in range(10, 20):
        made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", f"message {number}")
    await made.flush()
    assert len(server.seen) == 6


@pytest.mark.parametrize("message", ["ä" * 2000, "x" * 2000, "y" * 1024, "\ud800"])
async def test_notes_fit_into_what_the_server_allows(
    server: Any, client: Any, time: Any, message: str
) -> None:
    made = recorder(client, time)
    made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", message)
    await made.flush()
    assert 0 < len(server.seen[0].body["note"].encode()) <= 1024


async def test_nothing_that_fails_reaches_the_caller(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    made = recorder(client, time)
    stub.script(tools.status(403, "Forbidden"), tools.status(422, "Invalid"), {})
    for number in range(3):
        made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", f"message {number}")
    await made.flush()
    made.record(None, ABOUT, "Applied", "no resource")  # type: ignore[arg-type]
    assert made.dropped >= 3


async def test_a_full_queue_drops(client: Any, time: Any) -> None:
    made = recorder(client, time, burst=10_000)
    for number in range(1_100):
        made.record(GPU_SCHEDULING_POLICY, ABOUT, "Applied", f"message {number}")
    assert made.dropped == 100
