"""Any value and any string passes through the templates' filter unchanged."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufair.api.checks import check
from gpufair.api.load import InvalidPolicy, parse_policy
from gpufair.plan.templates import to_json
from tests.unit.builders import (
    bare_flavor,
    flavor,
    manifests,
    quota,
    raw_policy,
    tenant,
    tier,
    weekly,
    window,
)

NASTY = (
    '"',
    "'",
    "\\",
    "\n",
    "\r\n",
    "\t",
    "\x00",
    "\x07",
    "\x1b",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ufffe",
    "\uffff",
    "\U0001f680",
    "\U0010ffff",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{# #}",
    "&anchor",
    "*alias",
    "!!str x",
    "---\n",
    "\n...\n",
    "# no comment",
    ": ",
    "- ",
    "%YAML 1.1",
    "null",
    "yes",
    "22:00",
    "1e5",
)
# JSON in UTF-8, as the API server takes it, has no surrogates.
characters = st.characters(exclude_categories=["Cs"])
texts = st.one_of(
    st.text(characters, max_size=300),
    st.lists(st.sampled_from(NASTY) | st.text(characters, max_size=3), max_size=12).map("".join),
)
# No value of a template is a number with a fraction: quantities are strings (test_kueue).
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
LOADERS = [getattr(yaml, "CSafeLoader", yaml.SafeLoader), yaml.SafeLoader]


@settings(deadline=None, max_examples=100)
@given(values)
@example("".join(NASTY))
@example({text: text for text in NASTY})
def test_reads_back_equal(value: Any) -> None:
    text = to_json(value)
    assert json.loads(text) == value
    for loader in LOADERS:
        # Where templates put it: behind a key, and as an item of a list.
        document = f"key: {text}\nlist:\n  - {text}\n"
        assert yaml.load(document, Loader=loader) == {"key": value, "list": [value]}


@settings(deadline=None)
@given(st.characters(categories=["Cs"]))
def test_a_lone_surrogate_is_escaped(text: str) -> None:
    written = to_json(text)
    assert written.isascii()
    assert json.loads(written) == text


# A policy in which every free text is a token of its own, references included.
STATED = raw_policy(
    "policy-name",
    queueName="queue-name",
    flavors=[
        flavor(
            "flavor-name",
            nodeLabels={"label-key": "label-value"},
            nodeTaints=[{"key": "taint-key", "value": "taint-value", "effect": "NoSchedule"}],
            tolerations=[{"key": "bear-key", "value": "bear-value", "effect": "NoSchedule"}],
            topologyLevels=["topology-level"],
        ),
        bare_flavor("slices", "resource-name", otherResources=["other-resource"]),
    ],
    tiers=[tier("tier-name")],
    cohorts=[{"name": "cohort-name", "quota": [quota(1, "flavor-name")]}],
    tenants=[
        tenant(
            "tenant-name",
            quota("1", "flavor-name"),
            quota("2", "slices", resource="resource-name", borrowingLimit="1", lendingLimit="1"),
            namespaces=["namespace-name"],
            cohort="cohort-name",
            admissionChecks=["check-name"],
        ),
        tenant(
            "cv",
            quota(1, "flavor-name"),
            namespaceSelector={
                "matchLabels": {"match-key": "match-value"},
                "matchExpressions": [{"key": "part-key", "operator": "In", "values": ["part-v"]}],
            },
        ),
    ],
    windows=[
        window(
            "window-name",
            weekly=weekly("Tue", "00:00", "00:00"),
            tenants=[{"name": "tenant-name", "quota": [quota("3", "flavor-name")]}],
        )
    ],
)
TOKENS = [
    "policy-name",
    "queue-name",
    "flavor-name",
    "label-key",
    "label-value",
    "taint-key",
    "taint-value",
    "bear-key",
    "bear-value",
    "topology-level",
    "resource-name",
    "other-resource",
    "tier-name",
    "cohort-name",
    "tenant-name",
    "namespace-name",
    "check-name",
    "match-key",
    "match-value",
    "part-key",
    "part-v",
    "window-name",
]
EXPECTED = list(manifests(parse_policy(STATED)).values())


def replaced(value: Any, token: str, text: str) -> Any:
    """The value with the text for the token, wherever it stands."""
    if isinstance(value, str):
        return value.replace(token, text)
    if isinstance(value, list):
        return [replaced(item, token, text) for item in value]
    if isinstance(value, dict):
        return {key.replace(token, text): replaced(v, token, text) for key, v in value.items()}
    return value


hostile = st.one_of(
    texts,
    # What grammars of names let through, and YAML may read as something else.
    st.sampled_from(
        [
            "null",
            "true",
            "yes",
            "on",
            "y",
            "n",
            "1e3",
            "0x10",
            "22",
            "0o7",
            "1_000",
            "1.5",
            "off",
            "nan",
            "2026-12-01",
        ]
    ),
    st.from_regex(r"[a-zA-Z0-9]([-a-zA-Z0-9_./]{0,60}[a-zA-Z0-9])?", fullmatch=True),
    st.sampled_from((1, 63, 64, 253, 300)).map(lambda length: "a" * length),
).filter(bool)


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(TOKENS), hostile)
def test_the_text_of_a_free_field_is_refused_or_rendered_as_it_is(token: str, text: str) -> None:
    try:
        subject = parse_policy(replaced(STATED, token, text))
    except InvalidPolicy:
        return
    if not any(problem.is_error for problem in check(subject)):
        assert list(manifests(subject).values()) == replaced(EXPECTED, token, text)


@pytest.mark.parametrize("token", TOKENS)
def test_every_free_field_reaches_the_objects_under_another_name(token: str) -> None:
    """The property above would hold for a policy that is always refused: this one is not."""
    subject = parse_policy(replaced(STATED, token, "null"))
    assert not [problem for problem in check(subject) if problem.is_error]
    found = list(manifests(subject).values())
    assert found == replaced(EXPECTED, token, "null")
    assert (found != EXPECTED) is (token != "window-name")
