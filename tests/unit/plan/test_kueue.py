"""Every field of every Kueue object that a policy drives."""

from typing import Any

from gpufair.api.kinds import LOCAL_QUEUE
from gpufair.plan.kueue import stopped_queue
from gpufair.plan.objects import APPLY_ORDER
from gpufair.plan.selectors import Facts, NamespaceFact
from tests.unit.builders import (
    GPU,
    bare_flavor,
    facts,
    flavor,
    local_queue,
    manifests,
    planned,
    policy,
    quota,
    tenant,
    tier,
)

LABELS = {"app.kubernetes.io/managed-by": "gpufair", "gpufair.io/policy": "pool"}
V1BETA2 = "kueue.x-k8s.io/v1beta2"


def one(name: str, **spec: Any) -> dict[str, Any]:
    return manifests(policy(**spec))[name]


def test_a_minimal_policy_has_one_object_of_each_kind_in_the_order_of_applying() -> None:
    objects = planned(policy()).objects
    assert [str(item) for item in objects] == [
        "ResourceFlavor h100",
        "Cohort pool",
        "WorkloadPriorityClass prod",
        "PriorityClass prod",
        "ClusterQueue nlp",
        "LocalQueue nlp/gpu",
    ]


def test_kinds_come_in_the_order_of_applying() -> None:
    subject = policy(
        flavors=[flavor("a", nodeLabels={"k": "v"}, topologyLevels=["rack"]), flavor("b")],
        cohorts=[{"name": "research"}],
        tenants=[tenant("nlp", quota(1, "a")), tenant("cv", quota(1, "b"))],
    )
    kinds = [APPLY_ORDER.index(item.resource) for item in planned(subject).objects]
    assert kinds == sorted(kinds)
    assert set(kinds) == set(range(len(APPLY_ORDER)))


def test_names_and_namespaces_of_the_plan_are_those_of_the_manifests() -> None:
    for item in planned(policy(), facts("nlp")).objects:
        metadata = item.manifest["metadata"]
        assert (item.resource.api_version, item.resource.kind, item.name, item.namespace) == (
            item.manifest["apiVersion"],
            item.manifest["kind"],
            metadata["name"],
            metadata.get("namespace", ""),
        )


def test_topology() -> None:
    levels = ["zone", "rack", "kubernetes.io/hostname"]
    subject = policy(flavors=[flavor(nodeLabels={"gpu": "h100"}, topologyLevels=levels)])
    found = manifests(subject)
    assert found["Topology h100"] == {
        "apiVersion": V1BETA2,
        "kind": "Topology",
        "metadata": {"name": "h100", "labels": LABELS},
        "spec": {"levels": [{"nodeLabel": level} for level in levels]},
    }
    assert found["ResourceFlavor h100"]["spec"] == {
        "nodeLabels": {"gpu": "h100"},
        "topologyName": "h100",
    }


def test_resource_flavor() -> None:
    found = one(
        "ResourceFlavor h100",
        flavors=[
            flavor(
                nodeLabels={"nvidia.com/gpu.product": "H100", "zone": "a"},
                nodeTaints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
                tolerations=[
                    {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
                    {
                        "key": "team",
                        "operator": "Equal",
                        "value": "nlp",
                        "effect": "NoExecute",
                        "tolerationSeconds": 0,
                    },
                ],
            )
        ],
    )
    assert found == {
        "apiVersion": V1BETA2,
        "kind": "ResourceFlavor",
        "metadata": {"name": "h100", "labels": LABELS},
        "spec": {
            "nodeLabels": {"nvidia.com/gpu.product": "H100", "zone": "a"},
            "nodeTaints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "tolerations": [
                {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
                {
                    "key": "team",
                    "value": "nlp",
                    "effect": "NoExecute",
                    "tolerationSeconds": 0,
                },
            ],
        },
    }


def test_plain_resource_flavor_states_an_empty_spec() -> None:
    assert one("ResourceFlavor h100")["spec"] == {}


def test_the_flavor_of_what_rides_along_has_no_node_labels() -> None:
    found = manifests(
        policy(
            flavors=[flavor("a", nodeLabels={"k": "v"}), bare_flavor("m", "x.io/mig")],
            tenants=[tenant("nlp", quota(1, "a"), quota(2, "m"))],
        )
    )
    assert found["ResourceFlavor pool-other"]["spec"] == {}
    groups = found["ClusterQueue nlp"]["spec"]["resourceGroups"]
    assert [[f["name"] for f in g["flavors"]] for g in groups] == [["a"], ["m"], ["pool-other"]]


def test_the_pool_is_the_root_cohort() -> None:
    assert one("Cohort pool") == {
        "apiVersion": V1BETA2,
        "kind": "Cohort",
        "metadata": {"name": "pool", "labels": LABELS},
        "spec": {},
    }


def test_cohorts_lie_below_the_pool_or_their_parent() -> None:
    found = manifests(
        policy(
            cohorts=[
                {"name": "research", "weight": 2},
                {"name": "vision", "parent": "research", "weight": 0.5},
            ]
        )
    )
    assert found["Cohort research"]["spec"] == {
        "parentName": "pool",
        "fairSharing": {"weight": "2"},
    }
    assert found["Cohort vision"]["spec"] == {
        "parentName": "research",
        "fairSharing": {"weight": "500m"},
    }


def test_quota_of_a_cohort_has_no_part_for_what_rides_along() -> None:
    own = quota(6, borrowingLimit=2, lendingLimit=3)
    found = one("Cohort research", cohorts=[{"name": "research", "quota": [own]}])
    assert found["spec"]["resourceGroups"] == [
        {
            "coveredResources": [GPU],
            "flavors": [
                {
                    "name": "h100",
                    "resources": [
                        {
                            "name": GPU,
                            "nominalQuota": "6",
                            "borrowingLimit": "2",
                            "lendingLimit": "3",
                        }
                    ],
                }
            ],
        }
    ]


def test_a_cohort_does_not_limit_what_it_has_no_quota_of() -> None:
    """A borrowingLimit of 0 there would keep its tenants from borrowing that resource."""
    found = one(
        "Cohort research",
        flavors=[bare_flavor("a", "x.io/one", "x.io/two")],
        cohorts=[{"name": "research", "quota": [quota(1, "a", resource="x.io/one")]}],
        tenants=[],
    )
    (group,) = found["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"] == [
        {"name": "x.io/one", "nominalQuota": "1"},
        {"name": "x.io/two", "nominalQuota": "0"},
    ]


def test_tiers_are_classes_of_workloads_and_of_pods() -> None:
    found = manifests(
        policy(tiers=[tier("prod", 1000), tier("dev", 7, podPreemption="PreemptLowerPriority")])
    )
    assert found["WorkloadPriorityClass prod"] == {
        "apiVersion": V1BETA2,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "prod", "labels": LABELS},
        "value": 1000,
        "description": "Tier of GpuSchedulingPolicy pool.",
    }
    assert found["PriorityClass prod"] == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "prod", "labels": LABELS},
        "value": 1000,
        "preemptionPolicy": "Never",
        "description": "Tier of GpuSchedulingPolicy pool.",
    }
    dev = found["PriorityClass dev"]
    assert (dev["value"], dev["preemptionPolicy"]) == (7, "PreemptLowerPriority")


def test_cluster_queue_of_a_plain_tenant() -> None:
    assert one("ClusterQueue nlp") == {
        "apiVersion": V1BETA2,
        "kind": "ClusterQueue",
        "metadata": {"name": "nlp", "labels": LABELS},
        "spec": {
            "cohortName": "pool",
            "queueingStrategy": "BestEffortFIFO",
            "stopPolicy": "None",
            "fairSharing": {"weight": "1"},
            "namespaceSelector": {
                "matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nlp"]}
                ]
            },
            "preemption": {
                "withinClusterQueue": "LowerPriority",
                "reclaimWithinCohort": "LowerPriority",
            },
            "resourceGroups": [
                {
                    "coveredResources": [GPU, "cpu", "memory", "ephemeral-storage"],
                    "flavors": [
                        {
                            "name": "h100",
                            "resources": [
                                {"name": GPU, "nominalQuota": "4"},
                                {"name": "cpu", "nominalQuota": "1G"},
                                {"name": "memory", "nominalQuota": "1Pi"},
                                {"name": "ephemeral-storage", "nominalQuota": "1Pi"},
                            ],
                        }
                    ],
                }
            ],
        },
    }


def test_cluster_queue_of_a_tenant_that_states_everything() -> None:
    spec = one(
        "ClusterQueue nlp",
        cohorts=[{"name": "research"}],
        fairness={"reclaim": "Any"},
        tenants=[
            tenant(
                "nlp",
                quota(4, borrowingLimit="500m", lendingLimit=1),
                namespaces=["b", "a"],
                cohort="research",
                weight=2.5,
                admissionChecks=["budget", "licence"],
                flavorFungibility={
                    "whenCanBorrow": "TryNextFlavor",
                    "whenCanPreempt": "TryNextFlavor",
                    "preference": "PreemptionOverBorrowing",
                },
                borrowWithinCohort={"policy": "LowerPriority", "maxPriorityThreshold": 100},
            )
        ],
    )["spec"]
    assert spec["cohortName"] == "research"
    assert spec["fairSharing"] == {"weight": "2500m"}
    assert spec["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
    assert spec["preemption"] == {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
    }
    assert spec["flavorFungibility"] == {
        "whenCanBorrow": "TryNextFlavor",
        "whenCanPreempt": "TryNextFlavor",
        "preference": "PreemptionOverBorrowing",
    }
    assert spec["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": "budget"}, {"name": "licence"}]
    }
    gpus = spec["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert (gpus["borrowingLimit"], gpus["lendingLimit"]) == ("500m", "1")


def test_a_selector_is_passed_through_as_stated() -> None:
    selector = {
        "matchLabels": {"team": "nlp"},
        "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["test"]}],
    }
    spec = one("ClusterQueue nlp", tenants=[tenant(namespaceSelector=selector)])["spec"]
    assert spec["namespaceSelector"] == selector


def test_hold_stops_the_local_queues_and_never_the_cluster_queue() -> None:
    found = manifests(policy(tenants=[tenant(hold=True)]))
    assert found["LocalQueue nlp/gpu"]["spec"] == {"clusterQueue": "nlp", "stopPolicy": "Hold"}
    assert found["ClusterQueue nlp"]["spec"]["stopPolicy"] == "None"


def test_local_queue_is_owned_by_the_policy_and_nothing_else_is() -> None:
    found = manifests(policy(), facts("nlp"))
    assert found["LocalQueue nlp/gpu"] == {
        "apiVersion": V1BETA2,
        "kind": "LocalQueue",
        "metadata": {
            "name": "gpu",
            "namespace": "nlp",
            "labels": LABELS,
            "ownerReferences": [
                {
                    "apiVersion": "gpufair.io/v1alpha1",
                    "kind": "GpuSchedulingPolicy",
                    "name": "pool",
                    "uid": "uid-1",
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {"clusterQueue": "nlp", "stopPolicy": "None"},
    }
    owned = [name for name, item in found.items() if "ownerReferences" in item["metadata"]]
    assert owned == ["LocalQueue nlp/gpu"]


def test_without_a_cluster_there_is_no_owner_to_name() -> None:
    assert "ownerReferences" not in one("LocalQueue nlp/gpu")["metadata"]


def local_queues(subject: Any, known: Facts) -> list[str]:
    return [str(i) for i in planned(subject, known).objects if i.resource is LOCAL_QUEUE]


def test_queue_name_and_default_queue() -> None:
    assert local_queues(policy(queueName="h100s"), facts("nlp")) == ["LocalQueue nlp/h100s"]
    both = policy(queueName="h100s", defaultQueue=True)
    assert local_queues(both, facts("nlp")) == ["LocalQueue nlp/default"]


def test_a_namespace_that_is_missing_or_terminating_gets_no_local_queue() -> None:
    subject = policy(tenants=[tenant(namespaces=["gone", "going", "there"])])
    known = Facts(
        {
            "going": NamespaceFact("going", terminating=True),
            "there": NamespaceFact("there"),
            "strange": NamespaceFact("strange"),
        }
    )
    assert local_queues(subject, known) == ["LocalQueue there/gpu"]


def test_a_selector_finds_the_namespaces_of_its_labels() -> None:
    subject = policy(tenants=[tenant(namespaceSelector={"matchLabels": {"team": "nlp"}})])
    known = facts("plain", a={"team": "nlp"}, b={"team": "cv"}, c={"team": "nlp"})
    assert local_queues(subject, known) == ["LocalQueue a/gpu", "LocalQueue c/gpu"]


def test_a_namespace_of_two_tenants_stays_with_the_first_and_is_reported() -> None:
    selector = {"matchLabels": {"team": "nlp"}}
    subject = policy(tenants=[tenant("z"), tenant("nlp", namespaceSelector=selector)])
    found = planned(subject, facts(z={"team": "nlp"}, y={"team": "nlp"}))
    queues = {i.namespace: i.manifest["spec"]["clusterQueue"] for i in found.objects if i.namespace}
    assert queues == {"y": "nlp", "z": "z"}
    assert list(found.collisions) == [
        "namespace z stays with tenant z, the first in the list: tenant nlp must not select it"
    ]


def test_no_collision_without_a_second_claim() -> None:
    assert planned(policy(), facts("nlp")).collisions == []


def test_a_stopped_queue_stays_what_it_was_but_for_its_stop_policy() -> None:
    there = local_queue("team-b", "old-queue", "old-name")
    found = stopped_queue("pool", "uid-1", there, "HoldAndDrain")
    assert found.key == (LOCAL_QUEUE, "team-b", "old-name")
    assert found.manifest["spec"] == {"clusterQueue": "old-queue", "stopPolicy": "HoldAndDrain"}
    assert found.manifest["metadata"]["labels"] == LABELS
    assert found.manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-1"


def test_no_value_is_a_float_whose_text_yaml_could_read_otherwise() -> None:
    subject = policy(tenants=[tenant(weight=0.001)], cohorts=[{"name": "c", "weight": 1e5}])
    for item in planned(subject, facts("nlp")).objects:
        assert not list(_floats(item.manifest))


def _floats(value: Any) -> Any:
    if isinstance(value, float):
        yield value
    for item in value.values() if isinstance(value, dict) else []:
        yield from _floats(item)
    for item in value if isinstance(value, list) else []:
        yield from _floats(item)


def test_a_policy_of_the_longest_name_can_have_a_flavor_of_what_rides_along() -> None:
    name = "p" * 63
    spanning = tenant("nlp", quota(1), quota(1, "m"))
    listed = [flavor(), bare_flavor("m", "x.io/mig")]
    found = manifests(policy(name, flavors=listed, tenants=[spanning]))
    assert f"ResourceFlavor {name}-other" in found
