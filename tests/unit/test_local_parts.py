"""Small parts of the local cluster: progress, nodes, logs, requests."""

import io
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufair.errors import GpufairError
from gpufair.local import components, health, kwok, logs, nodes, progress, restapi


class Answers:
    """An API with nodes of the given names, that records what is created."""

    def __init__(self, *names: str, refuse: str = "") -> None:
        self.items: list[dict[str, Any]] = [{"metadata": {"name": name}} for name in names]
        self.refuse = refuse

    def get(self, _: str) -> dict[str, Any]:
        return {"items": self.items}

    def request(self, method: str, path: str, body: dict[str, Any]) -> restapi.Response:
        assert (method, path) == ("POST", "/api/v1/nodes")
        if self.refuse:
            return restapi.Response(403, {"message": self.refuse})
        self.items.append(body)
        return restapi.Response(201, body)


def test_node_numbers_go_on_after_the_highest() -> None:
    api: Any = Answers("gpu-002", "gpu-009", "gpu-x", "other-050")
    assert nodes.add(api, 2) == ["gpu-010", "gpu-011"]
    assert nodes.add(api, 1, prefix="new") == ["new-001"]


def test_a_node_has_what_was_asked_for() -> None:
    api: Any = Answers()
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    nodes.add(api, 1, gpus=4, labels={"zone": "z"}, taints=[taint], resources={"pods": "20"})
    (node,) = api.items
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    amounts = node["status"]["allocatable"]
    assert (amounts["nvidia.com/gpu"], amounts["pods"]) == ("4", "20")
    assert {"cpu", "memory", "ephemeral-storage"} < set(amounts)
    labels = node["metadata"]["labels"]
    assert labels["zone"] == "z"
    assert labels["kubernetes.io/hostname"] == "gpu-001"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert node["spec"]["taints"] == [taint]


def test_a_node_without_gpus_offers_none() -> None:
    api: Any = Answers()
    nodes.add(api, 1, gpus=0)
    (node,) = api.items
    assert "nvidia.com/gpu" not in node["status"]["allocatable"]
    assert not [label for label in node["metadata"]["labels"] if "nvidia" in label]


def test_a_refused_node_is_told() -> None:
    api: Any = Answers(refuse="labels are wrong")
    with pytest.raises(GpufairError, match="refused node gpu-001: labels are wrong"):
        nodes.add(api, 1)


def test_nodes_are_ready_when_the_first_taint_is_gone() -> None:
    api: Any = Answers()
    tainted = {"spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}
    api.items = [{"metadata": {"name": "a"}, "spec": {}}, {"metadata": {"name": "b"}} | tainted]
    assert nodes.untainted(api, {"a"})
    assert not nodes.untainted(api, {"a", "b"})
    assert not nodes.untainted(api, {"c"})


def test_progress_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = io.StringIO()
    lines = progress.LineProgress(stream)
    with lines.step("etcd", "building") as step:
        for done, later in ((1, 10.0), (2, 25.0), (3, 1.0), (4, 29.0), (5, 40.0)):
            now += later
            step.at(done, 9)
    assert stream.getvalue().splitlines() == [
        "etcd: building …",
        "etcd: 2 of 9",
        "etcd: 4 of 9",
        "etcd: 5 of 9",
        "etcd: done in 1 min 45 s",
    ]


def test_a_step_that_fails_is_not_done() -> None:
    stream = io.StringIO()
    with pytest.raises(GpufairError), progress.LineProgress(stream).step("a", "b"):
        raise GpufairError("x")
    assert stream.getvalue() == "a: b …\n"


def test_bars_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with progress.shown(stream) as bars, bars.step("etcd", "building [1 of 7]") as step:
        step.at(3, 9)
        bars.note("a [note]")
    text = stream.getvalue()
    assert "etcd: building [1 of 7]" in text
    assert "a [note]" in text


def test_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert logs.tail(log) == ""
    log.write_bytes(b"\xff first\nsecond\n" + b"x" * 1000 + b"\n")
    assert logs.tail(log, lines=2, width=3) == "sec\nxxx"
    assert logs.tail(log, since=8) == "second\n" + "x" * 400


def test_a_condition_that_never_holds_is_given_up() -> None:
    with pytest.raises(health.TooLateError, match="too late"):
        health.until(lambda: False, 0.1, "too late")


def test_collections_have_the_plurals_of_the_api() -> None:
    def path(version: str, kind: str, **metadata: str) -> str:
        return restapi.collection_path(
            {"apiVersion": version, "kind": kind, "metadata": {"name": "n"} | metadata}
        )

    assert path("v1", "Namespace") == "/api/v1/namespaces"
    assert path("v1", "Secret", namespace="x") == "/api/v1/namespaces/x/secrets"
    assert path("scheduling.k8s.io/v1", "PriorityClass").endswith("/priorityclasses")
    assert path("k/v1", "Topology") == "/apis/k/v1/topologies"


def test_the_stages_cover_a_pods_life() -> None:
    stages = list(yaml.safe_load_all(kwok.STAGES.read_text()))
    assert [stage["metadata"]["name"] for stage in stages] == [
        "node-ready",
        "pod-refused",
        "pod-run",
        "pod-succeed",
        "pod-delete",
    ]
    keys = [expression["key"] for stage in stages for expression in _expressions(stage)]
    patterns = {key for key in keys if "test(" in key}
    assert len(patterns) == 1, "both stages of a pending pod must judge alike"


def _expressions(stage: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage["spec"]["selector"]["matchExpressions"]
    return found


def test_only_a_port_in_use_is_a_conflict() -> None:
    etcd = components.COMPONENTS["etcd"]
    assert components.is_conflict(etcd, "listen tcp 127.0.0.1:1: bind: address already in use")
    assert not components.is_conflict(etcd, "permission denied")
