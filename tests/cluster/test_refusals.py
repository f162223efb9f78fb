"""The real API server refuses what it can, and nothing that `gpufair validate` accepts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, settings

from gpufair.api.checks import check
from gpufair.api.crd import crd
from gpufair.api.kinds import CUSTOM_RESOURCE_DEFINITION, GPU_SCHEDULING_POLICY
from gpufair.api.load import InvalidPolicy, load_files, parse_policy
from gpufair.api.status import PolicyStatus
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.local import Instance
from tests.property.api_policies import policies, repaired
from tests.unit.api.cases import Case, Json, base, cases, edited, load
from tests.unit.api.test_hostile import HOSTILE, PATHS, full

CASES = cases()
EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.yaml"))


@pytest_asyncio.fixture(scope="session")
async def server(cluster: Instance) -> AsyncIterator[Client]:
    """A client of the cluster, with this checkout's CRD in force."""
    async with Client.from_kubeconfig(cluster.kubeconfig, timeout=60.0) as client:
        await client.apply(CUSTOM_RESOURCE_DEFINITION, crd(), force=True)
        async with asyncio.timeout(60):
            while not await in_force(client):
                await asyncio.sleep(0.1)
        yield client


async def in_force(client: Client) -> bool:
    """Whether the server judges by the CRD: a rule of it refuses, and the base passes."""
    zero = edited(base(), {"spec.tiers[2].aging.increase": "0%"})
    try:
        await client.create(GPU_SCHEDULING_POLICY, base(), dry_run=True)
        await client.create(GPU_SCHEDULING_POLICY, zero, dry_run=True)
    except ApiError as refusal:
        return "is zero: write a percentage above 0%" in refusal.message
    return False


async def answer(client: Client, policy: Json) -> tuple[str, Json | None]:
    """Return why the server would refuse a new policy, and what it would make of it."""
    try:
        made = await client.create(GPU_SCHEDULING_POLICY, policy, dry_run=True)
    except ApiError as refusal:
        if not refusal.is_invalid:
            raise
        return refusal.message, None
    return "", made


async def refusal_of(client: Client, policy: Json) -> str | None:
    """Return why the server would refuse a new policy, None when it would take it."""
    message, made = await answer(client, policy)
    return None if made else message


async def refusal_of_change(client: Client, old: Json, new: Json) -> str | None:
    """Return why the server would refuse a policy after an accepted one."""
    name = f"refusals-{uuid.uuid4().hex[:8]}"
    # No operator of another test shall act on it meanwhile.
    old, new = (
        edited(policy, {"metadata.name": name, "spec.suspend": True}) for policy in (old, new)
    )
    made = await client.create(GPU_SCHEDULING_POLICY, old)
    try:
        patch = [{"op": "replace", "path": "/spec", "value": new["spec"]}]
        await client.patch_json(GPU_SCHEDULING_POLICY, name, patch, dry_run=True)
    except ApiError as refusal:
        if not refusal.is_invalid:
            raise
        return refusal.message
    finally:
        await client.delete(GPU_SCHEDULING_POLICY, name, uid=made["metadata"]["uid"])
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_verdict(server: Client, case: Case) -> None:
    if case.old is None:
        refusal = await refusal_of(server, case.policy)
    else:
        refusal = await refusal_of_change(server, case.old, case.policy)
    if case.server is None:
        assert refusal is None
    else:
        assert refusal is not None
        assert case.server in refusal


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
async def test_examples_are_accepted(server: Client, path: Path) -> None:
    assert await refusal_of(server, renamed(load(path))) is None


def renamed(policy: Json) -> Json:
    """A copy with a name that no other test uses."""
    return edited(policy, {"metadata.name": f"refusals-{uuid.uuid4().hex[:8]}"})


async def test_defaults_are_filled_in_as_the_model_has_them(server: Client) -> None:
    """Also those of objects that are left out altogether."""
    for path in EXAMPLES:
        (loaded,) = load_files([path])
        made = await server.create(GPU_SCHEDULING_POLICY, renamed(load(path)), dry_run=True)
        assert loaded.policy is not None
        assert parse_policy(made).spec == loaded.policy.spec
    assert made["spec"]["fairness"] == {"reclaim": "LowerPriority", "window": "168h"}
    assert made["spec"]["tiers"][0]["gang"] == {
        "podGroup": "None",
        "minMember": "100%",
        "binding": "Template",
    }


async def test_a_list_with_a_default_is_replaced_as_a_whole(server: Client) -> None:
    """An applied list of resources must not be merged with the default that was there before."""
    name = f"refusals-{uuid.uuid4().hex[:8]}"
    policy = edited(
        base(), {"metadata.name": name, "spec.suspend": True, "spec.flavors[3]": {"name": "other"}}
    )
    changed = edited(policy, {"spec.flavors[3].resources": ["example.com/gpu"]})
    try:
        await server.apply(GPU_SCHEDULING_POLICY, policy)
        _, made = await server.apply(GPU_SCHEDULING_POLICY, changed)
        assert made["spec"]["flavors"][3]["resources"] == ["example.com/gpu"]
    finally:
        await server.delete(GPU_SCHEDULING_POLICY, name)


async def test_status_and_columns(server: Client, cluster: Instance) -> None:
    """Every field of the status is stored, and `kubectl get gsp` shows it."""
    policy = edited(renamed(base()), {"spec.suspend": True})
    name = policy["metadata"]["name"]
    now = "2026-12-01T08:00:00Z"
    condition = {"status": "True", "reason": "Applied", "message": "All is well.", "type": "Ready"}
    tier_counts = dict.fromkeys(("pending", "running", "boosted", "shielded", "starving"), 1)
    status = {
        "observedGeneration": 1,
        "conditions": [condition | {"lastTransitionTime": now, "observedGeneration": 1}],
        "activeWindows": ["night"],
        "nextTransitionTime": now,
        "tenantCount": 3,
        "utilization": "87.5%",
        "worstShareError": "2.5%",
        "tenants": [
            {
                "name": "fraud",
                "weight": 2.5,
                "nominal": {"nvidia.com/gpu": 32},
                "used": {"nvidia.com/gpu": "40"},
                "borrowed": {"nvidia.com/gpu": 8},
                "pending": {"nvidia.com/gpu": 16},
                "share": "50%",
                "entitledShare": "52.5%",
                "shareError": "2.5%",
            }
        ],
        "tiers": [{"name": "dev", "longestWait": "3h20m0s", **tier_counts}],
        "appliedObjects": {"ClusterQueue": 3},
    }
    await server.create(GPU_SCHEDULING_POLICY, policy)
    try:
        head = {key: policy[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": name}}
        _, made = await server.apply_status(GPU_SCHEDULING_POLICY, {**head, "status": status})
        assert made["status"] == status
        assert PolicyStatus.model_validate_json(json.dumps(made["status"]), strict=True)
        command = [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "get", "gsp", name]
        shown = await asyncio.to_thread(subprocess.check_output, command, text=True)
        header, row = (line.split() for line in shown.splitlines())
        columns = ["NAME", "READY", "ENGINE", "TENANTS", "UTILIZATION", "SHARE", "ERROR", "AGE"]
        assert header == columns
        assert row[:-1] == [name, "True", "Kueue", "3", "87.5%", "2.5%"]
    finally:
        await server.delete(GPU_SCHEDULING_POLICY, name)


def large(tenants: int, *, quotas: int = 2, windows: int = 0, overrides: int = 0) -> Json:
    """A valid policy of many tenants with 3 namespaces each."""
    flavors = [f"flavor-{n}" for n in range(quotas)]
    names = [f"tenant-with-a-name-{n}" for n in range(tenants)]
    quota = [{"flavor": name, "nominal": 16, "lendingLimit": 8} for name in flavors]
    weekly = {"days": ["Mon"], "from": "00:00", "to": "01:00"}
    return edited(
        base(),
        {
            "spec": {
                "flavors": [{"name": name} for name in flavors],
                "tiers": [{"name": "prod", "priority": 1000}, {"name": "dev", "priority": 10}],
                "cohorts": [
                    {"name": f"c{n}", **({"parent": f"c{n - 1}"} if n else {})} for n in range(64)
                ],
                "tenants": [
                    {
                        "name": name,
                        "namespaces": [f"{name}-{suffix}" for suffix in "abc"],
                        "cohort": f"c{index % 64}",
                        "tiers": ["prod", "dev"],
                        "quota": quota,
                    }
                    for index, name in enumerate(names)
                ],
                "windows": [
                    {
                        "name": f"w{n}",
                        "timeZone": "UTC",
                        "weekly": weekly,
                        "tenants": [{"name": name, "weight": 2} for name in names[:overrides]],
                    }
                    for n in range(windows)
                ],
            }
        },
    )


@pytest.mark.parametrize(
    "policy",
    [large(1000), large(1000, quotas=16), large(1000, windows=64, overrides=200)],
    ids=["two-flavors", "sixteen-flavors", "many-overrides"],
)
async def test_the_largest_policies_stay_within_the_budget(server: Client, policy: Json) -> None:
    """The server counts what its rules cost, and would refuse a valid policy beyond its budget."""
    assert len(json.dumps(policy)) < 1_500_000  # etcd takes no more
    assert check(parse_policy(policy)) == []
    assert await refusal_of(server, policy) is None


async def test_the_last_of_many_tenants_is_judged_too(server: Client) -> None:
    for changes, message in (
        ({"spec.tenants[999].cohort": "none"}, "tenant tenant-with-a-name-999 has a cohort"),
        (
            {"spec.tenants[999].namespaces[2]": "tenant-with-a-name-0-a"},
            "two tenants have the same",
        ),
        ({"spec.tenants[999].quota[1].lendingLimit": 17}, "spec.tenants[999].quota[1]"),
        ({"spec.cohorts[0].parent": "c63"}, "form a cycle"),
    ):
        refusal = await refusal_of(server, edited(large(1000), changes))
        assert refusal is not None
        assert message in refusal


@pytest.mark.parametrize("path", PATHS)
async def test_hostile_strings_are_refused_or_kept(server: Client, path: str) -> None:
    """Whatever offline reading accepts, the server accepts too, and keeps exactly."""
    for hostile in HOSTILE:
        policy = edited(full(), {path: hostile})
        if path == "metadata.name":
            continue  # part of the URL's checks, and of every object's
        refusal, made = await answer(server, policy)
        if made is None:
            assert error_paths(policy), (hostile, refusal)
        else:
            assert at(made, path) == hostile


def error_paths(policy: Json) -> list[str]:
    """Return the paths of what is wrong, judged offline."""
    try:
        found = check(parse_policy(policy))
    except InvalidPolicy as refusal:
        found = refusal.problems
    return [problem.path for problem in found if problem.is_error]


def at(policy: Json, path: str) -> Any:
    found: Any = policy
    for step in path.replace("[", ".").replace("]", "").split("."):
        found = found[int(step) if isinstance(found, list) else step]
    return found


@settings(
    max_examples=200,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(made=policies())
async def test_what_validate_accepts_the_server_accepts(server: Client, made: Json) -> None:
    policy = repaired(made, error_paths)
    if policy is not None:
        assert await refusal_of(server, policy) is None, json.dumps(policy)
