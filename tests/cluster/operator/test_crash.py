"""The operator killed in the middle of its work comes to the same end."""

from collections import Counter
from collections.abc import Callable

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE, Resource

from .conftest import OperatorFactory
from .kit.kube import Json, Kube
from .kit.policies import KINDS, policy, tenant
from .kit.process import Operator, forget_lease
from .kit.space import LABEL, Space
from .kit.wait import until

TENANTS = 60


def large(p: str, weight: float = 1) -> Json:
    flavor = f"{p}-h100"
    shared = [f"{p}-{i:02d}" for i in range(TENANTS)]
    return policy(
        p,
        flavors=[{"name": flavor, "capacity": 8 * TENANTS}],
        cohorts=[{"name": f"{p}-dept-{i}"} for i in range(4)],
        tenants=[
            tenant(name, flavor, 8, [name], cohort=f"{p}-dept-{i % 4}", weight=weight)
            for i, name in enumerate(shared)
        ],
    )


def test_killed_at_several_points(space: Space, kube: Kube, new_operator: OperatorFactory) -> None:
    p = space.prefix
    made = large(p)
    space.namespaces_of(made)
    operator = new_operator().start()
    space.apply(made)
    for resource, least, most in ((COHORT, 1, 5), (CLUSTER_QUEUE, 15, 59), (LOCAL_QUEUE, 5, 59)):
        operator = _killed_and_restarted(
            operator,
            new_operator,
            kube,
            lambda r=resource, a=least, b=most: a <= _count(kube, p, r) <= b,  # type: ignore[misc]
        )
    space.settled(space.policy(p), "Ready", "True", 60)
    assert Counter(key[0] for key in space.owned(p)) == {
        "ClusterQueue": TENANTS,
        "Cohort": 5,
        "LocalQueue": TENANTS,
        "PriorityClass": 2,
        "ResourceFlavor": 1,
        "WorkloadPriorityClass": 2,
    }

    # In the middle of a change of all queues.
    space.apply(large(p, weight=3))
    operator = _killed_and_restarted(
        operator, new_operator, kube, lambda: 0 < _weighted(kube, p, "3") < TENANTS
    )
    space.settled(space.policy(p), "Ready", "True", 60)
    assert _weighted(kube, p, "3") == TENANTS

    # In the middle of the removal.
    space.delete_policy(p)
    _killed_and_restarted(
        operator, new_operator, kube, lambda: _count(kube, p, LOCAL_QUEUE) < TENANTS
    )
    space.policy_gone(p, 60)
    assert all(not kube.list(kind, selector=f"{LABEL}={p}") for kind in KINDS)


def _killed_and_restarted(
    operator: Operator,
    new_operator: OperatorFactory,
    kube: Kube,
    moment: Callable[[], bool],
) -> Operator:
    until(moment, "the moment to kill the operator", 60, lambda: operator.log[-1000:])
    operator.kill()
    forget_lease(kube)
    return new_operator().start()


def _count(kube: Kube, policy: str, resource: Resource) -> int:
    return len(kube.list(resource, selector=f"{LABEL}={policy}"))


def _weighted(kube: Kube, policy: str, weight: str) -> int:
    queues = kube.list(CLUSTER_QUEUE, selector=f"{LABEL}={policy}")
    return sum(queue["spec"]["fairSharing"]["weight"] == weight for queue in queues)
