"""Choose free ports on loopback.

Ports come from below the range that the kernel hands to outgoing connections: while a component
restarts, none of its clients can be given its port, and none can end up connected to itself.
"""

import random
import socket
from contextlib import closing
from pathlib import Path

from gpufair.errors import GpufairError

_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_HIGHEST = 32_767


def choose(count: int, taken: set[int]) -> list[int]:
    """Return `count` different ports that nothing listens on and that are not in `taken`.

    Between the choice and the use somebody else may bind one: whoever starts a server on it has
    to choose again when the server finds the port in use. Raises `GpufairError` when too few
    are free.
    """
    low, high = _range()
    chosen: list[int] = []
    for port in random.sample(range(low, high), high - low):
        if port not in taken and _free(port):
            chosen.append(port)
            if len(chosen) == count:
                return chosen
    raise GpufairError(f"There are no {count} free ports on 127.0.0.1 from {low} to {high}.")


def _range() -> tuple[int, int]:
    try:
        ephemeral = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        ephemeral = _HIGHEST
    if ephemeral < _LOWEST + 1_000:
        return _LOWEST, _HIGHEST
    return _LOWEST, min(ephemeral, _HIGHEST)


def _free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
