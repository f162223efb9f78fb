"""Label selectors as Kubernetes reads them, and which namespaces they find."""

from typing import Any

import pytest

from gpufair.api.tenants import Tenant
from gpufair.plan.selectors import Facts, NamespaceFact, matches
from tests.unit.builders import facts, policy, tenant

LABELS = {"team": "nlp", "env": "prod", "empty": ""}


def selecting(**selector: Any) -> Tenant:
    return policy(tenants=[tenant(namespaceSelector=selector)]).spec.tenants[0]


def part(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


@pytest.mark.parametrize(
    ("labels", "verdict"),
    [
        ({"team": "nlp"}, True),
        ({"team": "nlp", "env": "prod"}, True),
        ({"team": "nlp", "env": "test"}, False),
        ({"missing": "x"}, False),
        ({"empty": ""}, True),
        ({"missing": ""}, False),
    ],
)
def test_match_labels_must_all_hold(labels: dict[str, str], verdict: bool) -> None:
    selector = selecting(matchLabels=labels).namespace_selector
    assert selector is not None
    assert matches(selector, LABELS) is verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([part("team", "In", "cv", "nlp")], True),
        ([part("team", "In", "cv")], False),
        ([part("missing", "In", "cv")], False),
        ([part("team", "NotIn", "cv")], True),
        ([part("team", "NotIn", "cv", "nlp")], False),
        ([part("missing", "NotIn", "cv")], True),
        ([part("team", "Exists")], True),
        ([part("empty", "Exists")], True),
        ([part("missing", "Exists")], False),
        ([part("missing", "DoesNotExist")], True),
        ([part("team", "DoesNotExist")], False),
        ([part("team", "Exists"), part("env", "In", "test")], False),
    ],
)
def test_match_expressions_must_all_hold(parts: list[dict[str, Any]], verdict: bool) -> None:
    selector = selecting(matchExpressions=parts).namespace_selector
    assert selector is not None
    assert matches(selector, LABELS) is verdict


def test_labels_and_expressions_must_both_hold() -> None:
    selector = selecting(
        matchLabels={"team": "nlp"}, matchExpressions=[part("env", "In", "test")]
    ).namespace_selector
    assert selector is not None
    assert not matches(selector, LABELS)


def listing(*names: str) -> Tenant:
    return policy(tenants=[tenant(namespaces=list(names))]).spec.tenants[0]


def test_listed_namespaces_are_those_that_exist_sorted() -> None:
    assert facts("a", "b", "z").namespaces_of(listing("z", "gone", "a")) == ["a", "z"]


def test_selected_namespaces_are_sorted() -> None:
    known = facts(z=LABELS, a=LABELS, other={"team": "cv"})
    assert known.namespaces_of(selecting(matchLabels={"team": "nlp"})) == ["a", "z"]


@pytest.mark.parametrize("subject", [listing("going"), selecting(matchLabels={"team": "nlp"})])
def test_a_terminating_namespace_is_left_out(subject: Tenant) -> None:
    known = Facts({"going": NamespaceFact("going", LABELS, terminating=True)})
    assert known.namespaces_of(subject) == []


def test_without_a_cluster_what_is_listed_is_taken_to_exist() -> None:
    assert Facts().namespaces_of(listing("b", "a")) == ["a", "b"]
    assert Facts().namespaces_of(selecting(matchLabels={"team": "nlp"})) == []
    assert Facts().missing(listing("a")) == []


def test_missing_are_those_listed_and_not_there() -> None:
    known = Facts({"a": NamespaceFact("a"), "b": NamespaceFact("b", terminating=True)})
    assert known.missing(listing("c", "a", "b")) == ["c"]
    assert known.missing(selecting(matchLabels={"team": "nlp"})) == []
