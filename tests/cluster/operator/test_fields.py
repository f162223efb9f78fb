"""Every field of Kueue's objects that a policy drives, read back from the server."""

from typing import Any

import pytest

from gpufair.api.kinds import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
)

from .kit.kube import Json, Kube
from .kit.policies import policy, tenant
from .kit.process import Operator
from .kit.space import Space, condition

pytestmark = pytest.mark.usefixtures("operator")

GPU, MIG, CPU = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "cpu"
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION = {
    "key": "maintenance",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
LEVELS = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
OTHERS_QUOTA = [
    {"name": "cpu", "nominalQuota": "1G"},
    {"name": "memory", "nominalQuota": "1Pi"},
    {"name": "ephemeral-storage", "nominalQuota": "1Pi"},
]


def everything(p: str, check: str) -> Json:
    """A policy in which each field that becomes part of an object is set."""
    return policy(
        p,
        queueName="train",
        flavors=[
            {
                "name": f"{p}-big",
                "capacity": 64,
                "nodeLabels": {"gpu": "h100", "zone": "a"},
                "nodeTaints": [TAINT],
                "tolerations": [TOLERATION, {"operator": "Exists", "key": "other"}],
                "topologyLevels": LEVELS,
            },
            {"name": f"{p}-old", "capacity": 32, "nodeLabels": {"gpu": "a100"}},
            {
                "name": f"{p}-mig",
                "resources": [MIG, "example.com/nic"],
                "capacities": {MIG: 56, "example.com/nic": 8},
                "nodeLabels": {"mig": "on"},
            },
        ],
        tiers=[
            {"name": f"{p}-now", "priority": 10000, "podPreemption": "PreemptLowerPriority"},
            {"name": f"{p}-later", "priority": 100},
        ],
        cohorts=[
            {
                "name": f"{p}-dept",
                "weight": 2.5,
                "quota": [
                    {
                        "flavor": f"{p}-big",
                        "nominal": 6,
                        "borrowingLimit": 4,
                        "lendingLimit": 2,
                    }
                ],
            },
            {"name": f"{p}-lab", "parent": f"{p}-dept", "weight": 0.5},
        ],
        tenants=[
            tenant(
                f"{p}-one",
                f"{p}-big",
                16,
                [f"{p}-one", f"{p}-one-more"],
                limits={"borrowingLimit": 8, "lendingLimit": 12},
                cohort=f"{p}-lab",
                weight=3,
                hold=True,
                admissionChecks=[check],
                flavorFungibility={
                    "whenCanBorrow": "TryNextFlavor",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "PreemptionOverBorrowing",
                },
                borrowWithinCohort={"policy": "LowerPriority", "maxPriorityThreshold": 50},
            )
            | {
                "quota": [
                    {
                        "flavor": f"{p}-big",
                        "nominal": 16,
                        "borrowingLimit": 8,
                        "lendingLimit": 12,
                    },
                    {"flavor": f"{p}-old", "nominal": 4, "borrowingLimit": 0},
                    {"flavor": f"{p}-mig", "resource": MIG, "nominal": 14},
                    {
                        "flavor": f"{p}-mig",
                        "resource": "example.com/nic",
                        "nominal": 2,
                        "lendingLimit": 0,
                    },
                ]
            },
            tenant(
                f"{p}-two",
                f"{p}-old",
                28,
                namespaceSelector={
                    "matchLabels": {"team": f"{p}-two"},
                    "matchExpressions": [
                        {"key": "stage", "operator": "In", "values": ["lab", "live"]},
                        {"key": "closed", "operator": "DoesNotExist"},
                    ],
                },
                weight=0.25,
            ),
        ],
    )


@pytest.fixture(scope="module")
def applied(operator: Operator, kube: Kube) -> Any:
    """The policy, in force."""
    space = Space(kube, "fields")
    p = space.prefix
    check = f"{p}-check"
    space.create(
        ADMISSION_CHECK,
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "AdmissionCheck",
            "metadata": {"name": check},
            "spec": {"controllerName": "example.com/check"},
        },
    )
    kube.patch(
        ADMISSION_CHECK,
        check,
        {
            "status": {
                "conditions": [
                    {
                        "type": "Active",
                        "status": "True",
                        "reason": "Tested",
                        "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            }
        },
        subresource="status",
    )
    space.namespace(f"{p}-one")
    space.namespace(f"{p}-one-more")
    space.namespace(f"{p}-x", team=f"{p}-two", stage="lab")
    space.namespace(f"{p}-y", team=f"{p}-two", stage="lab", closed="yes")
    space.ready(everything(p, check))
    yield space
    space.close()


def test_flavors_and_topology(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    big = kube.get(RESOURCE_FLAVOR, f"{p}-big")["spec"]
    assert big == {
        "nodeLabels": {"gpu": "h100", "zone": "a"},
        "nodeTaints": [TAINT],
        "tolerations": [TOLERATION, {"key": "other", "operator": "Exists"}],
        "topologyName": f"{p}-big",
    }
    levels = kube.get(TOPOLOGY, f"{p}-big")["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == LEVELS
    assert kube.get(RESOURCE_FLAVOR, f"{p}-old")["spec"] == {"nodeLabels": {"gpu": "a100"}}
    assert kube.find(TOPOLOGY, f"{p}-old") is None
    assert not kube.get(RESOURCE_FLAVOR, f"{p}-other").get("spec")


def test_cohorts(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    root = kube.get(COHORT, p)["spec"]
    assert "parentName" not in root
    dept = kube.get(COHORT, f"{p}-dept")["spec"]
    assert dept["parentName"] == p
    assert dept["fairSharing"]["weight"] == "2500m"
    assert dept["resourceGroups"] == [
        {
            "coveredResources": [GPU],
            "flavors": [
                {
                    "name": f"{p}-big",
                    "resources": [
                        {
                            "name": GPU,
                            "nominalQuota": "6",
                            "borrowingLimit": "4",
                            "lendingLimit": "2",
                        }
                    ],
                }
            ],
        }
    ]
    lab = kube.get(COHORT, f"{p}-lab")["spec"]
    assert (lab["parentName"], lab["fairSharing"]["weight"]) == (f"{p}-dept", "500m")


def test_cluster_queue(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    one = kube.get(CLUSTER_QUEUE, f"{p}-one")["spec"]
    assert one.pop("resourceGroups") == [
        {
            "coveredResources": [GPU],
            "flavors": [
                {
                    "name": f"{p}-big",
                    "resources": [
                        {
                            "name": GPU,
                            "nominalQuota": "16",
                            "borrowingLimit": "8",
                            "lendingLimit": "12",
                        }
                    ],
                },
                {
                    "name": f"{p}-old",
                    "resources": [{"name": GPU, "nominalQuota": "4", "borrowingLimit": "0"}],
                },
            ],
        },
        {
            "coveredResources": [MIG, "example.com/nic"],
            "flavors": [
                {
                    "name": f"{p}-mig",
                    "resources": [
                        {"name": MIG, "nominalQuota": "14"},
                        {"name": "example.com/nic", "nominalQuota": "2", "lendingLimit": "0"},
                    ],
                }
            ],
        },
        {
            "coveredResources": ["cpu", "memory", "ephemeral-storage"],
            "flavors": [{"name": f"{p}-other", "resources": OTHERS_QUOTA}],
        },
    ]
    check = {"name": f"{p}-check"}
    assert [one["admissionChecksStrategy"]["admissionChecks"][0] | check] == one[
        "admissionChecksStrategy"
    ]["admissionChecks"]
    del one["admissionChecksStrategy"]
    assert one == {
        "cohortName": f"{p}-lab",
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        "fairSharing": {"weight": "3"},
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": [f"{p}-one", f"{p}-one-more"],
                }
            ]
        },
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "LowerPriority",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 50},
        },
        "flavorFungibility": {
            "whenCanBorrow": "TryNextFlavor",
            "whenCanPreempt": "TryNextFlavor",
            "preference": "PreemptionOverBorrowing",
        },
    }


def test_cluster_queue_of_a_selector(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    two = kube.get(CLUSTER_QUEUE, f"{p}-two")["spec"]
    assert two["cohortName"] == p
    assert two["fairSharing"]["weight"] == "250m"
    assert two["namespaceSelector"] == {
        "matchLabels": {"team": f"{p}-two"},
        "matchExpressions": [
            {"key": "stage", "operator": "In", "values": ["lab", "live"]},
            {"key": "closed", "operator": "DoesNotExist"},
        ],
    }


def test_local_queues(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    queues = {key[1]: item for key, item in applied.owned(p).items() if key[0] == "LocalQueue"}
    assert {
        place: (q["metadata"]["name"], q["spec"]["clusterQueue"], q["spec"]["stopPolicy"])
        for place, q in queues.items()
    } == {
        f"{p}-one": ("train", f"{p}-one", "Hold"),
        f"{p}-one-more": ("train", f"{p}-one", "Hold"),
        f"{p}-x": ("train", f"{p}-two", "None"),
    }
    owner = queues[f"{p}-x"]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == applied.policy(p)["metadata"]["uid"]


def test_classes(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    for name, value, preemption in (
        (f"{p}-now", 10000, "PreemptLowerPriority"),
        (f"{p}-later", 100, "Never"),
    ):
        assert kube.get(WORKLOAD_PRIORITY_CLASS, name)["value"] == value
        pods = kube.get(PRIORITY_CLASS, name)
        assert (pods["value"], pods["preemptionPolicy"]) == (value, preemption)
        assert not pods.get("globalDefault")


def test_owners(applied: Space, kube: Kube) -> None:
    """Labels on all; owner references on LocalQueues alone."""
    for (kind, _, name), item in applied.owned(applied.prefix).items():
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/managed-by"] == "gpufair", name
        assert ("ownerReferences" in item["metadata"]) == (kind == "LocalQueue"), name


def test_every_queue_is_active(applied: Space, kube: Kube) -> None:
    p = applied.prefix
    for name in (f"{p}-one", f"{p}-two"):
        queue = kube.get(CLUSTER_QUEUE, name)
        assert condition(queue, "Active")["status"] == "True", queue["status"]


def test_status_counts_them(applied: Space) -> None:
    status = applied.policy(applied.prefix)["status"]
    assert status["appliedObjects"] == {
        "ClusterQueue": 2,
        "Cohort": 3,
        "LocalQueue": 3,
        "PriorityClass": 2,
        "ResourceFlavor": 4,
        "Topology": 1,
        "WorkloadPriorityClass": 2,
    }


@pytest.mark.parametrize("reclaim", ["LowerPriority", "Any", "Never"])
def test_reclaim(space: Space, kube: Kube, reclaim: str) -> None:
    p = space.prefix
    one = tenant(f"{p}-one", f"{p}-h100", 8, namespaceSelector={"matchLabels": {"none": p}})
    space.ready(policy(p, fairness={"reclaim": reclaim}, tenants=[one]))
    queue = kube.get(CLUSTER_QUEUE, f"{p}-one")
    assert queue["spec"]["preemption"]["reclaimWithinCohort"] == reclaim


def test_default_queue(space: Space, kube: Kube) -> None:
    """Kueue gives it to work that names no queue."""
    p = space.prefix
    made = policy(p, defaultQueue=True, tenants=[tenant(p, f"{p}-h100", 8)])
    space.namespaces_of(made)
    space.ready(made)
    assert kube.get(LOCAL_QUEUE, "default", p)["spec"]["clusterQueue"] == p
    space.job(p, "train", 1, queue="", tier=f"{p}-dev")
    space.admitted(p, "train")
