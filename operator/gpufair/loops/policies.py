"""The policies as last seen, and what is remembered of each between two passes.

All of it can be rebuilt: a restarted operator comes to the same writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gpufair.api.checks import check
from gpufair.api.load import parse_policy
from gpufair.api.policy import Policy
from gpufair.api.problems import InvalidPolicy, Problem
from gpufair.plan.changes import compare
from gpufair.plan.objects import Desired, Key
from gpufair.plan.plan import Plan, plan
from gpufair.plan.renderer import Renderer
from gpufair.plan.selectors import Facts

Json = dict[str, Any]


class PolicyStore:
    """Policies by name, as the server has them; newer versions win, whoever brings them."""

    def __init__(self) -> None:
        self._known: dict[str, Json] = {}

    def __iter__(self) -> Any:
        return iter(list(self._known))

    def get(self, name: str) -> Json | None:
        return self._known.get(name)

    def put(self, raw: Json) -> bool:
        """Enter a version; False when it is not newer than what is known."""
        name = raw["metadata"]["name"]
        known = self._known.get(name)
        if known is not None and _version(raw) <= _version(known):
            return False
        self._known[name] = raw
        return True

    def remove(self, raw: Mapping[str, Any]) -> None:
        known = self._known.get(raw["metadata"]["name"])
        if known is not None and known["metadata"]["uid"] == raw["metadata"]["uid"]:
            del self._known[raw["metadata"]["name"]]


def _version(raw: Mapping[str, Any]) -> int:
    return int(raw["metadata"]["resourceVersion"])


@dataclass
class Memory:
    """What is kept of one policy: readings, plans and comparisons that need not be made again."""

    status_written: float = float("-inf")
    _renderer: Renderer = field(default_factory=Renderer)
    _judged: tuple[tuple[Any, ...], Policy | None, list[Problem]] | None = None
    _planned: tuple[tuple[Any, ...], Plan] | None = None
    _compared: dict[Key, tuple[str, str, Sequence[str]]] = field(default_factory=dict)

    def judge(self, raw: Json) -> tuple[Policy | None, list[Problem]]:
        """Read and check the policy; None when it is invalid."""
        key = (raw["metadata"]["uid"], raw["metadata"]["generation"])
        if self._judged is None or self._judged[0] != key:
            self._judged = (key, *_judge(raw))
        return self._judged[1], self._judged[2]

    def plan(self, policy: Policy, facts: Facts, revision: int, now: datetime) -> Plan:
        """Plan, or return the last plan while it holds.

        `revision` counts changes of the namespaces in `facts`.
        """
        key = (policy.metadata.uid, policy.metadata.generation, revision)
        if self._planned is not None and self._planned[0] == key:
            upcoming = self._planned[1].next_transition
            if upcoming is None or now < upcoming:
                return self._planned[1]
        made = plan(policy, facts, now, self._renderer)
        self._planned = (key, made)
        wanted = {item.key for item in made.objects}
        for gone in self._compared.keys() - wanted:
            del self._compared[gone]
        return made

    def differs(self, desired: Desired, live: Mapping[str, Any]) -> Sequence[str]:
        """Compare, or return what was found for these very two before."""
        version = live["metadata"]["resourceVersion"]
        known = self._compared.get(desired.key)
        if known is not None and known[0] == version and known[1] == desired.text:
            return known[2]
        fields = compare(desired, live)
        self._compared[desired.key] = (version, desired.text, fields)
        return fields


def _judge(raw: Json) -> tuple[Policy | None, list[Problem]]:
    try:
        policy = parse_policy(raw)
    except InvalidPolicy as error:
        return None, error.problems
    problems = check(policy)
    return (None if any(p.is_error for p in problems) else policy), problems
