"""Wait for conditions, with deadlines."""

import http.client
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from gpufair.errors import GpufairError

_INTERVAL = 0.05
_TIMEOUT = 5.0


class TooLateError(GpufairError):
    """A condition did not hold before its deadline."""


def until(condition: Callable[[], bool], seconds: float, late: str) -> None:
    """Return once the condition holds; raise `TooLateError(late)` after `seconds`.

    What the condition raises ends the wait.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            raise TooLateError(late)
        time.sleep(_INTERVAL)


def answers(port: int, path: str, pki: Path | None) -> bool:
    """Whether a GET of `path` on loopback is answered with 200.

    With `pki`, over TLS, with the API server's client certificate from that directory.
    """
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT, context=_tls(pki))
        if pki
        else http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _tls(pki: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
    return context
