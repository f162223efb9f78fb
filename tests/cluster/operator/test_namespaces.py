"""Namespaces come, go and change their labels."""

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, NAMESPACE

from .kit.policies import policy, tenant
from .kit.space import Space
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")


def test_a_named_namespace_that_appears_later(space: Space) -> None:
    p = space.prefix
    made = space.ready(policy(p, tenants=[tenant(p, f"{p}-h100", 8)]))
    message = next(c for c in made["status"]["conditions"] if c["type"] == "Ready")["message"]
    assert f"Namespaces that do not exist yet: {p}" in message
    assert space.queue(p) is None

    space.namespace(p)
    queue = until(lambda: space.queue(p), "the new namespace has its LocalQueue")
    assert queue["spec"]["clusterQueue"] == p
    space.job(p, "train", 1, tier=f"{p}-dev")
    space.admitted(p, "train")


def test_a_selected_namespace(space: Space) -> None:
    """By label: one that is made with it, one that gets it later, one that loses it."""
    p = space.prefix
    selector = {"matchLabels": {"team": p}}
    space.ready(policy(p, tenants=[tenant(p, f"{p}-h100", 8, namespaceSelector=selector)]))
    made = space.namespace(f"{p}-made", team=p)
    until(lambda: space.queue(made), "a namespace made with the label has its LocalQueue")
    later = space.namespace(f"{p}-later")
    space.kube.patch(NAMESPACE, later, {"metadata": {"labels": {"team": p}}})
    until(lambda: space.queue(later), "a namespace labelled later has its LocalQueue")

    space.kube.patch(NAMESPACE, made, {"metadata": {"labels": {"team": "another"}}})
    until(lambda: space.queue(made) is None, "a namespace relabelled away has lost it")
    assert space.queue(later) is not None


def test_a_namespace_that_loses_its_label_while_work_runs(space: Space) -> None:
    """Its queue admits nothing more and goes once the work is done."""
    p = space.prefix
    selector = {"matchExpressions": [{"key": p, "operator": "Exists"}]}
    space.ready(policy(p, tenants=[tenant(p, f"{p}-h100", 8, namespaceSelector=selector)]))
    home = space.namespace(f"{p}-home", **{p: "yes"})
    until(lambda: space.queue(home), "the namespace has its LocalQueue")
    space.job(home, "running", 1, tier=f"{p}-dev")
    space.admitted(home, "running")

    space.kube.patch(NAMESPACE, home, {"metadata": {"labels": {p: None}}})
    until(
        lambda: (space.queue(home) or {})["spec"]["stopPolicy"] == "Hold", "its LocalQueue is held"
    )
    space.job(home, "late", 1, tier=f"{p}-dev")
    until(lambda: space.workload(home, "late"), "the late Job has a Workload")
    until(
        lambda: "1 workload holds quota" in _ready_message(space),
        "the condition says what is waited for",
        20,
        lambda: _ready_message(space),
    )
    assert space.is_admitted(home, "running")
    space.end_job(home, "running")
    until(lambda: space.queue(home) is None, "the LocalQueue goes after the last work")
    assert not space.is_admitted(home, "late")


def test_a_namespace_that_is_deleted(space: Space) -> None:
    """The tenant lives on, and gets its queue again with the namespace."""
    p = space.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 8)])
    space.namespaces_of(made)
    space.ready(made)
    space.kube.delete(NAMESPACE, p)
    until(lambda: space.kube.find(NAMESPACE, p) is None, "the namespace is gone", 40)
    assert space.kube.find(CLUSTER_QUEUE, p) is not None
    space.namespace(p)
    until(lambda: space.queue(p), "the new namespace has its LocalQueue")


def test_two_selectors_that_meet(space: Space) -> None:
    """The first tenant in the list has the namespace; the condition names the second."""
    p = space.prefix
    tenants = [
        tenant(f"{p}-{x}", f"{p}-h100", 4, namespaceSelector={"matchLabels": {x: p}}) for x in "ab"
    ]
    space.ready(policy(p, tenants=tenants))
    both = space.namespace(f"{p}-both", a=p, b=p)
    queue = until(lambda: space.queue(both), "the namespace has one LocalQueue")
    assert queue["spec"]["clusterQueue"] == f"{p}-a"
    found = space.said(p, "Conflict", "ForeignObjects")
    assert f"namespace {both} stays with tenant {p}-a" in found["message"]
    assert f"{p}-b" in found["message"]

    space.kube.patch(NAMESPACE, both, {"metadata": {"labels": {"a": None}}})
    until(
        lambda: (space.queue(both) or {"spec": {}})["spec"].get("clusterQueue") == f"{p}-b",
        "the namespace has passed to the other tenant",
    )
    space.said(p, "Conflict", "NoConflict")


def _ready_message(space: Space) -> str:
    conditions = space.policy(space.prefix)["status"]["conditions"]
    return str(next(c for c in conditions if c["type"] == "Ready")["message"])
