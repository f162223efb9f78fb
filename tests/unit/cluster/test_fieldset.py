"""When is a write needed? Live objects with managedFields as a real server keeps them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpufair.plan.fieldset import NOT_OWNED, UNDESIRED, VALUE, differences, differs, owned_fields

KUEUE = {
    "manager": "kueue",
    "operation": "Update",
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "fieldsType": "FieldsV1",
    "fieldsV1": {
        "f:metadata": {
            "f:finalizers": {".": {}, 'v:"kueue.x-k8s.io/resource-in-use"': {}},
        }
    },
}


def ours(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "manager": "gpufair",
        "operation": "Apply",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def live(content: dict[str, Any], *managed: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(content)
    found["metadata"] |= {
        "uid": "7a0c2f0e-8a3d-4e0f-9d2a-0f7e3a1c9b11",
        "resourceVersion": "812",
        "generation": 3,
        "creationTimestamp": "2026-12-01T08:00:00Z",
        "managedFields": list(managed),
    }
    return found


LABELS = {"app.kubernetes.io/managed-by": "gpufair", "gpufair.io/policy": "bank"}
LABELS_OWNED: dict[str, Any] = {"f:labels": {f"f:{name}": {} for name in LABELS}}

CLUSTER_QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "fraud", "labels": LABELS},
    "spec": {
        "cohortName": "risk",
        "queueingStrategy": "BestEffortFIFO",
        "namespaceSelector": {"matchLabels": {"team": "fraud"}},
        "fairSharing": {"weight": "2"},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [
            {
                "coveredResources": ["nvidia.com/gpu"],
                "flavors": [
                    {
                        "name": "h100",
                        "resources": [
                            {
                                "name": "nvidia.com/gpu",
                                "nominalQuota": "16",
                                "borrowingLimit": "8",
                            }
                        ],
                    }
                ],
            }
        ],
    },
}

CLUSTER_QUEUE_OWNED: dict[str, Any] = {
    "f:metadata": LABELS_OWNED,
    "f:spec": {
        "f:cohortName": {},
        "f:queueingStrategy": {},
        "f:namespaceSelector": {},
        "f:fairSharing": {"f:weight": {}},
        "f:preemption": {"f:withinClusterQueue": {}},
        "f:resourceGroups": {},
    },
}


@pytest.fixture
def desired() -> dict[str, Any]:
    return copy.deepcopy(CLUSTER_QUEUE)


@pytest.fixture
def queue() -> dict[str, Any]:
    """The ClusterQueue as the server returns it: defaults and a finalizer beside ours."""
    found = live(CLUSTER_QUEUE, KUEUE, ours(copy.deepcopy(CLUSTER_QUEUE_OWNED)))
    found["metadata"]["finalizers"] = ["kueue.x-k8s.io/resource-in-use"]
    found["spec"]["stopPolicy"] = "None"
    found["spec"]["flavorFungibility"] = {"whenCanBorrow": "MayStopSearch"}
    found["spec"]["preemption"] |= {"reclaimWithinCohort": "Never"}
    found["status"] = {"pendingWorkloads": 3}
    return found


def test_what_we_applied_needs_no_write(desired: Any, queue: Any) -> None:
    assert differs(desired, queue) == []


def test_quantities_are_compared_by_value(desired: Any, queue: Any) -> None:
    quota = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    quota |= {"nominalQuota": "16000m", "borrowingLimit": 8}
    queue["spec"]["fairSharing"]["weight"] = 2
    assert differs(desired, queue) == []
    quota["nominalQuota"] = "17"
    assert differs(desired, queue) == [
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
    ]


@pytest.mark.parametrize(("mine", "theirs"), [("0.5", "500m"), (0.5, "500m"), (1, "1")])
def test_weights_are_quantities_too(desired: Any, queue: Any, mine: Any, theirs: str) -> None:
    desired["spec"]["fairSharing"]["weight"] = mine
    queue["spec"]["fairSharing"]["weight"] = theirs
    assert differs(desired, queue) == []


def test_text_that_looks_like_a_quantity_is_text_elsewhere(desired: Any, queue: Any) -> None:
    desired["metadata"]["labels"]["gpufair.io/policy"] = "1000m"
    queue["metadata"]["labels"]["gpufair.io/policy"] = "1"
    assert differs(desired, queue) == ["metadata.labels.gpufair.io/policy"]


def test_a_changed_value_is_a_difference(desired: Any, queue: Any) -> None:
    desired["spec"]["fairSharing"]["weight"] = "3"
    (found,) = differences(desired, queue)
    assert found == ("spec.fairSharing.weight", VALUE, "3", "2")


def test_a_field_no_longer_desired_is_a_difference(desired: Any, queue: Any) -> None:
    del desired["spec"]["fairSharing"]
    del desired["spec"]["preemption"]["withinClusterQueue"]
    found = differences(desired, queue)
    assert [(one.path, one.reason) for one in found] == [
        ("spec.preemption.withinClusterQueue", UNDESIRED),
        ("spec.fairSharing", UNDESIRED),
    ]


def test_a_label_no_longer_desired_is_a_difference(desired: Any, queue: Any) -> None:
    del desired["metadata"]["labels"]["gpufair.io/policy"]
    assert differs(desired, queue) == ["metadata.labels.gpufair.io/policy"]


def test_a_whole_part_no_longer_desired_is_a_difference(desired: Any, queue: Any) -> None:
    del desired["metadata"]["labels"]
    del desired["spec"]
    assert differs(desired, queue) == ["spec", "metadata.labels"]


def test_a_field_that_somebody_took_over_is_a_difference(desired: Any, queue: Any) -> None:
    owned = queue["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"]
    del owned["f:cohortName"]
    (one,) = differences(desired, queue)
    assert (one.path, one.reason) == ("spec.cohortName", NOT_OWNED)
    del owned["f:resourceGroups"]
    queue["spec"]["resourceGroups"] = []
    found = differences(desired, queue)
    assert [(one.path, one.reason) for one in found] == [
        ("spec.cohortName", NOT_OWNED),
        ("spec.resourceGroups", VALUE),
    ]


def test_other_managers_fields_are_not_ours_to_judge(desired: Any, queue: Any) -> None:
    queue["metadata"]["labels"]["theirs"] = "x"
    queue["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied": "{}"}
    queue["spec"]["preemption"]["borrowWithinCohort"] = {"policy": "Never"}
    assert differs(desired, queue) == []


def test_a_limit_dropped_inside_an_atomic_list_is_a_difference(desired: Any, queue: Any) -> None:
    del desired["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"]
    (found,) = differences(desired, queue)
    assert found == (
        "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit", UNDESIRED, None, "8",
    )  # fmt: skip


def test_a_label_dropped_inside_an_atomic_map_is_a_difference(desired: Any, queue: Any) -> None:
    desired["spec"]["namespaceSelector"] = {}
    assert differs(desired, queue) == ["spec.namespaceSelector.matchLabels"]


def test_an_item_more_or_less_in_an_atomic_list_is_a_difference(desired: Any, queue: Any) -> None:
    flavors = desired["spec"]["resourceGroups"][0]["flavors"]
    flavors.append({"name": "a100", "resources": []})
    assert differs(desired, queue) == ["spec.resourceGroups[0].flavors"]
    flavors.clear()
    assert differs(desired, queue) == ["spec.resourceGroups[0].flavors"]


def test_order_matters_in_an_atomic_list(desired: Any, queue: Any) -> None:
    two = [{"name": "a", "resources": []}, {"name": "b", "resources": []}]
    desired["spec"]["resourceGroups"][0]["flavors"] = two
    queue["spec"]["resourceGroups"][0]["flavors"] = two[::-1]
    assert differs(desired, queue) == [
        "spec.resourceGroups[0].flavors[0].name",
        "spec.resourceGroups[0].flavors[1].name",
    ]


def test_an_object_we_never_applied_differs_everywhere(desired: Any, queue: Any) -> None:
    queue["metadata"]["managedFields"] = [KUEUE]
    assert owned_fields(queue) is None
    assert differs(desired, queue) == [
        "spec.cohortName",
        "spec.queueingStrategy",
        "spec.namespaceSelector.matchLabels.team",
        "spec.fairSharing.weight",
        "spec.preemption.withinClusterQueue",
        "spec.resourceGroups",
        "metadata.labels.app.kubernetes.io/managed-by",
        "metadata.labels.gpufair.io/policy",
    ]
    assert {found.reason for found in differences(desired, queue)} == {NOT_OWNED}
    queue["spec"]["resourceGroups"][0]["coveredResources"] = []
    (found,) = (one for one in differences(desired, queue) if one.reason == VALUE)
    assert found.path == "spec.resourceGroups[0].coveredResources"


@pytest.mark.parametrize(
    "entry",
    [{"manager": "kubectl"}, {"operation": "Update"}, {"subresource": "status"}],
)
def test_only_our_own_apply_of_the_object_itself_counts(
    desired: Any, queue: Any, entry: dict[str, str]
) -> None:
    queue["metadata"]["managedFields"][1] |= entry
    assert owned_fields(queue) is None


def test_the_status_is_compared_with_the_entry_of_its_subresource() -> None:
    status: dict[str, Any] = {"f:status": {"f:ready": {}}}
    found = live(
        {"metadata": {"name": "x"}, "status": {"ready": True}}, ours(status, subresource="status")
    )
    wanted = {"metadata": {"name": "x"}, "status": {"ready": True}}
    assert differs(wanted, found, subresource="status") == []
    wanted["status"] = {"ready": 1}
    assert differs(wanted, found, subresource="status") == ["status.ready"]


# -- keyed lists and sets ------------------------------------------------------------------------

LOCAL_QUEUE: dict[str, Any] = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {
        "name": "gpu",
        "namespace": "fraud-dev",
        "labels": LABELS,
        "annotations": {"gpufair.io/tiers": "production,dev"},
        "ownerReferences": [
            {
                "apiVersion": "gpufair.io/v1alpha1",
                "kind": "GpuSchedulingPolicy",
                "name": "bank",
                "uid": "p-1",
            }
        ],
        "finalizers": ["gpufair.io/a"],
    },
    "spec": {"clusterQueue": "fraud", "stopPolicy": "None"},
}

LOCAL_QUEUE_OWNED: dict[str, Any] = {
    "f:metadata": {
        **LABELS_OWNED,
        "f:annotations": {"f:gpufair.io/tiers": {}},
        "f:ownerReferences": {'k:{"uid":"p-1"}': {}},
        "f:finalizers": {'v:"gpufair.io/a"': {}},
    },
    "f:spec": {"f:clusterQueue": {}, "f:stopPolicy": {}},
}


@pytest.fixture
def local_queue() -> dict[str, Any]:
    return live(LOCAL_QUEUE, ours(copy.deepcopy(LOCAL_QUEUE_OWNED)))


def test_owner_references_and_finalizers_are_found_by_key_and_value(local_queue: Any) -> None:
    local_queue["metadata"]["finalizers"] = ["x/y", "gpufair.io/a"]
    local_queue["metadata"]["ownerReferences"].insert(0, {"uid": "other", "name": "o"})
    assert differs(LOCAL_QUEUE, local_queue) == []


def test_list_items_lost_or_taken_are_differences(local_queue: Any) -> None:
    local_queue["metadata"]["ownerReferences"] = []
    local_queue["metadata"]["finalizers"] = []
    assert differs(LOCAL_QUEUE, local_queue) == [
        "metadata.ownerReferences[uid=p-1]",
        'metadata.finalizers["gpufair.io/a"]',
    ]


def test_list_items_no_longer_desired_are_differences(local_queue: Any) -> None:
    wanted = copy.deepcopy(LOCAL_QUEUE)
    wanted["metadata"]["ownerReferences"] = []
    del wanted["metadata"]["finalizers"]
    found = differences(wanted, local_queue)
    assert [(one.path, one.reason) for one in found] == [
        ("metadata.ownerReferences[uid=p-1]", UNDESIRED),
        ("metadata.finalizers", UNDESIRED),
    ]


def test_an_item_added_to_what_we_own_is_a_difference(local_queue: Any) -> None:
    wanted = copy.deepcopy(LOCAL_QUEUE)
    wanted["metadata"]["finalizers"].append("gpufair.io/b")
    wanted["metadata"]["ownerReferences"].append({"uid": "p-2", "name": "x"})
    assert differs(wanted, local_queue) == [
        "metadata.ownerReferences[uid=p-2]",
        'metadata.finalizers["gpufair.io/b"]',
    ]


PORTS: dict[str, Any] = {
    "f:spec": {
        "f:ports": {
            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
            'k:{"containerPort":53,"protocol":"UDP"}': {
                ".": {},
                "f:containerPort": {},
                "f:protocol": {},
                "f:name": {},
            },
        }
    }
}


def test_keys_that_the_server_defaults_may_be_left_out() -> None:
    content: dict[str, Any] = {
        "metadata": {"name": "x"},
        "spec": {
            "ports": [
                {"containerPort": 53, "protocol": "UDP", "name": "dns"},
                {"containerPort": 80},
            ]
        },
    }
    found = live(content, ours(PORTS))
    found["spec"]["ports"][1]["protocol"] = "TCP"
    found["spec"]["ports"].append({"containerPort": 1, "protocol": "TCP"})
    assert differs(content, found) == []
    found["spec"]["ports"][0]["name"] = "changed"
    assert differs(content, found) == ["spec.ports[containerPort=53,protocol=UDP].name"]
    del content["spec"]["ports"][0]["name"]
    assert differs(content, found) == ["spec.ports[containerPort=53,protocol=UDP].name"]


@pytest.mark.parametrize("value", ['a"b', "a\nb", "{{x}}", "é", "a]b", "<&>"])
def test_hostile_keys_are_matched_by_value(value: str) -> None:
    escaped = value.replace("\n", "\\n").replace('"', '\\"').replace("&", "\\u0026")
    items = [{"name": value, "n": 1}]
    content: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"items": items}}
    item: dict[str, Any] = {f'k:{{"name":"{escaped}"}}': {"f:n": {}, "f:name": {}}}
    owned = {"f:spec": {"f:items": item}}
    found = live(content, ours(owned))
    assert differs(content, found) == []
    found["spec"]["items"][0]["n"] = 2
    assert len(differs(content, found)) == 1


# -- empty and null ------------------------------------------------------------------------------


def test_an_empty_selector_is_owned_as_a_leaf() -> None:
    content: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"namespaceSelector": {}}}
    found = live(content, ours({"f:spec": {"f:namespaceSelector": {}}}))
    assert differs(content, found) == []
    found["spec"] = {}
    assert differs(content, found) == []
    found["spec"] = {"namespaceSelector": {"matchLabels": {"a": "b"}}}
    assert differs(content, found) == ["spec.namespaceSelector.matchLabels"]
    content["spec"]["a"] = 1
    never = live({"metadata": {"name": "x"}, "spec": {"a": 1}}, ours({"f:spec": {"f:a": {}}}))
    assert differs(content, never) == ["spec.namespaceSelector"]


def test_an_empty_list_needs_no_owner() -> None:
    content: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"tolerations": []}}
    there: list[dict[str, Any]] = [{"tolerations": []}, {}]
    for spec in there:
        assert differs(content, live({"metadata": {"name": "x"}, "spec": spec}, ours({}))) == []
    foreign = live({"metadata": {"name": "x"}, "spec": {"tolerations": [{"key": "a"}]}}, ours({}))
    assert differs(content, foreign) == ["spec.tolerations"]


def test_null_means_not_there() -> None:
    content: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"a": None, "b": 1}}
    owned: dict[str, Any] = {"f:spec": {"f:b": {}}}
    there = {"metadata": {"name": "x"}, "spec": {"b": 1}}
    assert differs(content, live(there, ours(owned))) == []
    mine = {"metadata": {"name": "x"}, "spec": {"a": 1, "b": 1}}
    assert differs(content, live(mine, ours({"f:spec": {"f:a": {}, "f:b": {}}}))) == ["spec.a"]


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        (True, True, True),
        (True, 1, False),
        (1, 1.0, True),
        ("1", 1, False),
        ("15m", "15m0s", False),
    ],
)
def test_scalars_are_compared_strictly(mine: Any, theirs: Any, same: bool) -> None:
    found = live({"metadata": {"name": "x"}, "spec": {"a": theirs}}, ours({"f:spec": {"f:a": {}}}))
    content: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"a": mine}}
    assert (differs(content, found) == []) is same


def test_map_values_that_are_quantities() -> None:
    wanted = {"metadata": {"name": "x"}, "spec": {"minResources": {"cpu": "1", "memory": "1Gi"}}}
    owned: dict[str, Any] = {"f:spec": {"f:minResources": {"f:cpu": {}, "f:memory": {}}}}
    there = {"metadata": {"name": "x"}, "spec": {"minResources": {"cpu": "1000m", "memory": 2**30}}}
    assert differs(wanted, live(there, ours(owned))) == []


@pytest.mark.parametrize("zero", [False, 0, ""])
def test_zero_values_that_built_in_types_drop_are_no_difference(zero: Any) -> None:
    wanted = {"metadata": {"name": "x"}, "globalDefault": zero, "value": 5}
    found = live(
        {"metadata": {"name": "x"}, "value": 5}, ours({"f:globalDefault": {}, "f:value": {}})
    )
    assert differs(wanted, found) == []
    found["globalDefault"] = 1
    assert differs(wanted, found) == ["globalDefault"]
    taken = live({"metadata": {"name": "x"}, "value": 5}, ours({"f:value": {}}))
    assert differs(wanted, taken) == ["globalDefault"]
