"""The cluster at one moment, for commands: lists instead of watches."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpufair.api.kinds import GPU_SCHEDULING_POLICY, NAMESPACE, Resource
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.plan.objects import APPLY_ORDER, Key
from gpufair.plan.selectors import Facts, NamespaceFact


@dataclass
class Snapshot:
    """Live objects of the kinds that plans make, and the namespaces."""

    live: dict[Key, dict[str, Any]] = field(default_factory=dict)
    namespaces: dict[str, NamespaceFact] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    absent: list[Resource] = field(default_factory=list)

    def facts(self, policy: str) -> Facts:
        """What a plan of the policy must know."""
        raw = self.policies.get(policy)
        return Facts(self.namespaces, raw["metadata"]["uid"] if raw else "")


def namespace_fact(item: dict[str, Any]) -> NamespaceFact:
    """Read a v1 Namespace."""
    metadata = item["metadata"]
    return NamespaceFact(
        metadata["name"], metadata.get("labels") or {}, "deletionTimestamp" in metadata
    )


async def snapshot(client: Client, kinds: Iterable[Resource] = APPLY_ORDER) -> Snapshot:
    """List everything that a plan is compared with.

    A kind that is not served is noted in `absent`. Raises ClusterError for all else.
    """
    taken = Snapshot()
    await asyncio.gather(
        _namespaces(client, taken),
        _policies(client, taken),
        *(_kind(client, kind, taken) for kind in kinds),
    )
    return taken


async def _policies(client: Client, taken: Snapshot) -> None:
    found = await _served(client, GPU_SCHEDULING_POLICY, taken)
    taken.policies = {item["metadata"]["name"]: item for item in found}


async def _namespaces(client: Client, taken: Snapshot) -> None:
    facts = [namespace_fact(item) for item in await client.list_all(NAMESPACE)]
    taken.namespaces = {fact.name: fact for fact in facts}


async def _kind(client: Client, kind: Resource, taken: Snapshot) -> None:
    for item in await _served(client, kind, taken):
        metadata = item["metadata"]
        taken.live[kind, metadata.get("namespace", ""), metadata["name"]] = item


async def _served(client: Client, kind: Resource, taken: Snapshot) -> list[dict[str, Any]]:
    try:
        return await client.list_all(kind)
    except ApiError as error:
        if error.is_not_found:
            taken.absent.append(kind)
            return []
        raise
