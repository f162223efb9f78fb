"""How objects go without harm: queues are held, emptied by time, and only then deleted.

HoldAndDrain would evict; it is used for `deletionPolicy: Evict` alone. A class goes when nothing
names it: pods cannot be made again without their PriorityClass.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
)
from gpufair.plan.changes import Live
from gpufair.plan.objects import Key


@dataclass(frozen=True, slots=True)
class Usage:
    """What unfinished work still names.

    `reserving` counts Workloads with quota by (namespace, LocalQueue); `reserving_in` the same by
    ClusterQueue; the class names are those of unfinished Workloads and of the pods they describe.
    """

    reserving: Mapping[tuple[str, str], int]
    reserving_in: Mapping[str, int]
    workload_classes: frozenset[str] = frozenset()
    pod_classes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Retirement:
    """What to do now with objects that are to go, and what the rest waits for."""

    stops: Sequence[tuple[Key, str]] = ()
    """Queues to stop first, and their stopPolicy."""
    deletes: Sequence[Key] = ()
    waits: Sequence[str] = ()
    """One clause each: "ClusterQueue nlp: 3 workloads hold quota"."""


def retire(keys: Iterable[Key], live: Live, usage: Usage, *, evict: bool = False) -> Retirement:
    """Return the next steps for the objects `keys`, all of them live and the policy's own."""
    going = list(keys)
    stops: list[tuple[Key, str]] = []
    deletes: list[Key] = []
    waits: list[str] = []
    stop = "HoldAndDrain" if evict else "Hold"
    for key in going:
        if key[0] is LOCAL_QUEUE and _stop_policy(live[key]) not in (stop, "HoldAndDrain"):
            stops.append((key, stop))
            continue
        reason = _BLOCKERS[key[0]](key, live, usage)
        if not reason and "deletionTimestamp" not in live[key]["metadata"]:
            deletes.append(key)
        else:
            waits.append(f"{_title(key)}: {reason or 'being deleted'}")
    return Retirement(stops, deletes, waits)


def _title(key: Key) -> str:
    kind, namespace, name = key
    return f"{kind.kind} {namespace}/{name}" if namespace else f"{kind.kind} {name}"


def _stop_policy(live: Mapping[str, Any]) -> str:
    return str(_spec(live).get("stopPolicy", "None"))


def _spec(live: Mapping[str, Any]) -> Mapping[str, Any]:
    # Objects of others are looked at too, and some kinds need no spec.
    return live.get("spec") or {}


def _some(count: int, one: str, many: str) -> str:
    """The clause for a number of things; empty for none."""
    return f"{count} {one if count == 1 else many}" if count else ""


def _local_queue(key: Key, live: Live, usage: Usage) -> str:
    status = live[key].get("status") or {}
    held = max(int(status.get("reservingWorkloads", 0)), usage.reserving.get(key[1:], 0))
    return _holding(held)


def _cluster_queue(key: Key, live: Live, usage: Usage) -> str:
    status = live[key].get("status") or {}
    held = max(int(status.get("reservingWorkloads", 0)), usage.reserving_in.get(key[2], 0))
    if held:
        return _holding(held)
    left = sum(1 for k, q in live.items() if k[0] is LOCAL_QUEUE and _names(q, key[2]))
    return _some(left, "LocalQueue left", "LocalQueues left")


def _names(queue: Mapping[str, Any], cluster_queue: str) -> bool:
    return bool(_spec(queue).get("clusterQueue") == cluster_queue)


def _holding(count: int) -> str:
    return _some(count, "workload holds quota", "workloads hold quota")


def _cohort(key: Key, live: Live, _usage: Usage) -> str:
    members = sum(
        1
        for (kind, _, _), there in live.items()
        if (kind is CLUSTER_QUEUE and _spec(there).get("cohortName") == key[2])
        or (kind is COHORT and _spec(there).get("parentName") == key[2])
    )
    return _some(members, "queue or cohort below it", "queues or cohorts below it")


def _flavor(key: Key, live: Live, _usage: Usage) -> str:
    owners = (there for (kind, _, _), there in live.items() if kind in (CLUSTER_QUEUE, COHORT))
    users = sum(1 for there in owners if key[2] in _flavors(there))
    return _some(users, "queue or cohort uses it", "queues or cohorts use it")


def _flavors(owner: Mapping[str, Any]) -> set[str]:
    groups = _spec(owner).get("resourceGroups") or ()
    return {flavor["name"] for group in groups for flavor in group["flavors"]}


def _topology(key: Key, live: Live, _usage: Usage) -> str:
    users = sum(
        1
        for (kind, _, _), there in live.items()
        if kind is RESOURCE_FLAVOR and _spec(there).get("topologyName") == key[2]
    )
    return _some(users, "ResourceFlavor uses it", "ResourceFlavors use it")


def _workload_class(key: Key, _live: Live, usage: Usage) -> str:
    return "unfinished work names it" if key[2] in usage.workload_classes else ""


def _pod_class(key: Key, _live: Live, usage: Usage) -> str:
    return "pods or unfinished work name it" if key[2] in usage.pod_classes else ""


_BLOCKERS: Mapping[Any, Callable[[Key, Live, Usage], str]] = {
    LOCAL_QUEUE: _local_queue,
    CLUSTER_QUEUE: _cluster_queue,
    COHORT: _cohort,
    RESOURCE_FLAVOR: _flavor,
    TOPOLOGY: _topology,
    WORKLOAD_PRIORITY_CLASS: _workload_class,
    PRIORITY_CLASS: _pod_class,
}
