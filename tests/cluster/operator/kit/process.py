"""The operator as a process of its own, as it runs in a cluster."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from gpufair.api.kinds import LEASE

from .kube import Kube
from .wait import until

NAMESPACE = "gpufair-system"
_RUN = ("-m", "gpufair", "run")
_KOPF = ("-m", "kopf", "run", "--all-namespaces", "-m", "gpufair.handlers")


class Operator:
    """One operator process. `log` is its output so far."""

    def __init__(self, kubeconfig: Path, logs: Path, *, kopf: bool = False) -> None:
        self.log_file = logs
        self._kubeconfig = kubeconfig
        self._kopf = kopf
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self._kubeconfig

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> "Operator":
        """Start the process; return once its view of the cluster is complete."""
        assert not self.running
        environment = os.environ | {"GPUFAIR_NAMESPACE": NAMESPACE}
        environment.pop("KUBECONFIG", None)
        command = self._command(environment)
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds: float = 40.0) -> None:
        until(self._is_ready, "the operator is ready", seconds, lambda: self.log[-2000:])

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of a probe; status 0 when nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as it:
                return it.status, it.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def stop(self) -> int:
        """Ask it to end, as the kubelet does; return its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """End it without any warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def freeze(self) -> None:
        """Let it do nothing, as on a node that hangs."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        if self.running:
            self.thaw()
            self.stop()

    def _command(self, environment: dict[str, str]) -> Sequence[str]:
        if self._kopf:
            environment["KUBECONFIG"] = str(self._kubeconfig)
            return [sys.executable, *_KOPF]
        self._port = _free_port()
        address = f"127.0.0.1:{self._port}"
        config = str(self._kubeconfig)
        return [sys.executable, *_RUN, "--kubeconfig", config, "--health", address, "-v"]

    def _is_ready(self) -> bool:
        if not self.running:
            raise AssertionError(f"the operator has ended: {self.log[-2000:]}")
        if self._kopf:
            return "The view of the cluster is complete" in self.log
        return self.probe("/readyz")[0] == 200


def forget_lease(kube: Kube) -> None:
    """Spare the next operator the wait for the lease of one that was killed."""
    kube.delete(LEASE, "gpufair", NAMESPACE)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
