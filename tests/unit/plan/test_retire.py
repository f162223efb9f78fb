"""Objects go without harm: each kind's blockers, and the order of stop, wait, delete."""

from typing import Any

import pytest

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
)
from gpufair.plan.objects import APPLY_ORDER
from gpufair.plan.retire import Retirement, Usage, retire
from tests.unit.builders import Json, cluster_queue, keyed, live, local_queue

IDLE = Usage({}, {})
HELD = {"stopPolicy": "Hold"}


def step(*going: Json, beside: tuple[Json, ...] = (), use: Usage = IDLE, **how: Any) -> Retirement:
    there = keyed(*going, *beside)
    return retire(list(keyed(*going)), there, use, **how)


def deleted(result: Retirement) -> list[str]:
    return [f"{kind.kind} {name}" for kind, _, name in result.deletes]


def test_a_local_queue_is_stopped_first() -> None:
    result = step(local_queue("nlp"))
    assert result.stops == [((LOCAL_QUEUE, "nlp", "gpu"), "Hold")]
    assert (list(result.deletes), list(result.waits)) == ([], [])


def test_evict_stops_with_hold_and_drain_also_what_is_held() -> None:
    result = step(local_queue("nlp", spec=HELD), evict=True)
    assert result.stops == [((LOCAL_QUEUE, "nlp", "gpu"), "HoldAndDrain")]


@pytest.mark.parametrize("evict", [False, True])
def test_a_drained_local_queue_is_not_stopped_again(evict: bool) -> None:
    result = step(local_queue("nlp", spec={"stopPolicy": "HoldAndDrain"}), evict=evict)
    assert deleted(result) == ["LocalQueue gpu"]


def test_a_held_and_empty_local_queue_is_deleted() -> None:
    assert deleted(step(local_queue("nlp", spec=HELD))) == ["LocalQueue gpu"]


def test_a_local_queue_waits_for_what_its_status_says() -> None:
    result = step(local_queue("nlp", spec=HELD, status={"reservingWorkloads": 1}))
    assert result.waits == ["LocalQueue nlp/gpu: 1 workload holds quota"]
    assert deleted(result) == []


def test_a_local_queue_waits_for_what_workloads_say() -> None:
    """Its status may lag behind."""
    use = Usage({("nlp", "gpu"): 2, ("cv", "gpu"): 5}, {})
    result = step(local_queue("nlp", spec=HELD, status={"reservingWorkloads": 0}), use=use)
    assert result.waits == ["LocalQueue nlp/gpu: 2 workloads hold quota"]


def test_a_cluster_queue_waits_for_its_local_queues() -> None:
    result = step(cluster_queue("nlp"), beside=(local_queue("a", "nlp"), local_queue("b", "cv")))
    assert result.waits == ["ClusterQueue nlp: 1 LocalQueue left"]


def test_a_cluster_queue_waits_for_its_workloads() -> None:
    result = step(cluster_queue("nlp"), use=Usage({}, {"nlp": 3, "cv": 1}))
    assert result.waits == ["ClusterQueue nlp: 3 workloads hold quota"]
    result = step(cluster_queue("nlp", status={"reservingWorkloads": 2}))
    assert result.waits == ["ClusterQueue nlp: 2 workloads hold quota"]


def test_an_empty_cluster_queue_is_deleted_and_never_stopped() -> None:
    result = step(cluster_queue("nlp"), beside=(local_queue("b", "cv"),))
    assert (deleted(result), list(result.stops)) == (["ClusterQueue nlp"], [])


def test_a_cohort_waits_for_queues_and_cohorts_below_it() -> None:
    members = (
        cluster_queue("nlp", spec={"cohortName": "pool"}),
        cluster_queue("cv", spec={"cohortName": "other"}),
        live(COHORT, "research", spec={"parentName": "pool"}),
    )
    result = step(live(COHORT, "pool"), beside=members)
    assert result.waits == ["Cohort pool: 2 queues or cohorts below it"]
    assert deleted(step(live(COHORT, "pool"), beside=members[1:2])) == ["Cohort pool"]


def test_a_flavor_waits_for_cluster_queues_that_use_it() -> None:
    groups = [{"flavors": [{"name": "h100"}, {"name": "a100"}]}]
    user = cluster_queue("nlp", spec={"resourceGroups": groups})
    result = step(live(RESOURCE_FLAVOR, "h100"), beside=(user,))
    assert result.waits == ["ResourceFlavor h100: 1 queue or cohort uses it"]
    assert deleted(step(live(RESOURCE_FLAVOR, "l4"), beside=(user,))) == ["ResourceFlavor l4"]


def test_a_flavor_waits_for_cohorts_that_have_quota_of_it() -> None:
    groups = [{"flavors": [{"name": "h100"}]}]
    user = live(COHORT, "research", spec={"resourceGroups": groups})
    result = step(live(RESOURCE_FLAVOR, "h100"), beside=(user,))
    assert result.waits == ["ResourceFlavor h100: 1 queue or cohort uses it"]


def test_a_topology_waits_for_its_flavors() -> None:
    users = (
        live(RESOURCE_FLAVOR, "a", spec={"topologyName": "racks"}),
        live(RESOURCE_FLAVOR, "b", spec={"topologyName": "racks"}),
    )
    result = step(live(TOPOLOGY, "racks"), beside=users)
    assert result.waits == ["Topology racks: 2 ResourceFlavors use it"]
    assert deleted(step(live(TOPOLOGY, "zones"), beside=users)) == ["Topology zones"]


def test_classes_wait_for_work_that_names_them() -> None:
    use = Usage({}, {}, frozenset({"prod"}), frozenset({"dev"}))
    classes = [
        live(kind, name)
        for kind in (WORKLOAD_PRIORITY_CLASS, PRIORITY_CLASS)
        for name in ("prod", "dev")
    ]
    result = step(*classes, use=use)
    assert list(result.waits) == [
        "WorkloadPriorityClass prod: unfinished work names it",
        "PriorityClass dev: pods or unfinished work name it",
    ]
    assert deleted(result) == ["WorkloadPriorityClass dev", "PriorityClass prod"]


def test_what_is_being_deleted_is_waited_for_and_not_deleted_again() -> None:
    result = step(live(COHORT, "pool", deletionTimestamp="2026-12-01T12:00:00Z"))
    assert (list(result.waits), deleted(result)) == (["Cohort pool: being deleted"], [])


def test_every_kind_that_is_applied_can_go() -> None:
    for kind in APPLY_ORDER:
        spec = HELD if kind is LOCAL_QUEUE else {}
        there = live(kind, "x", "ns" if kind.namespaced else "", spec=spec)
        assert deleted(step(there)) == [f"{kind.kind} x"]


def test_only_what_is_named_goes() -> None:
    there = keyed(cluster_queue("nlp"), cluster_queue("cv"))
    result = retire([(CLUSTER_QUEUE, "", "nlp")], there, IDLE)
    assert deleted(result) == ["ClusterQueue nlp"]
    assert retire([], there, IDLE) == Retirement([], [], [])


def test_objects_of_others_without_a_spec_block_nothing() -> None:
    bare = [
        {k: v for k, v in there.items() if k != "spec"}
        for there in (
            live(COHORT, "bare", policy=""),
            local_queue("x", policy=""),
            cluster_queue("y", policy=""),
            live(RESOURCE_FLAVOR, "z", policy=""),
        )
    ]
    going = (cluster_queue("nlp"), live(COHORT, "pool"), live(RESOURCE_FLAVOR, "h100"))
    result = step(*going, live(TOPOLOGY, "racks"), beside=tuple(bare))
    assert len(result.deletes) == 4
