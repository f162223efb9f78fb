"""YAML as the core schema of YAML 1.2 reads it, on PyYAML's C parser.

`22:00`, `2027-01-01` and `yes` are strings, keys must be distinct, and neither aliases nor nesting
can make a small file large. Merge keys (`<<`) are kept, because kubectl reads them too.
Source: https://yaml.org/spec/1.2.2/#103-core-schema
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from yaml import events

MAX_NODES: Final = 1_000_000
MAX_DEPTH: Final = 64

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]{1,20}|0o[0-7]{1,20}|0x[0-9a-fA-F]{1,16}")
_OCTAL_LOOKING = re.compile(r"[-+]?0[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_JSON_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_KUBECTL_BOOLS = frozenset(
    form
    for word in ("y", "yes", "n", "no", "on", "off")
    for form in (word, word.capitalize(), word.upper())
)
# Plain scalars that begin otherwise are strings to everyone.
_SPECIAL_START = frozenset("-+.0123456789tTfFnNyYoO~")


class YamlError(ValueError):
    """A stream that cannot be read; `line` counts from 1 and is 0 when unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@dataclass(slots=True)
class Document:
    """One document: its first line, its value, and what is wrong with it."""

    line: int
    value: Any
    errors: list[YamlError] = field(default_factory=list)
    warnings: list[YamlError] = field(default_factory=list)


def read_yaml(text: str) -> list[Document]:
    """Return the documents of a stream; empty ones are left out.

    Raises YamlError for a syntax error, an alias bomb, or nesting beyond MAX_DEPTH. What leaves
    the rest readable (duplicate keys, unknown tags) is in the document's `errors`.
    """
    try:
        return list(_Reader(text).documents())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else 0
        raise YamlError("holds a character that YAML does not allow: remove it", line) from error
    except yaml.MarkedYAMLError as error:
        raise YamlError(_syntax_sentence(error), _line_of_error(error)) from error
    except yaml.YAMLError as error:
        raise YamlError(f"is no YAML: {' '.join(str(error).split())}") from error


def _syntax_sentence(error: yaml.MarkedYAMLError) -> str:
    parts = [part.strip() for part in (error.context, error.problem) if part]
    return f"is no YAML: {', '.join(parts)}"


def _line_of_error(error: yaml.MarkedYAMLError) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 0


class _Reader:
    """Turns the parser's events into plain Python values."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[events.Event] = iter(yaml.parse(text, Loader=_LOADER))
        self._nodes = 0
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._document = Document(0, None)

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if not isinstance(event, events.DocumentStartEvent):
                continue
            self._anchors, self._open = {}, set()
            first = next(self._events)
            self._document = Document(_line(first), None)
            self._document.value = self._value(first, 0)
            if self._document.value is not None or self._document.errors:
                yield self._document

    def _value(self, event: events.Event, depth: int) -> Any:
        self._grow(1, event)
        if isinstance(event, events.ScalarEvent) and event.anchor is None:
            return self._scalar(event)
        if isinstance(event, events.AliasEvent):
            return self._alias(event)
        if depth >= MAX_DEPTH:
            raise YamlError(f"is nested deeper than {MAX_DEPTH} levels", _line(event))
        return self._anchored(event, depth)

    def _anchored(self, event: events.Event, depth: int) -> Any:
        anchor, before = getattr(event, "anchor", None), self._nodes
        if anchor is None:
            return self._collection(event, depth)
        self._open.add(anchor)
        if isinstance(event, events.ScalarEvent):
            value = self._scalar(event)
        else:
            value = self._collection(event, depth)
        self._open.discard(anchor)
        self._anchors[anchor] = (value, self._nodes - before + 1)
        return value

    def _collection(self, event: events.Event, depth: int) -> Any:
        if isinstance(event, events.MappingStartEvent):
            self._check_tag(event, "map")
            return self._mapping(depth)
        assert isinstance(event, events.SequenceStartEvent)
        self._check_tag(event, "seq")
        values = []
        while not isinstance(item := next(self._events), events.SequenceEndEvent):
            values.append(self._value(item, depth + 1))
        return values

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        merged: list[tuple[Any, int]] = []
        while not isinstance(event := next(self._events), events.MappingEndEvent):
            key, line = self._key(event), _line(event)
            value = self._value(next(self._events), depth + 1)
            if key == "<<" and getattr(event, "implicit", (False,))[0]:
                merged.append((value, line))
            elif key in found:
                self._duplicate(key, line, lines[key])
            else:
                found[key], lines[key] = value, line
        for value, line in merged:
            self._merge(found, value, line)
        return found

    def _duplicate(self, key: str, line: int, first: int) -> None:
        self._error(
            f"the key {_shown(key)} appears twice in one mapping, first on line {first}: keep one",
            line,
        )

    def _merge(self, into: dict[str, Any], value: Any, line: int) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                self._error("the merge key << takes a mapping or a list of mappings", line)
                return
            self._grow(len(source), None)
            for key, item in source.items():
                into.setdefault(key, item)

    def _key(self, event: events.Event) -> str:
        self._grow(1, event)
        if isinstance(event, events.ScalarEvent):
            if event.anchor is not None:
                self._anchors[event.anchor] = (event.value, 1)
            return str(event.value)
        if isinstance(event, events.AliasEvent):
            key = self._alias(event)
            if isinstance(key, str):
                return key
        raise YamlError("uses a list or mapping as a key: write a string", _line(event))

    def _alias(self, event: events.AliasEvent) -> Any:
        if event.anchor in self._open:
            raise YamlError(f"the alias *{event.anchor} stands inside its own value", _line(event))
        if event.anchor not in self._anchors:
            raise YamlError(f"the alias *{event.anchor} has no anchor before it", _line(event))
        value, size = self._anchors[event.anchor]
        self._grow(size, event)
        return value

    def _grow(self, nodes: int, event: events.Event | None) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise YamlError(
                f"grows beyond {MAX_NODES:,} values: write fewer aliases",
                _line(event) if event else 0,
            )

    def _scalar(self, event: events.ScalarEvent) -> Any:
        value, tag = event.value, event.tag
        if tag is not None and tag != "!":
            return self._tagged(event)
        if not event.implicit[0] or (value and value[0] not in _SPECIAL_START):
            return value
        return self._plain(value, event)

    def _plain(self, value: str, event: events.ScalarEvent) -> Any:
        if value in _NULLS:
            return None
        if value in _BOOLS:
            return _BOOLS[value]
        if value in _KUBECTL_BOOLS:
            self._document.warnings.append(
                YamlError(f"kubectl reads {value} as true or false: put it in quotes", _line(event))
            )
            return value
        return self._number(value, event)

    def _number(self, value: str, event: events.ScalarEvent) -> Any:
        if _OCTAL_LOOKING.fullmatch(value):
            self._error(
                f"{_shown(value)} is read as octal by some: write it without the leading zero,"
                " or in quotes",
                _line(event),
            )
            return int(value)  # lest it is reported a second time as missing
        if _INT.fullmatch(value):
            return int(value, 0 if value[:2] in ("0o", "0x") else 10)
        if _NO_JSON_NUMBER.fullmatch(value):
            self._error(f"{value} is no number that JSON has: write a finite one", _line(event))
            return None
        if _FLOAT.fullmatch(value):
            return self._float(value, event)
        return value

    def _float(self, value: str, event: events.ScalarEvent) -> float | None:
        number = float(value)
        if number - number == 0:  # finite
            return number
        self._error(f"{_shown(value)} is too large a number", _line(event))
        return None

    def _tagged(self, event: events.ScalarEvent) -> Any:
        if event.tag == _TAG + "str":
            return event.value
        kinds = {_TAG + "int": int, _TAG + "float": float, _TAG + "bool": bool}
        value = self._plain(event.value, event)
        if event.tag == _TAG + "null" and value is None:
            return None
        wanted = kinds.get(event.tag or "")
        if wanted is float and type(value) is int:
            return float(value)
        if wanted is None or type(value) is not wanted:
            self._error(f"the tag {_shown(event.tag or '')} is not supported here", _line(event))
        return value

    def _check_tag(self, event: events.CollectionStartEvent, kind: str) -> None:
        if event.tag not in (None, "!", _TAG + kind):
            self._error(f"the tag {_shown(event.tag)} is not supported: remove it", _line(event))

    def _error(self, message: str, line: int) -> None:
        self._document.errors.append(YamlError(message, line))


def _line(event: events.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _shown(text: str) -> str:
    """Return text in quotes, on one line and short."""
    short = text if len(text) <= 40 else text[:39] + "…"
    return ascii(short) if not short.isprintable() else f"'{short}'"
