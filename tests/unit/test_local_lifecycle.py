"""Starting and ending an instance, with small servers in the place of its components."""

import multiprocessing
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpufair import local
from gpufair.errors import GpufairError
from gpufair.local import build, instance, lifecycle, locks, paths, ports, processes
from gpufair.local.components import Component
from gpufair.local.instance import Instance
from gpufair.local.state import Options, State, ports_in_use

SERVER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
try:
    server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
except OSError:
    sys.exit("listen tcp: address already in use")
server.serve_forever()
"""


def server(target: Instance) -> list[str | Path]:
    return [sys.executable, "-c", SERVER, str(target.ports["etcd"])]


def broken(_: Instance) -> list[str | Path]:
    return [
        sys.executable,
        "-c",
        "import sys; print('one', flush=True); sys.exit('no such flag: --x')",
    ]


def mute(_: Instance) -> list[str | Path]:
    return ["sleep", "600"]


Components = Callable[..., None]


@pytest.fixture
def components(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Components]:
    """Make an instance consist of one component, with the given command line."""
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GPUFAIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "toolbox", lambda _: build.Toolbox(tmp_path / "box"))
    (tmp_path / "box" / "bin").mkdir(parents=True)

    def use(prepare: Callable[[Instance], list[str | Path]], seconds: float = 20) -> None:
        spec = Component("etcd", ("etcd",), "etcd", prepare, "/", tls=False, seconds=seconds)
        for module in (instance, lifecycle):
            monkeypatch.setattr(module, "COMPONENTS", {"etcd": spec})

        def start(starting: Instance, _: object) -> None:
            starting.bring_up("etcd")
            starting.set_running()

        monkeypatch.setattr(lifecycle, "_start", start)

    yield use
    for name in local.names():
        local.down(name)


def test_up_get_and_down(components: Components) -> None:
    components(server)
    made = local.up("a", nodes=2, node_labels={"x": "y"})
    assert made.fresh
    found = local.get("a")
    assert found.options == Options(nodes=2, node_labels={"x": "y"})
    (row,) = found.status()
    assert row.up
    assert row.rss
    assert row.pid
    assert local.names() == ["a"]
    assert local.down("a")
    assert not row.log.exists()
    assert not paths.state_dir().exists()
    assert not local.down("a")
    with pytest.raises(GpufairError, match=r"no local cluster 'a'.*local up --name a"):
        local.get("a")


def test_up_again_changes_nothing(components: Components) -> None:
    components(server)
    first = local.up("a")
    second = local.up("a", nodes=9)
    assert not second.fresh
    assert second.status()[0].pid == first.status()[0].pid
    assert second.options.nodes == 4


def test_two_side_by_side(components: Components) -> None:
    components(server)
    first, second = local.up("a"), local.up("b")
    assert first.ports["etcd"] != second.ports["etcd"]
    assert local.names() == ["a", "b"]
    local.down("a")
    assert second.dead() == []


def test_a_component_that_has_died_is_named(components: Components) -> None:
    components(server)
    made = local.up("a")
    made.stop("etcd", kill=True)
    with pytest.raises(GpufairError, match=r"'a' is not whole: etcd has ended; gpufair local res"):
        local.up("a")
    assert local.reset("a").dead() == []


def test_a_start_that_fails_shows_why_and_leaves_nothing(components: Components) -> None:
    components(broken)
    with pytest.raises(GpufairError) as failure:
        local.up("a")
    kept = paths.cache_dir() / "logs" / "up-a"
    assert str(failure.value) == (
        "etcd ended while starting. Its log ends so:\none\nno such flag: --x\n"
        f"All logs of this start are in {kept}."
    )
    assert (kept / "etcd.log").read_text() == "one\nno such flag: --x\n"
    assert not paths.state_dir().exists()


def test_a_component_that_never_answers_is_given_up(components: Components) -> None:
    components(mute, seconds=0.3)
    with pytest.raises(GpufairError, match=r"etcd was not ready after 0 s. It has written nothing"):
        local.up("a")
    assert not paths.state_dir().exists()


def test_a_port_that_somebody_takes_is_changed(
    components: Components, monkeypatch: pytest.MonkeyPatch
) -> None:
    components(server)
    choose = ports.choose
    with closing(socket.socket()) as squatter:
        squatter.bind(("127.0.0.1", 0))
        busy = squatter.getsockname()[1]
        answers = iter([[busy], [busy]])
        monkeypatch.setattr(ports, "choose", lambda *args: next(answers, None) or choose(*args))
        made = local.up("a")
    assert made.ports["etcd"] != busy
    assert made.log("etcd").read_text().count("address already in use") == 2


def test_what_a_killed_start_has_left_is_cleared(components: Components) -> None:
    components(server)
    made = local.up("a")
    made.state.phase = "starting"
    made.state.save(made.directory)
    (left,) = made.state.procs.values()
    assert local.up("a").fresh
    assert not left.alive


def test_down_removes_an_instance_whose_state_is_unreadable(components: Components) -> None:
    components(server)
    made = local.up("a")
    (left,) = made.state.procs.values()
    try:
        (made.directory / "instance.json").write_text("{")
        assert local.down("a")
        assert not made.directory.exists()
    finally:
        processes.stop([left], grace=0)


def test_an_interrupt_ends_a_start_without_a_trace(components: Components) -> None:
    components(mute, seconds=60)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_interrupted)
    child.start()
    assert child.pid
    deadline = threading.Event()
    for _ in range(1000):
        found = instance.find("a")
        if found and found.state.procs:
            break
        deadline.wait(0.02)
    (left,) = found.state.procs.values()  # type: ignore[union-attr]
    assert left.alive
    import os

    os.kill(child.pid, signal.SIGINT)
    child.join(20)
    assert child.exitcode == 3
    assert not left.alive
    assert not paths.state_dir().exists()


def _interrupted() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        local.up("a")
    except KeyboardInterrupt:
        sys.exit(3)


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "a-", "a" * 41, "a/b", "é"])
def test_a_name_that_is_no_directory_is_refused(components: Components, name: str) -> None:
    components(server)
    with pytest.raises(GpufairError, match="cannot name a local cluster"):
        local.up(name)
    assert not paths.state_dir().exists()


def test_unknown_components_are_named(components: Components) -> None:
    components(server)
    with pytest.raises(GpufairError, match="no component 'nope'; it has etcd"):
        local.up("a").restart("nope")


def test_ports_of_stopped_components_stay_theirs(components: Components) -> None:
    components(server)
    made = local.up("a")
    made.stop("etcd")
    assert ports_in_use(paths.state_dir()) == set(made.ports.values())
    made.start("etcd")
    assert made.dead() == []


def test_the_state_comes_back_as_it_was(tmp_path: Path) -> None:
    state = State(
        options=Options(nodes=1, kueue_feature_gates={"A": True}, kueue_config={"b": [1]}),
        toolbox=tmp_path,
        phase="running",
        ports={"etcd": 1},
        procs={"etcd": processes.Proc(1, 2.5)},
        kueue_webhook_port=3,
    )
    state.save(tmp_path)
    assert State.load(tmp_path) == state
    assert State.load(tmp_path / "none") is None


def test_the_lock_is_held_by_one_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path))
    pause = threading.Event()
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(50):
            with locks.instance_lock("a"):
                inside.append(1)
                # Long enough for the others to meet it.
                pause.wait(0.002)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 200
    assert set(most) == {1}
    assert list(tmp_path.iterdir()) == []


def test_who_waits_for_the_lock_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path))
    told = threading.Event()

    def second() -> None:
        with locks.instance_lock("a", told.set):
            pass

    with locks.instance_lock("a"):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(20)
        assert thread.is_alive()
    thread.join(20)
    assert not thread.is_alive()


def test_a_state_directory_that_cannot_be_is_an_error(
    components: Components, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    components(server)
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(GpufairError, match=r"file/local cannot be created: Not a directory\."):
        local.up("a")
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path))
    (tmp_path / "local").touch()
    with pytest.raises(GpufairError, match=r"local is no directory\."):
        local.up("a")
    (tmp_path / "local").unlink()
