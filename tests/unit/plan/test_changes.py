"""What is written, what is left alone, and in what order."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE
from gpufair.plan.changes import Changes, Write, changes, count_by_kind
from gpufair.plan.objects import APPLY_ORDER, Desired, Key
from tests.unit.builders import (
    Json,
    cluster_of,
    cluster_queue,
    facts,
    flavor,
    keyed,
    live,
    live_of,
    local_queue,
    planned,
    policy,
    quota,
    tenant,
    tier,
)

NLP: Key = (LOCAL_QUEUE, "nlp", "gpu")


def objects(**spec: Any) -> Sequence[Desired]:
    return planned(policy(**spec), facts("nlp", "cv")).objects


def found(wanted: Sequence[Desired], there: Mapping[Key, Json]) -> Changes:
    return changes("pool", wanted, there)


def written(result: Changes) -> list[str]:
    return [str(write.desired) for write in result.writes]


def test_an_empty_cluster_gets_every_object_in_order() -> None:
    wanted = objects()
    result = found(list(reversed(wanted)), {})
    assert [w.creates for w in result.writes] == [True] * len(wanted)
    kinds = [APPLY_ORDER.index(w.desired.resource) for w in result.writes]
    assert kinds == sorted(kinds)
    assert (result.unchanged, result.conflicts, result.stale, result.replaced) == (0, [], [], [])


def test_a_cluster_that_is_as_it_should_be_needs_nothing() -> None:
    wanted = objects()
    result = found(wanted, cluster_of(wanted))
    assert not result
    assert result.unchanged == len(wanted)


def test_one_changed_field_is_one_write_that_names_it() -> None:
    there = cluster_of(objects())
    result = found(objects(tenants=[tenant(weight=3)]), there)
    (write,) = result.writes
    assert str(write.desired) == "ClusterQueue nlp"
    assert (write.creates, list(write.fields)) == (False, ["spec.fairSharing.weight"])
    assert result.unchanged == len(there) - 1


@pytest.mark.parametrize("drift", [{"weight": "9"}, {"weight": None}])
def test_drift_is_written_back(drift: Json) -> None:
    wanted = objects()
    there = cluster_of(wanted)
    there[CLUSTER_QUEUE, "", "nlp"]["spec"]["fairSharing"] = drift
    assert written(found(wanted, there)) == ["ClusterQueue nlp"]


def test_what_others_add_beside_ours_is_no_change() -> None:
    wanted = objects()
    there = cluster_of(wanted)
    queue = there[CLUSTER_QUEUE, "", "nlp"]
    queue["spec"]["fairSharing"]["other"] = "field"
    queue["metadata"]["finalizers"] = ["kueue.x-k8s.io/resource-in-use"]
    queue["metadata"]["labels"]["team"] = "x"
    queue["status"] = {"pendingWorkloads": 3}
    assert not found(wanted, there)


def test_a_foreign_object_is_a_conflict_and_is_not_written() -> None:
    there = keyed(live(COHORT, "pool", policy=""))
    result = found(objects(), there)
    assert "Cohort pool" not in written(result)
    (conflict,) = result.conflicts
    assert str(conflict).startswith("Cohort pool exists and is not gpufair's")
    assert result.stale == []


def test_an_object_of_another_policy_is_a_conflict_that_names_it() -> None:
    result = found(objects(), keyed(live(COHORT, "pool", policy="bank")))
    assert str(result.conflicts[0]) == (
        "Cohort pool belongs to GpuSchedulingPolicy bank: choose another name."
    )


def test_a_foreign_object_that_asks_for_it_is_adopted() -> None:
    annotations = {"gpufair.io/adopt": "true"}
    there = keyed(live(COHORT, "pool", policy="", annotations=annotations))
    result = found(objects(), there)
    (write,) = [w for w in result.writes if w.desired.resource is COHORT]
    assert not write.creates
    assert result.conflicts == []


def test_local_queues_of_a_lost_cluster_queue_are_not_made() -> None:
    there = keyed(cluster_queue("nlp", policy=""))
    result = found(objects(tenants=[tenant("nlp"), tenant("cv")]), there)
    assert [n for n in written(result) if "Queue" in n] == ["ClusterQueue cv", "LocalQueue cv/gpu"]
    assert [str(c).partition(" exists")[0] for c in result.conflicts] == [
        "ClusterQueue nlp",
        "LocalQueue nlp/gpu is not made: ClusterQueue nlp is not this policy's.",
    ]


def test_our_local_queue_of_a_lost_cluster_queue_goes() -> None:
    there = keyed(cluster_queue("nlp", policy=""), local_queue("nlp"))
    assert found(objects(), there).stale == [NLP]


def test_a_local_queue_of_another_cluster_queue_must_be_made_anew() -> None:
    """Its ClusterQueue is immutable."""
    wanted = objects()
    there = cluster_of(wanted)
    there[NLP]["spec"]["clusterQueue"] = "old"
    result = found(wanted, there)
    assert result.replaced == [NLP]
    assert (list(result.writes), list(result.stale)) == ([], [])
    assert result


def test_a_local_queue_that_differs_otherwise_is_written() -> None:
    there = cluster_of(objects())
    assert written(found(objects(tenants=[tenant(hold=True)]), there)) == ["LocalQueue nlp/gpu"]


def test_what_is_no_longer_asked_for_is_stale_leaves_first() -> None:
    before = objects(tenants=[tenant("nlp"), tenant("cv")], tiers=[tier("prod"), tier("dev", 7)])
    result = found(objects(), cluster_of(before))
    assert [f"{kind.kind} {name}" for kind, _, name in result.stale] == [
        "LocalQueue gpu",
        "ClusterQueue cv",
        "PriorityClass dev",
        "WorkloadPriorityClass dev",
    ]
    assert result


def test_nothing_of_others_is_ever_stale() -> None:
    wanted = objects()
    there = cluster_of(wanted) | keyed(
        cluster_queue("theirs", policy=""), cluster_queue("banks", policy="bank")
    )
    assert not found(wanted, there)


def moved(first: int, second: int, limits: Json | None = None) -> Sequence[Desired]:
    tenants = [tenant("nlp", quota(first)), tenant("cv", quota(second) | (limits or {}))]
    return objects(tenants=tenants)


def test_quota_decreases_come_before_increases() -> None:
    result = found(moved(6, 2), cluster_of(moved(4, 4)))
    assert written(result) == ["ClusterQueue cv", "ClusterQueue nlp"]
    assert [w.lowers_quota for w in result.writes] == [True, False]


def test_a_cohort_grows_between_the_queues_that_shrink_and_those_that_grow() -> None:
    def pool(cohort: int, first: int, second: int) -> Sequence[Desired]:
        tenants = [tenant("nlp", quota(first)), tenant("cv", quota(second))]
        cohorts = [{"name": "research", "quota": [quota(cohort)]}]
        return objects(cohorts=cohorts, tenants=tenants)

    result = found(pool(8, 6, 2), cluster_of(pool(2, 4, 4)))
    assert written(result) == ["ClusterQueue cv", "Cohort research", "ClusterQueue nlp"]
    shrinking = found(pool(2, 6, 2), cluster_of(pool(8, 4, 4)))
    assert written(shrinking) == ["Cohort research", "ClusterQueue cv", "ClusterQueue nlp"]


def test_a_change_of_limits_is_no_decrease() -> None:
    result = found(moved(4, 4, {"lendingLimit": 1}), cluster_of(moved(4, 4)))
    assert [w.lowers_quota for w in result.writes] == [False]


def test_quota_of_a_flavor_given_up_is_a_decrease() -> None:
    def with_flavors(*names: str) -> Sequence[Desired]:
        owned = [quota(1, name) for name in names]
        return objects(flavors=[flavor("a"), flavor("b")], tenants=[tenant("nlp", *owned)])

    result = found(with_flavors("a"), cluster_of(with_flavors("a", "b")))
    assert [w.lowers_quota for w in result.writes] == [True]


def test_the_same_quota_in_other_words_is_no_change() -> None:
    assert not found(moved(1000, 4), _as_written(cluster_of(moved(1000, 4)), "1k", "1000"))


def _as_written(there: dict[Key, Json], old: str, new: str) -> dict[Key, Json]:
    queue = there[CLUSTER_QUEUE, "", "nlp"]
    resource = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
    assert resource["nominalQuota"] == old
    resource["nominalQuota"] = new
    return there


def test_the_comparison_can_be_replaced() -> None:
    wanted = objects()
    result = changes("pool", wanted, cluster_of(wanted), lambda item, _: [item.name])
    assert [w.fields for w in result.writes] == [[w.desired.name] for w in result.writes]
    assert len(result.writes) == len(wanted)


def test_an_object_applied_by_somebody_else_in_our_name_is_compared_as_theirs() -> None:
    """Labels that say gpufair, fields that another manager owns: we take them over."""
    wanted = objects()
    there = cluster_of(wanted, lambda item: live_of(item, manager="kubectl"))
    assert len(found(wanted, there).writes) == len(wanted)


def test_changes_are_false_only_when_nothing_is_to_be_done() -> None:
    write = Write(objects()[0], creates=True)
    assert not Changes(unchanged=3)
    assert all((Changes(writes=[write]), Changes(stale=[NLP]), Changes(replaced=[NLP])))


def test_count_by_kind_is_sorted_by_kind() -> None:
    counts = count_by_kind(item.key for item in objects(tenants=[tenant("nlp"), tenant("cv")]))
    assert list(counts) == sorted(counts)
    assert (counts["ClusterQueue"], counts["LocalQueue"], counts["Cohort"]) == (2, 2, 1)
