"""A loopback server that plays the API server's faults, and time that passes on demand.

It proves what the client does with an answer; how the real server answers is proven in
tests/cluster.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from gpufair.cluster.client import Client

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """A request as the server got it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Stub:
    """Answers every request with `handler`, and remembers all of them."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self.handler: Handler | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                json.loads(text) if text else None,
            )
        )
        assert self.handler is not None
        return await self.handler(request)

    def script(self, *answers: web.Response | Exception | dict[str, Any]) -> None:
        """Answer with these, one after the other; a dict is a 200, an exception a lost line."""
        remaining = list(answers)

        async def handler(request: web.Request) -> web.StreamResponse:
            answer = remaining.pop(0)
            if isinstance(answer, Exception):
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return web.json_response(answer) if isinstance(answer, dict) else answer

        self.handler = handler


def status(code: int, reason: str = "", message: str = "", **headers: str) -> web.Response:
    """A Status answer; keyword `retry_after` is the header."""
    names = {"retry_after": "Retry-After"}
    return web.json_response(
        {"kind": "Status", "code": code, "reason": reason, "message": message},
        status=code,
        headers={names[name]: value for name, value in headers.items()},
    )


@dataclass
class Time:
    """A clock that only `sleep` and tests move."""

    now: float = 1000.0
    sleeps: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the condition holds; fail when it does not in time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)


def configuration(url: str, token: str = "") -> Configuration:
    made: Configuration = type.__call__(Configuration)
    made.host = url
    if token:
        made.api_key["BearerToken"] = f"Bearer {token}"
    return made


@dataclass
class FakeKind:
    """One collection with history: enough of list and watch to break them."""

    items: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    version: int = 1
    floor: int = 0  # history up to here is compacted
    history: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    absent: bool = False
    silent: bool = False
    faults: list[web.Response] = field(default_factory=list)
    expire_pages: bool = False
    lists: int = 0
    watches: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _cut: int = 0

    def put(self, name: str, namespace: str = "", **content: Any) -> None:
        kind = "MODIFIED" if (namespace, name) in self.items else "ADDED"
        self.version += 1
        metadata = {"name": name, "resourceVersion": str(self.version)}
        if namespace:
            metadata["namespace"] = namespace
        self.items[namespace, name] = {"metadata": metadata, **content}
        self._tell(kind, self.items[namespace, name])

    def remove(self, name: str, namespace: str = "") -> None:
        self.version += 1
        gone = self.items.pop((namespace, name))
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        self._tell("DELETED", gone)

    def bookmark(self) -> None:
        self._tell("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    def compact(self) -> None:
        self.floor = self.version
        self.history.clear()

    def drop(self) -> None:
        """Cut all connections."""
        self._cut += 1
        self._wake()

    def _tell(self, kind: str, item: dict[str, Any]) -> None:
        self.history.append((self.version, {"type": kind, "object": item}))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        watching = request.query.get("watch") == "true"
        if watching:
            self.watches += 1
        else:
            self.lists += 1
        if self.faults:
            return self.faults.pop(0)
        if self.absent:
            return web.Response(status=404, text="404 page not found\n")
        return await self._watch(request) if watching else self._list(request)

    def _list(self, request: web.Request) -> web.Response:
        limit = int(request.query.get("limit", 0)) or len(self.items)
        start = int(request.query.get("continue", 0))
        if start and self.expire_pages:
            return status(410, "Expired", "the continue token is too old")
        keys = sorted(self.items)
        metadata: dict[str, str] = {"resourceVersion": str(self.version)}
        if start + limit < len(keys):
            metadata["continue"] = str(start + limit)
        items = [self.items[key] for key in keys[start : start + limit]]
        return web.json_response({"metadata": metadata, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        position = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if position < self.floor:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return response
        cut, done = self._cut, 0
        while True:
            changed = self._changed
            if self._cut != cut:
                assert request.transport is not None
                request.transport.abort()
                return response
            if self.absent:
                return response
            for version, event in [] if self.silent else self.history[done:]:
                done += 1
                if version > position or event["type"] == "BOOKMARK":
                    await response.write(json.dumps(event).encode() + b"\n")
            await changed.wait()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest_asyncio.fixture
async def stub() -> AsyncIterator[Stub]:
    made = Stub()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest_asyncio.fixture
async def client(stub: Stub, time: Time) -> AsyncIterator[Client]:
    """A client of the stub whose pauses take no time."""

    async def load() -> Configuration:
        return configuration(stub.url)

    made = Client(load, sleep=time.sleep, clock=time.clock, jitter=lambda: 1.0, timeout=5.0)
    async with made:
        yield made


@pytest.fixture
def tools() -> Any:
    """The helpers of this file, for tests that are imported without a package."""

    class Tools:
        pass

    found: Any = Tools()
    found.until, found.status, found.configuration, found.FakeKind = (
        until, status, configuration, FakeKind,
    )  # fmt: skip
    return found
