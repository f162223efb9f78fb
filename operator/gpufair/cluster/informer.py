"""A kind kept in memory: one paged list, then a watch that survives what happens to watches.

Objects are boiled down to slim records as they arrive, so that 100,000 Workloads fit; the raw JSON
is not kept. Events arrive as plain calls on the event loop, in order, and must be cheap.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import orjson

from gpufair.api.kinds import Resource
from gpufair.cluster.backoff import Backoff, Jitter
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError, ClusterError, error_of_status

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, str]  # namespace ("" for cluster-scoped kinds), name


class Change(StrEnum):
    """What happened to a record."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


OnChange = Callable[[Change, T | None, T | None], None]  # change, old record, new record


class Informer(Generic[T]):
    """Keeps `store` equal to what the server has of a kind, as records that `slim` makes.

    `slim(object)` gets the JSON of one object (without apiVersion and kind when it comes from a
    list) and returns its record, or None for an object to leave out. A change that does not show in
    the record is not reported. `on_change(change, old, new)` is called for every other one, after
    the store was updated; `on_presence(absent)` when the kind itself disappears or appears (a CRD
    deleted or installed): its objects are then reported as deleted, and it is asked for again with
    growing pauses, up to `absence_retry` seconds.

    Run `run()` as a task: it ends only by cancellation. Permissions that are missing do not end it
    either: `error` says what the server answered last, None while all is well.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        slim: Callable[[dict[str, Any]], T | None],
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        on_change: OnChange[T] | None = None,
        on_presence: Callable[[bool], None] | None = None,
        page_size: int = 500,
        idle_timeout: float = 90.0,
        absence_retry: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Jitter = random.random,
    ) -> None:
        self.resource = resource
        self.absent = False
        self.error: ClusterError | None = None
        self.lists = 0
        self.watches = 0
        self._client = client
        self._slim = slim
        self._scope: dict[str, Any] = {
            "namespace": namespace,
            "label_selector": label_selector,
            "field_selector": field_selector,
        }
        self._on_change = on_change
        self._on_presence = on_presence
        self._page_size = page_size
        self._idle_timeout = idle_timeout
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._backoff = Backoff(first=0.1, cap=30.0, jitter=jitter)
        self._absence = Backoff(first=0.5, cap=absence_retry, jitter=jitter)
        self._store: dict[Key, T] = {}
        self._synced = asyncio.Event()
        self._version: str | None = None  # where the watch goes on; None: list first
        self._contact = clock()
        self._listed = float("-inf")

    # -- reading ---------------------------------------------------------------------------------

    @property
    def store(self) -> Mapping[Key, T]:
        """The records by (namespace, name); a live view, not to be kept across awaits."""
        return MappingProxyType(self._store)

    def get(self, name: str, namespace: str = "") -> T | None:
        """One record, None when there is no such object."""
        return self._store.get((namespace, name))

    async def synced(self) -> None:
        """Wait until the first list is in, or the kind was found to be absent (see `absent`)."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    def age(self, now: float | None = None) -> float:
        """Seconds since the server was last heard from, by the injected clock."""
        return max(0.0, (self._clock() if now is None else now) - self._contact)

    def fresh(self, now: float | None = None) -> bool:
        """False when the store may be out of date: never synced, or no word from the server for
        twice the time in which a silent watch should have been replaced."""
        return self.is_synced and self.age(now) <= 2 * self._idle_timeout

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """List and watch for ever."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                started = self._clock()
                await self._watch()
                # A server that ends watches at once must not be asked in a tight loop.
                if self._clock() - started < 1.0:
                    await self._sleep(self._backoff.pause())
            except ApiError as error:
                await self._refused(error)
            except ClusterError as error:
                await self._failed(error, None)

    async def _list(self) -> None:
        self.lists += 1
        self._listed = self._clock()
        try:
            found, version = await self._read(self._page_size)
        except ApiError as error:
            if not error.is_gone:
                raise
            # The pages' snapshot was compacted away meanwhile; a list in one piece cannot expire.
            found, version = await self._read(0)
        self._present()
        self._replace(found)
        self._version = version
        self._synced.set()

    async def _read(self, page_size: int) -> tuple[dict[Key, T], str]:
        found: dict[Key, T] = {}
        version = ""
        async for page in self._client.list_pages(self.resource, limit=page_size, **self._scope):
            self._heard()
            self._collect(page, found)
            version = page["metadata"]["resourceVersion"]
        return found, version

    def _collect(self, page: dict[str, Any], found: dict[Key, T]) -> None:
        for item in page.get("items") or ():
            record = self._record(item)
            if record is not None:
                found[_key(item)] = record

    async def _watch(self) -> None:
        self.watches += 1
        assert self._version is not None
        lines = self._client.watch(
            self.resource,
            resource_version=self._version,
            lifetime=300.0 * (1.0 + self._jitter()),
            idle_timeout=self._idle_timeout,
            **self._scope,
        )
        async with aclosing(lines):
            async for line in lines:
                self._heard()
                self.error = None
                if line:
                    self._event(line)
                    self._backoff.reset()

    def _event(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            kind, item = event["type"], event["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterError(f"A watch of {self.resource.name} sent no event.") from error
        if kind == "ERROR":
            raise error_of_status(item)
        if kind == "DELETED":
            self._remove(_key(item))
        elif kind in ("ADDED", "MODIFIED"):
            self._put(_key(item), self._record(item))
        self._version = item["metadata"]["resourceVersion"]

    # -- failures --------------------------------------------------------------------------------

    async def _refused(self, error: ApiError) -> None:
        self._heard()
        if error.is_not_found:
            await self._gone()
        elif not error.is_gone:
            await self._failed(error, error.retry_after)
        else:
            self._version = None
            if self._clock() - self._listed < 5.0:
                # A fresh list that is too old at once: the server is in trouble, do not add to it.
                await self._failed(error, error.retry_after)

    async def _failed(self, error: ClusterError, retry_after: float | None) -> None:
        """Remember and log the failure, and wait; the watch goes on from where it stood."""
        if str(error) != str(self.error):
            level = logging.WARNING if isinstance(error, ApiError) else logging.INFO
            log.log(level, "watching %s: %s", self.resource.name, error)
        self.error = error
        await self._sleep(self._backoff.pause(retry_after))

    async def _gone(self) -> None:
        """The kind does not exist: nothing of it does."""
        self._version = None
        self.error = None
        self._replace({})
        if not self.absent:
            self.absent = True
            self._synced.set()
            if self._on_presence is not None:
                self._on_presence(True)
        await self._sleep(self._absence.pause())

    def _present(self) -> None:
        self.error = None
        self._absence.reset()
        if self.absent:
            self.absent = False
            if self._on_presence is not None:
                self._on_presence(False)

    def _heard(self) -> None:
        self._contact = self._clock()

    # -- the store -------------------------------------------------------------------------------

    def _record(self, item: dict[str, Any]) -> T | None:
        try:
            return self._slim(item)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            # One odd object must not stop the view of all others.
            log.exception("%s %s cannot be read", self.resource.kind, "/".join(_key(item)))
            return None

    def _put(self, key: Key, new: T | None) -> None:
        if new is None:
            self._remove(key)
            return
        old = self._store.get(key)
        self._store[key] = new
        if old is None:
            self._tell(Change.ADDED, None, new)
        elif old != new:
            self._tell(Change.MODIFIED, old, new)

    def _remove(self, key: Key) -> None:
        old = self._store.pop(key, None)
        if old is not None:
            self._tell(Change.DELETED, old, None)

    def _replace(self, found: dict[Key, T]) -> None:
        """Make the store equal to a list, telling the differences, deletions first."""
        for key in [key for key in self._store if key not in found]:
            self._remove(key)
        for key, record in found.items():
            self._put(key, record)

    def _tell(self, change: Change, old: T | None, new: T | None) -> None:
        if self._on_change is not None:
            self._on_change(change, old, new)


def _key(item: Mapping[str, Any]) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace") or "", metadata["name"]
