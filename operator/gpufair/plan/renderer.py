"""Rendering with a memory: an object whose values are those of last time is not rendered again."""

from typing import Any

from gpufair.api.kinds import Resource
from gpufair.plan.objects import Desired, Key
from gpufair.plan.templates import render


class Renderer:
    """Renders objects; one of its own for each policy that is planned again and again."""

    def __init__(self) -> None:
        self._last: dict[Key, tuple[dict[str, Any], Desired]] = {}
        self._used: set[Key] = set()

    def __call__(
        self, resource: Resource, name: str, namespace: str, values: dict[str, Any]
    ) -> Desired:
        key = (resource, namespace, name)
        self._used.add(key)
        known = self._last.get(key)
        if known is not None and known[0] == values:
            return known[1]
        made = Desired(resource, name, namespace, render(f"kueue/{resource.kind.lower()}", values))
        self._last[key] = (values, made)
        return made

    def forget_unused(self) -> None:
        """Drop what was not asked for since the last call."""
        for key in self._last.keys() - self._used:
            del self._last[key]
        self._used.clear()
