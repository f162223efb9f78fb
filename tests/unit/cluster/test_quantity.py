"""Quantities: the server's grammar, exact values, canonical text."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufair.api.quantity import canonical, parse_quantity, same_quantity

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", Fraction(8)),
        (8, Fraction(8)),
        ("0", Fraction(0)),
        ("-1", Fraction(-1)),
        ("+1.5", Fraction(3, 2)),
        ("500m", Fraction(1, 2)),
        ("1.5Gi", Fraction(3 * 2**29)),
        ("1Ki", Fraction(1024)),
        ("1k", Fraction(1000)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("12e-1", Fraction(6, 5)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1Pi", Fraction(2**50)),
        ("100n", Fraction(1, 10**7)),
    ],
)
def test_values(text: str | int, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    ["", ".", "+", "m", "Ki", "1K", "1ki", "1 Gi", " 1", "1\n", "1e", "1ee3", "1.2.3", "0x10",
     "１", "1mi", "NaN", "inf", "1_000", "1e99", "9" * 65, True, None, 1.5, [1]],
)  # fmt: skip
def test_refusals_are_one_sentence(text: object) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+\.$") as caught:
        parse_quantity(text)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1000m", "1"), ("1500m", "1500m"), ("1024Ki", "1Mi"), ("1.5Gi", "1536Mi"), ("1000", "1k"),
        (1000, "1k"), (8, "8"), ("0.5", "500m"), ("1e3", "1e3"), ("1e4", "10e3"), ("1e2", "100"),
        ("0Gi", "0"), ("0.5Ki", "512"), ("-1500m", "-1500m"), ("1e18", "1e18"), ("1000P", "1E"),
        ("1000E", "1000E"),
    ],
)  # fmt: skip
def test_canonical_text_is_the_servers(text: str | int, stored: str) -> None:
    assert canonical(text) == stored


def test_same_quantity_compares_by_value() -> None:
    assert same_quantity("1Gi", "1024Mi")
    assert same_quantity(8, "8")
    assert not same_quantity("1Gi", "1G")
    assert not same_quantity("x", "x")
    assert not same_quantity(None, None)


NUMBERS = st.integers(min_value=-(10**15), max_value=10**15)


@given(NUMBERS, st.sampled_from(sorted(DECIMAL)))
def test_decimal_suffixes_scale(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == number * Fraction(10) ** DECIMAL[suffix]


@given(NUMBERS, st.sampled_from(sorted(BINARY)))
def test_binary_suffixes_scale(number: int, suffix: str) -> None:
    assert parse_quantity(f"{number}{suffix}") == number * 1024 ** BINARY[suffix]


@given(NUMBERS, st.integers(min_value=-9, max_value=18))
def test_exponents_scale(number: int, exponent: int) -> None:
    assert parse_quantity(f"{number}e{exponent}") == number * Fraction(10) ** exponent


@given(NUMBERS, st.sampled_from(sorted(DECIMAL) + sorted(BINARY)))
def test_canonical_keeps_the_value_and_is_stable(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    stored = canonical(text)
    assert parse_quantity(stored) == parse_quantity(text)
    assert canonical(stored) == stored


@given(st.text(max_size=80) | st.from_regex(r"[+-]?[0-9.]{0,3}[eEnumkKMGTPi]{0,2}", fullmatch=True))
def test_what_the_grammar_allows_parses_and_nothing_else(text: str) -> None:
    grammar = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?"
    if len(text) > 64 or re.fullmatch(grammar, text, re.ASCII) is None:
        with pytest.raises(ValueError, match=r"\.$"):
            parse_quantity(text)
    elif not re.search(r"[eE][+-]?[0-9]", text):
        assert isinstance(parse_quantity(text), Fraction)
