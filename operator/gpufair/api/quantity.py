"""Kubernetes quantities (`500m`, `2Gi`, `1e3`) as exact numbers.

The grammar and the canonical form are those of k8s.io/apimachinery's resource.Quantity:
a signed decimal number with a binary suffix (Ki to Ei), a decimal suffix (n, u, m, k to E) or an
exponent. Values are `Fraction`s, so sums and comparisons never round.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: dict[str, int] = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_SUFFIX_OF_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MAX_LENGTH = 64  # Longer text is never a quantity of ours; it also bounds the integers below.
_MAX_EXPONENT = 64
_NANO = 10**9

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+)|(?P<decimal>[numkMGTPE]?))"
)


def parse_quantity(value: str | int) -> Fraction:
    """Return the exact value of a Kubernetes quantity.

    Integers stand for themselves, as in JSON. Raises ValueError with one sentence for anything
    that the API server would refuse too, and for exponents beyond ±64.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"{value!r} is not a quantity; write a number such as 8, 500m or 2Gi.")
    if isinstance(value, int):
        return Fraction(value)
    return _parse(value)


def canonical(value: str | int | Fraction) -> str:
    """Return the text the API server would store for a quantity: `1500m`, `2Gi`, `1k`.

    Binary suffixes are kept for whole numbers of at least 1024, decimal ones otherwise; a Fraction
    is written with decimal suffixes, rounded up to a billionth as the server does.
    """
    if isinstance(value, Fraction):
        return _decimal_text(value, "")
    number = parse_quantity(value)
    if isinstance(value, int):
        return _decimal_text(number, "")
    match = _QUANTITY.fullmatch(value)
    if match is None:  # parse_quantity has refused it already
        raise AssertionError(value)
    if match["binary"]:
        return _binary_text(number)
    return _decimal_text(number, "e" if match["exponent"] else "")


def same_quantity(left: object, right: object) -> bool:
    """True when both are quantities of the same value; False when either is none."""
    try:
        return parse_quantity(left) == parse_quantity(right)  # type: ignore[arg-type]
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or not (match["whole"] or match["part"]):
        shown = text if len(text) <= _MAX_LENGTH else text[:_MAX_LENGTH] + "…"
        raise ValueError(f"{shown!r} is not a quantity; write a number such as 8, 500m or 2Gi.")
    part = match["part"] or ""
    number = Fraction(int((match["whole"] or "0") + part), 10 ** len(part))
    number *= _multiplier(match, text)
    return -number if match["sign"] == "-" else number


def _multiplier(match: re.Match[str], text: str) -> Fraction:
    if match["binary"]:
        return Fraction(_BINARY[match["binary"]])
    exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL[match["decimal"] or ""]
    if abs(exponent) > _MAX_EXPONENT:
        raise ValueError(f"{text!r} has an exponent out of range; use one from -64 to 64.")
    return Fraction(10) ** exponent


def _decimal_text(number: Fraction, notation: str) -> str:
    nanos = -((-abs(number) * _NANO) // 1)  # away from zero, as the server rounds
    sign = "-" if number < 0 else ""
    if nanos == 0:
        return "0"
    exponent = -9
    while nanos % 1000 == 0 and exponent < 18:
        nanos //= 1000
        exponent += 3
    if notation and exponent:
        return f"{sign}{nanos}e{exponent}"
    return f"{sign}{nanos}{_SUFFIX_OF_EXPONENT[exponent]}"


def _binary_text(number: Fraction) -> str:
    if abs(number) < 1024 or number.denominator != 1:
        return _decimal_text(number, "")
    whole, suffix = int(number), ""
    for candidate in _BINARY:
        if whole % 1024:
            break
        whole //= 1024
        suffix = candidate
    return f"{whole}{suffix}"
