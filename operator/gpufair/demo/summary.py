"""What came of the day: per tenant, per tier and for the pool. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpufair.demo.clock import time_of_day
from gpufair.demo.ledger import JobLog, Ledger


@dataclass(frozen=True, slots=True)
class JobFigures:
    """What became of a number of Jobs; waits in hours of the day, those that go on included."""

    submitted: int
    started: int
    done: int
    running: int
    waiting: int
    mean_wait: float
    max_wait: float
    preempted: int
    lost_gpu_hours: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "jobs": {
                "submitted": self.submitted,
                "done": self.done,
                "running": self.running,
                "waiting": self.waiting,
            },
            "wait_s": {"mean": round(self.mean_wait * 3600), "max": round(self.max_wait * 3600)},
            "preempted": self.preempted,
            "lost_gpu_hours": round(self.lost_gpu_hours, 1),
        }


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """A tenant's day; `used` is the mean of each half hour, in GPUs."""

    name: str
    nominal: int
    limit: int | None
    jobs: JobFigures
    gpu_hours: float
    borrowed_gpu_hours: float
    peak_used: int
    peak_borrowed: int
    preempting: int
    used: Sequence[float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "nominal": self.nominal,
            **self.jobs.to_dict(),
            "preempting": self.preempting,
            "gpu_hours": round(self.gpu_hours, 1),
            "borrowed_gpu_hours": round(self.borrowed_gpu_hours, 1),
            "peak_used": self.peak_used,
            "peak_borrowed": self.peak_borrowed,
            "used_by_half_hour": [round(value, 1) for value in self.used],
        }


@dataclass(frozen=True, slots=True)
class Measured:
    """How the demo itself went, in real seconds.

    `submit_lag` is by how much the latest Job was submitted too late, `start_lag` the mean time
    that a Job's run took beyond what was asked for: to bind its pods and to notice their end.
    """

    day_s: float
    submit_lag: float
    start_lag: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "day_s": round(self.day_s, 1),
            "submit_lag_max_s": round(self.submit_lag, 2),
            "run_overhead_mean_s": round(self.start_lag, 2),
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """The day up to `hours`."""

    hours: float
    capacity: int
    tenants: Sequence[TenantFigures]
    tiers: dict[str, JobFigures]
    all_jobs: JobFigures
    gpu_hours: float
    used: Sequence[float]
    events: Sequence[tuple[str, str]]
    measured: Measured

    @property
    def utilization(self) -> float:
        """GPU-hours used of those there were."""
        there = self.capacity * self.hours
        return self.gpu_hours / there if there else 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON: waits in seconds of the day, the rest as named."""
        return {
            "hours": round(self.hours, 2),
            "pool": {
                "gpus": self.capacity,
                "utilization": round(self.utilization, 4),
                "gpu_hours": round(self.gpu_hours, 1),
                **self.all_jobs.to_dict(),
                "used_by_half_hour": [round(value, 1) for value in self.used],
            },
            "tenants": {tenant.name: tenant.to_dict() for tenant in self.tenants},
            "tiers": {name: figures.to_dict() for name, figures in self.tiers.items()},
            "events": [{"time": time, "text": text} for time, text in self.events],
            "measured": self.measured.to_dict(),
        }


def summarize(ledger: Ledger, hour: float, measured: Measured) -> Summary:
    """Sum the day up at `hour`."""
    ledger.tick(hour)
    logs = list(ledger.jobs.values())
    return Summary(
        hours=hour,
        capacity=ledger.capacity,
        tenants=[_tenant(ledger, name, hour) for name in ledger.tenants],
        tiers={
            tier: _figures([log for log in logs if log.job.tier == tier], hour)
            for tier in ledger.tiers
        },
        all_jobs=_figures(logs, hour),
        gpu_hours=ledger.pool.total,
        used=ledger.pool.means(),
        events=[(time_of_day(event.hour), event.text) for event in ledger.log.events],
        measured=measured,
    )


def _tenant(ledger: Ledger, name: str, hour: float) -> TenantFigures:
    account = ledger.accounts[name]
    queue = ledger.queues.get(name)
    return TenantFigures(
        name=name,
        nominal=queue.nominal if queue else 0,
        limit=queue.limit if queue else None,
        jobs=_figures([log for log in ledger.jobs.values() if log.job.tenant == name], hour),
        gpu_hours=account.used.total,
        borrowed_gpu_hours=account.borrowed.total,
        peak_used=account.used.peak,
        peak_borrowed=account.borrowed.peak,
        preempting=account.caused,
        used=account.used.means(),
    )


def _figures(logs: Sequence[JobLog], hour: float) -> JobFigures:
    waits = [log.wait(hour) for log in logs]
    return JobFigures(
        submitted=len(logs),
        started=sum(log.started is not None for log in logs),
        done=sum(log.done is not None for log in logs),
        running=sum(log.runs for log in logs),
        waiting=sum(log.waits for log in logs),
        mean_wait=sum(waits) / len(waits) if waits else 0.0,
        max_wait=max(waits, default=0.0),
        preempted=sum(log.preempted for log in logs),
        lost_gpu_hours=sum(log.lost for log in logs),
    )


def run_overheads(logs: Sequence[JobLog]) -> list[float]:
    """Hours by which the last run of each finished Job was longer than it asked for."""
    return [log.done - log.since - log.job.runs for log in logs if log.done is not None]
