"""Slim records of Kueue Workloads: what plan and status need of them, and no more."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from gpufair.api.kinds import LOCAL_QUEUE
from gpufair.api.quantity import parse_quantity
from gpufair.plan.changes import Live
from gpufair.plan.retire import Usage

_COMMON = frozenset(("cpu", "memory", "ephemeral-storage"))


class State(Enum):
    """Where a Workload stands; RESERVED has quota and waits for admission checks."""

    PENDING = "Pending"
    RESERVED = "Reserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


@dataclass(frozen=True, slots=True)
class WorkloadRecord:
    """One Workload. `requests` are units by resource over all its pods, cpu and memory left out."""

    namespace: str
    name: str
    queue: str
    cluster_queue: str
    workload_class: str
    pod_classes: tuple[str, ...]
    state: State
    active: bool
    created: str
    requests: tuple[tuple[str, Fraction], ...]

    @property
    def holds_quota(self) -> bool:
        return self.state in (State.RESERVED, State.ADMITTED)


def workload_record(live: Mapping[str, Any]) -> WorkloadRecord:
    """Read a kueue.x-k8s.io/v1beta2 Workload."""
    metadata, spec = live["metadata"], live.get("spec") or {}
    status = live.get("status") or {}
    reference = spec.get("priorityClassRef") or {}
    templates = [(p.get("template") or {}).get("spec") or {} for p in spec.get("podSets") or ()]
    classes = {t["priorityClassName"] for t in templates if t.get("priorityClassName")}
    if reference.get("group") == "scheduling.k8s.io":
        classes.add(reference.get("name", ""))
    of_kueue = reference.get("group") == "kueue.x-k8s.io"
    return WorkloadRecord(
        namespace=metadata["namespace"],
        name=metadata["name"],
        queue=spec.get("queueName", ""),
        cluster_queue=(status.get("admission") or {}).get("clusterQueue", ""),
        workload_class=reference.get("name", "") if of_kueue else "",
        pod_classes=tuple(sorted(classes)),
        state=_state(status),
        active=spec.get("active", True),
        created=metadata.get("creationTimestamp", ""),
        requests=_requests(spec),
    )


def _state(status: Mapping[str, Any]) -> State:
    true = {c["type"] for c in status.get("conditions") or () if c.get("status") == "True"}
    for name, state in _STATES:
        if name in true:
            return state
    return State.PENDING


_STATES = (
    ("Finished", State.FINISHED),
    ("Admitted", State.ADMITTED),
    ("QuotaReserved", State.RESERVED),
)


def _requests(spec: Mapping[str, Any]) -> tuple[tuple[str, Fraction], ...]:
    totals: dict[str, Fraction] = {}
    for pod_set in spec.get("podSets") or ():
        pod = (pod_set.get("template") or {}).get("spec") or {}
        for name, units in _of_pod(pod).items():
            totals[name] = totals.get(name, Fraction(0)) + pod_set.get("count", 1) * units
    return tuple(sorted(totals.items()))


def _of_pod(pod: Mapping[str, Any]) -> dict[str, Fraction]:
    """What a pod needs at its peak: its containers, or an init container beside what stays.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/init-containers/
    """
    lasting: defaultdict[str, Fraction] = defaultdict(Fraction)
    peak: defaultdict[str, Fraction] = defaultdict(Fraction)
    for container in pod.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"
        for name, units in _of_container(container).items():
            peak[name] = max(peak[name], lasting[name] + units)
            lasting[name] += units if stays else 0
    for container in pod.get("containers") or ():
        for name, units in _of_container(container).items():
            lasting[name] += units
    return {name: max(units, peak[name]) for name, units in lasting.items()}


def _of_container(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    asked = (resources.get("limits") or {}) | (resources.get("requests") or {})
    return {name: parse_quantity(text) for name, text in asked.items() if name not in _COMMON}


def usage(workloads: Iterable[WorkloadRecord], *, running_only: bool = False) -> Usage:
    """What unfinished work holds and names; with `running_only` only what holds quota counts.

    That is for the end of a policy: what waits then in queues that go can never start.
    """
    reserving: dict[tuple[str, str], int] = {}
    reserving_in: dict[str, int] = {}
    workload_classes: set[str] = set()
    pod_classes: set[str] = set()
    for record in workloads:
        if record.state is State.FINISHED or (running_only and not record.holds_quota):
            continue
        workload_classes.add(record.workload_class)
        pod_classes.update(record.pod_classes)
        if record.holds_quota:
            key = (record.namespace, record.queue)
            reserving[key] = reserving.get(key, 0) + 1
            queue = record.cluster_queue
            reserving_in[queue] = reserving_in.get(queue, 0) + 1
    return Usage(reserving, reserving_in, frozenset(workload_classes), frozenset(pod_classes))


def queue_of(record: WorkloadRecord, live: Live) -> str:
    """The ClusterQueue that the Workload is in or waits for; empty when there is none."""
    if record.cluster_queue:
        return record.cluster_queue
    queue = live.get((LOCAL_QUEUE, record.namespace, record.queue))
    return str((queue.get("spec") or {}).get("clusterQueue", "")) if queue else ""
