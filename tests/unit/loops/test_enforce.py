"""One pass: what is written in which waves, and what came of it."""

from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, PRIORITY_CLASS
from gpufair.api.load import parse_policy
from gpufair.api.policy import DeletionPolicy, Policy
from gpufair.cluster.applier import Result
from gpufair.loops.enforce import Enforcer, Passed, Tally, _Operations
from gpufair.loops.policies import Memory
from gpufair.plan.selectors import NamespaceFact
from tests.unit.builders import (
    NOW,
    Json,
    cluster_of,
    cluster_queue,
    facts,
    keyed,
    live,
    local_queue,
    planned,
    policy,
    quota,
    stored_policy,
    tenant,
    tier,
)
from tests.unit.loops.fakes import FakeApplier, FakeClient, caches

BOTH = [tenant("nlp"), tenant("cv")]


def wanted(**spec: Any) -> Policy:
    return parse_policy(stored_policy(uid="uid-1", **spec))


class Stage:
    """An enforcer over a view that the test fills."""

    def __init__(self) -> None:
        self.client = FakeClient()
        client: Any = self.client
        self.caches = caches(client)
        self.caches.namespaces = {name: NamespaceFact(name) for name in ("nlp", "cv")}
        self.applier = FakeApplier(self.caches)
        applier: Any = self.applier
        self.enforcer = Enforcer(client, self.caches, applier)

    def holds(self, **spec: Any) -> None:
        """The cluster is as such a policy wants it."""
        self.caches.live = cluster_of(planned(wanted(**spec), facts("nlp", "cv")).objects)

    async def enforce(self, **spec: Any) -> Passed:
        return await self.enforcer.enforce(wanted(**spec), Memory(), NOW)

    async def retire(self, *going: Json, ending: DeletionPolicy | None = None) -> Tally:
        tally = Tally()
        await self.enforcer.retire("pool", "uid-1", list(keyed(*going)), tally, ending=ending)
        return tally


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_an_empty_cluster_gets_a_wave_for_each_kind(stage: Stage) -> None:
    passed = await stage.enforce(tenants=BOTH)
    assert stage.applier.waves == [
        ["create ResourceFlavor h100"],
        ["create Cohort pool"],
        ["create WorkloadPriorityClass prod"],
        ["create PriorityClass prod"],
        ["create ClusterQueue nlp", "create ClusterQueue cv"],
        ["create LocalQueue nlp/gpu", "create LocalQueue cv/gpu"],
    ]
    assert passed.tally.written == {"created": 8}


async def test_a_second_pass_sees_what_the_first_wrote(stage: Stage) -> None:
    await stage.enforce()
    assert set(stage.caches.live) == {o.key for o in planned(policy(), facts("nlp")).objects}


async def test_nothing_is_written_when_nothing_differs(stage: Stage) -> None:
    stage.holds()
    passed = await stage.enforce()
    assert stage.applier.operations == []
    assert not passed.changes


async def test_decreases_are_a_wave_before_increases(stage: Stage) -> None:
    stage.holds(tenants=[tenant("nlp", quota(4)), tenant("cv", quota(4))])
    await stage.enforce(tenants=[tenant("nlp", quota(6)), tenant("cv", quota(2))])
    assert stage.applier.waves == [["apply ClusterQueue cv"], ["apply ClusterQueue nlp"]]


async def test_what_is_ours_is_written_by_its_uid(stage: Stage) -> None:
    stage.holds()
    await stage.enforce(tenants=[tenant(weight=2)])
    (operation,) = stage.applier.operations
    assert operation.ours
    assert operation.uid == stage.caches.live[CLUSTER_QUEUE, "", "nlp"]["metadata"]["uid"]


async def test_missing_namespaces_are_named(stage: Stage) -> None:
    passed = await stage.enforce(tenants=[tenant(namespaces=["nlp", "b", "a"])])
    assert list(passed.missing) == ["a", "b"]


async def test_outcomes_are_told_apart(stage: Stage) -> None:
    stage.applier.results = {
        "create Cohort pool": (Result.CONFLICT, "Cohort pool is somebody else's."),
        "create ClusterQueue nlp": (Result.ERROR, "It was refused."),
        "create LocalQueue nlp/gpu": (Result.STALE, "It has changed."),
    }
    tally = (await stage.enforce()).tally
    assert tally.conflicts == ["Cohort pool is somebody else's."]
    assert tally.errors == ["ClusterQueue nlp: It was refused."]
    assert tally.again
    assert tally.written == {"created": 3}


async def test_what_failed_is_not_taken_to_be_there(stage: Stage) -> None:
    stage.applier.results = {"create Cohort pool": (Result.ERROR, "No.")}
    await stage.enforce()
    assert "Cohort" not in {kind.kind for kind, _, _ in stage.caches.live}


async def test_what_is_no_longer_asked_for_is_held_first(stage: Stage) -> None:
    stage.holds(tenants=BOTH)
    passed = await stage.enforce()
    assert stage.applier.waves == [["apply LocalQueue cv/gpu"]]
    held = stage.caches.live[LOCAL_QUEUE, "cv", "gpu"]["spec"]
    assert held == {"clusterQueue": "cv", "stopPolicy": "Hold"}
    assert passed.tally.waits == ["ClusterQueue cv: 1 LocalQueue left"]
    assert stage.caches.retiring == {"pool"}


async def test_passes_go_on_until_it_is_gone(stage: Stage) -> None:
    stage.holds(tenants=BOTH, tiers=[tier("prod"), tier("dev", 7)])
    for _ in range(4):
        await stage.enforce()
    assert set(stage.caches.live) == {o.key for o in planned(policy(), facts("nlp")).objects}
    assert stage.caches.retiring == set()


async def test_a_local_queue_of_another_cluster_queue_is_emptied_and_made_anew(
    stage: Stage,
) -> None:
    stage.holds(tenants=[tenant("old", namespaces=["nlp"])])
    for _ in range(5):
        await stage.enforce()
    assert stage.caches.live[LOCAL_QUEUE, "nlp", "gpu"]["spec"]["clusterQueue"] == "nlp"
    assert (CLUSTER_QUEUE, "", "old") not in stage.caches.live


async def test_evict_drains(stage: Stage) -> None:
    queue = local_queue("nlp")
    stage.caches.live = keyed(queue)
    await stage.retire(queue, ending=DeletionPolicy.EVICT)
    assert stage.caches.live[LOCAL_QUEUE, "nlp", "gpu"]["spec"]["stopPolicy"] == "HoldAndDrain"


@pytest.mark.parametrize("named", [True, False])
async def test_a_class_stays_while_pods_name_it(stage: Stage, named: bool) -> None:
    prod = live(PRIORITY_CLASS, "prod")
    stage.caches.live = keyed(prod)
    stage.client.pods = [
        {"spec": {"priorityClassName": "prod" if named else "other"}},
        {"spec": {}},
    ]
    tally = await stage.retire(prod)
    assert stage.applier.waves == ([] if named else [["delete PriorityClass prod"]])
    assert bool(tally.waits) is named


async def test_nothing_going_is_nothing_retiring(stage: Stage) -> None:
    stage.caches.retiring.add("pool")
    await stage.retire()
    assert stage.caches.retiring == set()


async def test_collisions_are_conflicts(stage: Stage) -> None:
    selector = {"matchLabels": {"team": "nlp"}}
    stage.caches.namespaces = {"nlp": NamespaceFact("nlp", {"team": "nlp"})}
    passed = await stage.enforce(tenants=[tenant("nlp"), tenant("cv", namespaceSelector=selector)])
    assert len(passed.tally.conflicts) == 1
    assert passed.tally.conflicts[0].startswith("namespace nlp stays with tenant nlp")


async def test_foreign_objects_are_left_untouched(stage: Stage) -> None:
    stage.caches.live = keyed(cluster_queue("nlp", policy=""))
    passed = await stage.enforce()
    assert not [title for wave in stage.applier.waves for title in wave if "Queue" in title]
    assert len(passed.tally.conflicts) == 2


def test_operations_are_made_when_their_turn_comes() -> None:
    made: list[Any] = []

    def make(write: Any) -> Any:
        made.append(write)
        return write

    operations = _Operations(["first", "second"], make)  # type: ignore[list-item]
    assert len(operations) == 2
    assert next(iter(operations)) == "first"
    assert made == ["first"]
