"""What the demo reads of Kueue's objects: slim records of Workloads and ClusterQueues. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufair.api.flavors import GPU
from gpufair.api.quantity import parse_quantity
from gpufair.plan.conditions import condition_of
from gpufair.plan.records import State, workload_record


@dataclass(frozen=True, slots=True)
class Preemption:
    """How often a Workload was preempted, and the last time why; `by` is a Job's UID."""

    count: int
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Work:
    """One Workload: the Job that it stands for, and where it stands."""

    namespace: str
    job: str
    uid: str
    """UID of the Job."""
    tier: str
    queue: str
    """ClusterQueue that admitted it; empty while it waits."""
    gpus: int
    flavors: tuple[tuple[str, int], ...]
    """GPUs that it holds, by flavor; empty while it waits."""
    state: State
    preemption: Preemption | None = None

    @property
    def runs(self) -> bool:
        return self.state in (State.RESERVED, State.ADMITTED)

    @property
    def waits(self) -> bool:
        return self.state is State.PENDING


def work(live: Mapping[str, Any]) -> Work | None:
    """Read a Workload; None when it is not of a Job."""
    owner = next(
        (o for o in live["metadata"].get("ownerReferences") or () if o.get("kind") == "Job"), None
    )
    if owner is None:
        return None
    record = workload_record(live)
    return Work(
        namespace=record.namespace,
        job=owner["name"],
        uid=owner["uid"],
        tier=record.workload_class,
        queue=record.cluster_queue,
        gpus=sum(int(units) for name, units in record.requests if name == GPU),
        flavors=_flavors(live),
        state=record.state,
        preemption=_preemption(live),
    )


def _flavors(live: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    admission = (live.get("status") or {}).get("admission") or {}
    held: dict[str, int] = {}
    for assigned in admission.get("podSetAssignments") or ():
        flavor = (assigned.get("flavors") or {}).get(GPU)
        if flavor is not None:
            held[flavor] = held.get(flavor, 0) + _units([assigned["resourceUsage"][GPU]])
    return tuple(sorted(held.items()))


def _preemption(live: Mapping[str, Any]) -> Preemption | None:
    stats = (live.get("status") or {}).get("schedulingStats") or {}
    evictions = stats.get("evictions") or ()
    count = sum(entry.get("count", 0) for entry in evictions if entry["reason"] == "Preempted")
    if not count:
        return None
    condition = condition_of(live, "Preempted")
    return Preemption(count, condition.get("reason", ""), _job_uid(condition.get("message", "")))


def _job_uid(message: str) -> str:
    """The Job named in `Preempted to accommodate a workload (UID: …, JobUID: …) …`."""
    _, _, rest = message.partition("JobUID: ")
    return rest.partition(")")[0].strip()


@dataclass(frozen=True, slots=True)
class Queue:
    """What one ClusterQueue may have, in GPUs."""

    name: str
    nominals: tuple[tuple[str, int], ...]
    """By flavor."""
    limit: int | None
    """Most that it may borrow; None: no limit."""
    lends: int | None
    """Most that others may use of it; None: all."""

    @property
    def nominal(self) -> int:
        return sum(units for _, units in self.nominals)

    def borrowed(self, held: Mapping[str, int]) -> int:
        """What goes beyond its nominal quota when it holds so much, by flavor; as Kueue counts."""
        nominals = dict(self.nominals)
        return sum(max(0, units - nominals.get(flavor, 0)) for flavor, units in held.items())


def queue(live: Mapping[str, Any]) -> Queue:
    """Read a ClusterQueue."""
    quotas = [
        (flavor["name"], resource)
        for group in live["spec"].get("resourceGroups") or ()
        for flavor in group["flavors"]
        for resource in flavor["resources"]
        if resource["name"] == GPU
    ]
    return Queue(
        name=live["metadata"]["name"],
        nominals=tuple((flavor, _units([quota["nominalQuota"]])) for flavor, quota in quotas),
        limit=_limit(quota.get("borrowingLimit") for _, quota in quotas),
        lends=_limit(quota.get("lendingLimit") for _, quota in quotas),
    )


def _units(amounts: Iterable[Any]) -> int:
    return int(sum(parse_quantity(amount) for amount in amounts))


def _limit(amounts: Iterable[Any]) -> int | None:
    """The sum of limits; None when one of them is missing: there is no limit then."""
    found = list(amounts)
    return None if not found or None in found else _units(found)
