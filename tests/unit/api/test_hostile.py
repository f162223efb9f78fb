"""Hostile strings in every string of a policy: refused in one line, or kept exactly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gpufair.api.checks import check
from gpufair.api.load import InvalidPolicy, load_text, parse_policy
from gpufair.api.policy import Policy
from tests.unit.api.cases import Json, base, edited

HOSTILE = [
    'quote"d',
    "it's",
    "line\nbreak",
    "carriage\rreturn",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "&anchor",
    "*alias",
    "!!python/name:os.system",
    "a: b # c",
    "- x",
    "---",
    "x" * 300,
    "ünïcödé",
    "漢字",
    "\u202eright-to-left",
    "\u2028separator",
    "nul\x00byte",
    "tab\tbed",
    "\\x41",
    "%s%n",
    "../../etc/passwd",
    "$(reboot)",
    "<script>",
    " leading",
    "trailing ",
    "ok\n",
    "null",
    "~",
    "true",
    "0x10",
]


def strings(node: Any, path: str = "") -> Iterator[str]:
    """The paths of all strings below `spec`, and of the names."""
    if isinstance(node, str):
        yield path
    elif isinstance(node, dict):
        for key, value in node.items():
            if "/" not in key and key not in ("apiVersion", "kind"):
                yield from strings(value, f"{path}.{key}" if path else key)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from strings(value, f"{path}[{index}]")


def full() -> Json:
    """The base policy with every string field that it leaves out."""
    return edited(
        base(),
        {
            "spec.queueName": "gpu",
            "spec.engine": "Kueue",
            "spec.deletionPolicy": "Wait",
            "spec.tiers[1].preemption.protectFrom": "training",
            "spec.tiers[1].maxRunTime": "10h",
            "spec.tiers[1].gang": {"podGroup": "Volcano", "minMember": "100%"},
            "spec.tenants[0].admissionChecks": ["theirs"],
            "spec.tenants[2].namespaceSelector.matchExpressions": [
                {"key": "team", "operator": "In", "values": ["cv"]}
            ],
            "spec.fairness.history": {"strength": 1, "halfLife": "24h"},
            "spec.flavors[1].nodeTaints[0].value": "x",
            "spec.flavors[1].otherResources": ["cpu", "memory", "ephemeral-storage"],
            "spec.flavors[0].otherResources": ["cpu", "memory", "ephemeral-storage"],
            "spec.mig[0].guarantee": [{"profile": "3g.40gb", "count": 1}],
        },
    )


PATHS = sorted(set(strings(full())))


def found_at(policy: Policy, path: str) -> Any:
    at: Any = policy.model_dump(mode="json", by_alias=True)
    for step in path.replace("[", ".").replace("]", "").split("."):
        at = at[int(step) if isinstance(at, list) else step]
    return at


def test_the_full_policy_is_accepted() -> None:
    assert check(parse_policy(full())) == []
    assert len(PATHS) > 60


@pytest.mark.parametrize("path", PATHS)
def test_refused_or_kept(path: str) -> None:
    for hostile in HOSTILE:
        raw = edited(full(), {path: hostile})
        try:
            policy = parse_policy(raw)
        except InvalidPolicy as refusal:
            problems = refusal.problems
        else:
            assert found_at(policy, path) == hostile
            problems = check(policy)
        for problem in problems:
            assert str(problem).isprintable(), hostile
            assert len(str(problem)) < 400, hostile


@pytest.mark.parametrize("hostile", HOSTILE)
def test_keys(hostile: str) -> None:
    raw = edited(full(), {"spec.flavors[0].nodeLabels": {hostile: "x"}})
    try:
        policy = parse_policy(raw)
    except InvalidPolicy as refusal:
        lines = [str(problem) for problem in refusal.problems]
    else:
        lines = []
        assert policy.spec.flavors[0].node_labels == {hostile: "x"}
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if "\x00" not in text])
def test_files_keep_strings_exactly(hostile: str) -> None:
    raw = edited(full(), {"metadata.annotations": {"note": hostile}})
    text = yaml.safe_dump(raw, allow_unicode=True)
    (loaded,) = load_text(text.encode(), "p.yaml")
    assert loaded.policy is not None, loaded.problems
    assert loaded.policy.metadata.annotations == {"note": hostile}
