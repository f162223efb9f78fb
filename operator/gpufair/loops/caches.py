"""The operator's view of the cluster: one informer per kind, one map of live objects.

Our own writes enter the map at once, before the watch brings them: a pass that starts in between
must not write the same change again.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from gpufair.api.kinds import CLUSTER_QUEUE, NAMESPACE, WORKLOAD, Resource
from gpufair.cluster.client import Client
from gpufair.cluster.informer import Change, Informer
from gpufair.cluster.snapshot import namespace_fact
from gpufair.plan.conditions import condition_of
from gpufair.plan.objects import APPLY_ORDER, Key
from gpufair.plan.ownership import policy_of
from gpufair.plan.records import WorkloadRecord, queue_of, workload_record
from gpufair.plan.selectors import NamespaceFact

Json = dict[str, Any]
EVERY_POLICY = "*"
_ABSENCE_RETRY = 3.0  # seconds until an engine that was just installed is seen


class Caches:
    """Live objects by key, namespaces by name, Workloads by (namespace, name).

    `on_presence(absent)` is called when a kind vanishes or appears, as when Kueue is installed.
    `on_object(policies, urgent)` names the policies that an event concerns; it is urgent when the
    object itself changed, and not when only its counters did. `on_namespace()` is called when a
    namespace comes, goes or is relabelled.
    """

    def __init__(
        self,
        client: Client,
        *,
        on_object: Callable[[set[str], bool], None],
        on_namespace: Callable[[], None],
        on_presence: Callable[[bool], None],
    ) -> None:
        self.live: dict[Key, Json] = {}
        self.namespaces: dict[str, NamespaceFact] = {}
        self.namespace_revision = 0
        self.retiring: set[str] = set()
        """Policies with objects that wait for work to end: its end is then urgent."""
        self._on_object = on_object
        self._on_namespace = on_namespace
        self._on_presence = on_presence
        self._objects = {kind: self._informer(client, kind) for kind in APPLY_ORDER}
        self._namespaces = Informer(
            client, NAMESPACE, slim=namespace_fact, on_change=self._namespace_changed
        )
        self._workloads = Informer(
            client,
            WORKLOAD,
            slim=workload_record,
            on_change=self._workload_changed,
            on_presence=on_presence,
            absence_retry=_ABSENCE_RETRY,
        )

    @property
    def workloads(self) -> Mapping[tuple[str, str], WorkloadRecord]:
        return self._workloads.store

    async def run(self) -> None:
        """Keep all of it up to date until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._all():
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until every kind was listed once, or found to be absent."""
        for informer in self._all():
            await informer.synced()

    def absent(self) -> list[Resource]:
        """Kinds that the server does not serve."""
        return [informer.resource for informer in self._all() if informer.absent]

    def stale(self) -> list[str]:
        """Names of the kinds whose view may be out of date; empty when all is well."""
        return [i.resource.name for i in self._all() if not i.fresh()]

    def wrote(self, resource: Resource, made: Json) -> None:
        """Enter the server's answer to a write of ours."""
        metadata = made["metadata"]
        key = (resource, metadata.get("namespace", ""), metadata["name"])
        there = self.live.get(key)
        if there is None or _is_newer(made, there):
            self.live[key] = made

    def queue_of(self, record: WorkloadRecord) -> str:
        """The ClusterQueue that a Workload is in or waits for."""
        return queue_of(record, self.live)

    def _all(self) -> list[Informer[Any]]:
        return [*self._objects.values(), self._namespaces, self._workloads]

    def _informer(self, client: Client, kind: Resource) -> Informer[Json]:
        def changed(change: Change, old: Json | None, new: Json | None) -> None:
            self._changed(kind, change, old, new)

        return Informer(
            client,
            kind,
            slim=_whole,
            on_change=changed,
            on_presence=self._on_presence,
            absence_retry=_ABSENCE_RETRY,
        )

    def _changed(self, kind: Resource, change: Change, old: Json | None, new: Json | None) -> None:
        item = new or old
        assert item is not None
        metadata = item["metadata"]
        key = (kind, metadata.get("namespace", ""), metadata["name"])
        there = self.live.get(key)
        if change is Change.DELETED:
            if there is None or there["metadata"]["uid"] != metadata["uid"]:
                return  # already replaced by a write of ours
            del self.live[key]
        else:
            if there is not None and not _is_newer(item, there):
                return
            self.live[key] = item
        self._tell(there, None if change is Change.DELETED else item)

    def _tell(self, before: Json | None, after: Json | None) -> None:
        policies = {policy_of(item) for item in (before, after) if item is not None}
        policies |= self._waiting_for_name(before, after)
        policies.discard("")
        if policies:
            self._on_object(policies, _is_urgent(before, after))

    @staticmethod
    def _waiting_for_name(before: Json | None, after: Json | None) -> set[str]:
        # A foreign object that goes, or asks to be adopted, may be one that any policy waits for.
        foreign = any(item is not None and not policy_of(item) for item in (before, after))
        if not foreign:
            return set()
        changed = before is None or after is None or _relabelled(before, after)
        return {EVERY_POLICY} if changed else set()

    def _namespace_changed(
        self, _: Change, old: NamespaceFact | None, new: NamespaceFact | None
    ) -> None:
        if new is not None:
            self.namespaces[new.name] = new
        elif old is not None:
            self.namespaces.pop(old.name, None)
        self.namespace_revision += 1
        self._on_namespace()

    def _workload_changed(
        self, _: Change, old: WorkloadRecord | None, new: WorkloadRecord | None
    ) -> None:
        record = new or old
        assert record is not None
        queue = self.live.get((CLUSTER_QUEUE, "", self.queue_of(record)))
        policy = policy_of(queue) if queue is not None else ""
        if policy:
            released = old is not None and old.holds_quota and (new is None or not new.holds_quota)
            self._on_object({policy}, released and policy in self.retiring)


def _whole(item: Json) -> Json:
    return item


def _is_newer(item: Json, there: Json) -> bool:
    # Resource versions of one kind are ordered numbers (KEP-5504).
    return int(item["metadata"]["resourceVersion"]) > int(there["metadata"]["resourceVersion"])


def _relabelled(before: Json, after: Json) -> bool:
    old, new = before["metadata"], after["metadata"]
    return (old.get("labels"), old.get("annotations")) != (
        new.get("labels"),
        new.get("annotations"),
    )


def _is_urgent(before: Json | None, after: Json | None) -> bool:
    if before is None or after is None:
        return True
    if _identity(before) != _identity(after):
        return True
    old, new = condition_of(before, "Active"), condition_of(after, "Active")
    return old.get("status") != new.get("status") or old.get("message") != new.get("message")


def _identity(item: Json) -> tuple[Any, ...]:
    metadata = item["metadata"]
    return (
        metadata["uid"],
        metadata.get("generation"),
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("ownerReferences"),
        item.get("value"),
        item.get("description"),
        metadata.get("deletionTimestamp"),
    )
