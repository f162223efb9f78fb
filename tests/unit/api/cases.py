"""The refused policies of tests/data/refused: each a change of one base policy."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpufair.api.yaml12 import read_yaml

Json = dict[str, Any]
FOLDER = Path(__file__).parents[2] / "data" / "refused"
_STEP = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")


@dataclass(frozen=True)
class Case:
    """`problems` are the lines of `gpufair validate`, `server` a part of the server's refusal.

    Without `server`, only `gpufair validate` and the operator refuse it. A case with `was` is a
    change: of the base policy with these fields to the one with those of `set` and `remove`.
    """

    name: str
    problems: list[str]
    server: str | None = None
    set: Json = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    was: Json | None = None

    @property
    def policy(self) -> Json:
        """The policy to be refused."""
        return edited(base(), self.set, self.remove)

    @property
    def old(self) -> Json | None:
        """The accepted policy before it, for a change."""
        return None if self.was is None else edited(base(), self.was)


def base() -> Json:
    return copy.deepcopy(_base())


@cache
def _base() -> Json:
    return load(FOLDER / "_base.yaml")


def load(path: Path) -> Json:
    (document,) = read_yaml(path.read_text(encoding="utf-8"))
    assert not document.errors, path
    value: Json = document.value
    return value


def cases() -> list[Case]:
    files = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.startswith("_"))
    return [Case(name=path.stem, **load(path)) for path in files]


def edited(policy: Json, changes: Json, remove: list[str] | None = None) -> Json:
    """Return a copy with values set and removed at paths such as `spec.tiers[1].name`."""
    policy = copy.deepcopy(policy)
    for path, value in changes.items():
        at, last = _parent(policy, path)
        if isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = value
    for path in remove or []:
        at, last = _parent(policy, path)
        del at[last]
    return policy


def _parent(policy: Json, path: str) -> tuple[Any, Any]:
    *steps, last = [key or int(index) for key, index in _STEP.findall(path)]
    at: Any = policy
    for step in steps:
        at = at[step]
    return at, last
