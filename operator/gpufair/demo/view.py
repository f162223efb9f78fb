"""How the day looks: tables for a terminal, lines for a pipe. Pure, but for rich."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpufair.demo.clock import span, time_of_day
from gpufair.demo.day import DAY
from gpufair.demo.events import Event
from gpufair.demo.ledger import TenantNow, TierNow
from gpufair.demo.summary import JobFigures, Summary, TenantFigures

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

GPUS_PER_CELL = 32
"""Width of a bar: so many GPUs are one character."""
WIDTH = 110
"""Of the report in a pipe, in characters."""
_SPARKS = " ▁▂▃▄▅▆▇█"
_NAME = 10
_ROWS_BESIDE_EVENTS = 16
_SLOW = 0.03
"""Part of the day that starting and ending a Job may take before it is worth a hint."""


@dataclass(frozen=True, slots=True)
class Now:
    """The day at one moment, as it is shown."""

    hour: float
    capacity: int
    windows: Sequence[str]
    tenants: Sequence[TenantNow]
    tiers: Sequence[TierNow]
    events: Sequence[Event]

    @property
    def used(self) -> int:
        return sum(tenant.used for tenant in self.tenants)

    @property
    def utilization(self) -> float:
        return self.used / self.capacity if self.capacity else 0.0


# -- while it goes on ----------------------------------------------------------------------------


def line(now: Now) -> str:
    """The moment on one line."""
    tenants = "; ".join(
        f"{t.name} {t.used} of {t.nominal}, {t.borrowed} borrowed, {t.pending} pending"
        for t in now.tenants
    )
    return f"{time_of_day(now.hour)}  {now.utilization:4.0%} used   {tenants}"


def event_line(event: Event) -> str:
    """An event on one line, set off from the others."""
    return f"{time_of_day(event.hour)}  > {event.text}"


def frame(now: Now, rows: int) -> "Group":
    """The moment as tables, with as many of the latest events as `rows` leave room for."""
    from rich.console import Group
    from rich.text import Text

    room = max(1, rows - _ROWS_BESIDE_EVENTS)
    return Group(
        _header(now),
        Text(),
        _tenants(now.tenants),
        Text(),
        _tiers(now.tiers),
        Text(),
        *(
            Text.assemble(
                (time_of_day(event.hour), "cyan"),
                f"  {event.text}",
                no_wrap=True,
                overflow="ellipsis",
            )
            for event in now.events[-room:]
        ),
    )


def _header(now: Now) -> "Text":
    from rich.text import Text

    cells = 20
    full = round(min(1.0, now.hour / DAY) * cells)
    window = f"  {', '.join(now.windows)}" if now.windows else ""
    return Text.assemble(
        (time_of_day(now.hour), "bold cyan"),
        "  ",
        ("━" * full, "cyan"),
        ("━" * (cells - full), "bright_black"),
        "  ",
        (f"{now.utilization:.0%}", "bold"),
        f" of {now.capacity} GPUs used",
        (window, "magenta"),
    )


def _tenants(tenants: Sequence[TenantNow]) -> "Table":
    table = _table("tenant", "nominal", "used", "borrowed", "pending", "run", "wait")
    table.add_column("quota, and beyond", no_wrap=True)
    for tenant in tenants:
        table.add_row(
            tenant.name,
            str(tenant.nominal),
            str(tenant.used),
            str(tenant.borrowed),
            str(tenant.pending),
            str(tenant.running_jobs),
            str(tenant.waiting_jobs),
            bar(tenant),
        )
    return table


def bar(tenant: TenantNow) -> "Text":
    """Use of the nominal quota, what is idle of it, and what is borrowed beyond."""
    from rich.text import Text

    own = _cells(tenant.used - tenant.borrowed)
    idle = max(0, _cells(tenant.nominal) - own)
    return Text.assemble(
        ("█" * own, "green"),
        ("░" * idle, "bright_black"),
        ("█" * _cells(tenant.borrowed), "yellow"),
    )


def _cells(gpus: int) -> int:
    return -(-max(0, gpus) // GPUS_PER_CELL)


def _tiers(tiers: Sequence[TierNow]) -> "Table":
    table = _table("tier", "running", "pending", "GPUs running", "GPUs pending")
    for tier in tiers:
        figures = (tier.running, tier.pending, tier.running_gpus, tier.pending_gpus)
        table.add_row(tier.name, *map(str, figures))
    return table


def _table(first: str, *numbers: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


# -- when it is done -----------------------------------------------------------------------------


def report(summary: Summary) -> "Group":
    """The summary as tables."""
    from rich.console import Group
    from rich.text import Text

    return Group(
        Text(),
        _tenant_table(summary),
        Text(),
        _tier_table(summary),
        Text(),
        *(_day_line(t.name, t.used, t.nominal + (t.limit or 0)) for t in summary.tenants),
        _day_line("pool", summary.used, summary.capacity),
        Text(" " * _NAME + axis(summary.hours), style="bright_black"),
        Text(),
        Text(verdict(summary)),
    )


def _tenant_table(summary: Summary) -> "Table":
    columns = ("jobs", "done", "GPU-hours", "of nominal", "peak borrowed", "wait mean", "wait max")
    table = _table("tenant", *columns, "preempted")
    for tenant in summary.tenants:
        jobs = tenant.jobs
        table.add_row(
            tenant.name,
            str(jobs.submitted),
            str(jobs.done),
            f"{tenant.gpu_hours:,.0f}",
            f"{_of_nominal(tenant, summary.hours):.0%}",
            str(tenant.peak_borrowed),
            span(jobs.mean_wait),
            span(jobs.max_wait),
            str(jobs.preempted),
        )
    return table


def _of_nominal(tenant: TenantFigures, hours: float) -> float:
    there = tenant.nominal * hours
    return tenant.gpu_hours / there if there else 0.0


def _tier_table(summary: Summary) -> "Table":
    table = _table(
        "tier", "jobs", "done", "running", "waiting", "wait mean", "wait max", "preempted", "lost"
    )
    for name, jobs in summary.tiers.items():
        table.add_row(name, *_tier_row(jobs))
    return table


def _tier_row(jobs: JobFigures) -> tuple[str, ...]:
    return (
        *map(str, (jobs.submitted, jobs.done, jobs.running, jobs.waiting)),
        span(jobs.mean_wait),
        span(jobs.max_wait),
        str(jobs.preempted),
        f"{jobs.lost_gpu_hours:,.0f} GPU-h",
    )


def _day_line(name: str, used: Sequence[float], most: int) -> "Text":
    from rich.text import Text

    peak = max(used, default=0.0)
    return Text.assemble(
        f"{name:<{_NAME}}", (spark(used, most), "green"), f"  up to {peak:.0f} of {most} GPUs"
    )


def axis(hours: float) -> str:
    """Times below a sparkline of half hours, every six hours."""
    return "".join(f"{time_of_day(hour):<12}" for hour in range(0, max(1, int(hours)), 6)).rstrip()


def spark(values: Sequence[float], most: float) -> str:
    """One character per value, as high as its part of `most`; any use at all is visible."""
    top = len(_SPARKS) - 1
    heights = (value / most * top if most else 0.0 for value in values)
    return "".join(
        _SPARKS[min(top, max(1, round(height)))] if height > 0 else _SPARKS[0] for height in heights
    )


def verdict(summary: Summary) -> str:
    """The day in a few sentences."""
    jobs, measured = summary.all_jobs, summary.measured
    preemptions = _counted(jobs.preempted, "preemption")
    slow = measured.start_lag > _SLOW * measured.day_s
    hint = " That is much for so short a day: give it more --minutes." if slow else ""
    return (
        f"The pool was {summary.utilization:.0%} used: {summary.gpu_hours:,.0f} GPU-hours, "
        f"{jobs.lost_gpu_hours:,.0f} of them lost to {preemptions}. "
        f"{jobs.done} of {_counted(jobs.submitted, 'job')} done, {jobs.running} still running, "
        f"{jobs.waiting} waiting. "
        f"{summary.hours:.3g} hours passed in {measured.day_s:.0f} s; jobs were submitted at most "
        f"{measured.submit_lag:.1f} s late and ran {measured.start_lag:.1f} s longer than asked, "
        f"on average.{hint}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
