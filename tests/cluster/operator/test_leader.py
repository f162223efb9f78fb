"""Two operators: one writes, and when it is gone the other does."""

from gpufair.api.kinds import CLUSTER_QUEUE, LEASE

from .conftest import OperatorFactory
from .kit.audit import Audit, Entry
from .kit.kube import Kube
from .kit.policies import pair
from .kit.process import NAMESPACE, Operator
from .kit.rights import ACCOUNT, credential
from .kit.space import Space
from .kit.wait import until

TAKEOVER = 40.0
"""Seconds: the lease's 15, and a slow machine."""


def test_one_writes(space: Space, kube: Kube, audit: Audit, new_operator: OperatorFactory) -> None:
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    leader = new_operator().start()
    until(lambda: _holder(kube), "the first operator has the lease")
    standby = new_operator().start()
    space.ready(made)
    assert _writes(audit, leader, p)
    assert _writes(audit, standby, p) == []

    # The leader hangs: the other takes over, and the first, back again, keeps its hands off.
    first = _holder(kube)
    leader.freeze()
    until(lambda: _holder(kube) not in ("", first), "the standby has the lease", TAKEOVER)
    audit.mark()
    made["spec"]["tenants"][0]["weight"] = 2
    space.ready(made)
    leader.thaw()
    until(lambda: _leases(audit, leader), "the first operator looks at the lease again")
    made["spec"]["tenants"][0]["weight"] = 3
    space.ready(made)
    assert _writes(audit, standby, p)
    assert _writes(audit, leader, p) == []

    # The new leader dies: the first takes over again, and sees what changed meanwhile.
    second = _holder(kube)
    standby.kill()
    audit.mark()
    made["spec"]["tenants"][0]["weight"] = 4
    space.apply(made)
    until(lambda: _holder(kube) not in ("", second), "the first has the lease again", TAKEOVER)
    until(
        lambda: kube.get(CLUSTER_QUEUE, f"{p}-a")["spec"]["fairSharing"]["weight"] == "4",
        "the change is applied",
    )
    assert {entry.name for entry in _writes(audit, leader, p)} >= {f"{p}-a"}


def test_an_operator_that_stops_gives_the_lease_back(
    space: Space, kube: Kube, new_operator: OperatorFactory
) -> None:
    """The next one need not wait for its end."""
    leader = new_operator().start()
    until(lambda: _holder(kube), "the operator has the lease")
    assert leader.stop() == 0
    assert _holder(kube) == ""


def _holder(kube: Kube) -> str:
    lease = kube.find(LEASE, "gpufair", NAMESPACE)
    return str((lease or {"spec": {}})["spec"].get("holderIdentity", ""))


def _writes(audit: Audit, operator: Operator, prefix: str) -> list[Entry]:
    token = credential(operator.kubeconfig)
    return [e for e in audit.writes(ACCOUNT, prefix) if e.credential == token]


def _leases(audit: Audit, operator: Operator) -> bool:
    token = credential(operator.kubeconfig)
    return any(e.credential == token and e.resource == "leases" for e in audit.entries(ACCOUNT))
