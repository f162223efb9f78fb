"""Templates: values in, manifests out, and nothing between the lines."""

import pytest
from jinja2 import UndefinedError

from gpufair.plan.templates import parse, render, to_json

CLASS = {"policy": "pool", "name": "prod", "namespace": "", "owner": "", "value": 7}


def test_renders_and_parses_a_manifest() -> None:
    text = render("kueue/workloadpriorityclass", CLASS | {"description": "Work."})
    assert parse(text) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {
            "name": "prod",
            "labels": {"app.kubernetes.io/managed-by": "gpufair", "gpufair.io/policy": "pool"},
        },
        "value": 7,
        "description": "Work.",
    }


def test_a_value_that_is_missing_is_an_error_and_no_empty_field() -> None:
    with pytest.raises((UndefinedError, TypeError), match=r"Undefined|undefined"):
        render("kueue/workloadpriorityclass", CLASS)


@pytest.mark.parametrize(
    "text",
    [
        '"\nspec: {hacked: true}\n#',
        "{{ 7 * 7 }}",
        "{% include 'kueue/_meta.j2' %}",
        "&anchor",
        "*alias",
        "<<: *alias",
        "!!python/object:os.system",
        "--- \n...",
        "yes",
        "1e3",
        "0x10",
        "22:00",
        "null",
        "~",
        "\u2028\u2029\x85\ufeff\x00\x1b",
        "é漢字🚀",
        "</script>&<>'",
        " leading and trailing ",
        "x" * 300,
        "",
    ],
)
def test_a_string_stays_a_string_and_adds_no_field(text: str) -> None:
    found = parse(render("kueue/workloadpriorityclass", CLASS | {"description": text}))
    assert found["description"] == text
    assert set(found) == {"apiVersion", "kind", "metadata", "value", "description"}


def test_keys_are_sorted_so_that_the_same_value_gives_the_same_text() -> None:
    assert to_json({"b": 1, "a": 2}) == to_json({"a": 2, "b": 1}) == '{"a": 2, "b": 1}'


def test_text_stays_readable() -> None:
    assert to_json("Ä, 漢, 🚀") == '"Ä, 漢, 🚀"'
