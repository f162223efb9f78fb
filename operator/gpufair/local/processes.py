"""Start, recognise and stop the processes of an instance.

A process is known by its id and its start time together, so that an id which the system has
given to somebody else is never signalled.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

_SLACK = 2.0
"""Seconds by which two readings of one process's start time may differ: boot time is whole."""

_POLL = 0.02
_KILL_SECONDS = 30.0


@dataclass(frozen=True)
class Proc:
    """A process: its id, and its start in seconds since the machine's (no clock moves that)."""

    pid: int
    started: float

    @classmethod
    def of(cls, process: psutil.Process) -> "Proc":
        """Return the identity of a process; raise `psutil.Error` when it has ended."""
        return cls(process.pid, process.create_time() - psutil.boot_time())

    def find(self) -> psutil.Process | None:
        """Return the live process, or None when it has ended or its id is somebody else's."""
        try:
            process = psutil.Process(self.pid)
            same = abs(Proc.of(process).started - self.started) <= _SLACK
            # A zombie whose threads have not all ended yet still holds its ports.
            ended = process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1
            if same and ended:
                _reap(self.pid)
                return None
        except psutil.Error:
            return None
        return process if same else None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.find() is not None

    @property
    def rss(self) -> int | None:
        """Resident memory in bytes; None when the process has ended."""
        process = self.find()
        if process is None:
            return None
        try:
            return int(process.memory_info().rss)
        except psutil.Error:
            return None


def spawn(argv: list[str | Path], log: Path, directory: Path) -> Proc:
    """Start a process that outlives this one, in a session of its own, writing to `log`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=_environment(directory),
            start_new_session=True,
        )
    # Nobody waits for the child through this object: it may well outlive us.
    child.returncode = 0
    try:
        return Proc.of(psutil.Process(child.pid))
    except psutil.Error:
        return Proc(child.pid, 0.0)


def stop(procs: Iterable[Proc], *, grace: float) -> None:
    """End processes: SIGTERM, and SIGKILL for those still alive after `grace` seconds.

    With `grace` 0 they are killed at once. Returns when all have ended.
    """
    living = [proc for proc in procs if proc.alive]
    if grace > 0:
        _signal(living, signal.SIGTERM)
        living = _wait(living, grace)
    _signal(living, signal.SIGKILL)
    _wait(living, _KILL_SECONDS)


def belonging_to(directory: Path, binaries: Path) -> list[Proc]:
    """Return processes of our binaries that were started for the instance in `directory`.

    Finds those whose start could not be recorded, because the starter was killed meanwhile.
    """
    found = []
    for process in psutil.process_iter(["exe", "cwd"]):
        exe, cwd = process.info["exe"], process.info["cwd"]
        if exe and cwd and Path(exe).is_relative_to(binaries) and Path(cwd) == directory:
            with contextlib.suppress(psutil.Error):
                found.append(Proc.of(process))
    return found


def _environment(directory: Path) -> dict[str, str]:
    """Return a small environment: nothing of the user's may steer a component."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "USER") if key in os.environ}
    return kept | {"HOME": str(directory), "TMPDIR": str(directory), "TZ": "UTC"}


def _signal(procs: list[Proc], number: int) -> None:
    for proc in procs:
        if process := proc.find():
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)


def _wait(procs: list[Proc], seconds: float) -> list[Proc]:
    """Return those still alive after `seconds`.

    Not by waiting for the ids to vanish: in a container whose first process reaps nothing, a
    process that has ended stays as a zombie for ever.
    """
    deadline = time.monotonic() + seconds
    living = procs
    while living and time.monotonic() < deadline:
        time.sleep(_POLL)
        living = [proc for proc in living if proc.alive]
    return living


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
