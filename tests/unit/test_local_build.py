"""The cache of binaries, with a Go that only pretends to build."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from gpufair.errors import GpufairError
from gpufair.local import build
from gpufair.local.progress import LineProgress

PYTHON = Path(sys.executable)

GO = """#!/bin/sh
echo "$*" >> {calls}
case "$1 $2" in
  "env GOVERSION") echo go1.99.0 ;;
  "list -mod=readonly") if [ "$3" = -m ]; then echo {module}; else printf 'a\\nb\\n'; fi ;;
  build*)
    {on_build}
    echo a >&2
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho "apiVersion: v1"; echo "kind: Namespace"\\n' > "$2"
    chmod +x "$2" ;;
esac
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a pretended Go on the PATH; return the file that lists how it was called."""
    monkeypatch.setenv("GPUFAIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    def make(on_build: str = "true") -> Path:
        calls = tmp_path / "calls"
        command = tmp_path / "path" / "go"
        command.parent.mkdir(exist_ok=True)
        command.write_text(GO.format(calls=calls, module=tmp_path / "module", on_build=on_build))
        command.chmod(0o755)
        return calls

    return make


def builds(calls: Path) -> int:
    return sum(line.startswith("build ") for line in calls.read_text().splitlines())


def test_binaries_and_manifests_are_in_the_cache(go: Callable[..., Path]) -> None:
    go()
    box = build.toolbox()
    for binary in build.BINARIES:
        assert os.access(box.binary(binary.name), os.X_OK)
    assert box.manifest("kueue") == [{"apiVersion": "v1", "kind": "Namespace"}]
    assert box.manifest("jobset") == []
    assert json.loads((box.root / "build.json").read_text())["go"] == "1.99.0"


def test_a_warm_start_needs_no_go(go: Callable[..., Path], tmp_path: Path) -> None:
    calls = go()
    box = build.toolbox()
    (tmp_path / "path" / "go").unlink()
    assert build.toolbox() == box
    assert builds(calls) == len(build.BINARIES)


def test_two_at_once_build_once(go: Callable[..., Path]) -> None:
    calls = go("sleep 0.02")
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: build.toolbox(), range(2))
    assert first == second
    assert builds(calls) == len(build.BINARIES)


def test_a_build_that_fails_shows_the_end_of_its_log(
    go: Callable[..., Path], tmp_path: Path
) -> None:
    calls = go("echo 'x.go:1: syntax error' >&2; exit 1")
    with pytest.raises(GpufairError) as failure:
        build.toolbox()
    text = str(failure.value)
    log = tmp_path / "cache" / "logs" / build.cache_key() / "etcd.log"
    assert text.startswith(f"Building etcd failed; the log is {log}")
    assert text.endswith("x.go:1: syntax error")
    assert "syntax error" in log.read_text()
    assert list((tmp_path / "cache" / "bin").iterdir()) == []
    assert builds(calls) == 1


def test_a_build_can_be_interrupted(go: Callable[..., Path], tmp_path: Path) -> None:
    calls = go(f"echo $$ > {tmp_path / 'pid'}; exec sleep 600")
    monitor = subprocess.Popen(
        [PYTHON, "-c", "from gpufair.local import build; build.toolbox()"],
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    monitor.send_signal(signal.SIGINT)
    assert monitor.wait(20) != 0
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
    assert list((tmp_path / "cache" / "bin").iterdir()) == []
    assert builds(calls) == 1


def test_what_a_killed_build_has_left_is_removed(go: Callable[..., Path], tmp_path: Path) -> None:
    go()
    left = tmp_path / "cache" / "bin" / ".building-gone"
    left.mkdir(parents=True)
    box = build.toolbox()
    assert list(box.root.parent.iterdir()) == [box.root]


def test_progress_names_each_component(
    go: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    go()
    build.toolbox(LineProgress(sys.stderr))
    lines = capsys.readouterr().err
    for number, binary in enumerate(build.BINARIES, start=1):
        assert f"{binary.name}: building ({number} of {len(build.BINARIES)}) …\n" in lines


def test_the_key_follows_flags_and_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    before = build.cache_key()
    with monkeypatch.context() as patch:
        patch.setattr(build, "FLAGS", ("-race",))
        assert build.cache_key() != before
    shutil.copytree(build.MODULES, tmp_path / "modules")
    monkeypatch.setattr(build, "MODULES", tmp_path / "modules")
    assert build.cache_key() == before
    with (tmp_path / "modules" / "kwok" / "go.sum").open("a") as file:
        file.write("\n")
    assert build.cache_key() != before


def test_clients_learn_the_right_versions() -> None:
    flags = {binary.name: binary.ldflags for binary in build.BINARIES}
    modules = (build.MODULES / "cluster" / "go.mod").read_text()
    assert "k8s.io/component-base/version.gitVersion=v1.35.4" in flags["kube-apiserver"]
    assert f"k8s.io/kubernetes {build.KUBERNETES_VERSION} " in modules
    assert f"sigs.k8s.io/kueue {build.KUEUE_VERSION} " in modules
    kwok = (build.MODULES / "kwok" / "go.mod").read_text()
    assert f"sigs.k8s.io/kwok {build.KWOK_VERSION} " in kwok
