"""Real Jobs through the queues of a policy: quota, borrowing, reclaim."""

import pytest

from gpufair.api.kinds import JOB, POD

from .kit.policies import pair, policy, tenant
from .kit.space import Space, condition
from .kit.wait import elapsed, until

pytestmark = pytest.mark.usefixtures("operator")


def test_quota_and_borrowing(space: Space) -> None:
    """Up to quota, then up to the borrowing limit, and no further."""
    p = space.prefix
    a, b, flavor = f"{p}-a", f"{p}-b", f"{p}-h100"
    made = policy(
        p,
        tenants=[
            tenant(a, flavor, 4, limits={"borrowingLimit": 2}),
            tenant(b, flavor, 4),
        ],
    )
    space.namespaces_of(made)
    space.ready(made)
    within = [space.job(a, f"within-{i}", 2, tier=f"{p}-dev") for i in range(2)]
    space.admitted(a, *within)
    space.job(a, "borrowing", 2, tier=f"{p}-dev")
    space.admitted(a, "borrowing")
    space.job(a, "beyond", 1, tier=f"{p}-dev")
    space.refused(a, "beyond", "1 more needed")
    # What is left is the other's, to the last unit.
    space.job(b, "rest", 2, tier=f"{p}-dev")
    space.admitted(b, "rest")
    assert not space.is_admitted(a, "beyond")

    figures = until(
        lambda: _figures(space, a).get("used") == {"nvidia.com/gpu": "6"} and _figures(space, a),
        "the status shows what is used",
        15,
        lambda: _figures(space, a),
    )
    assert isinstance(figures, dict)
    assert figures["borrowed"] == {"nvidia.com/gpu": "2"}
    until(
        lambda: _figures(space, a)["pending"] == {"nvidia.com/gpu": "1"},
        "the status shows what waits",
        15,
    )


def test_lending_limit(space: Space) -> None:
    p = space.prefix
    a, b, flavor = f"{p}-a", f"{p}-b", f"{p}-h100"
    made = policy(
        p,
        tenants=[tenant(a, flavor, 0), tenant(b, flavor, 8, limits={"lendingLimit": 3})],
    )
    space.namespaces_of(made)
    space.ready(made)
    space.job(a, "lent", 3, tier=f"{p}-prod")
    space.admitted(a, "lent")
    space.job(a, "kept", 1, tier=f"{p}-prod")
    space.refused(a, "kept", "insufficient")


def test_reclaim_from_less_urgent_work(space: Space) -> None:
    """The owner gets its quota back from a less urgent borrower at once."""
    p = space.prefix
    a, b = f"{p}-a", f"{p}-b"
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    for name in ("own", "borrowed"):
        space.job(a, name, 4, tier=f"{p}-dev")
        space.admitted(a, name)
    space.job(b, "owner", 4, tier=f"{p}-prod")
    took = elapsed(lambda: space.is_admitted(b, "owner"), "the owner has its quota back")
    assert took < 10
    evicted = [n for n in ("own", "borrowed") if not space.is_admitted(a, n)]
    assert len(evicted) == 1
    found = condition(space.workload(a, evicted[0]) or {}, "Preempted")
    assert found["status"] == "True"


def test_no_reclaim_from_equal_work(space: Space) -> None:
    """With LowerPriority an equal borrower is not evicted; the owner waits its turn."""
    p = space.prefix
    a, b = f"{p}-a", f"{p}-b"
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    for name in ("own", "borrowed"):
        space.job(a, name, 4, tier=f"{p}-dev")
        space.admitted(a, name)
    space.job(b, "owner", 4, tier=f"{p}-dev")
    space.refused(b, "owner", "insufficient")
    for name in ("own", "borrowed"):
        assert space.is_admitted(a, name)
        assert not condition(space.workload(a, name) or {}, "Evicted")
    # Its turn comes when the borrower is done.
    space.end_job(a, "borrowed")
    space.admitted(b, "owner")


def test_reclaim_any(space: Space) -> None:
    """With Any, equal work gives way, too."""
    p = space.prefix
    a, b = f"{p}-a", f"{p}-b"
    made = pair(p, fairness={"reclaim": "Any"})
    space.namespaces_of(made)
    space.ready(made)
    for name in ("own", "borrowed"):
        space.job(a, name, 4, tier=f"{p}-dev")
        space.admitted(a, name)
    space.job(b, "owner", 4, tier=f"{p}-dev")
    space.admitted(b, "owner")


def test_work_runs_and_frees_its_quota(space: Space) -> None:
    """Pods run on nodes, end, and the next Job takes their place."""
    p = space.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 2)])
    space.namespaces_of(made)
    space.ready(made)
    space.job(p, "first", 1, pods=2, run_for="1s", tier=f"{p}-prod", pod_class=f"{p}-prod")
    space.job(p, "second", 2, run_for="1s", tier=f"{p}-dev")
    for name in ("first", "second"):
        until(
            lambda name=name: condition(space.kube.get(JOB, name, p), "Complete"),  # type: ignore[misc]
            f"Job {name} is complete",
            30,
            lambda name=name: space.workload(p, name),  # type: ignore[misc]
        )
    pods = space.kube.list(POD, p)
    assert {pod["spec"]["priority"] for pod in pods if "first" in pod["metadata"]["name"]} == {1000}
    assert all(pod["spec"]["nodeName"] for pod in pods)


def _figures(space: Space, name: str) -> dict[str, object]:
    listed = space.policy(space.prefix)["status"].get("tenants", ())
    return next((t for t in listed if t["name"] == name), {})
