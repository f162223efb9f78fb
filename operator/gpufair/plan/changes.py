"""What must be written so that the cluster holds what the plan asks for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT, LOCAL_QUEUE
from gpufair.api.quantity import parse_quantity
from gpufair.plan.fieldset import differs
from gpufair.plan.objects import APPLY_ORDER, Desired, Key
from gpufair.plan.ownership import Conflict, Owner, conflict, owner_of, policy_of

Live = Mapping[Key, Mapping[str, Any]]
"""Live objects of the kinds that a plan makes, whoever owns them."""
Differs = Callable[[Desired, Mapping[str, Any]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Write:
    """One object to apply: a new one, or one of which the `fields` named differ."""

    desired: Desired
    creates: bool
    fields: Sequence[str] = ()
    lowers_quota: bool = False
    raises_quota: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between a plan and the cluster.

    `stale` are live objects of the policy that it no longer asks for; `replaced` are those that
    stand in the way of a desired object by a field that cannot be changed, and must go first.
    """

    writes: Sequence[Write] = ()
    unchanged: int = 0
    conflicts: Sequence[Conflict] = ()
    stale: Sequence[Key] = ()
    replaced: Sequence[Key] = ()

    def __bool__(self) -> bool:
        return bool(self.writes or self.stale or self.replaced)


def compare(desired: Desired, live: Mapping[str, Any]) -> Sequence[str]:
    """Paths of the fields of ours that differ."""
    return differs(desired.manifest, live)


def changes(
    policy: str, objects: Iterable[Desired], live: Live, differs: Differs = compare
) -> Changes:
    """Return what to write, in the order in which it is applied.

    Kinds come in the order of `APPLY_ORDER`; ClusterQueues whose quota sinks come before those, and
    before the Cohorts, whose quota grows: the sum never exceeds what it was and will be.
    """
    comparison = _Comparison(policy, live, differs)
    wanted = [item.key for item in objects if comparison.judge(item)]
    known = set(wanted)
    stale = [
        key
        for kind in reversed(APPLY_ORDER)
        for key, there in live.items()
        if key[0] is kind and key not in known and policy_of(there) == policy
    ]
    comparison.writes.sort(key=turn)
    return Changes(
        comparison.writes, comparison.unchanged, comparison.conflicts, stale, comparison.replaced
    )


def turn(write: Write) -> tuple[int, bool]:
    """Where a write stands: a cohort whose quota grows waits for the queues whose quota sinks."""
    kind = write.desired.resource
    if kind is COHORT and write.raises_quota and not write.lowers_quota:
        return _ORDER[CLUSTER_QUEUE], True
    return _ORDER[kind], kind is CLUSTER_QUEUE and not write.lowers_quota


_ORDER = {kind: i for i, kind in enumerate(APPLY_ORDER)}


class _Comparison:
    def __init__(self, policy: str, live: Live, differs: Differs) -> None:
        self._policy = policy
        self._live = live
        self._differs = differs
        self._lost: set[str] = set()  # ClusterQueues of others: no LocalQueue of ours names them
        self.writes: list[Write] = []
        self.conflicts: list[Conflict] = []
        self.replaced: list[Key] = []
        self.unchanged = 0

    def judge(self, item: Desired) -> bool:
        """Sort one desired object in; whether it keeps a live object of its key."""
        there = self._live.get(item.key)
        if item.resource is LOCAL_QUEUE and self._astray(item):
            return False
        if there is None:
            self.writes.append(Write(item, creates=True))
        elif owner_of(there, self._policy) is Owner.FOREIGN:
            self.conflicts.append(conflict(item.key, there))
            if item.resource is CLUSTER_QUEUE:
                self._lost.add(item.name)
        else:
            self._compare(item, there)
        return True

    def _astray(self, item: Desired) -> bool:
        if not self._lost:
            return False
        queue = item.manifest["spec"]["clusterQueue"]
        if queue not in self._lost:
            return False
        reason = f"is not made: ClusterQueue {queue} is not this policy's."
        self.conflicts.append(Conflict(item.key, reason))
        return True

    def _compare(self, item: Desired, there: Mapping[str, Any]) -> None:
        fields = self._differs(item, there)
        if not fields:
            self.unchanged += 1
        elif _stands_in_the_way(item, there):
            self.replaced.append(item.key)
        else:
            sinks, grows = (
                _quota_moves(item.manifest, there) if _has_quota(item) else (False, False)
            )
            self.writes.append(Write(item, False, fields, sinks, grows))


def _stands_in_the_way(item: Desired, there: Mapping[str, Any]) -> bool:
    """Whether the object must be made anew: a LocalQueue's ClusterQueue is immutable."""
    if item.resource is not LOCAL_QUEUE:
        return False
    return bool(item.manifest["spec"]["clusterQueue"] != there["spec"].get("clusterQueue"))


def _has_quota(item: Desired) -> bool:
    return item.resource in (CLUSTER_QUEUE, COHORT)


def _quota_moves(manifest: Mapping[str, Any], there: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether any nominal quota sinks, and whether any grows."""
    wanted, before = _nominals(manifest), _nominals(there)
    return (
        any(before[key] > wanted.get(key, 0) for key in before),
        any(wanted[key] > before.get(key, 0) for key in wanted),
    )


def _nominals(queue: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (flavor["name"], resource["name"]): parse_quantity(resource.get("nominalQuota", 0))
        for group in (queue.get("spec") or {}).get("resourceGroups") or ()
        for flavor in group["flavors"]
        for resource in flavor["resources"]
    }


def count_by_kind(keys: Iterable[Key]) -> dict[str, int]:
    """Return how many objects there are of each kind, as `appliedObjects` shows it."""
    counts: dict[str, int] = {}
    for resource, _, _ in keys:
        counts[resource.kind] = counts.get(resource.kind, 0) + 1
    return dict(sorted(counts.items()))
