"""Objects of others under the names that a policy asks for."""

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, RESOURCE_FLAVOR, resource_of

from .kit.kube import Json, Kube
from .kit.policies import QUEUE, policy, tenant
from .kit.space import Space, condition
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")

KUEUE = "kueue.x-k8s.io/v1beta2"
SCHEDULING = "scheduling.k8s.io/v1"
ADOPT = {"metadata": {"annotations": {"gpufair.io/adopt": "true"}}}


def foreign(p: str) -> list[Json]:
    """One object of somebody else for each kind, in the way of the policy `p`."""
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    return [
        _object("Topology", f"{p}-h100", spec={"levels": levels}),
        _object("ResourceFlavor", f"{p}-h100", spec={"nodeLabels": {"mine": "yes"}}),
        _object("Cohort", f"{p}-dept", spec={"fairSharing": {"weight": "9"}}),
        _object("WorkloadPriorityClass", f"{p}-prod", value=7, description="mine"),
        _object("PriorityClass", f"{p}-prod", value=1000, preemptionPolicy="Never"),
        _object("ClusterQueue", f"{p}-a", spec={"namespaceSelector": {}}),
        _object("LocalQueue", QUEUE, p, spec={"clusterQueue": "another"}),
    ]


def policy_in_the_way(p: str) -> Json:
    flavor = {
        "name": f"{p}-h100",
        "capacity": 8,
        "nodeLabels": {"gpu": "h100"},
        "topologyLevels": ["kubernetes.io/hostname"],
    }
    tenants = [
        tenant(f"{p}-a", f"{p}-h100", 4, cohort=f"{p}-dept"),
        tenant(f"{p}-b", f"{p}-h100", 4, [p]),
    ]
    cohorts = [{"name": f"{p}-dept", "weight": 3}]
    return policy(p, flavors=[flavor], cohorts=cohorts, tenants=tenants)


def test_foreign_objects_stay_and_are_adopted_when_marked(space: Space, kube: Kube) -> None:
    p = space.prefix
    space.namespace(p)
    space.namespace(f"{p}-a")
    theirs = foreign(p)
    made = [space.create(resource_of(o["apiVersion"], o["kind"]), o) for o in theirs]
    said = space.settled(space.apply(policy_in_the_way(p)), "Conflict", "True")
    message = condition(said, "Conflict")["message"]
    for item in theirs:
        assert f"{item['kind']} {_place(item)} exists and is not gpufair's" in message
    assert 'annotation gpufair.io/adopt="true"' in message
    # No LocalQueue leads into a ClusterQueue of somebody else.
    assert f"LocalQueue {p}-a/{QUEUE} is not made" in message
    assert space.queue(f"{p}-a") is None
    assert condition(said, "Ready")["reason"] == "Conflict"
    for item in made:
        now = _again(kube, item)
        assert now["metadata"]["uid"] == item["metadata"]["uid"]
        assert "labels" not in now["metadata"]
        assert _content(now) == _content(item)
        assert _managers(now) <= _managers(item) | {"kueue"}
    # What is not in conflict is there.
    assert {key[2] for key in space.owned(p)} >= {f"{p}-b", f"{p}-dev", p}

    for item in made:
        resource = resource_of(item["apiVersion"], item["kind"])
        metadata = item["metadata"]
        kube.patch(resource, metadata["name"], ADOPT, metadata.get("namespace", ""))
    space.settled(space.policy(p), "Ready", "True")
    space.said(p, "Conflict", "NoConflict")
    owned = space.owned(p)
    assert {_key(item) for item in theirs} <= set(owned)
    spec = owned["Cohort", "", f"{p}-dept"]["spec"]
    assert spec["parentName"] == p
    assert spec["fairSharing"]["weight"] == "3"
    assert owned["ResourceFlavor", "", f"{p}-h100"]["spec"]["topologyName"] == f"{p}-h100"
    assert owned["WorkloadPriorityClass", "", f"{p}-prod"]["value"] == 1000
    assert owned["LocalQueue", p, QUEUE]["spec"]["clusterQueue"] == f"{p}-b"


def test_a_name_that_becomes_free(space: Space, kube: Kube) -> None:
    """The policy takes it as soon as its owner has let it go."""
    p = space.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 8)])
    space.namespaces_of(made)
    space.create(CLUSTER_QUEUE, _object("ClusterQueue", p, spec={"namespaceSelector": {}}))
    space.settled(space.apply(made), "Conflict", "True")
    kube.delete(CLUSTER_QUEUE, p)
    space.settled(space.policy(p), "Ready", "True")
    assert space.queue(p) is not None


def test_an_object_that_cannot_become_what_is_asked_for(space: Space, kube: Kube) -> None:
    """An adopted PriorityClass of another value: the server's own refusal is shown."""
    p = space.prefix
    item = _object("PriorityClass", f"{p}-prod", value=5)
    item["metadata"] |= ADOPT["metadata"]
    space.create(resource_of(SCHEDULING, "PriorityClass"), item)
    said = space.settled(space.apply(policy(p)), "Ready", "False")
    found = condition(said, "Ready")
    assert found["reason"] == "ApplyFailed"
    assert f"PriorityClass {p}-prod" in found["message"]
    assert "may not be changed" in found["message"]
    # All else is applied.
    assert kube.find(RESOURCE_FLAVOR, f"{p}-h100") is not None


def test_two_policies_that_claim_one_name(space: Space, kube: Kube) -> None:
    """The second says whose it is, and has it when the first gives it up."""
    p = space.prefix
    first, second = f"{p}-1", f"{p}-2"
    shared = f"{p}-team"
    space.namespace(shared)
    one = policy(first, tenants=[tenant(shared, f"{first}-h100", 8)])
    two = policy(second, tenants=[tenant(shared, f"{second}-h100", 8)])
    space.ready(one)
    said = space.settled(space.apply(two), "Conflict", "True")
    message = condition(said, "Conflict")["message"]
    assert f"ClusterQueue {shared} belongs to GpuSchedulingPolicy {first}" in message
    assert condition(space.policy(first), "Ready")["status"] == "True"
    before = space.versions(first)

    # A mark for adoption hands over what is nobody's; it starts no fight between two policies.
    kube.patch(CLUSTER_QUEUE, shared, ADOPT)
    two["spec"]["tenants"][0]["weight"] = 2
    space.settled(space.apply(two), "Conflict", "True")
    assert space.versions(first) == before

    space.ready({**one, "spec": {**one["spec"], "tenants": []}})
    space.settled(space.policy(second), "Ready", "True")
    queue = until(lambda: space.queue(shared), "the second policy's LocalQueue is there")
    assert queue["metadata"]["labels"]["gpufair.io/policy"] == second


def _object(kind: str, name: str, namespace: str = "", **content: object) -> Json:
    metadata: Json = {"name": name} | ({"namespace": namespace} if namespace else {})
    group = SCHEDULING if kind == "PriorityClass" else KUEUE
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **content}


def _place(item: Json) -> str:
    metadata = item["metadata"]
    where = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{where}{metadata['name']}"


def _key(item: Json) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return (item["kind"], metadata.get("namespace", ""), metadata["name"])


def _again(kube: Kube, item: Json) -> Json:
    metadata = item["metadata"]
    resource = resource_of(item["apiVersion"], item["kind"])
    return kube.get(resource, metadata["name"], metadata.get("namespace", ""))


def _content(item: Json) -> Json:
    return {k: v for k, v in item.items() if k not in ("metadata", "status")}


def _managers(item: Json) -> set[str]:
    return {entry["manager"] for entry in item["metadata"]["managedFields"]}
