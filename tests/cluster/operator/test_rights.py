"""The rights in manifests/base are those that the operator uses: each of them, and no other."""

import yaml

from gpufair.api.kinds import CLUSTER_QUEUE, NAMESPACE

from .conftest import OperatorFactory
from .kit.audit import Audit, Entry
from .kit.kube import Kube
from .kit.policies import policy, tenant
from .kit.process import forget_lease
from .kit.rights import ACCOUNT, BASE
from .kit.space import Space
from .kit.wait import until

Right = tuple[str, str, str, str]
"""Namespace (empty for all), group, resource, verb."""


def granted() -> set[Right]:
    """What the roles in the manifests allow."""
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb)
        for file in ("cluster-role.yaml", "roles.yaml")
        for role in yaml.safe_load_all((BASE / file).read_text())
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_every_right_is_used_and_none_is_missing(
    session_audit: Audit, new_operator: OperatorFactory, space: Space, kube: Kube
) -> None:
    """A policy that is made, drifts, changes, conflicts and goes."""
    p = space.prefix
    forget_lease(kube)
    operator = new_operator().start()
    flavor = {
        "name": f"{p}-h100",
        "capacity": 8,
        "nodeLabels": {"gpu": "h100"},
        "topologyLevels": ["kubernetes.io/hostname"],
    }
    made = policy(
        p,
        flavors=[flavor],
        cohorts=[{"name": f"{p}-dept"}],
        tenants=[tenant(p, f"{p}-h100", 8, cohort=f"{p}-dept")],
    )
    space.namespaces_of(made)
    space.create(
        CLUSTER_QUEUE,
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": p},
            "spec": {"namespaceSelector": {}},
        },
    )
    space.settled(space.apply(made), "Conflict", "True")
    kube.delete(CLUSTER_QUEUE, p)
    space.settled(space.policy(p), "Ready", "True")
    for suspend in (True, False, True):
        # The same event twice is a count on the first.
        made["spec"]["suspend"] = suspend
        space.settled(space.apply(made), "Suspended", str(suspend))
    until(
        lambda: any("series" in event for event in space.events(p)),
        "an event that happened twice is counted",
    )
    kube.delete(NAMESPACE, p)
    space.delete_policy(p)
    space.policy_gone(p, 60)
    assert operator.stop() == 0

    used = {right for entry in _answered(session_audit) for right in _rights(entry)}
    # An object is only read by itself when a new one meets another that no watch has shown.
    seldom = {right for right in granted() if right[1] in _APPLIED and right[3] == "get"}
    assert granted() - used <= seldom
    refused = [e for e in session_audit.entries(ACCOUNT) if e.status == 403]
    assert refused == []
    assert "forbidden" not in operator.log.lower()


_APPLIED = ("kueue.x-k8s.io", "scheduling.k8s.io")


def _answered(audit: Audit) -> list[Entry]:
    return [e for e in audit.entries(ACCOUNT) if e.status < 400 or e.status in (404, 409)]


def _rights(entry: Entry) -> set[Right]:
    # A server-side apply that makes an object needs both rights.
    verbs = ("patch", "create") if (entry.verb, entry.status) == ("patch", 201) else (entry.verb,)
    return {
        (namespace, entry.group, entry.resource, verb)
        for namespace in ("", entry.namespace)
        for verb in verbs
    }
