"""Leader election by a coordination.k8s.io Lease: at most one replica writes.

The holder counts from the moment it *sent* its last successful renewal and stops `renew_deadline`
seconds later, whatever the server says by then; others wait `lease_duration` seconds, by their own
clocks, without any change of the Lease. So clocks that disagree do not matter.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from gpufair.api.kinds import LEASE
from gpufair.cluster.backoff import Jitter
from gpufair.cluster.client import Client, Json
from gpufair.cluster.errors import ApiError, ClusterError

log = logging.getLogger(__name__)


class NotLeaderError(ClusterError):
    """This replica may not write at the moment."""


def default_identity() -> str:
    """A name for this process that no other has: host name (the pod's) and a random part."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:12]}"


class LeaderElection:
    """Takes, renews and gives back one Lease.

    Run `run()` as a task (it contends for ever, and gives the Lease back when cancelled), or use
    `running()`. `ensure_leader()` is the gate for writes: it raises NotLeaderError unless the Lease
    was renewed less than `renew_deadline` seconds ago. `on_change(leader)` is called at every
    change of hands. Durations are in seconds.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str = "gpufair",
        identity: str | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_change: Callable[[bool], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Jitter = random.random,
    ) -> None:
        if not retry_period < renew_deadline < lease_duration:
            raise ValueError("A lease needs retry_period < renew_deadline < lease_duration.")
        self.identity = identity or default_identity()
        self.holder = ""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_change = on_change
        self._clock = clock
        self._wall = wall
        self._sleep = sleep
        self._jitter = jitter
        self._valid_until = float("-inf")
        self._told = False
        self._lease: Json | None = None  # as last seen
        self._observed: tuple[str, float] = ("", float("-inf"))  # its version, since when
        self._acquired = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        """True while the last renewal is recent enough to write."""
        return self._clock() < self._valid_until

    async def ensure_leader(self) -> None:
        """Raise NotLeaderError unless this replica holds the Lease right now."""
        if not self.is_leader:
            held = (
                f"held by {self.holder}" if self.holder not in ("", self.identity) else "not held"
            )
            raise NotLeaderError(f"The lease {self._namespace}/{self._name} is {held} at present.")

    async def acquired(self) -> None:
        """Wait until this replica leads."""
        while not self.is_leader:
            self._acquired.clear()
            await self._acquired.wait()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LeaderElection]:
        """Contend in the background for as long as the block runs; the Lease is given back."""
        task = asyncio.create_task(self.run())
        try:
            yield self
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def run(self) -> None:
        """Contend for the Lease until cancelled, then give it back."""
        try:
            while True:
                await self._round()
                self._tell()
                pause = self._retry_period * (0.9 + 0.2 * self._jitter())
                if self._told:
                    # So that losing the Lease is noticed when it happens, not a pause later.
                    pause = min(pause, max(0.0, self._valid_until - self._clock()))
                await self._sleep(pause)
        finally:
            await self._give_back()

    async def _round(self) -> None:
        """Try once to take or renew the Lease."""
        try:
            async with asyncio.timeout(self._renew_deadline / 2):
                await self._take_or_renew()
        except ApiError as error:
            if error.is_conflict or error.is_already_exists:
                self._lease = None  # somebody wrote it; read it in the next round
            else:
                log.warning("lease %s/%s: %s", self._namespace, self._name, error)
        except (ClusterError, TimeoutError) as error:
            self._lease = None
            log.info("lease %s/%s: %s", self._namespace, self._name, error or "no answer")

    async def _take_or_renew(self) -> None:
        lease = self._lease if self._told else None
        if lease is None:
            lease = await self._read()
        sent = self._clock()
        if lease is None:
            self._keep(await self._create(), sent)
            return
        self._observe(lease)
        holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        if holder == self.identity or not holder or self._expired(lease):
            self._keep(await self._write(lease, taking=holder != self.identity), sent)

    async def _read(self) -> Json | None:
        try:
            return await self._client.get(LEASE, self._name, self._namespace)
        except ApiError as error:
            if error.is_not_found:
                self.holder = ""
                return None
            raise

    def _observe(self, lease: Json) -> None:
        self.holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        version = lease["metadata"]["resourceVersion"]
        if version != self._observed[0]:
            self._observed = (version, self._clock())

    def _expired(self, lease: Json) -> bool:
        """True when the Lease has not changed before our eyes for as long as its holder allows."""
        seconds = float(lease["spec"].get("leaseDurationSeconds") or self._lease_duration)
        return self._clock() - self._observed[1] >= seconds

    async def _create(self) -> Json:
        return await self._client.create(
            LEASE,
            {
                "apiVersion": LEASE.api_version,
                "kind": LEASE.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._spec(taking=True, transitions=0),
            },
            retry_for=0.0,
        )

    async def _write(self, lease: Json, *, taking: bool) -> Json:
        transitions = int((lease.get("spec") or {}).get("leaseTransitions") or 0)
        spec = self._spec(taking=taking, transitions=transitions + 1 if taking else transitions)
        return await self._patch(lease, spec)

    async def _patch(self, lease: Json, spec: dict[str, Any]) -> Json:
        version = lease["metadata"]["resourceVersion"]
        return await self._client.patch_merge(
            LEASE,
            self._name,
            {"metadata": {"resourceVersion": version}, "spec": spec},
            self._namespace,
            retry_for=0.0,
        )

    def _spec(self, *, taking: bool, transitions: int) -> dict[str, Any]:
        now = self._wall().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._lease_duration)),
            "renewTime": now,
        }
        if taking:
            spec |= {"acquireTime": now, "leaseTransitions": transitions}
        return spec

    def _keep(self, lease: Json, sent: float) -> None:
        self._lease = lease
        self._observe(lease)
        self._valid_until = sent + self._renew_deadline
        if self.is_leader:
            self._acquired.set()

    def _tell(self) -> None:
        leader = self.is_leader
        if leader != self._told:
            self._told = leader
            log.info("lease %s/%s: %s", self._namespace, self._name, "held" if leader else "lost")
            if self._on_change is not None:
                self._on_change(leader)

    async def _give_back(self) -> None:
        """Let the next replica take over at once; the gate closes first."""
        lease, held = self._lease, self.is_leader
        self._valid_until = float("-inf")
        self._tell()
        if lease is None or not held:
            return
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        with suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(2.0):
                await self._patch(lease, spec)
