"""Keeps account of the day from what the cluster shows: who has what now, and who got what. Pure.

What is used is what Kueue's Workloads hold, by flavor; what is borrowed of it goes beyond the
nominal quota of the ClusterQueue, as Kueue counts it. Times are hours of the day.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpufair.demo.clock import span
from gpufair.demo.day import PROD, DayJob
from gpufair.demo.events import EventLog, Party
from gpufair.demo.meter import Meter
from gpufair.demo.records import Queue, Work
from gpufair.plan.records import State

_GANG = 8
"""Pods from which on the start of a production gang is an event."""
_NOTABLE = 32
"""GPUs from which on borrowing is an event."""
Key = tuple[str, str]


@dataclass(slots=True)
class JobLog:
    """What has become of one Job. `since` is when it began to wait or to run."""

    job: DayJob
    uid: str
    submitted: float
    since: float
    runs: bool = False
    started: float | None = None
    done: float | None = None
    waited: float = 0.0
    preempted: int = 0
    lost: float = 0.0
    """GPU-hours of runs that were preempted."""

    @property
    def waits(self) -> bool:
        return not self.runs and self.done is None

    def wait(self, now: float) -> float:
        """Hours for which it has waited so far, before the first start and between runs."""
        return self.waited + (now - self.since if self.waits else 0.0)

    def start(self, hour: float) -> None:
        self.waited += hour - self.since
        self.started = hour if self.started is None else self.started
        self.runs, self.since = True, hour

    def stop(self, hour: float) -> None:
        """It was evicted: what it has done is lost."""
        self.lost += self.job.gpus * (hour - self.since)
        self.runs, self.since = False, hour

    def finish(self, hour: float) -> None:
        self.runs, self.done = False, hour


@dataclass(frozen=True, slots=True)
class TenantNow:
    """A tenant at this moment, in GPUs and jobs."""

    name: str
    nominal: int
    limit: int | None
    used: int
    borrowed: int
    pending: int
    running_jobs: int
    waiting_jobs: int


@dataclass(frozen=True, slots=True)
class TierNow:
    """A tier at this moment, in jobs and GPUs."""

    name: str
    running: int
    pending: int
    running_gpus: int
    pending_gpus: int


@dataclass(slots=True)
class _Account:
    """What is kept for one tenant."""

    used: Meter = field(default_factory=Meter)
    borrowed: Meter = field(default_factory=Meter)
    caused: int = 0
    """Preemptions in its favour."""


class Ledger:
    """Tell it what happens, ask it what is and what was.

    `tenants` and `tiers` are the policy's, in its order; `capacity` is the pool's, in GPUs.
    """

    def __init__(
        self,
        tenants: Sequence[str],
        tiers: Sequence[str],
        capacity: int,
        jobs: Iterable[DayJob],
    ) -> None:
        self.tenants = tuple(tenants)
        self.tiers = tuple(tiers)
        self.capacity = capacity
        self.log = EventLog()
        self.jobs: dict[Key, JobLog] = {}
        self.queues: dict[str, Queue] = {}
        self.pool = Meter()
        self.accounts = {name: _Account() for name in self.tenants}
        self._planned = {(job.namespace, job.name): job for job in jobs}
        self._work: dict[Key, Work] = {}
        self._preempted: dict[Key, int] = {}

    # -- what happens ----------------------------------------------------------------------------

    def submitted(self, job: DayJob, uid: str, hour: float) -> None:
        """The API server has taken the Job."""
        key = job.namespace, job.name
        self.jobs[key] = JobLog(job, uid, hour, hour)
        seen = self._work.get(key)
        if seen is not None:  # the watch was faster than the answer
            self._follow(self.jobs[key], seen, hour)

    def work_changed(self, new: Work | None, old: Work | None, hour: float) -> None:
        """A Workload has appeared, changed or gone."""
        record = new or old
        if record is None:
            return
        key = record.namespace, record.job
        if key not in self._planned:
            return
        if new is None:
            self._work.pop(key, None)
        else:
            self._work[key] = new
            log = self.jobs.get(key)
            if log is not None:
                self._follow(log, new, hour)
        self._count(hour)

    def queue_changed(self, queue: Queue, hour: float) -> None:
        """A ClusterQueue has appeared or changed."""
        if queue.name not in self.accounts:
            return
        before = self.queues.get(queue.name)
        self.queues[queue.name] = queue
        self._count(hour)
        if before is not None and before.lends != queue.lends:
            most = f"at most {_lends(queue)} GPUs now, {_lends(before)} before"
            self.log.say(hour, f"{queue.name} lends {most}")

    def tick(self, hour: float) -> None:
        """Time has passed."""
        for account in self.accounts.values():
            account.used.advance(hour)
            account.borrowed.advance(hour)
        self.pool.advance(hour)
        for tenant in self.tenants_now():
            self._remark(tenant, hour)

    def _count(self, hour: float) -> None:
        held: dict[str, dict[str, int]] = {name: {} for name in self.tenants}
        for work in self._work.values():
            if work.runs and work.queue in held:
                flavors = held[work.queue]
                for flavor, units in work.flavors:
                    flavors[flavor] = flavors.get(flavor, 0) + units
        for name, flavors in held.items():
            queue = self.queues.get(name)
            account = self.accounts[name]
            account.used.set(hour, sum(flavors.values()))
            account.borrowed.set(hour, queue.borrowed(flavors) if queue else 0)
        self.pool.set(hour, sum(account.used.value for account in self.accounts.values()))

    def _follow(self, log: JobLog, work: Work, hour: float) -> None:
        if log.done is not None:
            return
        self._count_preemption(log, work, hour)
        if work.state is State.FINISHED:
            if not log.runs:
                log.start(hour)
            log.finish(hour)
        elif work.runs and not log.runs:
            log.start(hour)
            self._started(log, hour)
        elif work.waits and log.runs:
            log.stop(hour)

    def _count_preemption(self, log: JobLog, work: Work, hour: float) -> None:
        found = work.preemption
        if found is None or found.count <= log.preempted:
            return
        log.preempted = found.count
        cause = self._job_of(found.by)
        by = Party(cause.tenant, cause.tier) if cause else Party("somebody", "work")
        victim = Party(log.job.tenant, log.job.tier)
        if cause is not None:
            self.accounts[cause.tenant].caused += 1
        self.log.requeued(hour, by, found.reason, victim, log.job.gpus)

    def _job_of(self, uid: str) -> DayJob | None:
        return next((log.job for log in self.jobs.values() if log.uid == uid), None)

    def _started(self, log: JobLog, hour: float) -> None:
        job = log.job
        if job.tier == PROD and job.pods >= _GANG:
            text = f"a gang of {job.tenant} starts: {job.pods} pods, {job.gpus} GPUs"
            self.log.say(hour, f"{text}, after {span(log.wait(hour))} of waiting")

    def _remark(self, tenant: TenantNow, hour: float) -> None:
        name = tenant.name
        if tenant.limit and tenant.borrowed >= tenant.limit:
            text = f"{name} borrows up to its limit: {tenant.borrowed} GPUs"
            self.log.say(hour, text, topic=f"limit {name}")
        elif tenant.borrowed >= _NOTABLE:
            text = f"{name} borrows {tenant.borrowed} GPUs of idle quota"
            self.log.say(hour, text, topic=f"borrows {name}")
        elif tenant.used == tenant.nominal and tenant.waiting_jobs:
            jobs = "1 job waits" if tenant.waiting_jobs == 1 else f"{tenant.waiting_jobs} jobs wait"
            text = f"{name} has used its quota of {tenant.nominal} GPUs: {jobs}"
            self.log.say(hour, text, topic=f"quota {name}")

    # -- what is ---------------------------------------------------------------------------------

    @property
    def any_admitted(self) -> bool:
        """Whether any Job of the day has ever started."""
        return any(log.started is not None for log in self.jobs.values())

    def tenants_now(self) -> list[TenantNow]:
        return [self._tenant_now(name) for name in self.tenants]

    def _tenant_now(self, name: str) -> TenantNow:
        queue = self.queues.get(name) or Queue(name, (), None, None)
        account = self.accounts[name]
        mine = [log for log in self.jobs.values() if log.job.tenant == name]
        waiting = [log.job.gpus for log in mine if log.waits]
        return TenantNow(
            name=name,
            nominal=queue.nominal,
            limit=queue.limit,
            used=account.used.value,
            borrowed=account.borrowed.value,
            pending=sum(waiting),
            running_jobs=sum(log.runs for log in mine),
            waiting_jobs=len(waiting),
        )

    def tiers_now(self) -> list[TierNow]:
        return [self._tier_now(name) for name in self.tiers]

    def _tier_now(self, name: str) -> TierNow:
        mine = [log for log in self.jobs.values() if log.job.tier == name]
        running = [log.job.gpus for log in mine if log.runs]
        waiting = [log.job.gpus for log in mine if log.waits]
        return TierNow(name, len(running), len(waiting), sum(running), sum(waiting))


def _lends(queue: Queue) -> int:
    return queue.nominal if queue.lends is None else queue.lends
