"""The plan: deterministic, right for its moment, the same whatever the order of tenants."""

from itertools import permutations
from typing import Any

from gpufair.plan.plan import plan
from gpufair.plan.renderer import Renderer
from tests.unit.builders import (
    facts,
    flavor,
    manifests,
    planned,
    policy,
    quota,
    tenant,
    utc,
    weekly,
    window,
)

FACTS = facts("nlp", "cv", "x", rec={"team": "recsys"})
DAY = window(
    "day",
    weekly=weekly("Tue", "09:00", "17:00"),
    tenants=[{"name": "nlp", "hold": True, "weight": 5, "quota": [quota(2)]}],
    fairness={"reclaim": "Never"},
)
NOON, NIGHT = utc("2026-12-01T12:00"), utc("2026-12-01T20:00")


def texts(**spec: Any) -> list[str]:
    return [item.text for item in planned(policy(**spec), FACTS).objects]


def test_the_same_input_gives_the_same_text() -> None:
    tenants = [tenant("nlp"), tenant("cv")]
    assert texts(tenants=tenants, windows=[DAY]) == texts(tenants=tenants, windows=[DAY])


def test_a_kept_renderer_changes_nothing() -> None:
    subject, renderer = policy(windows=[DAY]), Renderer()
    for now in (NOON, NIGHT, NOON):
        kept = plan(subject, FACTS, now, renderer).objects
        assert [i.text for i in kept] == [i.text for i in planned(subject, FACTS, now).objects]


def test_the_order_of_tenants_changes_no_object() -> None:
    tenants = [
        tenant("nlp"),
        tenant("cv", quota(1), hold=True),
        tenant("rec", namespaceSelector={"matchLabels": {"team": "recsys"}}),
    ]
    found = [manifests(policy(tenants=list(order)), FACTS) for order in permutations(tenants)]
    assert len(found[0]) == 10
    assert all(one == found[0] for one in found)


def test_the_order_of_namespaces_and_of_what_the_cluster_lists_changes_nothing() -> None:
    one = manifests(policy(tenants=[tenant(namespaces=["nlp", "x"])]), facts("nlp", "x"))
    other = manifests(policy(tenants=[tenant(namespaces=["x", "nlp"])]), facts("x", "nlp"))
    assert list(one.items()) == list(other.items())


def test_a_window_changes_the_objects_while_it_holds() -> None:
    subject = policy(windows=[DAY])
    by_day, by_night = manifests(subject, FACTS, NOON), manifests(subject, FACTS, NIGHT)
    assert by_day["LocalQueue nlp/gpu"]["spec"]["stopPolicy"] == "Hold"
    assert by_night["LocalQueue nlp/gpu"]["spec"]["stopPolicy"] == "None"
    queues = [found["ClusterQueue nlp"]["spec"] for found in (by_day, by_night)]
    assert [q["fairSharing"]["weight"] for q in queues] == ["5", "1"]
    assert [q["preemption"]["reclaimWithinCohort"] for q in queues] == ["Never", "LowerPriority"]
    gpus = [q["resourceGroups"][0]["flavors"][0]["resources"][0] for q in queues]
    assert [g["nominalQuota"] for g in gpus] == ["2", "4"]


def test_the_plan_says_which_windows_hold_and_when_it_changes() -> None:
    by_day = planned(policy(windows=[DAY]), FACTS, NOON)
    assert (by_day.active_windows, by_day.next_transition) == (("day",), utc("2026-12-01T17:00"))
    by_night = planned(policy(windows=[DAY]), FACTS, NIGHT)
    assert (by_night.active_windows, by_night.next_transition) == ((), utc("2026-12-08T09:00"))


def test_the_spec_of_a_plan_is_that_of_the_moment() -> None:
    assert planned(policy(windows=[DAY]), FACTS, NOON).spec.tenants[0].weight == 5
    assert planned(policy(windows=[DAY]), FACTS, NIGHT).spec.tenants[0].weight == 1


def test_without_windows_a_plan_holds_for_ever() -> None:
    found = planned(policy(), FACTS)
    assert (found.active_windows, found.next_transition) == ((), None)


def test_quota_above_capacity_is_judged_for_the_moment() -> None:
    more = window(
        "more",
        weekly=weekly("Tue", "09:00", "17:00"),
        tenants=[{"name": "nlp", "quota": [quota(9)]}],
    )
    subject = policy(flavors=[flavor(capacity=8)], windows=[more])
    assert [p.path for p in planned(subject, FACTS, NOON).over_capacity] == [
        "spec.flavors[0].capacity"
    ]
    assert planned(subject, FACTS, NIGHT).over_capacity == []


def test_an_engine_that_is_not_built_gets_no_objects() -> None:
    found = planned(policy(engine="Volcano", windows=[DAY]), FACTS, NOON)
    assert list(found.objects) == []
    assert found.active_windows == ("day",)
    assert found.next_transition == utc("2026-12-01T17:00")


def test_no_two_objects_have_one_key() -> None:
    tenants = [tenant("nlp"), tenant("cv", namespaceSelector={"matchLabels": {"team": "x"}})]
    objects = planned(policy(tenants=tenants), facts(nlp={"team": "x"}, b={"team": "x"})).objects
    assert len({item.key for item in objects}) == len(objects)
