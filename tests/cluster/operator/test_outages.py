"""The operator without what it needs: its own kind, Kueue, Kueue's webhooks, the API server."""

import uuid
from collections.abc import Iterator

import pytest

from gpufair import local
from gpufair.api.kinds import CLUSTER_QUEUE, CUSTOM_RESOURCE_DEFINITION, LOCAL_QUEUE

from .kit.kube import Json, Kube
from .kit.policies import QUEUE, policy, tenant
from .kit.process import Operator
from .kit.rights import install, kubeconfig_of_account
from .kit.space import Space, condition
from .kit.wait import until


@pytest.fixture(scope="module")
def bare() -> Iterator[local.Instance]:
    """A cluster of its own, without Kueue."""
    name = f"bare-{uuid.uuid4().hex[:8]}"
    instance = local.up(name, nodes=1, kueue=False)
    yield instance
    local.down(name)


@pytest.fixture(scope="module")
def kube_here(bare: local.Instance) -> Kube:
    install(bare.kubectl, bare.kubeconfig)
    return Kube(bare.kubeconfig)


@pytest.fixture(scope="module")
def operator_here(
    bare: local.Instance, kube_here: Kube, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Operator]:
    """One operator, started before its own kind is served; it must live to the end."""
    kube_here.delete(CUSTOM_RESOURCE_DEFINITION, _OWN)
    until(lambda: kube_here.find(CUSTOM_RESOURCE_DEFINITION, _OWN) is None, "the kind is gone")
    directory = tmp_path_factory.mktemp("outages")
    account = kubeconfig_of_account(bare.kubeconfig, directory / "account")
    operator = Operator(account, directory / "log").start()
    yield operator
    assert operator.running, operator.log[-2000:]
    assert operator.stop() == 0


@pytest.fixture
def here(operator_here: Operator, kube_here: Kube) -> Space:
    return Space(kube_here, "outage")


def test_its_own_kind_is_installed_later(here: Space, bare: local.Instance) -> None:
    install(bare.kubectl, bare.kubeconfig)
    here.settled(here.apply(policy(here.prefix)), "Valid", "True", 60)


def test_kueue_is_installed_later(here: Space, bare: local.Instance) -> None:
    p = here.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 8)])
    here.namespaces_of(made)
    said = here.settled(here.apply(made), "EngineAvailable", "False")
    found = condition(said, "EngineAvailable")
    assert found["reason"] == "KueueNotInstalled"
    assert "install Kueue 0.17" in found["message"]
    assert condition(said, "Ready")["message"] == found["message"]
    assert condition(said, "Valid")["status"] == "True"
    assert "gpufair.io/objects" not in (said["metadata"].get("finalizers") or ())

    # One that is too old to speak our version.
    old = here.kube.create(_old_kind())
    name = old["metadata"]["name"]
    message = here.said(p, "EngineAvailable", "KueueTooOld")["message"]
    assert "v1beta1" in message
    assert "not v1beta2" in message
    here.kube.delete(CUSTOM_RESOURCE_DEFINITION, name)
    until(lambda: here.kube.find(CUSTOM_RESOURCE_DEFINITION, name) is None, "the old kind is gone")
    here.said(p, "EngineAvailable", "KueueNotInstalled")

    bare.install_kueue()
    here.settled(said, "Ready", "True", 60)
    assert condition(here.policy(p), "EngineAvailable")["status"] == "True"
    here.job(p, "train", 1, tier=f"{p}-dev")
    here.admitted(p, "train")


def test_kueue_is_down_for_a_while(here: Space, bare: local.Instance) -> None:
    """Its webhooks refuse all writes; the condition says so, and it is made good."""
    p = here.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 8)])
    here.namespaces_of(made)
    here.ready(made)
    bare.stop("kueue", kill=True)
    made["spec"]["tenants"][0]["weight"] = 2
    said = here.settled(here.apply(made), "Ready", "False")
    found = condition(said, "Ready")
    assert found["reason"] == "ApplyFailed"
    assert f"ClusterQueue {p}" in found["message"]
    assert "webhook" in found["message"]
    bare.start("kueue")
    here.settled(here.policy(p), "Ready", "True", 60)
    assert here.kube.get(CLUSTER_QUEUE, p)["spec"]["fairSharing"]["weight"] == "2"


def test_the_api_server_is_down_for_a_while(
    here: Space, bare: local.Instance, operator_here: Operator
) -> None:
    p = here.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 8)])
    here.namespaces_of(made)
    here.ready(made)
    bare.restart("kube-apiserver", kill=True)
    made["spec"]["tenants"][0]["weight"] = 2
    here.ready(made, 90)
    here.kube.delete(LOCAL_QUEUE, QUEUE, p)
    until(lambda: here.queue(p), "drift is seen again")
    assert here.kube.get(CLUSTER_QUEUE, p)["spec"]["fairSharing"]["weight"] == "2"
    assert operator_here.probe("/healthz") == (200, "ok")


_OWN = "gpuschedulingpolicies.gpufair.io"


def _old_kind() -> Json:
    """A ClusterQueue as Kueue served it before v1beta2."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "clusterqueues.kueue.x-k8s.io",
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/kueue"
            },
        },
        "spec": {
            "group": "kueue.x-k8s.io",
            "scope": "Cluster",
            "names": {
                "kind": "ClusterQueue",
                "plural": "clusterqueues",
                "singular": "clusterqueue",
            },
            "versions": [version],
        },
    }
