"""The informer under everything that happens to watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gpufair.api.kinds import LOCAL_QUEUE
from gpufair.cluster.informer import Change, Informer


@dataclass(frozen=True, slots=True)
class Slim:
    """All that these tests keep of an object."""

    name: str
    value: int


def slim(item: dict[str, Any]) -> Slim:
    return Slim(item["metadata"]["name"], item.get("value", 0))


class View:
    """An informer on a fake kind, and the events it told."""

    def __init__(self, client: Any, stub: Any, kind: Any, time: Any, **options: Any) -> None:
        stub.handler = kind
        self.kind = kind
        self.events: list[tuple[str, Slim | None, Slim | None]] = []
        self.presence: list[bool] = []
        self.informer: Informer[Slim] = Informer(
            client,
            LOCAL_QUEUE,
            slim=options.pop("slim", slim),
            on_change=lambda change, old, new: self.events.append((change.value, old, new)),
            on_presence=self.presence.append,
            clock=time.clock,
            sleep=options.pop("sleep", time.sleep),
            jitter=lambda: 0.0,
            **options,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Informer[Slim]]:
        task = asyncio.create_task(self.informer.run())
        try:
            async with asyncio.timeout(10):
                await self.informer.synced()
            yield self.informer
            assert not task.done(), "the informer ended"
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def told(self) -> list[tuple[str, Slim | None, Slim | None]]:
        events, self.events = self.events, []
        return events

    def names(self) -> set[str]:
        return {record.name for record in self.informer.store.values()}


Make = Callable[..., View]


async def test_lists_by_pages_and_then_watches(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time, page_size=2)
    for number in range(5):
        view.kind.put(f"q{number}", "ns", value=number)
    async with view.running() as informer:
        assert dict(informer.store) == {("ns", f"q{n}"): Slim(f"q{n}", n) for n in range(5)}
        assert view.kind.lists == 3
        assert view.told() == [("added", None, Slim(f"q{n}", n)) for n in range(5)]
        view.kind.put("q1", "ns", value=7)
        view.kind.remove("q2", "ns")
        view.kind.put("new", "ns")
        await tools.until(lambda: len(view.events) == 3)
        assert view.told() == [
            ("modified", Slim("q1", 1), Slim("q1", 7)),
            ("deleted", Slim("q2", 2), None),
            ("added", None, Slim("new", 0)),
        ]
        assert informer.get("new", "ns") == Slim("new", 0)
        assert informer.get("q2", "ns") is None
    assert informer.lists == 1


async def test_a_change_that_the_record_does_not_show_is_not_told(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    view.kind.put("a", "ns", value=1)
    async with view.running():
        view.told()
        view.kind.put("a", "ns", value=1, noise="x")
        view.kind.put("a", "ns", value=2)
        await tools.until(lambda: view.events)
        assert view.told() == [("modified", Slim("a", 1), Slim("a", 2))]


async def test_a_dropped_connection_goes_on_where_it_was(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    async with view.running() as informer:
        for number in range(3):
            await tools.until(lambda: view.kind.watches == informer.watches)
            view.kind.put(f"before{number}", "ns")
            await tools.until(lambda wanted=number: f"before{wanted}" in view.names())
            view.kind.drop()
            view.kind.put(f"between{number}", "ns")
            await tools.until(lambda wanted=number: f"between{wanted}" in view.names())
        assert informer.lists == 1
        assert informer.watches >= 4
        assert len(view.told()) == 6


async def test_a_silent_watch_is_replaced(stub: Any, client: Any, time: Any, tools: Any) -> None:
    view = View(client, stub, tools.FakeKind(), time, idle_timeout=0.1)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.kind.silent = True
        view.kind.put("missed", "ns")
        await tools.until(lambda: view.kind.watches == 2)
        view.kind.silent = False
        await tools.until(lambda: "missed" in view.names())
        assert informer.lists == 1


async def test_bookmarks_move_the_place_to_resume_from(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.kind.version = 500
        view.kind.bookmark()
        await tools.until(lambda: informer._version == "500")
        view.kind.floor = 400
        view.kind.drop()
        await tools.until(lambda: view.kind.watches == 2)
        view.kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert informer.lists == 1
    assert stub.seen[-1].query["resourceVersion"] == "500"


async def test_410_lists_again_and_tells_only_what_differs(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    for name in ("stays", "changes", "goes"):
        view.kind.put(name, "ns", value=1)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.told()
        view.kind.silent = True
        view.kind.put("changes", "ns", value=2)
        view.kind.remove("goes", "ns")
        view.kind.put("comes", "ns", value=3)
        view.kind.compact()
        view.kind.silent = False
        view.kind.drop()
        await tools.until(lambda: len(view.events) == 3)
        assert view.told() == [
            ("deleted", Slim("goes", 1), None),
            ("modified", Slim("changes", 1), Slim("changes", 2)),
            ("added", None, Slim("comes", 3)),
        ]
        assert view.names() == {"stays", "changes", "comes"}
        assert informer.lists == 2


async def test_410_as_an_answer_to_the_watch_lists_again_too(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.kind.faults.append(tools.status(410, "Expired", "too old"))
        view.kind.drop()
        await tools.until(lambda: view.kind.lists == 2)
        view.kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert informer.error is None


async def test_a_server_that_always_says_410_is_not_flooded(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    view.kind.floor = 10**9
    async with view.running() as informer:
        await tools.until(lambda: informer.lists >= 8)
    assert sum(time.sleeps[:7]) >= 5.0


async def test_pages_that_expire_are_fetched_in_one_piece(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time, page_size=2)
    for number in range(5):
        view.kind.put(f"q{number}", "ns")
    view.kind.expire_pages = True
    async with view.running():
        assert len(view.names()) == 5
        assert view.kind.lists == 3
        assert "limit" not in stub.seen[2].query


async def test_429_is_waited_out_as_the_server_asks(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    view.kind.faults.append(tools.status(429, "TooManyRequests", retry_after="7"))
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        assert max(time.sleeps) >= 7
        time.sleeps.clear()
        view.kind.faults.append(tools.status(429, "TooManyRequests", retry_after="9"))
        view.kind.drop()
        await tools.until(lambda: view.kind.watches == 3)
        assert max(time.sleeps) >= 9
        view.kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert informer.lists == 1
        assert informer.error is None


async def test_missing_rights_are_reported_and_recovered_from(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    gate = asyncio.Event()

    async def sleep(seconds: float) -> None:
        await gate.wait()

    view = View(client, stub, tools.FakeKind(), time, sleep=sleep)
    view.kind.faults.append(tools.status(403, "Forbidden", "no list for you"))
    task = asyncio.create_task(view.informer.run())
    try:
        await tools.until(lambda: view.informer.error)
        assert "no list for you" in str(view.informer.error)
        assert not view.informer.is_synced
        assert not view.informer.fresh()
        gate.set()
        await tools.until(lambda: view.informer.is_synced and view.informer.error is None)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_kind_that_appears_later_is_found(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(absent=True), time)
    async with view.running() as informer:
        assert informer.absent
        assert dict(informer.store) == {}
        assert view.presence == [True]
        await tools.until(lambda: informer.lists > 10)
        assert informer.fresh(), "a server that answers 404 is in contact"
        view.kind.absent = False
        view.kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert not informer.absent
        assert view.presence == [True, False]
    assert max(time.sleeps) <= 10.0
    assert time.sleeps[0] < 1.0 < time.sleeps[4]


async def test_a_kind_deleted_while_watched_empties_the_store(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    view.kind.put("a", "ns", value=1)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.told()
        view.kind.absent = True
        view.kind.drop()
        await tools.until(lambda: informer.absent)
        assert view.told() == [("deleted", Slim("a", 1), None)]
        view.kind.absent = False
        await tools.until(lambda: view.events)
        assert view.told() == [("added", None, Slim("a", 1))]
        assert view.presence == [True, False]


async def test_a_rotated_token_goes_unnoticed(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time)
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        view.kind.faults.append(tools.status(401, "Unauthorized"))
        view.kind.drop()
        await tools.until(lambda: view.kind.watches == 3)
        view.kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert informer.lists == 1


async def test_a_server_that_ends_watches_at_once_is_asked_ever_less(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return web.Response(text="")
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})

    view = View(client, stub, handler, time)
    async with view.running() as informer:
        await tools.until(lambda: informer.watches >= 8)
        assert informer.lists == 1
    assert time.sleeps[:7] == sorted(time.sleeps[:7])
    assert time.sleeps[6] > 16 * time.sleeps[0]


async def test_garbage_in_a_watch_does_not_end_it(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    kind = tools.FakeKind()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") and kind.watches == 0:
            kind.watches += 1
            return web.Response(text='{"type":"ADDED","object":{"metadata":{"name":"x"}\n')
        answer: web.StreamResponse = await kind(request)
        return answer

    view = View(client, stub, handler, time)
    async with view.running() as informer:
        await tools.until(lambda: kind.watches == 2)
        kind.put("a", "ns")
        await tools.until(lambda: "a" in view.names())
        assert informer.lists == 1


async def test_an_object_that_cannot_be_read_does_not_hide_the_others(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    def strict(item: dict[str, Any]) -> Slim:
        return Slim(item["metadata"]["name"], item["value"])

    view = View(client, stub, tools.FakeKind(), time, slim=strict)
    view.kind.put("odd", "ns")
    view.kind.put("good", "ns", value=1)
    async with view.running():
        assert view.names() == {"good"}


async def test_records_can_be_left_out(stub: Any, client: Any, time: Any, tools: Any) -> None:
    view = View(
        client, stub, tools.FakeKind(), time, slim=lambda i: slim(i) if i.get("value") else None
    )
    view.kind.put("in", "ns", value=1)
    view.kind.put("out", "ns")
    async with view.running():
        assert view.names() == {"in"}
        view.kind.put("in", "ns", value=0)
        await tools.until(lambda: not view.names())
        assert view.told()[-1] == ("deleted", Slim("in", 1), None)


async def test_freshness_is_the_age_of_the_last_contact(
    stub: Any, client: Any, time: Any, tools: Any
) -> None:
    view = View(client, stub, tools.FakeKind(), time, idle_timeout=90.0)
    assert not view.informer.fresh()
    async with view.running() as informer:
        await tools.until(lambda: view.kind.watches == 1)
        assert informer.fresh()
        time.now += 170
        assert informer.age() == 170
        assert informer.fresh()
        time.now += 20
        assert not informer.fresh()
        view.kind.bookmark()
        await tools.until(informer.fresh)
        assert informer.age() == 0


async def test_selectors_reach_the_server(stub: Any, client: Any, time: Any, tools: Any) -> None:
    view = View(
        client, stub, tools.FakeKind(), time, label_selector="a=b", field_selector="c=d",
        namespace="ns",
    )  # fmt: skip
    async with view.running():
        await tools.until(lambda: view.kind.watches == 1)
    for seen in stub.seen:
        assert seen.path.endswith("/namespaces/ns/localqueues")
        assert (seen.query["labelSelector"], seen.query["fieldSelector"]) == ("a=b", "c=d")


def test_changes_are_named_for_logs() -> None:
    assert [str(change) for change in Change] == ["added", "modified", "deleted"]
