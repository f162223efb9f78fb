"""Puts the operator together and runs it: informers, lease, queue, events, probes."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

from gpufair.cluster.applier import Applier
from gpufair.cluster.client import Client
from gpufair.cluster.events import EventRecorder
from gpufair.cluster.lease import LeaderElection, NotLeaderError
from gpufair.loops.caches import EVERY_POLICY, Caches
from gpufair.loops.enforce import Enforcer
from gpufair.loops.health import HealthServer
from gpufair.loops.policies import PolicyStore
from gpufair.loops.reconciler import Reconciler
from gpufair.loops.report import COUNTER_PERIOD, Reporter
from gpufair.loops.teardown import Teardown
from gpufair.loops.workqueue import WorkQueue
from gpufair.settings import Settings

log = logging.getLogger(__name__)


class Runtime:
    """One operator process. `policy_seen` and `policy_gone` feed it; `run` does the work.

    `now` tells the time that policies go by; who plays with it calls `reconcile_all` when it jumps.
    """

    def __init__(
        self,
        client: Client,
        settings: Settings,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.client = client
        self._now = now
        self._settings = settings
        self.store = PolicyStore()
        self._queue = WorkQueue(self._reconcile)
        self.caches = Caches(
            client,
            on_object=self._object_changed,
            on_namespace=self.reconcile_all,
            on_presence=lambda _: self.reconcile_all(),
        )
        self._recorder = EventRecorder(client)
        self._lease = LeaderElection(
            client,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            on_change=self._lease_changed,
        )
        self.reconciler = self._assemble()
        self._ready = False

    def _assemble(self) -> Reconciler:
        client, caches, store = self.client, self.caches, self.store
        gate = self._lease.ensure_leader
        applier = Applier(client, workers=self._settings.workers, gate=gate)
        enforcer = Enforcer(client, caches, applier)
        reporter = Reporter(client, store, self._recorder, time.monotonic)
        teardown = Teardown(
            client=client,
            caches=caches,
            store=store,
            applier=applier,
            enforcer=enforcer,
            reporter=reporter,
        )
        return Reconciler(
            client=client,
            caches=caches,
            store=store,
            enforcer=enforcer,
            teardown=teardown,
            reporter=reporter,
            gate=gate,
            now=self._now,
        )

    def policy_seen(self, raw: dict[str, Any]) -> None:
        """A policy is there, or has changed."""
        if self.store.put(raw):
            self._queue.add(raw["metadata"]["name"])

    def policy_gone(self, raw: dict[str, Any]) -> None:
        """A policy has been deleted."""
        self.store.remove(raw)
        self._queue.add(raw["metadata"]["name"])

    async def leading(self) -> None:
        """Wait until the view is complete and the Lease is ours."""
        await self.caches.synced()
        await self._lease.acquired()

    async def run(self) -> None:
        """Work until cancelled; the first part that fails ends all others."""
        async with AsyncExitStack() as stack:
            address = self._settings.health_address
            if address is not None:
                server = HealthServer(address, self._stale, self._unready)
                await stack.enter_async_context(server)
            async with asyncio.TaskGroup() as group:
                group.create_task(self.caches.run())
                group.create_task(self._lease.run())
                group.create_task(self._recorder.run())
                group.create_task(self._work())

    async def _work(self) -> None:
        # Nothing is decided on half a view: what is not seen yet would look as if it were gone.
        await self.caches.synced()
        self._ready = True
        log.info("The view of the cluster is complete.")
        await self._queue.run()

    async def _reconcile(self, name: str) -> float | None:
        try:
            return await self.reconciler.reconcile(name)
        except NotLeaderError:
            return None  # winning the lease brings every policy back

    def _lease_changed(self, leader: bool) -> None:
        if leader:
            self.reconcile_all()

    def _object_changed(self, policies: set[str], urgent: bool) -> None:
        names = set(self.store) if EVERY_POLICY in policies else policies
        for name in names:
            if urgent:
                self._queue.add(name)
            else:
                self._queue.add_after(name, COUNTER_PERIOD)

    def reconcile_all(self) -> None:
        """Look at every policy again, soon."""
        for name in self.store:
            self._queue.add(name)

    def _stale(self) -> list[str]:
        return [f"stale: {kind}" for kind in self.caches.stale()] if self._ready else []

    def _unready(self) -> list[str]:
        return [] if self._ready else ["the view of the cluster is not complete yet"]
