"""Does a live object still say what we applied? Pure comparison for server-side apply.

The server records in `metadata.managedFields` which fields each manager owns (FieldsV1: `f:NAME`
a field, `k:{…}` an item of a keyed list, `v:…` an item of a set, `.` the thing itself, `{}` a leaf,
also of an atomic list or map). A write is needed when a value differs, when a field that we want is
no longer ours, or when we own a field that we no longer want. Fields of other managers, and
defaults that the server filled in beside ours, are none of our business.

Inside an atomic list or map the server records nothing, so there every key counts: a key that the
server adds by itself must be spelt out in the manifest, or named in `SERVER_DEFAULTS`. An empty map
looks the same as an atomic one; so a manifest must not have `{}` where the server fills in defaults
(`preemption: {}` of a ClusterQueue).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from gpufair.api.quantity import same_quantity

MANAGER: Final = "gpufair"

Reason = str  # "value", "not owned" or "no longer desired"
VALUE: Final[Reason] = "value"
NOT_OWNED: Final[Reason] = "not owned"
UNDESIRED: Final[Reason] = "no longer desired"

# What the server itself adds inside atomic structures, by path with `[]` for any item.
SERVER_DEFAULTS: Final[Mapping[str, object]] = {}

_INDEX: Final = re.compile(r"\[[0-9]+\]")
_QUANTITY_KEYS: Final = frozenset(("nominalQuota", "borrowingLimit", "lendingLimit", "weight"))
_QUANTITY_MAPS: Final = frozenset(
    ("minResources", "requests", "limits", "capacity", "allocatable", "hard")
)
_IDENTITY: Final = frozenset(("apiVersion", "kind", "metadata"))
_SERVER_METADATA: Final = frozenset(
    (
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
    )
)
_MISSING: Final[Any] = type("Missing", (), {"__repr__": lambda _: "<missing>"})()

Node = Mapping[str, Any]


class Difference(NamedTuple):
    """One field that an apply would change: where, why, and both values (None: not there)."""

    path: str
    reason: Reason
    desired: Any
    live: Any


def differs(
    desired: Mapping[str, Any],
    live: Mapping[str, Any],
    manager: str = MANAGER,
    *,
    subresource: str = "",
) -> list[str]:
    """Return the paths of all fields that an apply of `desired` would change; empty: no write."""
    return [found.path for found in differences(desired, live, manager, subresource=subresource)]


def differences(
    desired: Mapping[str, Any],
    live: Mapping[str, Any],
    manager: str = MANAGER,
    *,
    subresource: str = "",
) -> list[Difference]:
    """Compare a manifest with the object the server returned (managedFields included).

    Both are JSON objects of the same kind and name. Paths look like
    `spec.resourceGroups[0].flavors[0].resources[0].nominalQuota`, `spec.levels[nodeLabel=rack]`
    for keyed lists and `metadata.finalizers["x"]` for sets.
    """
    owned = owned_fields(live, manager, subresource=subresource) or {}
    comparison = _Comparison()
    for key, value in desired.items():
        if key not in _IDENTITY:
            comparison.field(value, live.get(key, _MISSING), owned.get("f:" + key), key, key)
    comparison.undesired(owned, desired, live, "", _IDENTITY)
    comparison.metadata(
        desired.get("metadata") or {}, live.get("metadata") or {}, owned.get("f:metadata") or {}
    )
    return comparison.found


def owned_fields(
    live: Mapping[str, Any], manager: str = MANAGER, *, subresource: str = ""
) -> Node | None:
    """The FieldsV1 tree that `manager` owns by apply; None when it never applied the object."""
    for entry in (live.get("metadata") or {}).get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and entry.get("subresource", "") == subresource
        ):
            fields: Node = entry.get("fieldsV1") or {}
            return fields
    return None


class _Comparison:
    """Collects what differs while it walks desired value, live value and ownership together."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Difference] = []

    def add(self, path: str, reason: Reason, desired: Any, live: Any) -> None:
        shown = (None if value is _MISSING else value for value in (desired, live))
        self.found.append(Difference(path, reason, *shown))

    def metadata(self, desired: Node, live: Node, owned: Node) -> None:
        for key, value in desired.items():
            if key not in _SERVER_METADATA:
                self.field(
                    value, live.get(key, _MISSING), owned.get("f:" + key), "metadata." + key, key
                )
        self.undesired(owned, desired, live, "metadata.", _SERVER_METADATA)

    def field(self, desired: Any, live: Any, owned: Node | None, path: str, key: str) -> None:
        """Compare one field; `key` is its name, for the positions where quantities stand."""
        if isinstance(desired, dict):
            self._dict(desired, live, owned, path, key)
        elif isinstance(desired, list):
            self._list(desired, live, owned, path)
        elif desired is None:
            if not _is_empty(live) and owned is not None:
                self.add(path, VALUE, desired, live)
        elif live is _MISSING and owned is not None and desired in (False, 0, ""):
            pass  # built-in types drop zero values; whoever removes a value takes its ownership
        elif not _same_scalar(desired, live, key in _QUANTITY_KEYS):
            self.add(path, VALUE, desired, live)
        elif owned is None:
            self.add(path, NOT_OWNED, desired, live)

    def undesired(
        self, owned: Node, desired: Node, live: Any, prefix: str, skip: Iterable[str] = ()
    ) -> None:
        """Report the fields that we own and no longer want."""
        for key in owned:
            if key[:2] == "f:":
                name = key[2:]
                if name not in desired and name not in skip:
                    self.add(prefix + name, UNDESIRED, _MISSING, _child(live, name))

    def _dict(self, desired: Node, live: Any, owned: Node | None, path: str, key: str) -> None:
        if owned is not None and not _has_children(owned):
            self._whole(desired, live, path, key)
        elif not isinstance(live, dict):
            self.add(path, VALUE, desired, live)
        elif owned is None and not desired:
            self.add(path, NOT_OWNED if live == {} else VALUE, desired, live)
        else:
            nodes = owned or {}
            quantities = key in _QUANTITY_MAPS
            for name, value in desired.items():
                self.field(
                    value,
                    live.get(name, _MISSING),
                    nodes.get("f:" + name),
                    f"{path}.{name}",
                    "nominalQuota" if quantities else name,
                )
            self.undesired(nodes, desired, live, path + ".")

    def _list(self, desired: list[Any], live: Any, owned: Node | None, path: str) -> None:
        if owned is None:
            if live is _MISSING or _same(desired, live, path, ""):
                if desired:
                    self.add(path, VALUE if live is _MISSING else NOT_OWNED, desired, live)
            else:
                self.found.extend(_inside(desired, live, path, ""))
            return
        keyed = {name[2:]: node for name, node in owned.items() if name[:2] == "k:"}
        values = {name[2:] for name in owned if name[:2] == "v:"}
        if keyed:
            self._keyed(desired, live if isinstance(live, list) else [], keyed, path)
        elif values:
            self._set(desired, live if isinstance(live, list) else [], values, path)
        else:
            self._whole(desired, live, path, "")

    def _whole(self, desired: Any, live: Any, path: str, key: str) -> None:
        """Compare an atomic list or map, and report the deepest paths that differ."""
        if live is _MISSING:
            if desired:
                self.add(path, VALUE, desired, live)
        elif not _same(desired, live, path, key):
            self.found.extend(_inside(desired, live, path, key))

    def _keyed(
        self, desired: list[Any], live: list[Any], owned: Mapping[str, Node], path: str
    ) -> None:
        names = tuple(_parsed(next(iter(owned))))
        live_items = {_key_of(item, names): item for item in live}
        ours = {_key_text(_parsed(text), names): node for text, node in owned.items()}
        wanted = set()
        for item in desired:
            identity = _key_of(item, names)
            if identity not in ours:
                identity = _with_defaulted_key(item, names, ours) or identity
            wanted.add(identity)
            self.field(
                item,
                live_items.get(identity, _MISSING),
                ours.get(identity),
                _item_path(path, names, identity),
                "",
            )
        for identity in ours:
            if identity not in wanted:
                item_path = _item_path(path, names, identity)
                self.add(item_path, UNDESIRED, _MISSING, live_items.get(identity, _MISSING))

    def _set(self, desired: list[Any], live: list[Any], owned: set[str], path: str) -> None:
        ours = {_scalar_text(_parsed(text)) for text in owned}
        there = {_scalar_text(value) for value in live}
        wanted = set()
        for value in desired:
            text = _scalar_text(value)
            wanted.add(text)
            if text not in there:
                self.add(f"{path}[{text}]", VALUE, value, _MISSING)
            elif text not in ours:
                self.add(f"{path}[{text}]", NOT_OWNED, value, value)
        for text in sorted(ours - wanted):
            self.add(f"{path}[{text}]", UNDESIRED, _MISSING, _parsed(text))


def _same(desired: Any, live: Any, path: str, key: str) -> bool:
    """Equality of whole values, with quantities by value and the server's own defaults allowed."""
    if isinstance(desired, dict):
        return desired == live or (isinstance(live, dict) and _same_dict(desired, live, path, key))
    if isinstance(desired, list):
        return desired == live or (
            isinstance(live, list)
            and len(desired) == len(live)
            and all(
                _same(left, right, path + "[]", "")
                for left, right in zip(desired, live, strict=True)
            )
        )
    if desired is None:
        return _is_empty(live)
    return _same_scalar(desired, live, key in _QUANTITY_KEYS)


def _same_dict(desired: Node, live: Node, path: str, key: str) -> bool:
    quantities = key in _QUANTITY_MAPS
    for name, value in desired.items():
        there = live.get(name, _MISSING)
        if there is _MISSING and _is_empty(value):
            continue
        if not _same(value, there, f"{path}.{name}", "nominalQuota" if quantities else name):
            return False
    if len(live) <= len(desired) and live.keys() <= desired.keys():
        return True
    return all(_may_stand(live[name], f"{path}.{name}") for name in live if name not in desired)


def _may_stand(value: Any, path: str) -> bool:
    """True for what the server may add beside ours; indices do not matter."""
    if value is None:
        return True
    pattern = _INDEX.sub("[]", path)
    return pattern in SERVER_DEFAULTS and SERVER_DEFAULTS[pattern] == value


def _inside(desired: Any, live: Any, path: str, key: str) -> list[Difference]:
    """The deepest differences between two values that are known to differ as a whole."""
    found: list[Difference] = []
    if isinstance(desired, dict) and isinstance(live, dict):
        quantities = key in _QUANTITY_MAPS
        for name in [*desired, *(name for name in live if name not in desired)]:
            left, right = desired.get(name, _MISSING), live.get(name, _MISSING)
            deeper = f"{path}.{name}"
            if left is _MISSING:
                if not _may_stand(right, deeper):
                    found.append(Difference(deeper, UNDESIRED, None, right))
            elif not _same(left, right, deeper, "nominalQuota" if quantities else name):
                found.extend(_inside(left, right, deeper, name))
    elif isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        for index, (left, right) in enumerate(zip(desired, live, strict=True)):
            if not _same(left, right, path + "[]", ""):
                found.extend(_inside(left, right, f"{path}[{index}]", ""))
    shown = None if live is _MISSING else live
    return found or [Difference(path, VALUE, desired, shown)]


def _same_scalar(desired: Any, live: Any, quantity: bool) -> bool:
    if desired == live:
        return isinstance(desired, bool) == isinstance(live, bool)
    if not quantity or live is _MISSING:
        return False
    return same_quantity(_quantity_text(desired), _quantity_text(live))


def _quantity_text(value: Any) -> Any:
    """A JSON number with a fraction, which the server also takes for a quantity, as text."""
    return repr(value) if isinstance(value, float) else value


def _is_empty(value: Any) -> bool:
    return value is _MISSING or value is None or value in ({}, [])


def _has_children(owned: Node) -> bool:
    return any(key != "." for key in owned)


def _child(live: Any, name: str) -> Any:
    return live.get(name, _MISSING) if isinstance(live, dict) else _MISSING


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Any:
    return json.loads(text)


def _scalar_text(value: Any) -> str:
    """An identity for a key or a member of a set, the same for what both sides wrote."""
    if isinstance(value, str):
        return f'"{value}"'
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _key_text(values: Node, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_scalar_text(values[name]) if name in values else "" for name in names)


def _key_of(item: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    return _key_text(item, names) if isinstance(item, dict) else ()


def _with_defaulted_key(
    item: Any, names: tuple[str, ...], ours: Iterable[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """Find the item whose key has parts that the manifest leaves to the server's defaults."""
    key = _key_of(item, names)
    for candidate in ours:
        if all(part in ("", there) for part, there in zip(key, candidate, strict=False)) and key:
            return candidate
    return None


def _item_path(path: str, names: tuple[str, ...], identity: tuple[str, ...]) -> str:
    pairs = zip(names, identity, strict=False)
    return (
        path
        + "["
        + ",".join(
            f"{name}={value[1:-1] if value[:1] == chr(34) else value}" for name, value in pairs
        )
        + "]"
    )
