"""Sets the stage on a local cluster: nodes, CRD, namespaces, operator, policy."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from gpufair.api.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    GPU_SCHEDULING_POLICY,
    JOB,
    LEASE,
    NAMESPACE,
    NODE,
    WORKLOAD,
    Resource,
)
from gpufair.api.policy import Policy
from gpufair.cluster.client import Client, Json
from gpufair.cluster.errors import ApiError
from gpufair.demo import jobs, site
from gpufair.demo.child import Operator
from gpufair.demo.day import GPUS_PER_POD, DayJob
from gpufair.errors import GpufairError
from gpufair.local import nodes
from gpufair.local.progress import Progress
from gpufair.plan.conditions import condition_of
from gpufair.resources import crds_dir
from gpufair.settings import Settings

_MANAGER = "gpufair-demo"
_AT_ONCE = 8
_POLL = 0.2
_SECONDS = 60.0
_NOT_READY = "node.kubernetes.io/not-ready"


async def prepare(
    client: Client,
    policy: Policy,
    day: Iterable[DayJob],
    operator: Operator,
    progress: Progress,
) -> None:
    """Bring the policy into force on a cluster with the policy's own nodes, and no work on it.

    Raises GpufairError that says what did not work.
    """
    wanted = site.nodes(policy.spec)
    async with asyncio.TaskGroup() as group:
        group.create_task(_nodes(client, wanted, progress))
        group.create_task(_crd(client))
        group.create_task(_namespaces(client, policy, day))
        group.create_task(_sweep(client))
    with progress.step("operator", "starting"):
        started = datetime.now(UTC)
        operator.start()
        await _until(lambda: _leads(client, started), operator, "The operator does not work yet")
    with progress.step("policy", policy.name):
        await _apply(client, policy, operator)


async def _nodes(client: Client, wanted: list[site.NodeSpec], progress: Progress) -> None:
    present = {node["metadata"]["name"] for node in await client.list_all(NODE)}
    names = {node.name for node in wanted}
    missing = [node for node in wanted if node.name not in present]
    if not missing:
        return
    with progress.step("nodes", f"creating {len(missing)} with {GPUS_PER_POD} GPUs"):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await _each(_create_node(client, node, now) for node in missing)
        await _until(lambda: _schedulable(client, names), None, "The nodes are not ready yet")


async def _create_node(client: Client, node: site.NodeSpec, now: str) -> None:
    made = nodes.manifest(
        node.name, gpus=GPUS_PER_POD, labels=node.labels, taints=(), resources={}, now=now
    )
    await client.create(NODE, made)


async def _schedulable(client: Client, names: set[str]) -> str:
    found = await client.list_all(NODE)
    ready = {
        node["metadata"]["name"]
        for node in found
        if all(taint["key"] != _NOT_READY for taint in node["spec"].get("taints") or ())
    }
    return "" if names <= ready else f"{len(names - ready)} of {len(names)} to go"


async def _crd(client: Client) -> None:
    import yaml

    for file in sorted(crds_dir().glob("*.yaml")):
        manifest = yaml.safe_load(file.read_text(encoding="utf-8"))
        await client.apply(CUSTOM_RESOURCE_DEFINITION, manifest, force=True, field_manager=_MANAGER)
    await _until(lambda: _served(client), None, "The kind GpuSchedulingPolicy is not served yet")


async def _served(client: Client) -> str:
    try:
        await client.list_all(GPU_SCHEDULING_POLICY)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return "the API server does not know it"
    return ""


async def _namespaces(client: Client, policy: Policy, day: Iterable[DayJob]) -> None:
    for manifest in site.namespaces(policy.spec, day):
        await client.apply(NAMESPACE, manifest, force=True, field_manager=_MANAGER)


async def _sweep(client: Client) -> None:
    """Remove what an earlier day has left."""
    left = await client.list_all(JOB, label_selector=jobs.LABEL)
    await _each(_delete(client, JOB, job) for job in left)
    await _until(lambda: _no_work(client), None, "Work of an earlier day is still there")


async def _no_work(client: Client) -> str:
    left = await client.list_all(WORKLOAD)
    return f"{len(left)} Workloads" if left else ""


async def _delete(client: Client, kind: Resource, live: Json) -> None:
    metadata = live["metadata"]
    await client.delete(kind, metadata["name"], metadata["namespace"])


async def _leads(client: Client, since: datetime) -> str:
    """Whether an operator that began after `since` holds the lease; what is missing otherwise."""
    settings = Settings()
    try:
        lease = await client.get(LEASE, settings.lease_name, settings.lease_namespace)
    except ApiError as error:
        if not error.is_not_found:
            raise
        return "no operator has taken the lease"
    spec: dict[str, Any] = lease.get("spec") or {}
    renewed = datetime.fromisoformat(spec.get("renewTime") or "1970-01-01T00:00:00Z")
    if not spec.get("holderIdentity") or renewed < since:
        return "the lease is held by one that has ended, for 15 s at most"
    return ""


async def _apply(client: Client, policy: Policy, operator: Operator) -> None:
    dumped = policy.model_dump(mode="json", exclude_unset=True, exclude={"status"})
    manifest = dumped | {"metadata": {"name": policy.name}}
    _, made = await client.apply(
        GPU_SCHEDULING_POLICY, manifest, force=True, field_manager=_MANAGER
    )
    generation = made["metadata"]["generation"]
    await _until(
        lambda: _ready(client, policy.name, generation),
        operator,
        f"The policy {policy.name} is not Ready",
    )


async def _ready(client: Client, name: str, generation: int) -> str:
    found = condition_of(await client.get(GPU_SCHEDULING_POLICY, name), "Ready")
    if found.get("observedGeneration", 0) < generation:
        return "the operator has said nothing about it"
    return "" if found["status"] == "True" else f"{found['reason']}: {found['message']}"


async def _until(
    missing: Callable[[], Awaitable[str]], operator: Operator | None, late: str
) -> None:
    """Wait until nothing is missing; `missing` says what is.

    Raises GpufairError when that takes longer than a minute, or the operator has ended.
    """
    deadline = time.monotonic() + _SECONDS
    while what := await missing():
        if operator is not None:
            operator.check()
        if time.monotonic() > deadline:
            where = f" {operator.ending()}" if operator is not None else ""
            raise GpufairError(f"{late} after {_SECONDS:.0f} s: {what.rstrip('.')}.{where}")
        await asyncio.sleep(_POLL)


async def _each(works: Iterable[Awaitable[None]]) -> None:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(work: Awaitable[None]) -> None:
        async with gate:
            await work

    await asyncio.gather(*(one(work) for work in works))
