"""Whose an object is: labels, the adopt annotation, and what we applied."""

from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, PRIORITY_CLASS
from gpufair.plan.ownership import Owner, conflict, owner_of, policy_of
from tests.unit.builders import Json, cluster_queue, live, local_queue

ADOPT = {"gpufair.io/adopt": "true"}


def applied(*fields: str, manager: str = "gpufair", operation: str = "Apply") -> list[Json]:
    tree: Json = {field: {} for field in fields}
    return [{"manager": manager, "operation": operation, "fieldsV1": tree}]


@pytest.mark.parametrize(
    ("labels", "owner"),
    [
        ({"app.kubernetes.io/managed-by": "gpufair", "gpufair.io/policy": "pool"}, "pool"),
        ({"app.kubernetes.io/managed-by": "helm", "gpufair.io/policy": "pool"}, ""),
        ({"gpufair.io/policy": "pool"}, ""),
        ({"app.kubernetes.io/managed-by": "gpufair"}, ""),
        (None, ""),
    ],
)
def test_policy_of_needs_both_labels(labels: Json | None, owner: str) -> None:
    assert policy_of(live(CLUSTER_QUEUE, "nlp", labels=labels)) == owner


def test_what_carries_our_labels_is_ours() -> None:
    assert owner_of(cluster_queue(), "pool") is Owner.OURS


def test_what_another_policy_has_is_foreign() -> None:
    assert owner_of(cluster_queue(policy="bank"), "pool") is Owner.FOREIGN


def test_what_another_policy_has_is_not_ours_by_what_we_once_applied() -> None:
    there = cluster_queue(policy="bank", managedFields=applied("f:spec"))
    assert owner_of(there, "pool") is Owner.FOREIGN


def test_what_nobody_labelled_is_foreign() -> None:
    assert owner_of(cluster_queue(policy=""), "pool") is Owner.FOREIGN


@pytest.mark.parametrize(
    ("value", "owner"), [("true", Owner.ADOPTABLE), ("false", Owner.FOREIGN), ("", Owner.FOREIGN)]
)
def test_the_annotation_hands_an_object_over(value: str, owner: Owner) -> None:
    there = cluster_queue(policy="", annotations={"gpufair.io/adopt": value})
    assert owner_of(there, "pool") is owner


def test_two_policies_do_not_adopt_from_each_other_for_ever() -> None:
    """The annotation stays after an adoption: it must not hand the object back and forth."""
    assert owner_of(cluster_queue(policy="pool", annotations=ADOPT), "pool") is Owner.OURS
    assert owner_of(cluster_queue(policy="pool", annotations=ADOPT), "bank") is Owner.FOREIGN


@pytest.mark.parametrize("field", ["f:spec", "f:value"])
def test_an_object_whose_labels_were_lost_stays_ours_by_what_we_applied(field: str) -> None:
    there = live(PRIORITY_CLASS, "prod", policy="", managedFields=applied("f:metadata", field))
    assert owner_of(there, "pool") is Owner.OURS


@pytest.mark.parametrize(
    "entry",
    [
        applied("f:spec", manager="kubectl"),
        applied("f:spec", operation="Update"),
        applied("f:metadata"),
        applied("f:status"),
    ],
)
def test_other_entries_do_not_make_it_ours(entry: list[Any]) -> None:
    assert owner_of(cluster_queue(policy="", managedFields=entry), "pool") is Owner.FOREIGN


def test_a_conflict_says_what_to_do() -> None:
    key = (CLUSTER_QUEUE, "", "nlp")
    assert str(conflict(key, cluster_queue(policy=""))) == (
        "ClusterQueue nlp exists and is not gpufair's: choose another name, or hand it over with "
        'the annotation gpufair.io/adopt="true".'
    )
    assert str(conflict(key, cluster_queue(policy="bank"))) == (
        "ClusterQueue nlp belongs to GpuSchedulingPolicy bank: choose another name."
    )


def test_a_conflict_names_the_namespace() -> None:
    there = local_queue("team-a", policy="")
    key = (CLUSTER_QUEUE, "team-a", "gpu")
    assert str(conflict(key, there)).startswith("ClusterQueue team-a/gpu exists")
