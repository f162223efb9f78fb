"""What the operator is told from outside: options and environment, nothing of the policy."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from gpufair.errors import GpufairError

_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _lease_namespace() -> str:
    """Our own namespace in a pod; `default` elsewhere, which every cluster has."""
    if "GPUFAIR_NAMESPACE" in os.environ:
        return os.environ["GPUFAIR_NAMESPACE"]
    return _POD_NAMESPACE.read_text().strip() if _POD_NAMESPACE.exists() else "default"


@dataclass(frozen=True, slots=True)
class Settings:
    """`health` is HOST:PORT of the probes, empty for none; `workers` bounds writes at once."""

    kubeconfig: str | None = None
    context: str | None = None
    lease_namespace: str = field(default_factory=_lease_namespace)
    lease_name: str = "gpufair"
    health: str = ""
    workers: int = 16

    @property
    def health_address(self) -> tuple[str, int] | None:
        """Where the probes are served. Raises GpufairError when `health` is no HOST:PORT."""
        if not self.health:
            return None
        host, _, port = self.health.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise GpufairError(
                f"--health: {self.health!r} is no address: write HOST:PORT, as in 127.0.0.1:8081.",
                exit_code=2,
            )
        return host.strip("[]"), int(port)
