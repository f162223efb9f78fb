"""What others do to our objects is repaired; what they add to them stays."""

import pytest

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
    Resource,
)

from .kit.kube import Json, Kube
from .kit.policies import KINDS, QUEUE, policy, tenant
from .kit.process import Operator
from .kit.space import Space
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")

TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
WITHIN = 6
"""Seconds for a repair, on a machine that has much else to do."""


@pytest.fixture(scope="module")
def home(operator: Operator, kube: Kube) -> Json:
    """A policy in force, with one object of each kind at least."""
    space = Space(kube, "drift")
    p = space.prefix
    made = policy(
        p,
        flavors=[
            {
                "name": f"{p}-h100",
                "capacity": 8,
                "nodeLabels": {"gpu": "h100"},
                "nodeTaints": [TAINT],
                "topologyLevels": ["kubernetes.io/hostname"],
            }
        ],
        cohorts=[{"name": f"{p}-dept", "weight": 2}],
        tenants=[tenant(p, f"{p}-h100", 8, cohort=f"{p}-dept", weight=3)],
    )
    space.namespaces_of(made)
    return {"space": space, "policy": space.ready(made)}


@pytest.fixture
def space(home: Json) -> Space:
    found: Space = home["space"]
    return found


def _edits(p: str) -> dict[str, tuple[Resource, str, Json, Json]]:
    """What somebody edits by hand: kind, name, patch, and what must be there again."""
    groups: Json = {"resourceGroups": None}
    return {
        "weight": (
            CLUSTER_QUEUE,
            p,
            {"spec": {"fairSharing": {"weight": "9"}}},
            {"spec": {"fairSharing": {"weight": "3"}}},
        ),
        "preemption": (
            CLUSTER_QUEUE,
            p,
            {"spec": {"preemption": {"reclaimWithinCohort": "Any"}}},
            {"spec": {"preemption": {"reclaimWithinCohort": "LowerPriority"}}},
        ),
        "quota removed": (
            CLUSTER_QUEUE,
            p,
            {"spec": groups},
            {"spec": {"cohortName": f"{p}-dept"}},
        ),
        "parent": (
            COHORT,
            f"{p}-dept",
            {"spec": {"parentName": "elsewhere"}},
            {"spec": {"parentName": p}},
        ),
        "hold": (
            LOCAL_QUEUE,
            QUEUE,
            {"spec": {"stopPolicy": "Hold"}},
            {"spec": {"stopPolicy": "None"}},
        ),
        "owner": (
            LOCAL_QUEUE,
            QUEUE,
            {"metadata": {"ownerReferences": None}},
            {"metadata": {"labels": {"gpufair.io/policy": p}}},
        ),
        "taints": (
            RESOURCE_FLAVOR,
            f"{p}-h100",
            {"spec": {"nodeTaints": None}},
            {"spec": {"nodeTaints": [TAINT]}},
        ),
        "value": (WORKLOAD_PRIORITY_CLASS, f"{p}-dev", {"value": 5}, {"value": 200}),
        "description": (
            PRIORITY_CLASS,
            f"{p}-dev",
            {"description": "mine"},
            {"description": f"Tier of GpuSchedulingPolicy {p}."},
        ),
    }


@pytest.mark.parametrize("case", list(_edits("")))
def test_an_edit_is_repaired(space: Space, kube: Kube, case: str) -> None:
    resource, name, patch, wanted = _edits(space.prefix)[case]
    namespace = space.prefix if resource.namespaced else ""
    before = kube.get(resource, name, namespace)
    edited = kube.patch(resource, name, patch, namespace)
    assert _said(edited) != _said(before)

    def repaired() -> bool:
        now = kube.get(resource, name, namespace)
        return _has(now, wanted) and _said(now) == _said(before)

    until(repaired, f"{case} is repaired", WITHIN, lambda: kube.get(resource, name, namespace))
    assert kube.get(resource, name, namespace)["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_labels_that_were_removed_come_back(space: Space, kube: Kube, resource: Resource) -> None:
    namespace, name = _one(space, resource)
    kube.patch(resource, name, {"metadata": {"labels": None}}, namespace)
    wanted = {
        "metadata": {
            "labels": {
                "app.kubernetes.io/managed-by": "gpufair",
                "gpufair.io/policy": space.prefix,
            }
        }
    }
    until(lambda: _has(kube.get(resource, name, namespace), wanted), "labels are back", WITHIN)


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_what_others_add_stays(space: Space, kube: Kube, resource: Resource) -> None:
    """Annotations, labels and finalizers of others, through a repair of ours."""
    namespace, name = _one(space, resource)
    theirs = {
        "metadata": {
            "annotations": {"example.com/note": "keep"},
            "labels": {"example.com/cost": "42", "gpufair.io/policy": None},
            "finalizers": [
                *(kube.get(resource, name, namespace)["metadata"].get("finalizers") or ()),
                "example.com/hold",
            ],
        }
    }
    kube.patch(resource, name, theirs, namespace)
    until(
        lambda: _has(
            kube.get(resource, name, namespace),
            {"metadata": {"labels": {"gpufair.io/policy": space.prefix}}},
        ),
        "our label is back",
        WITHIN,
    )
    metadata = kube.get(resource, name, namespace)["metadata"]
    assert metadata["annotations"]["example.com/note"] == "keep"
    assert metadata["labels"]["example.com/cost"] == "42"
    assert "example.com/hold" in metadata["finalizers"]
    left = [f for f in metadata["finalizers"] if f != "example.com/hold"]
    kube.patch(resource, name, {"metadata": {"finalizers": left}}, namespace)


@pytest.mark.parametrize("resource", KINDS, ids=lambda resource: resource.kind)
def test_a_deleted_object_is_made_again(space: Space, kube: Kube, resource: Resource) -> None:
    namespace, name = _one(space, resource)
    uid = kube.get(resource, name, namespace)["metadata"]["uid"]
    kube.delete(resource, name, namespace)
    if resource in (RESOURCE_FLAVOR, TOPOLOGY):
        # Kueue keeps what is in use, so somebody has to be more brutal.
        kube.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)

    def again() -> bool:
        found = kube.find(resource, name, namespace)
        return found is not None and found["metadata"]["uid"] != uid

    until(again, f"{resource.kind} {name} is there again", WITHIN)
    space.settled(space.policy(space.prefix), "Ready", "True")


def _one(space: Space, resource: Resource) -> tuple[str, str]:
    owned = space.owned(space.prefix)
    return next(key[1:] for key in owned if key[0] == resource.kind)


def _has(found: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _has(found[key], value) for key, value in wanted.items())
    return found == wanted


def _said(item: Json) -> Json:
    """All that an object says, its status and the server's own bookkeeping apart."""
    own = ("labels", "ownerReferences")
    metadata = {key: item["metadata"].get(key) for key in own}
    rest = {key: value for key, value in item.items() if key not in ("metadata", "status")}
    return rest | {"metadata": metadata}
