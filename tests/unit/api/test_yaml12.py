"""The YAML reader: what is a string, what is a number, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gpufair.api.yaml12 import MAX_DEPTH, Document, YamlError, read_yaml


def one(text: str) -> Document:
    (document,) = read_yaml(text)
    return document


def value(text: str) -> Any:
    document = one(f"x: {text}\n")
    assert document.errors == []
    return document.value["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22:00", "22:00"),
        ("1:30:00", "1:30:00"),
        ("2027-01-01", "2027-01-01"),
        ("2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("n", "n"),
        ("true", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("'true'", "true"),
        ('"8"', "8"),
        ("8", 8),
        ("-8", -8),
        ("+8", 8),
        ("0", 0),
        ("0x1F", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("1.5.2", "1.5.2"),
        (".", "."),
        ("-", ["x"]),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("", None),
        ("''", ""),
        ("10%", "10%"),
        ("=", "="),
        ("<<", "<<"),
        ("!!str 8", "8"),
        ("!!int 8", 8),
        ("!!float 8", 8.0),
        ("|\n  a\n  b", "a\nb\n"),
        ("[a, {b: 1}]", ["a", {"b": 1}]),
    ],
)
def test_scalars(text: str, expected: Any) -> None:
    if text == "-":
        assert one("x:\n- x\n").value["x"] == expected
        return
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("010", "'010' is read as octal by some: write it without the leading zero, or in quotes"),
        (".inf", ".inf is no number that JSON has: write a finite one"),
        ("-.INF", "-.INF is no number that JSON has: write a finite one"),
        (".nan", ".nan is no number that JSON has: write a finite one"),
        ("1e999", "'1e999' is too large a number"),
        ("!!binary aGk=", "the tag 'tag:yaml.org,2002:binary' is not supported here"),
        ("!!int x", "the tag 'tag:yaml.org,2002:int' is not supported here"),
        ("!secret x", "the tag '!secret' is not supported here"),
        ("!!set {a}", "the tag 'tag:yaml.org,2002:set' is not supported: remove it"),
        ("!!python/object/apply:os.system [x]", "remove it"),
    ],
)
def test_scalars_refused(text: str, message: str) -> None:
    (error,) = one(f"a: 1\nx: {text}\n").errors
    assert message in error.message
    assert error.line == 2


@pytest.mark.parametrize("word", ["yes", "No", "on", "OFF", "y", "N"])
def test_words_that_kubectl_takes_for_booleans(word: str) -> None:
    document = one(f"a: 1\nx: {word}\n")
    assert document.value["x"] == word
    (warning,) = document.warnings
    assert warning.line == 2
    assert warning.message == f"kubectl reads {word} as true or false: put it in quotes"
    assert one(f"x: '{word}'\n").warnings == []


def test_duplicate_keys_at_any_depth() -> None:
    document = one("a: 1\nb:\n  - c: 1\n    d: 2\n    c: 3\na: 2\n")
    found = [(error.line, error.message) for error in document.errors]
    assert found == [
        (5, "the key 'c' appears twice in one mapping, first on line 3: keep one"),
        (6, "the key 'a' appears twice in one mapping, first on line 1: keep one"),
    ]


def test_duplicate_keys_spelled_differently() -> None:
    assert len(one("a: 1\n'a': 2\n").errors) == 1
    assert len(one('a: 1\n"\\x61": 2\n').errors) == 1


def test_aliases_and_merge_keys() -> None:
    document = one("base: &b {x: 1, y: 2}\nmore: &m {z: 3, x: 9}\nuse: {<<: [*b, *m], y: 5}\n")
    assert document.errors == []
    assert document.value["use"] == {"x": 1, "y": 5, "z": 3}
    assert one("a: &k name\n*k : 1\n").value == {"a": "name", "name": 1}
    assert one("a: {<<: 1}\n").errors[0].message.startswith("the merge key << takes a mapping")


def test_quoted_merge_key_is_a_key() -> None:
    assert one("a: {'<<': 1}\n").value == {"a": {"<<": 1}}


def test_anchors_do_not_reach_into_the_next_document() -> None:
    with pytest.raises(YamlError, match=r"the alias \*a has no anchor before it") as caught:
        read_yaml("x: &a 1\n---\nx: *a\n")
    assert caught.value.line == 3


def test_alias_inside_its_own_value() -> None:
    with pytest.raises(YamlError, match=r"the alias \*a stands inside its own value"):
        read_yaml("x: &a [*a]\n")


def test_alias_bomb() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(YamlError, match="grows beyond 1,000,000 values: write fewer aliases") as e:
        read_yaml("\n".join(lines))
    assert e.value.line > 0


def test_merge_bomb() -> None:
    keys = ", ".join(f"k{i}: 1" for i in range(1000))
    text = f"a: &a {{{keys}}}\nb:\n" + "  - {<<: *a}\n" * 1000
    with pytest.raises(YamlError, match="grows beyond"):
        read_yaml(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 500, 5000, 200_000])
def test_deep_nesting(depth: int) -> None:
    with pytest.raises(YamlError, match="nest"):
        read_yaml("[" * depth + "]" * depth)


def test_depth_that_is_allowed() -> None:
    assert one("[" * MAX_DEPTH + "]" * MAX_DEPTH).errors == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: [1, 2\n", 3),
        ("a: 1\n b: 2\n", 2),
        ("a: 'x\n", 2),
        ("a: 1\nb: \x01\n", 2),
        ("a:\t- x\n\tb\n", 1),
        ("a: %x\nb: @y\n", 1),
    ],
)
def test_syntax_errors_are_one_sentence_with_a_line(text: str, line: int) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    assert caught.value.line == line
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


def test_keys_must_be_scalars() -> None:
    with pytest.raises(YamlError, match="uses a list or mapping as a key"):
        read_yaml("? [a]\n: 1\n")


def test_keys_are_strings() -> None:
    assert one("{1: a, true: b, 2027-01-01: c, ~: d}").value == {
        "1": "a",
        "true": "b",
        "2027-01-01": "c",
        "~": "d",
    }


def test_documents_and_their_lines() -> None:
    found = read_yaml("# nothing\n---\n---\na: 1\n---\n\nb: 2\n...\n")
    assert [(document.line, document.value) for document in found] == [(4, {"a": 1}), (7, {"b": 2})]
    assert read_yaml("") == []
