"""Plays the day on a cluster: submits the Jobs when due, and watches what comes of them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from gpufair.api.kinds import CLUSTER_QUEUE, JOB, WORKLOAD
from gpufair.api.policy import Policy
from gpufair.cluster.client import Client
from gpufair.cluster.informer import Change, Informer
from gpufair.demo import jobs, records
from gpufair.demo.clock import DayClock
from gpufair.demo.day import DayJob
from gpufair.demo.events import MERGE
from gpufair.demo.ledger import Ledger
from gpufair.demo.screen import Screen
from gpufair.demo.summary import Measured, Summary, run_overheads, summarize
from gpufair.demo.view import Now
from gpufair.errors import GpufairError
from gpufair.plan.status import capacity
from gpufair.policies import windows

_REFRESH = 0.25
_AT_ONCE = 8
_SHOWN_EVENTS = 20
_CHECK_EVERY = 2.0
_PATIENCE = 30.0
"""Real seconds in which at least one Job must have started."""


class Player:
    """One day. `check` is called now and then and raises when something behind it has failed."""

    def __init__(
        self,
        *,
        client: Client,
        policy: Policy,
        day: Sequence[DayJob],
        clock: DayClock,
        screen: Screen,
        check: Callable[[], None],
    ) -> None:
        spec = policy.spec
        self.ledger = Ledger(
            [tenant.name for tenant in spec.tenants],
            [tier.name for tier in spec.tiers],
            int(sum(capacity(spec).values())),
            day,
        )
        self._client = client
        self._spec = spec
        self._day = day
        self._clock = clock
        self._screen = screen
        self._check = check
        self._windows: list[str] | None = None
        self._submit_lag = 0.0
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._work = Informer(client, WORKLOAD, slim=records.work, on_change=self._work_changed)
        self._queues = Informer(
            client, CLUSTER_QUEUE, slim=records.queue, on_change=self._queue_changed
        )

    async def play(self, until: float) -> Summary:
        """Play the day up to the hour `until`; the clock must have begun.

        Raises GpufairError when what the day needs does not work.
        """
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(i.run()) for i in (self._work, self._queues)]
            await self._work.synced()
            await self._queues.synced()
            submitting = group.create_task(self._submit(until))
            await self._watch(until)
            for task in (*running, submitting):
                task.cancel()
        for event in self.ledger.log.settled(until + 2 * MERGE):
            self._screen.tell(event)
        return summarize(self.ledger, until, self._measured(until))

    @property
    def _hour(self) -> float:
        return self._clock.hour(time.monotonic())

    def _work_changed(self, _: Change, old: records.Work | None, new: records.Work | None) -> None:
        self.ledger.work_changed(new, old, self._hour)

    def _queue_changed(
        self, _: Change, __: records.Queue | None, new: records.Queue | None
    ) -> None:
        if new is not None:
            self.ledger.queue_changed(new, self._hour)

    # -- submitting ------------------------------------------------------------------------------

    async def _submit(self, until: float) -> None:
        async with asyncio.TaskGroup() as group:
            for job in self._day:
                if job.at >= until:
                    break
                await asyncio.sleep(self._clock.due(job.at) - time.monotonic())
                group.create_task(self._create(job))

    async def _create(self, job: DayJob) -> None:
        manifest = jobs.manifest(job, self._spec.local_queue_name, self._clock)
        async with self._gate:
            made = await self._client.create(JOB, manifest)
        real = time.monotonic()
        self._submit_lag = max(self._submit_lag, real - self._clock.due(job.at))
        self.ledger.submitted(job, made["metadata"]["uid"], self._clock.hour(real))

    # -- watching --------------------------------------------------------------------------------

    async def _watch(self, until: float) -> None:
        checked = began = time.monotonic()
        while (hour := self._hour) < until:
            self._note_windows(hour)
            self.ledger.tick(hour)
            self._show(hour)
            real = time.monotonic()
            if real - checked >= _CHECK_EVERY:
                checked = real
                self._check()
                self._check_progress(real - began)
            await asyncio.sleep(min(_REFRESH, self._clock.real(until - hour)))

    def _show(self, hour: float) -> None:
        ledger = self.ledger
        for event in ledger.log.settled(hour):
            self._screen.tell(event)
        self._screen.show(
            Now(
                hour=hour,
                capacity=ledger.capacity,
                windows=self._windows or (),
                tenants=ledger.tenants_now(),
                tiers=ledger.tiers_now(),
                events=ledger.log.last(_SHOWN_EVENTS),
            )
        )

    def _note_windows(self, hour: float) -> None:
        moment: datetime = self._clock.moment(time.monotonic())
        found = [window.name for window in windows.active(self._spec.windows, moment)]
        before = self._windows
        self._windows = found
        if before is None or before == found:
            return
        for name in found:
            if name not in before:
                self.ledger.log.say(hour, f"window {name} opens")
        for name in before:
            if name not in found:
                self.ledger.log.say(hour, f"window {name} closes")

    def _check_progress(self, real: float) -> None:
        if real > _PATIENCE and self.ledger.jobs and not self.ledger.any_admitted:
            raise GpufairError(
                f"Kueue has admitted none of {len(self.ledger.jobs)} Jobs in {real:.0f} s."
            )
        for informer in (self._work, self._queues):
            if informer.error is not None and not informer.fresh():
                raise informer.error

    def _measured(self, until: float) -> Measured:
        overheads = run_overheads(list(self.ledger.jobs.values()))
        mean = sum(overheads) / len(overheads) if overheads else 0.0
        return Measured(
            day_s=self._clock.real(until),
            submit_lag=self._submit_lag,
            start_lag=self._clock.real(mean),
        )
