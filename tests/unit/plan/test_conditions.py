"""Conditions: a stable reason, one sentence, and a time that moves only with the status."""

from typing import Any

import pytest

from gpufair.api.problems import Problem, error, warning
from gpufair.api.status import ConditionType
from gpufair.plan import conditions as say
from gpufair.plan.conditions import FALSE, MESSAGE_LIMIT, TRUE, UNKNOWN, Condition
from tests.unit.builders import Json, cluster_queue, utc


def queue(name: str = "nlp", active: str = TRUE, message: str = "", **status: Any) -> Json:
    found = {"type": "Active", "status": active, "message": message}
    return cluster_queue(name, status={"conditions": [found], **status})


def verdict(condition: Condition) -> tuple[str, str, str]:
    return condition.type, condition.status, condition.reason


def test_valid_when_no_problem_is_an_error() -> None:
    assert verdict(say.valid([warning("spec", "is odd")])) == ("Valid", TRUE, "Valid")


def test_invalid_lists_the_errors_and_only_those() -> None:
    found = say.valid([error("spec.a", "is wrong"), warning("spec.b", "is odd"), error("", "bad")])
    assert verdict(found) == ("Valid", FALSE, "Invalid")
    assert found.message == "The policy is not valid: spec.a: is wrong; bad."


def test_supported_repeats_the_sentence_about_fields() -> None:
    assert verdict(say.supported("")) == ("Supported", TRUE, "AllFields")
    found = say.supported("Not acted on yet.")
    assert (found.status, found.reason, found.message) == (
        FALSE,
        "FieldsNotBuilt",
        "Not acted on yet.",
    )


def test_conflict_is_true_when_there_is_one() -> None:
    assert verdict(say.conflicts([])) == ("Conflict", FALSE, "NoConflict")
    found = say.conflicts(["Cohort a is theirs.", "Cohort b is theirs."])
    assert verdict(found) == ("Conflict", TRUE, "ForeignObjects")
    assert found.message == "Left untouched: Cohort a is theirs; Cohort b is theirs."


def test_suspended() -> None:
    assert verdict(say.suspended(True)) == ("Suspended", TRUE, "SuspendedBySpec")
    assert verdict(say.suspended(False)) == ("Suspended", FALSE, "NotSuspended")


def test_quota_within_capacity() -> None:
    assert verdict(say.within_capacity([]))[1:] == (TRUE, "WithinCapacity")
    found = say.within_capacity([warning("spec.flavors[0].capacity", "is 8, but quotas sum to 9")])
    assert verdict(found) == ("QuotaWithinCapacity", FALSE, "QuotaAboveCapacity")
    assert "spec.flavors[0].capacity: is 8" in found.message


def test_fair_sharing_is_unknown_until_a_queue_is_active() -> None:
    for queues in ([], [cluster_queue()], [queue(active=FALSE)]):
        assert verdict(say.fair_sharing(queues))[:2] == ("FairSharingActive", UNKNOWN)


def test_fair_sharing_is_active_when_every_active_queue_reports_it() -> None:
    shared = queue("a", fairSharing={"weightedShare": 0})
    assert say.fair_sharing([shared, queue("b", active=FALSE)]).status == TRUE
    found = say.fair_sharing([shared, queue("b")])
    assert verdict(found)[1:] == (FALSE, "FairSharingOff")
    assert "preemptionStrategies" in found.message


def test_inactive_queues_are_named_with_kueues_own_words() -> None:
    queues = [queue("a"), queue("b", FALSE, "flavor h100 missing"), cluster_queue("c")]
    assert say.inactive_queues(queues) == [
        "ClusterQueue b: flavor h100 missing",
        "ClusterQueue c: not yet seen by Kueue",
    ]


def test_condition_of_finds_the_type_or_nothing() -> None:
    assert say.condition_of(queue(message="m"), "Active")["message"] == "m"
    assert say.condition_of(queue(), "Other") == {}
    assert say.condition_of(cluster_queue(), "Active") == {}


def test_joined_counts_what_it_leaves_out() -> None:
    assert say.joined("Lead", ["a.", "b"]) == "Lead: a; b."
    assert say.joined("Lead", list("abcd"), most=2) == "Lead: a; b (and 2 more)."


@pytest.mark.parametrize("count", [1, 3, 40])
def test_joined_fits_a_condition(count: int) -> None:
    text = say.joined("Lead", ["x" * 3000] * count)
    assert len(text) <= MESSAGE_LIMIT
    assert text.endswith(f" (and {count - 10} more)." if count > 10 else ".")


def stamped(status: str, before: list[Json], message: str = "m") -> Json:
    found = Condition("Ready", status, "Reason", message)
    (stored,) = say.stamped([found], before, 7, utc("2026-12-01T12:00"))
    return stored


def test_a_new_condition_gets_the_time_of_now() -> None:
    assert stamped(TRUE, []) == {
        "type": "Ready",
        "status": "True",
        "reason": "Reason",
        "message": "m",
        "lastTransitionTime": "2026-12-01T12:00:00Z",
        "observedGeneration": 7,
    }


def test_the_time_stays_while_the_status_does() -> None:
    before = [stamped(TRUE, []) | {"lastTransitionTime": "2026-11-01T00:00:00Z"}]
    assert stamped(TRUE, before, "another")["lastTransitionTime"] == "2026-11-01T00:00:00Z"
    assert stamped(FALSE, before)["lastTransitionTime"] == "2026-12-01T12:00:00Z"


def test_every_type_is_one_of_the_status() -> None:
    found = [
        say.valid([]),
        say.supported(""),
        say.conflicts([]),
        say.suspended(False),
        say.within_capacity([]),
        say.fair_sharing([]),
    ]
    assert {c.type for c in found} <= {t.value for t in ConditionType}


def test_reasons_are_camel_case_and_messages_are_sentences() -> None:
    problem = Problem("spec", "is wrong")
    for found in (
        say.valid([problem]),
        say.valid([]),
        say.supported(""),
        say.conflicts(["x"]),
        say.conflicts([]),
        say.suspended(True),
        say.suspended(False),
        say.within_capacity([problem]),
        say.within_capacity([]),
        say.fair_sharing([]),
        say.fair_sharing([queue()]),
    ):
        assert found.reason.isalnum()
        assert found.reason[0].isupper()
        assert found.message.endswith(".")
