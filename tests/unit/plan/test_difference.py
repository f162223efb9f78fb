"""What applying would do, in words and figures."""

from typing import Any

import pytest

from gpufair.api.kinds import COHORT
from gpufair.plan.difference import counts, object_changes, value_text
from gpufair.plan.plan import Plan
from tests.unit.builders import cluster_of, facts, keyed, live, planned, policy, tenant

FACTS = facts("nlp", "cv")


def wanted(**spec: Any) -> Plan:
    return planned(policy(**spec), FACTS)


def test_no_difference_is_an_empty_list() -> None:
    plan = wanted()
    assert object_changes("pool", plan, cluster_of(plan.objects)) == []


def test_an_empty_cluster_gets_everything_created() -> None:
    plan = wanted()
    listed = object_changes("pool", plan, {})
    assert counts(listed) == {"create": len(plan.objects)}
    assert [c.title for c in listed] == [str(item) for item in plan.objects]
    assert all(not change.fields for change in listed)


def test_a_change_names_the_field_and_both_values() -> None:
    there = cluster_of(wanted().objects)
    (change,) = object_changes("pool", wanted(tenants=[tenant(weight=3)]), there)
    assert (change.action, change.title) == ("change", "ClusterQueue nlp")
    assert change.as_json() == {
        "action": "change",
        "kind": "ClusterQueue",
        "name": "nlp",
        "fields": [{"path": "spec.fairSharing.weight", "from": "1", "to": "3"}],
    }


def test_what_is_no_longer_asked_for_is_removed() -> None:
    there = cluster_of(wanted(tenants=[tenant("nlp"), tenant("cv")]).objects)
    listed = object_changes("pool", wanted(), there)
    assert [(c.action, c.title) for c in listed] == [
        ("remove", "LocalQueue cv/gpu"),
        ("remove", "ClusterQueue cv"),
    ]
    assert listed[0].as_json() == {
        "action": "remove",
        "kind": "LocalQueue",
        "namespace": "cv",
        "name": "gpu",
    }


def test_a_local_queue_of_another_cluster_queue_is_replaced() -> None:
    there = cluster_of(wanted(tenants=[tenant("cv", namespaces=["nlp"])]).objects)
    listed = object_changes("pool", wanted(), there)
    (replaced,) = [c for c in listed if c.action == "replace"]
    assert replaced.title == "LocalQueue nlp/gpu"
    assert "immutable" in replaced.message


def test_conflicts_and_collisions_are_told() -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "nlp"}}
    tenants = [tenant("nlp"), tenant("cv", namespaceSelector=selector)]
    known = facts(nlp=selector["matchLabels"])
    plan = planned(policy(tenants=tenants), known)
    there = cluster_of(plan.objects) | keyed(live(COHORT, "pool", policy=""))
    cohort, namespace = object_changes("pool", plan, there)
    assert (cohort.action, cohort.title) == ("conflict", "Cohort pool")
    assert cohort.message.startswith("exists and is not gpufair's")
    assert namespace.action == "conflict"
    assert namespace.message == plan.collisions[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), ("text", "text"), (3, "3"), (False, "false"), ({"ä": [1]}, '{"ä": [1]}')],
)
def test_values_are_shown_in_a_line(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_counts_are_by_action_in_order_of_appearance() -> None:
    there = cluster_of(wanted(tenants=[tenant("cv")]).objects)
    assert list(counts(object_changes("pool", wanted(), there)).items()) == [
        ("create", 2),
        ("remove", 2),
    ]
