"""One pass over a valid policy: plan, compare, write, retire what is no longer asked for."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from gpufair.api.kinds import LOCAL_QUEUE, POD, PRIORITY_CLASS
from gpufair.api.policy import DeletionPolicy, Policy
from gpufair.cluster.applier import Applier, Operation, Outcome, Result, Wave
from gpufair.cluster.client import Client
from gpufair.loops.caches import Caches
from gpufair.loops.policies import Memory
from gpufair.plan.changes import Changes, Write, changes, turn
from gpufair.plan.kueue import stopped_queue
from gpufair.plan.objects import Key
from gpufair.plan.plan import Plan
from gpufair.plan.records import usage
from gpufair.plan.retire import Retirement, Usage, retire
from gpufair.plan.selectors import Facts


@dataclass
class Tally:
    """What came of a number of writes."""

    written: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    again: bool = False
    """An object changed under our hands: the next pass sees it anew."""


@dataclass
class Passed:
    """What a pass found, did, and left to do."""

    plan: Plan
    changes: Changes
    tally: Tally = field(default_factory=Tally)
    missing: Sequence[str] = ()
    """Namespaces that tenants list and that do not exist."""


class _Operations(Collection[Operation]):
    """Operations that are made when their turn comes.

    Reading thousands of manifests takes a second; this way the server has work meanwhile.
    """

    def __init__(self, writes: Sequence[Write], make: Callable[[Write], Operation]) -> None:
        self._writes = writes
        self._make = make

    def __len__(self) -> int:
        return len(self._writes)

    def __iter__(self) -> Iterator[Operation]:
        return map(self._make, self._writes)

    def __contains__(self, item: object) -> bool:
        return item in list(self)


class Enforcer:
    """Makes the cluster hold what policies ask for."""

    def __init__(self, client: Client, caches: Caches, applier: Applier) -> None:
        self._client = client
        self._caches = caches
        self._applier = applier

    async def enforce(self, policy: Policy, memory: Memory, now: datetime) -> Passed:
        """Plan the policy at `now` and write what differs."""
        caches = self._caches
        facts = Facts(caches.namespaces, policy.metadata.uid)
        planned = memory.plan(policy, facts, caches.namespace_revision, now)
        found = changes(policy.name, planned.objects, caches.live, memory.differs)
        tally = Tally(conflicts=[*map(str, found.conflicts), *planned.collisions])
        missing = sorted({n for t in planned.spec.tenants for n in facts.missing(t)})
        await self._run(self._writes(found.writes), tally)
        going = [*found.stale, *found.replaced]
        await self.retire(policy.name, policy.metadata.uid, going, tally)
        return Passed(planned, found, tally, missing)

    async def retire(
        self,
        policy: str,
        uid: str,
        going: Sequence[Key],
        tally: Tally,
        *,
        ending: DeletionPolicy | None = None,
    ) -> None:
        """Take the next steps towards the end of the objects `going`.

        `ending` is the policy's deletionPolicy when all of it goes.
        """
        if not going:
            self._caches.retiring.discard(policy)
            return
        self._caches.retiring.add(policy)
        using = await self._usage(going, ending=ending is not None)
        evict = ending is DeletionPolicy.EVICT
        step = retire(going, self._caches.live, using, evict=evict)
        tally.waits += step.waits
        await self._run(self._steps(policy, uid, step), tally)

    def _writes(self, writes: Sequence[Write]) -> list[Wave]:
        groups = (list(group) for _, group in groupby(writes, turn))
        return [Wave(_Operations(group, self._write)) for group in groups]

    def _write(self, write: Write) -> Operation:
        desired = write.desired
        there = self._caches.live.get(desired.key)
        if write.creates or there is None:
            return Operation.create(desired.resource, desired.manifest)
        return Operation.update(desired.resource, desired.manifest, uid=there["metadata"]["uid"])

    def _steps(self, policy: str, uid: str, step: Retirement) -> list[Wave]:
        live = self._caches.live
        stops = [
            Operation.update(
                LOCAL_QUEUE,
                stopped_queue(policy, uid, live[key], stop).manifest,
                uid=live[key]["metadata"]["uid"],
            )
            for key, stop in step.stops
        ]
        deletes = [
            Operation.delete(kind, name, namespace or None, uid=live[key]["metadata"]["uid"])
            for key in step.deletes
            for kind, namespace, name in (key,)
        ]
        return [Wave(operations) for operations in (stops, deletes) if operations]

    async def _run(self, waves: list[Wave], tally: Tally) -> None:
        if waves:
            await self._applier.run(waves, on_outcome=lambda outcome: self._note(outcome, tally))

    def _note(self, outcome: Outcome, tally: Tally) -> None:
        if outcome.object is not None and outcome.ok:
            self._caches.wrote(outcome.operation.resource, outcome.object)
        result = outcome.result
        if result is Result.CONFLICT:
            tally.conflicts.append(outcome.message)
        elif result is Result.STALE:
            tally.again = True
        elif outcome.ok:
            if result is not Result.UNCHANGED:
                tally.written[result.value] = tally.written.get(result.value, 0) + 1
        else:
            operation = outcome.operation
            where = f"{operation.namespace}/" if operation.namespace else ""
            name = f"{operation.resource.kind} {where}{operation.name}"
            tally.errors.append(f"{name}: {outcome.message}")

    async def _usage(self, going: Sequence[Key], *, ending: bool) -> Usage:
        found = usage(self._caches.workloads.values(), running_only=ending)
        classes = {name for kind, _, name in going if kind is PRIORITY_CLASS}
        if not classes:
            return found
        # Pods are many and rarely asked about: a list now and then instead of a cache.
        naming = await self._pods_naming(classes - found.pod_classes)
        return Usage(
            found.reserving, found.reserving_in, found.workload_classes, found.pod_classes | naming
        )

    async def _pods_naming(self, classes: set[str]) -> frozenset[str]:
        found: set[str] = set()
        unfinished = "status.phase!=Succeeded,status.phase!=Failed"
        if classes:
            async for page in self._client.list_pages(POD, field_selector=unfinished):
                names = (pod["spec"].get("priorityClassName") for pod in page.get("items") or ())
                found.update(name for name in names if name in classes)
        return frozenset(found)
