"""The operator as a child process, from the demo's side."""

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpufair.demo.clock import DayClock
from gpufair.errors import GpufairError
from gpufair.local.logs import tail

_GRACE = 5.0


def command(kubeconfig: Path, clock: DayClock) -> list[str]:
    """How to start the operator with the day's clock."""
    module = [sys.executable, "-m", "gpufair.demo.operator"]
    return [*module, "--kubeconfig", str(kubeconfig), "--clock", clock.to_json()]


class Operator:
    """The process that `command` starts; `log` takes what it writes."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; an older log is replaced."""
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which stops it in good order
            )

    def check(self) -> None:
        """Raise GpufairError with the end of the log when it does not run."""
        if self._process is None or self._process.poll() is None:
            return
        raise GpufairError(
            f"The operator has ended with exit code {self._process.returncode}. {self.ending()}"
        )

    def ending(self) -> str:
        """Where its log is, and how it ends."""
        text = tail(self.log)
        return f"Its log is {self.log}" + (f" and ends so:\n{text}" if text else ", and is empty.")

    def tell(self, clock: DayClock) -> None:
        """Set the day's clock.

        Raises GpufairError when the operator has ended.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{clock.to_json()}\n".encode())
            self._process.stdin.flush()
        except OSError:
            self._process.wait(_GRACE)
            self.check()
            raise

    def stop(self) -> None:
        """Stop it: it gives its lease back, so that the next one need not wait."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        for signal_it in (process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
                return
            signal_it()
        process.wait()
