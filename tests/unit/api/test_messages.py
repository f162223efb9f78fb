"""Paths, shown values and suggestions in messages."""

from __future__ import annotations

from typing import Any

import pytest

from gpufair.api.load import InvalidPolicy, parse_policy
from gpufair.api.messages import _PATTERN_WORDS, path_of, shown
from gpufair.api.policy import Policy
from tests.unit.api.cases import base, edited


@pytest.mark.parametrize(
    ("location", "path"),
    [
        (("spec", "tiers", 1, "aging", "every"), "spec.tiers[1].aging.every"),
        (
            ("spec", "flavors", 0, "nodeLabels", "a.b/c", "[key]"),
            'spec.flavors[0].nodeLabels["a.b/c"]',
        ),
        (("spec", "x y\n"), 'spec["x y\\n"]'),
        ((), ""),
    ],
)
def test_paths(location: tuple[int | str, ...], path: str) -> None:
    assert path_of(location) == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", '"a"'),
        ("é", '"é"'),
        ("a\nb", '"a\\nb"'),
        ("\u202e", '"\\u202e"'),
        (8, "8"),
        (True, "true"),
        (1.5, "1.5"),
        ({}, "a mapping"),
        ([1], "a list"),
        ("x" * 300, '"' + "x" * 55 + '…"'),
    ],
)
def test_shown(value: Any, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("spec.tires", "is not a field; did you mean tiers?"),
        ("spec.fairness.utilisationTarget", "is not a field; did you mean utilizationTarget?"),
        ("spec.tenants[0].quotas", "is not a field; did you mean quota?"),
        ("spec.windows[0].weekly.form", "is not a field; did you mean from?"),
        ("spec.tiers[0].preemption.Mode", "is not a field; did you mean mode?"),
        ("spec.preemptionRateLimit.zzz", "is not a field: write one of count, per"),
        (
            "spec.tenants[2].namespaceSelector.matchLabel",
            "is not a field; did you mean matchLabels?",
        ),
        ("foo", "is not a field: write one of apiVersion, kind, metadata, spec, status"),
    ],
)
def test_unknown_fields_get_a_suggestion(path: str, hint: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(edited(base(), {path: 1}))
    assert [str(problem) for problem in caught.value.problems] == [f"{path}: {hint}"]


def test_every_pattern_has_words() -> None:
    def patterns(node: Any) -> set[str]:
        if isinstance(node, list):
            return set().union(*map(patterns, node))
        if not isinstance(node, dict):
            return set()
        own = {node["pattern"]} if isinstance(node.get("pattern"), str) else set()
        own |= set(node.get("patternProperties", {}))
        return own.union(*(patterns(value) for value in node.values()))

    scalars = {r"^[0-9]+(\.[0-9]+)?%$", r"^([0-9]+(\.[0-9]+)?(h|m|s))+$"}
    found = {pattern for pattern in patterns(Policy.model_json_schema()) if "KMGTPE" not in pattern}
    assert found - scalars == set(_PATTERN_WORDS)
