"""Ports of the local cluster."""

import socket
from contextlib import closing

import pytest

from gpufair.errors import GpufairError
from gpufair.local import ports


def test_ports_are_different_and_free() -> None:
    chosen = ports.choose(40, set())
    assert len(set(chosen)) == 40
    for port in chosen:
        with closing(socket.socket()) as server:
            server.bind(("127.0.0.1", port))


def test_a_port_of_another_instance_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ports.choose(1, set())[0]
    monkeypatch.setattr(ports, "_range", lambda: (first, first + 1))
    with pytest.raises(GpufairError):
        ports.choose(1, {first})


def test_a_port_in_use_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "_range", lambda: (port, port + 1))
        with pytest.raises(GpufairError, match=f"no 1 free ports on 127.0.0.1 from {port}"):
            ports.choose(1, set())
    assert ports.choose(1, set()) == [port]


def test_ports_are_below_those_of_outgoing_connections() -> None:
    low, high = ports._range()
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        ephemeral = server.getsockname()[1]
    assert low < high <= ephemeral
