"""No write when nothing has changed, and one write for one change."""

import time
from collections import Counter

import pytest

from gpufair.api.kinds import GPU_SCHEDULING_POLICY, JOB, LOCAL_QUEUE

from .conftest import OperatorFactory
from .kit.audit import Audit
from .kit.kube import Json, Kube
from .kit.policies import QUEUE, policy, tenant
from .kit.process import forget_lease
from .kit.rights import ACCOUNT
from .kit.space import Space, condition
from .kit.wait import until


def of_size(p: str, tenants: int) -> Json:
    flavor = f"{p}-h100"
    return policy(
        p,
        flavors=[{"name": flavor, "capacity": 8 * tenants}],
        cohorts=[{"name": f"{p}-dept", "weight": 0.5}],
        tenants=[
            tenant(
                f"{p}-{i}",
                flavor,
                8,
                limits={"borrowingLimit": 4},
                cohort=f"{p}-dept",
                weight=1 + i / 4,
            )
            for i in range(tenants)
        ],
    )


@pytest.fixture
def quiet(space: Space, new_operator: OperatorFactory, audit: Audit) -> "Quiet":
    return Quiet(space, audit)


class Quiet:
    """Counts what an operator writes until it has looked at all of a policy."""

    def __init__(self, space: Space, audit: Audit) -> None:
        self.space = space
        self.audit = audit

    def begin(self) -> None:
        """Count from here on: the policy has become Ready, and its event is written."""
        events = self.space.events
        until(
            lambda: "Applied" in {event["reason"] for event in events(self.space.prefix)},
            "the event is written",
        )
        self.audit.mark()

    def writes(self) -> Counter[tuple[str, str]]:
        """Writes since the mark, but for the repairs that show that a pass is complete.

        A pass compares every object of the policy before it makes a LocalQueue again, and passes
        over one policy never overlap: at the second repair the first pass has told its status.
        """
        for _ in range(2):
            self._repair()
        until(lambda: self._counted()["localqueues", QUEUE] == 2, "the log shows both repairs")
        counted = self._counted()
        del counted["localqueues", QUEUE]
        return counted

    def _counted(self) -> Counter[tuple[str, str]]:
        found = self.audit.writes(ACCOUNT, self.space.prefix)
        return Counter((entry.resource, entry.name) for entry in found)

    def _repair(self) -> None:
        space, place = self.space, f"{self.space.prefix}-0"
        gone = space.kube.get(LOCAL_QUEUE, QUEUE, place)["metadata"]["uid"]
        space.kube.delete(LOCAL_QUEUE, QUEUE, place)
        until(
            lambda: (space.queue(place) or {"metadata": {"uid": gone}})["metadata"]["uid"] != gone,
            "the LocalQueue is repaired",
        )


def test_restarts_and_reapplies_write_nothing(
    quiet: Quiet, space: Space, new_operator: OperatorFactory, kube: Kube
) -> None:
    p = space.prefix
    made = of_size(p, 5)
    space.namespaces_of(made)
    first = new_operator().start()
    space.ready(made)
    before = space.versions(p)

    quiet.begin()
    # The same again, and a change that is none of the policy's.
    space.apply(made)
    kube.patch(GPU_SCHEDULING_POLICY, p, {"metadata": {"annotations": {"note": "x"}}})
    assert quiet.writes() == {}
    first.stop()
    assert space.versions(p).keys() == before.keys()

    quiet.audit.mark()
    second = new_operator().start()
    assert quiet.writes() == {}
    second.kill()
    forget_lease(kube)

    quiet.audit.mark()
    new_operator().start()
    assert quiet.writes() == {}
    after = space.versions(p)
    repaired = ("LocalQueue", f"{p}-0", QUEUE)
    assert {k: v for k, v in after.items() if k != repaired} == {
        k: v for k, v in before.items() if k != repaired
    }


def test_one_changed_weight_writes_one_object(
    quiet: Quiet, space: Space, new_operator: OperatorFactory
) -> None:
    p = space.prefix
    made = of_size(p, 5)
    space.namespaces_of(made)
    new_operator().start()
    space.ready(made)
    quiet.begin()
    made["spec"]["tenants"][3]["weight"] = 12
    space.ready(made)
    assert quiet.writes() == {
        ("clusterqueues", f"{p}-3"): 1,
        ("gpuschedulingpolicies/status", p): 1,
    }


def test_work_that_comes_and_goes_writes_counters_seldom(
    quiet: Quiet, space: Space, new_operator: OperatorFactory
) -> None:
    """Nothing but the status, and that at most every ten seconds."""
    p = space.prefix
    made = of_size(p, 1)
    space.namespaces_of(made)
    new_operator().start()
    space.ready(made)
    quiet.begin()
    began = time.monotonic()
    for i in range(6):
        space.job(f"{p}-0", f"short-{i}", 4, run_for="200ms", tier=f"{p}-dev")
    for i in range(6):
        until(
            lambda i=i: condition(space.kube.get(JOB, f"short-{i}", f"{p}-0"), "Complete"),  # type: ignore[misc]
            f"Job {i} is complete",
        )
    took = time.monotonic() - began
    written = quiet.writes()
    statuses = written.pop(("gpuschedulingpolicies/status", p), 0)
    assert written == {}
    assert statuses <= 1 + took / 10
