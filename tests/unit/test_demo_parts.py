import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click.testing
import pytest
from rich.console import Console

from gpufair.cli import gpufair
from gpufair.demo import view
from gpufair.demo.child import Operator, command
from gpufair.demo.clock import DayClock
from gpufair.demo.events import Event
from gpufair.demo.ledger import TenantNow, TierNow
from gpufair.demo.operator import PlayedClock
from gpufair.demo.run import Demo, Options, _only_one, judge, read_policy
from gpufair.demo.screen import Lines, shown
from gpufair.demo.summary import JobFigures, Measured, Summary, TenantFigures
from gpufair.errors import GpufairError

NOW = view.Now(
    hour=9.1,
    capacity=1024,
    windows=["trading-hours"],
    tenants=[
        TenantNow("fraud", 512, None, 480, 0, 64, 14, 2),
        TenantNow("nlp", 200, 256, 304, 104, 208, 9, 5),
    ],
    tiers=[TierNow("inference", 14, 2, 480, 64), TierNow("best-effort", 9, 5, 304, 208)],
    events=[Event(8.0, "first"), Event(9.0, "second")],
)


def printed(renderable: Any, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(renderable)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_a_line_has_every_tenant() -> None:
    assert view.line(NOW) == (
        "09:06   77% used   fraud 480 of 512, 0 borrowed, 64 pending; "
        "nlp 304 of 200, 104 borrowed, 208 pending"
    )


def test_a_frame_fits_the_terminal_and_shows_the_latest_events() -> None:
    text = printed(view.frame(NOW, 17), width=80)
    assert "trading-hours" in text
    assert "first" not in text
    assert "second" in text
    nlp = next(line for line in text.splitlines() if line.startswith("nlp"))
    assert nlp.split()[1:7] == ["200", "304", "104", "208", "9", "5"]
    many = view.Now(**{**_fields(NOW), "events": [Event(1.0, "x")] * 40})
    for rows in (20, 24, 50):
        assert len(printed(view.frame(many, rows), width=80).splitlines()) <= rows


def _fields(now: view.Now) -> dict[str, Any]:
    return {name: getattr(now, name) for name in now.__dataclass_fields__}


def test_a_bar_shows_use_idle_and_borrowed() -> None:
    assert view.bar(NOW.tenants[0]).plain == "█" * 15 + "░"
    nlp = view.bar(NOW.tenants[1])
    assert nlp.plain == "█" * 11
    assert [str(span.style) for span in nlp.spans] == ["green", "yellow"]


def test_a_sparkline_shows_any_use_at_all() -> None:
    assert view.spark([0, 0.1, 50, 100, 120], 100) == " ▁▄██"
    assert view.spark([1, 2], 0) == "  "


def test_lines_come_now_and_then_and_events_always() -> None:
    stream = io.StringIO()
    lines = Lines(stream, every=3600)
    lines.show(NOW)
    lines.show(NOW)
    lines.tell(NOW.events[0])
    assert stream.getvalue().splitlines() == [view.line(NOW), "08:00  > first"]


def test_a_pipe_gets_lines() -> None:
    with shown(io.StringIO()) as screen:
        assert isinstance(screen, Lines)


def figures(**changes: Any) -> JobFigures:
    given = {
        "submitted": 10,
        "started": 9,
        "done": 6,
        "running": 2,
        "waiting": 2,
        "mean_wait": 0.5,
        "max_wait": 3.0,
        "preempted": 1,
        "lost_gpu_hours": 64.0,
    }
    return JobFigures(**{**given, **changes})


def summary(jobs: JobFigures, start_lag: float = 1.0) -> Summary:
    tenant = TenantFigures("nlp", 200, 256, jobs, 2400.0, 100.0, 300, 104, 2, [50.0] * 48)
    return Summary(
        hours=24.0,
        capacity=400,
        tenants=[tenant],
        tiers={"best-effort": jobs},
        all_jobs=jobs,
        gpu_hours=2400.0,
        used=[100.0] * 48,
        events=[("08:00", "first")],
        measured=Measured(180.0, 0.3, start_lag),
    )


def test_the_report_has_the_figures() -> None:
    text = printed(view.report(summary(figures())), width=view.WIDTH)
    row = next(line for line in text.splitlines() if line.startswith("nlp")).split()
    assert row == ["nlp", "10", "6", "2,400", "50%", "104", "30m", "3h00m", "1"]
    assert "The pool was 25% used: 2,400 GPU-hours, 64 of them lost to 1 preemption." in text
    assert "more --minutes" not in text


def test_a_slow_machine_is_told_so() -> None:
    assert "more --minutes" in view.verdict(summary(figures(), start_lag=9.0))


def test_the_summary_is_json() -> None:
    found = json.loads(json.dumps(summary(figures()).to_dict()))
    assert found["tenants"]["nlp"]["wait_s"] == {"mean": 1800, "max": 10800}
    assert found["pool"]["utilization"] == 0.25


def test_a_tenant_without_any_admitted_job_is_a_failure() -> None:
    judge(summary(figures()))
    with pytest.raises(GpufairError, match="None of 10 jobs of nlp was ever admitted"):
        judge(summary(figures(started=0)))


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_an_operator_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    operator = Operator(python("import sys; sys.exit('no such cluster')"), tmp_path / "log")
    operator.start()
    operator.stop()
    with pytest.raises(GpufairError) as caught:
        operator.check()
    assert "exit code 1" in str(caught.value)
    assert "no such cluster" in str(caught.value)
    assert str(tmp_path / "log") in str(caught.value)


def test_the_operator_is_told_the_time_and_stops_at_the_end_of_its_input(tmp_path: Path) -> None:
    code = "import sys; print(sys.stdin.read(), flush=True)"
    operator = Operator(python(code), tmp_path / "log")
    operator.start()
    operator.check()
    clock = DayClock(3, 12.5)
    operator.tell(clock)
    operator.stop()
    assert clock.to_json() in (tmp_path / "log").read_text()
    operator.stop()


def test_the_operator_process_reads_its_command_line() -> None:
    line = command(Path("/nowhere/kubeconfig"), DayClock(3))
    assert DayClock.from_json(line[-1]) == DayClock(3)
    assert line[1:3] == ["-m", "gpufair.demo.operator"]


def test_the_operator_lives_by_the_clock_of_the_day() -> None:
    played = PlayedClock(DayClock(3))
    assert played.now() == DayClock(3).moment(0.0)
    played.clock = DayClock(3, began=0.0)
    assert played.now() > DayClock(3).moment(0.0)


def test_two_demos_do_not_share_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFAIR_CACHE_DIR", str(tmp_path))
    with (
        _only_one("here"),
        _only_one("there"),
        pytest.raises(GpufairError, match="going on"),
        _only_one("here"),
    ):
        pass
    with _only_one("here"):
        pass


def test_a_cluster_that_is_used_for_something_else_is_left_alone() -> None:
    def instance(*nodes: str) -> Any:
        listed = {"items": [{"metadata": {"name": name}} for name in nodes]}
        return SimpleNamespace(name="mine", api=SimpleNamespace(get=lambda _: listed))

    options = Options(name="mine", minutes=3, until=24, seed=1, keep=False)
    demo = Demo(options, read_policy(), io.StringIO())
    demo._refuse_foreign(instance("h100-dc1-z1-r1-n1"))
    with pytest.raises(GpufairError, match="gpufair local down --name mine"):
        demo._refuse_foreign(instance("h100-dc1-z1-r1-n1", "gpu-001"))


@pytest.mark.parametrize("arguments", [["--until", "25:00"], ["--until", "x"], ["--minutes", "0"]])
def test_wrong_options_are_refused(arguments: list[str]) -> None:
    result = click.testing.CliRunner().invoke(gpufair, ["demo", *arguments])
    assert result.exit_code == 2
    assert "Invalid value" in result.stderr


def test_an_operator_that_has_ended_cannot_be_told_the_time(tmp_path: Path) -> None:
    operator = Operator(python("print('bye')"), tmp_path / "log")
    operator.start()
    assert operator._process is not None
    operator._process.wait(20)
    with pytest.raises(GpufairError, match=r"exit code 0(.|\n)*bye"):
        operator.tell(DayClock(3))
    operator.stop()


@pytest.mark.parametrize(
    ("hours", "text"), [(0.5, "00:00"), (6.5, "00:00"), (24, "00:00 06:00 12:00 18:00")]
)
def test_the_axis_is_as_long_as_the_day(hours: float, text: str) -> None:
    assert view.axis(hours).split() == text.split()
