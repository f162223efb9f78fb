"""Kubernetes events about objects: deduplicated, rate-limited, and never in the way of the work."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from gpufair.api.kinds import EVENT, Resource
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError, ClusterError

log = logging.getLogger(__name__)

Type = Literal["Normal", "Warning"]

_CONTROLLER: Final = "gpufair.io/operator"
_NOTE_BYTES: Final = 1024
_REMEMBERED: Final = 4096
_QUEUE: Final = 1000


@dataclass(slots=True)
class _Series:
    """An event that was written, and how often it happened since."""

    namespace: str
    name: str
    first: float
    count: int = 1


@dataclass(slots=True)
class _Bucket:
    """Tokens for one object's events."""

    tokens: float
    at: float


@dataclass(frozen=True, slots=True)
class _Pending:
    identity: tuple[str, ...]
    body: dict[str, Any]


class EventRecorder:
    """Writes events.k8s.io/v1 events.

    `record()` returns at once; `run()`, as a task, does the writing. The same event about the same
    object within `window` seconds becomes a count on the first one, written when the count is a
    power of two. Every object may have `burst` different events at once and one more per `refill`
    seconds; what exceeds that, and what the server refuses, is dropped (`dropped` counts it).
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str | None = None,
        window: float = 600.0,
        burst: int = 25,
        refill: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.dropped = 0
        self._client = client
        self._instance = (instance or os.environ.get("POD_NAME") or socket.gethostname())[:128]
        self._window = window
        self._burst = burst
        self._refill = refill
        self._clock = clock
        self._wall = wall
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._queue: asyncio.Queue[_Pending] = asyncio.Queue(_QUEUE)

    def record(
        self,
        resource: Resource,
        about: Mapping[str, Any],
        reason: str,
        message: str,
        *,
        type_: Type = "Normal",
        action: str = "Reconcile",
    ) -> None:
        """Note an event about an object, given by its `metadata` (name, namespace, uid).

        `reason` is in UpperCamelCase; a message above 1,024 bytes is cut. Never raises.
        """
        try:
            identity = (
                resource.name, str(about.get("namespace") or ""), str(about.get("name") or ""),
                str(about.get("uid") or ""), type_, reason, message,
            )  # fmt: skip
            if self._series_has(identity) or self._allowed(":".join(identity[:4])):
                body = self._body(resource, identity, action)
                self._queue.put_nowait(_Pending(identity, body))
            else:
                self.dropped += 1
        except asyncio.QueueFull:
            self.dropped += 1
        except Exception:
            self.dropped += 1
            log.exception("an event cannot be recorded: %s", reason)

    async def run(self) -> None:
        """Write what was recorded, for ever."""
        while True:
            pending = await self._queue.get()
            try:
                await self._write(pending)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Write all that is waiting, without a running task (at the end, and in tests)."""
        while not self._queue.empty():
            await self._write(self._queue.get_nowait())
            self._queue.task_done()

    # -- writing ---------------------------------------------------------------------------------

    async def _write(self, pending: _Pending) -> None:
        try:
            series = self._current(pending.identity)
            if series is not None:
                series.count += 1
                if series.count & (series.count - 1) == 0:
                    await self._count(series)
                return
            made = await self._client.create(EVENT, pending.body, retry_for=5.0)
            self._begin(pending.identity, made["metadata"])
        except ClusterError as error:
            self._series.pop(pending.identity, None)
            self.dropped += 1
            gone = isinstance(error, ApiError) and (error.is_forbidden or error.is_not_found)
            log.log(logging.DEBUG if gone else logging.INFO, "event not written: %s", error)
        except Exception:
            self.dropped += 1
            log.exception("an event cannot be written")

    async def _count(self, series: _Series) -> None:
        patch = {"series": {"count": series.count, "lastObservedTime": self._time()}}
        await self._client.patch_merge(EVENT, series.name, patch, series.namespace, retry_for=5.0)

    def _begin(self, identity: tuple[str, ...], metadata: Mapping[str, Any]) -> None:
        self._series[identity] = _Series(metadata["namespace"], metadata["name"], self._clock())
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    # -- what to write ---------------------------------------------------------------------------

    def _current(self, identity: tuple[str, ...]) -> _Series | None:
        series = self._series.get(identity)
        if series is None or self._clock() - series.first > self._window:
            return None
        return series

    def _series_has(self, identity: tuple[str, ...]) -> bool:
        return self._current(identity) is not None

    def _allowed(self, about: str) -> bool:
        now = self._clock()
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = self._buckets[about] = _Bucket(float(self._burst), now)
            while len(self._buckets) > _REMEMBERED:
                self._buckets.popitem(last=False)
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) / self._refill)
        bucket.at = now
        if bucket.tokens < 1.0:
            return False
        bucket.tokens -= 1.0
        return True

    def _body(self, resource: Resource, identity: tuple[str, ...], action: str) -> dict[str, Any]:
        _, namespace, name, uid, type_, reason, message = identity
        regarding = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}
        if namespace:
            regarding["namespace"] = namespace
        if uid:
            regarding["uid"] = uid
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                # Events about cluster-scoped objects live in the namespace default, by convention.
                "namespace": namespace or "default",
                "name": f"{name[:200]}.{uuid.uuid4().hex[:16]}",
            },
            "eventTime": self._time(),
            "type": type_,
            "reason": reason[:128],
            "action": action[:128],
            "note": _cut(message),
            "regarding": regarding,
            "reportingController": _CONTROLLER,
            "reportingInstance": self._instance,
        }

    def _time(self) -> str:
        return self._wall().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _cut(message: str) -> str:
    encoded = message.encode("utf-8", "replace")
    if len(encoded) <= _NOTE_BYTES:
        return encoded.decode()
    return encoded[: _NOTE_BYTES - 3].decode("utf-8", "ignore") + "…"
