"""Processes of the local cluster: real ones."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from gpufair.local import processes
from gpufair.local.processes import Proc

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('ready', flush=True); time.sleep(600)"
)


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Callable[..., Proc]]:
    started: list[Proc] = []

    def start(*argv: str | Path) -> Proc:
        started.append(processes.spawn(list(argv), tmp_path / "log", tmp_path))
        return started[-1]

    yield start
    processes.stop(started, grace=0)


def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "too late"
        time.sleep(0.01)


def test_a_started_process_is_alive_until_it_is_stopped(spawn: Callable[..., Proc]) -> None:
    proc = spawn("sleep", "600")
    assert proc.alive
    assert proc.rss is not None
    processes.stop([proc], grace=10)
    assert not proc.alive
    assert proc.rss is None


def test_a_process_that_has_ended_by_itself_is_not_alive(spawn: Callable[..., Proc]) -> None:
    proc = spawn("true")
    eventually(lambda: not proc.alive)


def test_who_ignores_sigterm_is_killed(spawn: Callable[..., Proc], tmp_path: Path) -> None:
    proc = spawn(sys.executable, "-c", STUBBORN)
    eventually(lambda: "ready" in (tmp_path / "log").read_text())
    processes.stop([proc], grace=0.2)
    assert not proc.alive


def test_an_id_that_is_somebody_elses_now_is_not_signalled(spawn: Callable[..., Proc]) -> None:
    other = spawn("sleep", "600")
    recycled = Proc(other.pid, other.started - 60)
    assert not recycled.alive
    processes.stop([recycled], grace=0)
    assert other.alive


def test_a_changed_clock_does_not_change_who_a_process_is(
    spawn: Callable[..., Proc], monkeypatch: pytest.MonkeyPatch
) -> None:
    proc = spawn("sleep", "600")
    boot, created = psutil.boot_time, psutil.Process.create_time
    monkeypatch.setattr(psutil, "boot_time", lambda: boot() + 3600)
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: created(self) + 3600)
    assert proc.alive


def test_a_process_does_not_get_the_callers_environment(
    spawn: Callable[..., Proc], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    proc = spawn("env")
    eventually(lambda: not proc.alive)
    text = (tmp_path / "log").read_text()
    assert "KUBECONFIG" not in text
    assert f"HOME={tmp_path}" in text


def test_processes_are_found_without_a_record(spawn: Callable[..., Proc], tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    sleep = shutil.which("sleep")
    assert sleep
    shutil.copy(Path(sleep).resolve(), binaries / "etcd")
    ours = spawn(binaries / "etcd", "600")
    spawn("sleep", "600")
    eventually(lambda: processes.belonging_to(tmp_path, binaries) == [ours])
    assert processes.belonging_to(tmp_path / "other", binaries) == []


def test_a_process_is_in_a_session_of_its_own(spawn: Callable[..., Proc]) -> None:
    import os

    proc = spawn("sleep", "600")
    assert os.getsid(proc.pid) == proc.pid != os.getsid(0)
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
