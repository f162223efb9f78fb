"""What a policy would change on a cluster, in words and figures."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufair.plan.changes import Changes, Live, changes
from gpufair.plan.fieldset import Difference, differences
from gpufair.plan.objects import Key
from gpufair.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object that would be created, changed or removed; or that is in conflict."""

    action: str
    kind: str
    namespace: str
    name: str
    fields: Sequence[Difference] = ()
    message: str = ""

    @property
    def title(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"action": self.action, "kind": self.kind, "name": self.name}
        if self.namespace:
            found["namespace"] = self.namespace
        if self.message:
            found["message"] = self.message
        if self.fields:
            found["fields"] = [
                {"path": f.path, "from": f.live, "to": f.desired} for f in self.fields
            ]
        return found


def object_changes(policy: str, plan: Plan, live: Live) -> list[ObjectChange]:
    """List what applying the plan would do; empty when the cluster is as the policy says."""
    found = changes(policy, plan.objects, live)
    return [*_writes(found, live), *_removals(found), *_conflicts(found, plan)]


def _writes(found: Changes, live: Live) -> list[ObjectChange]:
    listed = []
    for write in found.writes:
        item = write.desired
        fields: Sequence[Difference] = ()
        if not write.creates:
            fields = differences(item.manifest, live[item.key])
        action = "create" if write.creates else "change"
        listed.append(
            ObjectChange(action, item.resource.kind, item.namespace, item.name, list(fields))
        )
    return listed


def _removals(found: Changes) -> list[ObjectChange]:
    removed = [_plain("remove", key) for key in found.stale]
    return removed + [
        _plain("replace", key, "its ClusterQueue is immutable: it is emptied and made anew")
        for key in found.replaced
    ]


def _conflicts(found: Changes, plan: Plan) -> list[ObjectChange]:
    listed = [_plain("conflict", one.key, one.message) for one in found.conflicts]
    return listed + [ObjectChange("conflict", "Plan", "", "", (), c) for c in plan.collisions]


def _plain(action: str, key: Key, message: str = "") -> ObjectChange:
    kind, namespace, name = key
    return ObjectChange(action, kind.kind, namespace, name, (), message)


def value_text(value: Any) -> str:
    """A value as one line; `-` for none."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def counts(listed: Sequence[ObjectChange]) -> Mapping[str, int]:
    """How many objects each action concerns."""
    found: dict[str, int] = {}
    for change in listed:
        found[change.action] = found.get(change.action, 0) + 1
    return found
