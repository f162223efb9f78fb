"""Pydantic's errors as sentences that say what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gpufair.api import mig, scalars, tiers, windows
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem, error

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,60}")
_NAME_WORDS = "lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
_PATTERN_WORDS: Final[dict[str, str]] = {
    scalars.DNS_SUBDOMAIN: _NAME_WORDS,
    scalars.DNS_LABEL: "lower-case letters, digits and '-', with a letter or digit at both ends",
    scalars.QUALIFIED_NAME: "a name such as 'example.com/name': letters, digits, '-', '_' and '.'"
    ", at most 63 of them after the '/'",
    scalars.LABEL_VALUE: "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    windows.TIME_OF_DAY: "a time from '00:00' to '23:59'",
    windows.CALENDAR_DATE: "a date such as '2027-01-31'",
    windows.TIME_ZONE: "an IANA name such as 'America/New_York'",
    mig.PROFILE: "a MIG profile such as '3g.40gb'",
    tiers.SCHEME: "a URI scheme such as 'gs' or 's3', without '://'",
}


def translate(failure: ValidationError) -> list[Problem]:
    """Return one problem per pydantic error, in the order of the fields.

    Paths are those of the JSON form, as in `spec.tiers[1].aging.every`.
    """
    return [_problem(item) for item in failure.errors(include_url=False)]


def path_of(location: Sequence[int | str]) -> str:
    """Return a location as the path that Kubernetes would print for it."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part == "[key]":
            continue
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(value: Any) -> str:
    """Return a value as JSON would show it, on one line and short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    text = text if text.isprintable() else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:56]}…{text[0] if text[0] == chr(34) else ''}"


def _problem(item: ErrorDetails) -> Problem:
    kind = item["type"]
    say = _SENTENCES.get(kind)
    location = item["loc"]
    message = say(item) if say else f"is {shown(item['input'])}: {item['msg']}"
    return error(path_of(location), message)


def _choices(item: ErrorDetails) -> str:
    expected = item["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
    close = _close(str(item["input"]), expected)
    hint = f"; did you mean {close}?" if close else ""
    listed = expected[0] if len(expected) == 1 else f"one of {', '.join(expected)}"
    return f"is {shown(item['input'])}: write {listed}{hint}"


def _unknown(item: ErrorDetails) -> str:
    *parent, name = item["loc"]
    fields = _fields_at(parent)
    close = _close(str(name), fields)
    if close:
        return f"is not a field; did you mean {close}?"
    return f"is not a field: write one of {', '.join(fields)}" if fields else "is not a field"


def _close(word: str, choices: Sequence[str]) -> str | None:
    lower = {choice.lower(): choice for choice in reversed(choices)}
    found = get_close_matches(word.lower()[:80], lower, n=1, cutoff=0.6)
    return lower[found[0]] if found else None


def _fields_at(location: Sequence[int | str]) -> list[str]:
    """Return the names of the fields that the object at a location may have."""
    model = _model_at(location)
    if model is None:
        return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_at(location: Sequence[int | str]) -> type[BaseModel] | None:
    model: type[BaseModel] | None = Policy
    for part in location:
        if isinstance(part, int):
            continue
        if model is None:
            return None
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        model = _model_in(fields[part].annotation) if part in fields else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType):
        inner = (_model_in(part) for part in get_args(annotation))
        return next((model for model in inner if model), None)
    return None


def _pattern(item: ErrorDetails) -> str:
    words = _PATTERN_WORDS.get(item["ctx"]["pattern"], item["ctx"]["pattern"])
    return f"is {shown(item['input'])}: write {words}"


def _bound(words: str, key: str) -> Callable[[ErrorDetails], str]:
    def say(item: ErrorDetails) -> str:
        bound = item["ctx"][key]
        number = int(bound) if bound == int(bound) else bound
        return f"is {shown(item['input'])}: write a number {words} {number:,}"

    return say


def _wanted(words: str) -> Callable[[ErrorDetails], str]:
    return lambda item: f"is {shown(item['input'])}: write {words}"


def _too_short(item: ErrorDetails) -> str:
    least = item["ctx"]["min_length"]
    return f"is empty: write at least {least} {'entry' if least == 1 else 'entries'}"


def _too_long(item: ErrorDetails) -> str:
    return f"has too many entries: write at most {item['ctx']['max_length']:,}"


def _string_too_short(item: ErrorDetails) -> str:
    return f"is {shown(item['input'])}: write at least one character"


def _string_too_long(item: ErrorDetails) -> str:
    return (
        f"is {shown(item['input'])}, {len(str(item['input'])):,} characters:"
        f" write at most {item['ctx']['max_length']}"
    )


def _scalar(item: ErrorDetails) -> str:
    return f"is {shown(item['input'])}, {item['msg'].removeprefix('is ')}"


def _json_invalid(item: ErrorDetails) -> str:
    return f"is not JSON: {item['ctx']['error']}"


_SENTENCES: Final[dict[str, Callable[[ErrorDetails], str]]] = {
    "missing": lambda _: "is required: write it",
    "extra_forbidden": _unknown,
    "enum": _choices,
    "literal_error": _choices,
    "string_pattern_mismatch": _pattern,
    "string_too_short": _string_too_short,
    "string_too_long": _string_too_long,
    "too_short": _too_short,
    "too_long": _too_long,
    "greater_than_equal": _bound("of at least", "ge"),
    "less_than_equal": _bound("of at most", "le"),
    "greater_than": _bound("above", "gt"),
    "less_than": _bound("below", "lt"),
    "int_type": _wanted("a whole number, without quotes"),
    "int_from_float": _wanted("a whole number"),
    "int_parsing_size": _wanted("a smaller number"),
    "float_type": _wanted("a number, without quotes"),
    "finite_number": _wanted("a finite number"),
    "bool_type": _wanted("true or false, without quotes"),
    "string_type": _wanted("a string, in quotes where it looks like something else"),
    "list_type": _wanted("a list"),
    "dict_type": _wanted("a mapping"),
    "model_type": _wanted("a mapping of fields"),
    "scalar": _scalar,
    "json_invalid": _json_invalid,
}
