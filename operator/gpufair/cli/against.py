"""`validate --cluster`: what only a cluster can tell about a policy."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from gpufair.api.kinds import GPU_SCHEDULING_POLICY, KUEUE_GROUP
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem, error, warning
from gpufair.cli.connect import with_client
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.cluster.snapshot import Snapshot, snapshot
from gpufair.plan.difference import object_changes
from gpufair.plan.plan import plan


def cluster_problems(
    policies: list[Policy], kubeconfig: str | None, context: str | None
) -> Mapping[str, list[Problem]]:
    """Return findings by policy name: the server's own verdict, conflicts, missing namespaces.

    Raises ClusterError (exit code 2) when the cluster cannot be reached.
    """

    async def work(client: Client) -> dict[str, list[Problem]]:
        taken = await snapshot(client)
        found = {}
        for policy in policies:
            found[policy.name] = [
                *_of_view(policy, taken),
                *await _of_server(client, policy, taken),
            ]
        return found

    return with_client(kubeconfig, context, work)


def _of_view(policy: Policy, taken: Snapshot) -> list[Problem]:
    if any(kind.group == KUEUE_GROUP for kind in taken.absent):
        return [
            error("spec.engine", "the cluster has no Kueue v1beta2: install Kueue 0.17 or later")
        ]
    facts = taken.facts(policy.name)
    planned = plan(policy, facts, datetime.now(UTC))
    conflicts = [
        error("", f"{change.title} {change.message}".strip())
        for change in object_changes(policy.name, planned, taken.live)
        if change.action == "conflict"
    ]
    missing = [
        warning(f"spec.tenants[{index}].namespaces", f"{name} does not exist on the cluster yet")
        for index, tenant in enumerate(policy.spec.tenants)
        for name in facts.missing(tenant)
    ]
    return conflicts + missing


async def _of_server(client: Client, policy: Policy, taken: Snapshot) -> list[Problem]:
    if GPU_SCHEDULING_POLICY in taken.absent:
        hint = "the cluster does not know GpuSchedulingPolicy yet: install it with gpufair crd"
        return [warning("kind", hint)]
    manifest: dict[str, Any] = policy.manifest()
    try:
        await client.apply(GPU_SCHEDULING_POLICY, manifest, force=True, dry_run=True)
    except ApiError as failure:
        return [error("", f"the API server refuses it: {failure.message}")]
    return []
