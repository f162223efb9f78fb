"""Policies that change, rest and end, while work runs."""

import pytest

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
)

from .kit.kube import Json, Kube
from .kit.policies import KINDS, QUEUE, pair, policy, tenant
from .kit.space import LABEL, Space, condition
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")


def test_many_quick_changes_end_in_the_last(space: Space, kube: Kube) -> None:
    p = space.prefix
    made = pair(p)
    space.ready(made)
    for weight in range(1, 21):
        made["spec"]["tenants"][0]["weight"] = weight
        last = space.apply(made)
    space.settled(last, "Ready", "True")
    queue = kube.get(CLUSTER_QUEUE, f"{p}-a")
    assert queue["spec"]["fairSharing"]["weight"] == "20"
    assert space.policy(p)["status"]["observedGeneration"] == last["metadata"]["generation"]


def test_suspend(space: Space, kube: Kube) -> None:
    """Nothing is written, not even to repair; all of it happens once the policy is resumed."""
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    before = space.versions(p)
    made["spec"] |= {"suspend": True}
    made["spec"]["tenants"][0]["weight"] = 5
    space.settled(space.apply(made), "Suspended", "True")
    kube.delete(LOCAL_QUEUE, QUEUE, f"{p}-b")
    kube.patch(CLUSTER_QUEUE, f"{p}-b", {"spec": {"fairSharing": {"weight": "9"}}})
    # Later changes have been looked at, too, and left.
    made["spec"]["tenants"][0]["weight"] = 6
    said = space.settled(space.apply(made), "Suspended", "True")
    assert condition(said, "Ready")["reason"] == "SuspendedBySpec"
    left = {key for key, value in space.versions(p).items() if before[key] != value}
    assert left <= {("ClusterQueue", "", f"{p}-b")}
    assert space.queue(f"{p}-b") is None
    assert kube.get(CLUSTER_QUEUE, f"{p}-b")["spec"]["fairSharing"]["weight"] == "9"

    made["spec"]["suspend"] = False
    space.ready(made)
    assert kube.get(CLUSTER_QUEUE, f"{p}-a")["spec"]["fairSharing"]["weight"] == "6"
    assert kube.get(CLUSTER_QUEUE, f"{p}-b")["spec"]["fairSharing"]["weight"] == "1"
    assert space.queue(f"{p}-b") is not None


def test_hold(space: Space, kube: Kube) -> None:
    """A held tenant admits nothing new; what runs stays, and gives back what it borrowed."""
    p = space.prefix
    a, b = f"{p}-a", f"{p}-b"
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    for name in ("own", "borrowed"):
        space.job(a, name, 4, tier=f"{p}-dev")
        space.admitted(a, name)
    made["spec"]["tenants"][0]["hold"] = True
    space.ready(made)
    assert (space.queue(a) or {})["spec"]["stopPolicy"] == "Hold"
    assert kube.get(CLUSTER_QUEUE, a)["spec"]["stopPolicy"] == "None"
    space.job(b, "owner", 4, tier=f"{p}-prod")
    space.admitted(b, "owner")
    running = [name for name in ("own", "borrowed") if space.is_admitted(a, name)]
    assert len(running) == 1
    space.end_job(b, "owner")
    space.job(b, "probe", 1, tier=f"{p}-dev")
    space.admitted(b, "probe")
    assert [n for n in ("own", "borrowed") if space.is_admitted(a, n)] == running

    made["spec"]["tenants"][0]["hold"] = False
    space.ready(made)
    assert (space.queue(a) or {})["spec"]["stopPolicy"] == "None"
    space.end_job(b, "probe")
    space.admitted(a, "own", "borrowed")


def test_deletion_waits_for_work(space: Space, kube: Kube) -> None:
    p = space.prefix
    made = _one(p)
    space.namespaces_of(made)
    space.ready(made)
    space.job(p, "running", 2, tier=f"{p}-dev")
    space.admitted(p, "running")
    space.delete_policy(p)
    found = space.said(p, "Ready", "Deleting")
    until(
        lambda: "1 workload holds quota" in condition(space.policy(p), "Ready")["message"],
        "the condition says what is waited for",
        30,
        lambda: space.policy(p)["status"],
    )
    assert found["status"] == "False"
    assert (space.queue(p) or {})["spec"]["stopPolicy"] == "Hold"
    space.job(p, "late", 1, tier=f"{p}-dev")
    until(lambda: space.workload(p, "late"), "the late Job has its Workload")
    assert space.is_admitted(p, "running")
    assert kube.find(WORKLOAD_PRIORITY_CLASS, f"{p}-dev") is not None

    # What still waits has no queue to start from any more, and holds nothing up.
    space.end_job(p, "running")
    space.policy_gone(p)
    assert _left(kube, p) == []


def test_deletion_that_evicts(space: Space, kube: Kube) -> None:
    p = space.prefix
    made = policy(p, deletionPolicy="Evict", tenants=[tenant(p, f"{p}-h100", 8)])
    space.namespaces_of(made)
    space.ready(made)
    space.job(p, "running", 2, tier=f"{p}-dev")
    space.admitted(p, "running")
    space.delete_policy(p)
    space.policy_gone(p)
    assert _left(kube, p) == []
    assert not space.is_admitted(p, "running")


def test_deletion_that_orphans(space: Space, kube: Kube) -> None:
    """Everything stays as it is, without our labels; work goes on as before."""
    p = space.prefix
    made = policy(p, deletionPolicy="Orphan", tenants=[tenant(p, f"{p}-h100", 8)])
    space.namespaces_of(made)
    space.ready(made)
    space.job(p, "running", 2, tier=f"{p}-dev")
    space.admitted(p, "running")
    before = space.owned(p)
    space.delete_policy(p)
    space.policy_gone(p)
    assert _left(kube, p) == []
    kinds = {kind.kind: kind for kind in KINDS}
    for (kind, namespace, name), was in before.items():
        item = kube.get(kinds[kind], name, namespace)
        assert item["metadata"]["uid"] == was["metadata"]["uid"]
        assert "ownerReferences" not in item["metadata"]
        assert "labels" not in item["metadata"]
        assert _content(item) == _content(was)
    assert space.is_admitted(p, "running")
    space.job(p, "later", 2, tier=f"{p}-prod")
    space.admitted(p, "later")

    # A new policy of that name does not take them without being told to.
    said = space.settled(space.apply(made), "Conflict", "True")
    assert f"ClusterQueue {p} exists" in condition(said, "Conflict")["message"]
    for kind, namespace, name in before:
        mark = {"metadata": {"annotations": {"gpufair.io/adopt": "true"}}}
        kube.patch(kinds[kind], name, mark, namespace)
    space.settled(space.policy(p), "Ready", "True")
    assert space.owned(p).keys() == before.keys()
    assert space.is_admitted(p, "running")


def test_a_removed_tenant_with_running_work(space: Space, kube: Kube) -> None:
    p = space.prefix
    a, b = f"{p}-a", f"{p}-b"
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    space.job(a, "running", 2, tier=f"{p}-dev")
    space.admitted(a, "running")
    made["spec"]["tenants"] = made["spec"]["tenants"][1:]
    space.ready(made)
    until(
        lambda: "1 workload holds quota" in condition(space.policy(p), "Ready")["message"],
        "the condition says what is still to be removed",
        30,
        lambda: space.policy(p)["status"],
    )
    assert (space.queue(a) or {})["spec"]["stopPolicy"] == "Hold"
    space.job(b, "other", 2, tier=f"{p}-dev")
    space.admitted(b, "other")
    assert space.is_admitted(a, "running")

    space.end_job(a, "running")
    until(lambda: space.queue(a) is None, "the LocalQueue is gone")
    until(lambda: kube.find(CLUSTER_QUEUE, a) is None, "the ClusterQueue is gone")
    assert space.is_admitted(b, "other")


def test_a_removed_tier_with_running_work(space: Space, kube: Kube) -> None:
    """Its classes stay until nothing names them: pods cannot be made again without theirs."""
    p = space.prefix
    made = _one(p)
    space.namespaces_of(made)
    space.ready(made)
    tier = f"{p}-dev"
    space.job(p, "running", 2, tier=tier, pod_class=tier)
    space.job(p, "untiered", 2, pod_class=tier)
    space.admitted(p, "running", "untiered")
    made["spec"]["tiers"] = made["spec"]["tiers"][:1]
    space.ready(made)
    until(
        lambda: f"WorkloadPriorityClass {tier}" in condition(space.policy(p), "Ready")["message"],
        "the condition says what is still to be removed",
        30,
        lambda: space.policy(p)["status"],
    )
    space.end_job(p, "running")
    until(lambda: kube.find(WORKLOAD_PRIORITY_CLASS, tier) is None, "the class of Workloads goes")
    assert kube.find(PRIORITY_CLASS, tier) is not None
    space.end_job(p, "untiered")
    until(lambda: kube.find(PRIORITY_CLASS, tier) is None, "the class of pods goes", 40)


def test_a_renamed_tenant(space: Space, kube: Kube) -> None:
    """Its namespace passes to the new ClusterQueue once what runs in the old one is done."""
    p = space.prefix
    old, new = f"{p}-old", f"{p}-new"
    made = policy(p, tenants=[tenant(old, f"{p}-h100", 8, [p])])
    space.namespaces_of(made)
    space.ready(made)
    space.job(p, "running", 2, tier=f"{p}-dev")
    space.admitted(p, "running")
    made["spec"]["tenants"] = [tenant(new, f"{p}-h100", 8, [p])]
    space.apply(made)
    until(lambda: kube.find(CLUSTER_QUEUE, new), "the new ClusterQueue is there")
    until(lambda: (space.queue(p) or {})["spec"]["stopPolicy"] == "Hold", "the queue is held")
    space.job(p, "waiting", 2, tier=f"{p}-dev")
    until(lambda: space.workload(p, "waiting"), "the waiting Job has its Workload")
    assert space.is_admitted(p, "running")
    assert not space.is_admitted(p, "waiting")

    space.end_job(p, "running")
    space.admitted(p, "waiting")
    queue = space.queue(p)
    assert queue is not None
    assert queue["spec"]["clusterQueue"] == new
    until(lambda: kube.find(CLUSTER_QUEUE, old) is None, "the old ClusterQueue is gone")


def test_a_removed_flavor_and_cohort(space: Space, kube: Kube) -> None:
    p = space.prefix
    flavors = [
        {
            "name": f"{p}-{name}",
            "capacity": 8,
            "nodeLabels": {"gpu": name},
            "topologyLevels": ["kubernetes.io/hostname"],
        }
        for name in ("h100", "old")
    ]
    cohorts = [{"name": f"{p}-dept"}, {"name": f"{p}-lab", "parent": f"{p}-dept"}]
    made = policy(
        p,
        flavors=flavors,
        cohorts=cohorts,
        tenants=[tenant(p, f"{p}-h100", 8, cohort=f"{p}-lab")],
    )
    space.namespaces_of(made)
    space.ready(made)
    made["spec"]["flavors"] = flavors[:1]
    made["spec"]["cohorts"] = []
    del made["spec"]["tenants"][0]["cohort"]
    space.ready(made)
    until(lambda: kube.find(RESOURCE_FLAVOR, f"{p}-old") is None, "the flavor is gone")
    until(lambda: kube.find(TOPOLOGY, f"{p}-old") is None, "its topology is gone")
    until(
        lambda: {key[2] for key in space.owned(p) if key[0] == "Cohort"} == {p},
        "the cohorts are gone",
    )


def _one(p: str) -> Json:
    return policy(p, tenants=[tenant(p, f"{p}-h100", 8)])


def _left(kube: Kube, policy: str) -> list[str]:
    return [
        f"{kind.kind} {item['metadata']['name']}"
        for kind in KINDS
        for item in kube.list(kind, selector=f"{LABEL}={policy}")
    ]


def _content(item: Json) -> Json:
    rest = ("apiVersion", "kind", "metadata", "status")
    return {key: value for key, value in item.items() if key not in rest}
