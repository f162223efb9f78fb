"""Strict reading of policies from files, standard input and the API server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gpufair.api.messages import path_of, translate
from gpufair.api.policy import GROUP, KIND, Policy
from gpufair.api.problems import InvalidPolicy, Problem, Severity, error
from gpufair.api.yaml12 import Document, YamlError, read_yaml

__all__ = ["InvalidPolicy", "Loaded", "load_files", "load_text", "parse_policy"]

STDIN: Final = "-"
MAX_BYTES: Final = 16 * 2**20
_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class Loaded:
    """What one document, or a file without a policy, came to.

    `policy` is None when it cannot be read; `problems` then has an error. A Loaded with neither
    policy nor error carries a note, such as that other kinds were skipped.
    """

    file: str
    line: int = 0
    policy: Policy | None = None
    problems: list[Problem] = field(default_factory=list)
    alone: bool = True
    """Whether it is the only policy of its file."""

    @property
    def where(self) -> str:
        """The file, with the policy's first line when there are several in it."""
        return self.file if self.alone or not self.line else f"{self.file}:{self.line}"

    def describe(self, problem: Problem) -> str:
        """Return the line to print: `FILE: PATH: message`, or `FILE:LINE: message`."""
        if problem.line:
            return f"{self.file}:{problem.line}: {problem}"
        return f"{self.where}: {problem}"


def parse_policy(raw: dict[str, Any]) -> Policy:
    """Read a policy from its JSON form, as strictly as the API server does, or more.

    Raises InvalidPolicy with one problem per wrong field. It checks the shape only: `check` of
    `gpufair.api.checks` judges whether its parts agree.
    """
    try:
        text = json.dumps(raw, ensure_ascii=False, allow_nan=False)
    except RecursionError as failure:
        raise InvalidPolicy([error("", "is nested too deeply")]) from failure
    except (TypeError, ValueError) as failure:
        raise InvalidPolicy([error("", f"is not JSON: {failure}")]) from failure
    if "null" in text and (nulls := _nulls(raw.get("spec"), ("spec",))):
        raise InvalidPolicy(nulls)
    try:
        return Policy.model_validate_json(text.encode("utf-8", "replace"), strict=True)
    except ValidationError as failure:
        raise InvalidPolicy(translate(failure)) from None


def _nulls(value: Any, location: tuple[str | int, ...]) -> list[Problem]:
    if value is None:
        message = "has no value: write one, or leave the field out"
        return [error(path_of(location), message)]
    found: list[Problem] = []
    if isinstance(value, dict):
        for key, item in value.items():
            found += _nulls(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _nulls(item, (*location, index))
    return found


def load_files(paths: Iterable[str | Path]) -> list[Loaded]:
    """Read every policy of the files; `-` is standard input, a folder its YAML and JSON files.

    Never raises for what is in the files: that is in the results' problems. A file that was named
    and holds no policy is an error, one found in a folder is only noted.
    """
    results: list[Loaded] = []
    for path in paths:
        results += _load_path(str(path))
    return results


def _load_path(path: str) -> list[Loaded]:
    if not path:
        return [_refused("''", "is no file: write its name, or - for standard input")]
    if path == STDIN:
        if sys.stdin is None:
            return [_refused("<stdin>", "is closed: write the name of a file")]
        return load_text(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>")
    if Path(path).is_dir():
        return _load_folder(Path(path))
    return _load_file(path, named=True)


def _load_folder(folder: Path) -> list[Loaded]:
    files = sorted(item for item in folder.iterdir() if item.suffix in _SUFFIXES and item.is_file())
    results = [loaded for file in files for loaded in _load_file(str(file), named=False)]
    if not any(loaded.policy or _failed(loaded) for loaded in results):
        results.append(_refused(str(folder), f"holds no file with a {KIND}"))
    return results


def _failed(loaded: Loaded) -> bool:
    return any(problem.is_error for problem in loaded.problems)


def _load_file(path: str, *, named: bool) -> list[Loaded]:
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as failure:
        return [_refused(path, f"cannot be read: {failure.strerror or failure}")]
    return load_text(content, path, named=named)


def load_text(content: bytes, file: str, *, named: bool = True) -> list[Loaded]:
    """Read the policies of one file's content; `file` is its name for messages."""
    if len(content) > MAX_BYTES:
        return [_refused(file, f"is larger than {MAX_BYTES // 2**20} MiB")]
    try:
        documents = _documents(_decode(content), file)
    except YamlError as failure:
        return [_refused(file, failure.message, failure.line)]
    results, skipped = _read_all(documents, file)
    if not results:
        return [_without_policy(file, skipped, named)]
    if skipped:
        results[0].problems.append(_note(f"skips {_kinds(skipped)}"))
    return results


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        raise YamlError("is not UTF-8: save the file in that encoding", line) from failure


def _documents(text: str, file: str) -> list[Document]:
    if file.endswith(".json"):
        return [_json_document(text)]
    if text.lstrip().startswith("{"):
        try:
            return [_json_document(text)]
        except YamlError:
            pass  # a flow mapping, or JSON whose error the other reader dates to a line
    return read_yaml(text)


def _json_document(text: str) -> Document:
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except json.JSONDecodeError as failure:
        raise YamlError(f"is no JSON: {failure.msg}", failure.lineno) from failure
    except RecursionError as failure:
        raise YamlError("is nested too deeply") from failure
    except ValueError as failure:
        raise YamlError(str(failure)) from failure
    return Document(1, value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice!r} appears twice in one object: keep one")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number that JSON has: write a finite one")


def _read_all(documents: Sequence[Document], file: str) -> tuple[list[Loaded], list[str]]:
    results: list[Loaded] = []
    skipped: list[str] = []
    for document in documents:
        for raw in _items(document.value):
            if _is_policy(raw):
                results.append(_read_one(raw, document, file))
            else:
                skipped.append(str(raw.get("kind")) if isinstance(raw, dict) else "")
    for loaded in results:
        loaded.alone = len(results) == 1
    return results, skipped


def _items(value: Any) -> list[Any]:
    """A `kind: List`, as `kubectl get -o yaml` prints it, stands for its items."""
    if isinstance(value, dict) and value.get("kind") == "List" and "items" in value:
        items = value["items"]
        return items if isinstance(items, list) else [items]
    return [value]


def _is_policy(raw: Any) -> bool:
    if not isinstance(raw, dict):
        return False
    group = str(raw.get("apiVersion")).partition("/")[0]
    return raw.get("kind") == KIND or group == GROUP


def _read_one(raw: dict[str, Any], document: Document, file: str) -> Loaded:
    loaded = Loaded(file, document.line)
    loaded.problems += [Problem("", item.message, line=item.line) for item in document.errors]
    loaded.problems += [
        Problem("", item.message, Severity.WARNING, item.line) for item in document.warnings
    ]
    try:
        policy = parse_policy(raw)
    except InvalidPolicy as failure:
        loaded.problems += failure.problems
    else:
        loaded.policy = None if document.errors else policy
    return loaded


def _without_policy(file: str, skipped: Sequence[str], named: bool) -> Loaded:
    found = f": it holds {_kinds(skipped)}" if skipped else ": it is empty"
    if named:
        return _refused(file, f"holds no {KIND}{found}")
    return Loaded(file, problems=[_note(f"holds no {KIND}{found}")])


def _kinds(skipped: Sequence[str]) -> str:
    names = sorted({kind for kind in skipped if kind and kind.isprintable()})
    count = f"{len(skipped)} other document{'s' if len(skipped) > 1 else ''}"
    listed = ", ".join(name[:40] for name in names[:5])
    return f"{count} ({listed})" if names else count


def _note(message: str) -> Problem:
    return Problem("", message, Severity.NOTE)


def _refused(file: str, message: str, line: int = 0) -> Loaded:
    return Loaded(file, line, problems=[Problem("", message, line=line)])
