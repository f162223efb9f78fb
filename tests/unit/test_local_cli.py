"""`gpufair local` without a cluster."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpufair import local as clusters
from gpufair.cli.local import local
from gpufair.errors import GpufairError
from gpufair.local.processes import Proc
from gpufair.local.state import Options, State


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUFAIR_STATE_DIR", str(tmp_path))
    return tmp_path / "local"


@pytest.fixture
def stopped(state_dir: Path) -> clusters.Instance:
    """An instance whose processes have all ended."""
    directory = state_dir / "old"
    directory.mkdir(parents=True)
    procs = {"etcd": Proc(2**22 + 1, 1.0)}
    state = State(Options(kueue=False), Path("/box"), "running", {"kube-apiserver": 7}, procs)
    state.save(directory)
    (directory / "etcd.log").write_text("".join(f"line {number}\n" for number in range(100)))
    return clusters.get("old")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(local, arguments)


def test_status_in_a_pipe_is_json_and_fails_when_something_is_down(
    stopped: clusters.Instance,
) -> None:
    import json

    result = run("status", "--name", "old")
    assert result.exit_code == 1
    status = json.loads(result.stdout)
    assert status["server"] == "https://127.0.0.1:7"
    assert status["kubeconfig"] == str(stopped.kubeconfig)
    assert {row["component"]: row["up"] for row in status["components"]} == dict.fromkeys(
        ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"], False
    )
    assert status["components"][0]["log"] == str(stopped.log("etcd"))


def test_status_as_a_table(stopped: clusters.Instance) -> None:
    result = run("status", "--name", "old", "-o", "table")
    assert "kube-controller-manager" in result.stdout
    assert "down" in result.stdout


def test_logs_prints_the_end(stopped: clusters.Instance) -> None:
    assert run("logs", "etcd", "--name", "old", "-n", "2").stdout == "line 98\nline 99\n"
    assert run("logs", "etcd", "--name", "old").stdout.count("\n") == 100
    with pytest.raises(GpufairError, match="no component 'kueue'; it has etcd, "):
        raise run("logs", "kueue", "--name", "old").exception  # type: ignore[misc]


def test_kubeconfig_prints_a_path(stopped: clusters.Instance) -> None:
    assert run("kubeconfig", "--name", "old").stdout == f"{stopped.kubeconfig}\n"


def test_down_says_what_it_did(stopped: clusters.Instance, state_dir: Path) -> None:
    assert run("down", "--all").stderr == "Local cluster 'old' is down.\n"
    assert not state_dir.exists()
    assert run("down").stderr == "There is no local cluster 'default'.\n"


@pytest.mark.parametrize("command", ["status", "kubeconfig", "reset"])
def test_without_a_cluster_the_error_says_how_to_start_one(command: str, state_dir: Path) -> None:
    error = run(command).exception
    assert isinstance(error, GpufairError)
    assert str(error) == "There is no local cluster 'default'; start it with: gpufair local up"


@pytest.mark.parametrize("label", ["x", "=y", "x=y=z", "x="])
def test_labels_are_key_and_value(
    label: str, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}

    def up(name: str, **options: Any) -> None:
        given.update(options)
        raise GpufairError("enough")

    monkeypatch.setattr(clusters, "up", up)
    result = run("up", "--node-label", "a=b", "--node-label", label)
    if label.startswith("x="):
        assert given["node_labels"] == {"a": "b", "x": label[2:]}
    else:
        assert result.exit_code == 2
        assert f"'{label}' is not KEY=VALUE." in result.stderr
