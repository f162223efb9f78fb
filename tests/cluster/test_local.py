"""The local cluster itself: what users rely on when they try a policy on it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from gpufair import local
from gpufair.errors import GpufairError
from gpufair.local import build
from gpufair.local.kueue import USER as KUEUE_USER

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
PRODUCT = "NVIDIA-H100-80GB-HBM3"
Manifest = dict[str, Any]
T = TypeVar("T")


def eventually(question: Callable[[], T], what: str, seconds: float = 60) -> T:
    deadline = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return answer


class Queue:
    """A namespace with a LocalQueue of 16 GPUs."""

    def __init__(self, cluster: local.Instance) -> None:
        self.name = f"local-{uuid.uuid4().hex[:8]}"
        self.api = cluster.api
        amounts = {"nvidia.com/gpu": "16", "cpu": "1000", "memory": "4Ti"}
        resources = [{"name": key, "nominalQuota": value} for key, value in amounts.items()]
        flavor = {"name": self.name, "resources": resources}
        self.create("v1", "Namespace")
        self.create(
            "kueue.x-k8s.io/v1beta2",
            "ResourceFlavor",
            spec={"nodeLabels": {"nvidia.com/gpu.product": PRODUCT}},
        )
        self.create(
            "kueue.x-k8s.io/v1beta2",
            "ClusterQueue",
            spec={
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(amounts), "flavors": [flavor]}],
                "fairSharing": {"weight": "1"},
                "cohortName": self.name,
            },
        )
        self.create(
            "kueue.x-k8s.io/v1beta2",
            "LocalQueue",
            namespace=self.name,
            spec={"clusterQueue": self.name},
        )

    def create(self, version: str, kind: str, *, namespace: str = "", **fields: Any) -> None:
        metadata = {"name": self.name} | ({"namespace": namespace} if namespace else {})
        self.api.create_or_replace(
            {"apiVersion": version, "kind": kind, "metadata": metadata} | fields
        )

    def remove(self) -> None:
        for path in (
            f"/api/v1/namespaces/{self.name}",
            f"{KUEUE}/clusterqueues/{self.name}",
            f"{KUEUE}/resourceflavors/{self.name}",
        ):
            self.api.request("DELETE", path)

    def job(self, name: str, *, run_for: str | None, gpus: int = 8, pods: int = 1) -> None:
        annotations = {} if run_for is None else {"gpufair.io/run-for": run_for}
        requests = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": gpus}
        container = {
            "name": "main",
            "image": "example.com/train",
            "resources": {"requests": requests, "limits": {"nvidia.com/gpu": gpus}},
        }
        self.api.create_or_replace(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": name,
                    "namespace": self.name,
                    "labels": {"kueue.x-k8s.io/queue-name": self.name},
                },
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "backoffLimit": 0,
                    "template": {
                        "metadata": {"annotations": annotations},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                },
            }
        )

    def pods(self, job: str) -> list[Manifest]:
        found: list[Manifest] = self.api.get(
            f"/api/v1/namespaces/{self.name}/pods?labelSelector=job-name%3D{job}"
        )["items"]
        return found

    def ended(self, job: str) -> str:
        """Return `Complete` or `Failed`, or nothing while the job runs."""
        path = f"/apis/batch/v1/namespaces/{self.name}/jobs/{job}"
        conditions = self.api.get(path)["status"].get("conditions", [])
        kinds = [item["type"] for item in conditions if item["status"] == "True"]
        return next((kind for kind in kinds if kind in ("Complete", "Failed")), "")


@pytest.fixture
def queue(cluster: local.Instance) -> Iterator[Queue]:
    made = Queue(cluster)
    yield made
    made.remove()


@pytest.fixture(scope="module")
def other(cluster: local.Instance) -> Iterator[local.Instance]:
    """A second instance beside the first, which these tests may break."""
    name = f"other-{uuid.uuid4().hex[:8]}"
    instance = local.up(name, nodes=2, gpus_per_node=4, node_labels={"zone": "a"})
    yield instance
    local.down(name)


def our_processes(instance: local.Instance) -> list[psutil.Process]:
    return [psutil.Process(row.pid) for row in instance.status() if row.pid]


def test_its_nodes_have_gpus(cluster: local.Instance) -> None:
    nodes = cluster.api.get("/api/v1/nodes")["items"]
    assert len(nodes) >= 4
    for node in nodes:
        labels, status = node["metadata"]["labels"], node["status"]
        assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
        if "nvidia.com/gpu" in status["allocatable"]:
            assert labels["nvidia.com/gpu.product"] == PRODUCT
        ready = [item["status"] for item in status["conditions"] if item["type"] == "Ready"]
        assert ready == ["True"]


def test_all_it_listens_on_is_loopback(cluster: local.Instance) -> None:
    def listening() -> set[tuple[str, int]]:
        return {
            (connection.laddr.ip, connection.laddr.port)
            for process in our_processes(cluster)
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }

    # Kueue's metrics come a moment after its webhooks.
    eventually(lambda: len(listening()) >= len(cluster.ports), "all ports are served")
    assert listening() == {("127.0.0.1", port) for port in cluster.ports.values()}


def test_only_its_owner_can_read_it(cluster: local.Instance) -> None:
    assert cluster.directory.stat().st_mode & 0o077 == 0
    assert cluster.kubeconfig.stat().st_mode & 0o077 == 0


def test_its_kubectl_speaks_to_it(cluster: local.Instance) -> None:
    done = subprocess.run(
        [cluster.kubectl, f"--kubeconfig={cluster.kubeconfig}", "version", "-o", "json"],
        capture_output=True,
        check=True,
        env={"HOME": str(cluster.directory)},
    )
    versions = json.loads(done.stdout)
    assert versions["clientVersion"]["gitVersion"] == build.KUBERNETES_VERSION
    assert versions["serverVersion"]["gitVersion"] == build.KUBERNETES_VERSION


@pytest.mark.parametrize(("text", "seconds"), [("2s", 2.0), ("0m1.5s", 1.5)])
def test_pods_run_for_the_stated_time_and_succeed(queue: Queue, text: str, seconds: float) -> None:
    queue.job("train", run_for=text, pods=2)
    assert eventually(lambda: queue.ended("train"), "the job ends") == "Complete"
    pods = queue.pods("train")
    assert len(pods) == 2
    for pod in pods:
        assert pod["status"]["phase"] == "Succeeded"
        conditions = {item["type"]: item for item in pod["status"]["conditions"]}
        assert conditions["Ready"]["status"] == "False"
        until = datetime.fromisoformat(conditions["gpufair.io/RunsUntil"]["message"])
        state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        # The API keeps these two in whole seconds.
        began = datetime.fromisoformat(state["startedAt"])
        ended = datetime.fromisoformat(state["finishedAt"])
        assert seconds <= (until - began).total_seconds() < seconds + 1
        assert -1 < (ended - until).total_seconds() < 10


def test_what_does_not_fit_waits_and_then_runs(queue: Queue) -> None:
    queue.job("first", run_for=None, gpus=8, pods=2)
    eventually(
        lambda: [pod["status"]["phase"] for pod in queue.pods("first")] == ["Running"] * 2,
        "both pods run",
    )
    queue.job("second", run_for="0.5s", gpus=8)

    def why() -> list[str]:
        workloads = queue.api.get(f"{KUEUE}/namespaces/{queue.name}/workloads")["items"]
        return [
            condition["message"]
            for workload in workloads
            for condition in workload.get("status", {}).get("conditions", [])
            if condition["reason"] == "Pending"
        ]

    (message,) = eventually(why, "the second job is pending")
    assert "insufficient unused quota for nvidia.com/gpu" in message
    assert queue.pods("second") == []
    assert [pod["status"]["phase"] for pod in queue.pods("first")] == ["Running"] * 2
    path = f"/apis/batch/v1/namespaces/{queue.name}/jobs/first?propagationPolicy=Background"
    assert queue.api.request("DELETE", path).ok
    assert eventually(lambda: queue.ended("second"), "the second job ends") == "Complete"


def test_a_duration_that_is_none_fails_the_pod_and_says_so(queue: Queue) -> None:
    queue.job("wrong", run_for="2 days")
    assert eventually(lambda: queue.ended("wrong"), "the job ends") == "Failed"
    (pod,) = queue.pods("wrong")
    assert pod["status"]["reason"] == "InvalidRunFor"
    assert pod["status"]["message"] == (
        'gpufair.io/run-for is "2 days"; write a duration such as 90s or 1h30m'
    )


def test_a_change_of_a_pod_does_not_make_it_run_longer(queue: Queue) -> None:
    queue.job("train", run_for="3s")
    (pod,) = eventually(
        lambda: [item for item in queue.pods("train") if item["status"]["phase"] == "Running"],
        "the pod runs",
    )
    path = f"/api/v1/namespaces/{queue.name}/pods/{pod['metadata']['name']}"
    turns = 0
    while not queue.ended("train"):
        turns += 1
        patch = {"metadata": {"labels": {"turn": str(turns)}}}
        queue.api.request("PATCH", path, patch, "application/merge-patch+json")
        assert turns < 5000
    (pod,) = queue.pods("train")
    conditions = {item["type"]: item for item in pod["status"]["conditions"]}
    until = datetime.fromisoformat(conditions["gpufair.io/RunsUntil"]["message"])
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (datetime.fromisoformat(state["finishedAt"]) - until).total_seconds() < 2
    assert turns > 3


def boost(value: str) -> Manifest:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "boosted",
            "namespace": "default",
            "annotations": {"kueue.x-k8s.io/priority-boost": value},
        },
        "spec": {
            "podSets": [
                {
                    "name": "main",
                    "count": 1,
                    "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
                }
            ]
        },
    }


DRY_WORKLOAD = f"{KUEUE}/namespaces/default/workloads?dryRun=All"


def test_kueue_knows_boosts_and_fair_sharing(cluster: local.Instance, queue: Queue) -> None:
    assert cluster.api.request("POST", DRY_WORKLOAD, boost("5")).ok
    refused = cluster.api.request("POST", DRY_WORKLOAD, boost("x"))
    assert refused.status == 403
    assert "priority-boost" in refused.body["message"]

    def sharing() -> bool:
        status = cluster.api.get(f"{KUEUE}/clusterqueues/{queue.name}").get("status", {})
        return "weightedShare" in status.get("fairSharing", {})

    eventually(sharing, "the ClusterQueue reports its share")


def test_it_serves_all_kinds_and_old_versions(cluster: local.Instance, queue: Queue) -> None:
    kinds = cluster.api.get("/apis/jobset.x-k8s.io/v1alpha2")["resources"]
    assert "jobsets" in {kind["name"] for kind in kinds}
    old = cluster.api.get(f"/apis/kueue.x-k8s.io/v1beta1/clusterqueues/{queue.name}")
    assert old["spec"]["cohort"] == queue.name


def test_service_accounts_have_tokens_and_rights_are_checked(
    cluster: local.Instance, queue: Queue
) -> None:
    path = f"/api/v1/namespaces/{queue.name}/serviceaccounts/default"
    eventually(lambda: cluster.api.request("GET", path).ok, "the service account exists")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.api.request("POST", f"{path}/token", request).body["status"]["token"]
    server = f"--server={cluster.server}"
    authority = f"--certificate-authority={cluster.pki / 'ca.crt'}"
    done = subprocess.run(
        [str(cluster.kubectl), server, authority, f"--token={token}", "get", "nodes"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(cluster.directory)},
    )
    assert done.returncode == 1
    assert f'User "system:serviceaccount:{queue.name}:default" cannot list' in done.stderr


def test_the_audit_log_names_users_and_verbs(cluster: local.Instance, queue: Queue) -> None:
    queue.job("train", run_for="0.1s")
    eventually(lambda: queue.ended("train"), "the job ends")
    with cluster.audit_log.open() as log:
        entries = [json.loads(line) for line in log if f'"{queue.name}"' in line]
    seen = {(entry["user"]["username"], entry["verb"]) for entry in entries}
    assert ("gpufair-local", "create") in seen
    assert (KUEUE_USER, "create") in seen
    assert ("kwok", "patch") in seen
    assert {entry["level"] for entry in entries} == {"Metadata"}


def test_up_again_finds_it_running(cluster: local.Instance) -> None:
    again = local.up(cluster.name)
    assert not again.fresh
    assert [row.pid for row in again.status()] == [row.pid for row in cluster.status()]


def test_two_run_side_by_side(cluster: local.Instance, other: local.Instance) -> None:
    assert {cluster.name, other.name} <= set(local.names())
    assert not set(cluster.ports.values()) & set(other.ports.values())
    nodes = other.api.get("/api/v1/nodes?labelSelector=zone%3Da")["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["4", "4"]
    assert cluster.api.get("/api/v1/nodes?labelSelector=zone%3Da")["items"] == []


def test_kueue_can_be_restarted_with_other_gates(other: local.Instance) -> None:
    assert not other.api.request("POST", DRY_WORKLOAD, boost("x")).ok
    other.configure_kueue(feature_gates={"PriorityBoost": False})
    assert other.api.request("POST", DRY_WORKLOAD, boost("x")).ok
    assert local.get(other.name).options.kueue_feature_gates == {"PriorityBoost": False}


def test_the_api_server_keeps_its_objects_and_its_port(other: local.Instance) -> None:
    server = other.server
    for kill in (False, True):
        began = time.monotonic()
        other.stop("kube-apiserver", kill=kill)
        assert time.monotonic() - began < 15
        assert other.dead() == ["kube-apiserver"]
        other.start("kube-apiserver")
    assert other.server == server
    assert len(other.api.get("/api/v1/nodes")["items"]) == 2


def test_many_nodes_are_made_quickly(other: local.Instance) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    names = other.add_nodes(64, labels={"rack": "r1"}, taints=[taint], prefix="bank")
    assert (names[0], names[-1]) == ("bank-001", "bank-064")
    nodes = other.api.get("/api/v1/nodes?labelSelector=rack%3Dr1")["items"]
    assert {tuple(t["key"] for t in node["spec"]["taints"]) for node in nodes} == {
        ("nvidia.com/gpu",)
    }
    assert len(nodes) == 64


def test_up_says_which_component_has_died_and_reset_makes_it_anew(
    other: local.Instance,
) -> None:
    other.stop("kwok", kill=True)
    with pytest.raises(GpufairError) as failure:
        local.up(other.name)
    text = str(failure.value)
    assert "kwok has ended; gpufair local reset --name" in text
    assert str(other.log("kwok")) in text
    again = local.reset(other.name)
    assert again.dead() == []
    assert len(again.api.get("/api/v1/nodes")["items"]) == 2


def test_kueue_can_be_installed_later_and_down_leaves_nothing_behind() -> None:
    instance = local.up(f"bare-{uuid.uuid4().hex[:8]}", nodes=1, kueue=False)
    try:
        assert "kueue" not in {row.component for row in instance.status()}
        assert instance.api.request("GET", f"{KUEUE}/clusterqueues").status == 404
        instance.install_kueue()
        assert instance.api.get(f"{KUEUE}/clusterqueues")["items"] == []
        processes = our_processes(local.get(instance.name))
        assert len(processes) == 6
    finally:
        assert local.down(instance.name)
    assert not instance.directory.exists()
    assert instance.name not in local.names()
    for process in processes:
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert _processes_of(instance.name) == []
    assert not Path("/etc/kueue").exists()


def test_a_start_that_fails_names_the_component_and_leaves_nothing() -> None:
    name = f"broken-{uuid.uuid4().hex[:8]}"
    with pytest.raises(GpufairError) as failure:
        local.up(name, nodes=0, kueue_config={"bogus": 1})
    text = str(failure.value)
    assert text.startswith("kueue ended while starting. Its log ends so:\n")
    assert 'unknown field \\"bogus\\"' in text
    kept = Path(text.splitlines()[-1].removeprefix("All logs of this start are in ")[:-1])
    assert "bogus" in (kept / "kueue.log").read_text()
    assert name not in local.names()
    assert _processes_of(name) == []
    shutil.rmtree(kept)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_cleans_up(number: signal.Signals) -> None:
    name = f"cut-{uuid.uuid4().hex[:8]}"
    command = [sys.executable, "-m", "gpufair.cli", "local", "up", "--name", name]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("kube-apiserver: starting"):
            break
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert name not in local.names()
    assert _processes_of(name) == []


def _processes_of(name: str) -> list[list[str]]:
    return [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline", "status"])
        if process.info["status"] != psutil.STATUS_ZOMBIE
        and any(f"/local/{name}/" in part for part in process.info["cmdline"] or [])
    ]
