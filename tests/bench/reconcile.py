"""Planning and applying a policy of 1,000 tenants, beside a bare client (make bench-reconcile)."""

import argparse
import asyncio
import copy
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    COHORT,
    CUSTOM_RESOURCE_DEFINITION,
    GPU_SCHEDULING_POLICY,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    WORKLOAD_PRIORITY_CLASS,
)
from gpufair.api.load import parse_policy
from gpufair.cluster.client import Client
from gpufair.plan.objects import APPLY_ORDER
from gpufair.plan.plan import plan
from gpufair.plan.selectors import Facts
from gpufair.resources import crds_dir, examples_dir
from tests.bench import cluster
from tests.bench.harness import Bench, say
from tests.bench.policies import wide

WORKERS = 16
KINDS = [kind.plural for kind in APPLY_ORDER]
NAME = "bench"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    bench = Bench("reconcile")
    _offline(bench, options.tenants)
    from gpufair import local

    say("starting a local cluster")
    instance = local.up("bench", nodes=1)
    try:
        asyncio.run(_online(bench, instance.kubeconfig, options.tenants, options.rounds))
    finally:
        local.down("bench")
    return bench.finish()


def _offline(bench: Bench, tenants: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.json"
        file.write_text(json.dumps(wide(NAME, tenants)))
        render = _timed("render", "-f", str(file))
    small = _timed("validate", "-f", str(examples_dir() / "quickstart.yaml"))
    bare = _timed("version")
    bench.figure("render-1k-tenants-s", render, unit="s", bar=2.0, raw={"start_s": bare})
    bench.figure("validate-small-s", small, unit="s", bar=0.5, raw={"start_s": bare})


def _timed(*arguments: str, runs: int = 5) -> float:
    """Median seconds of a whole process, its start included."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        command = [sys.executable, "-m", "gpufair", *arguments]
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


async def _online(bench: Bench, kubeconfig: Path, tenants: int, rounds: int) -> None:
    raw = wide(NAME, tenants)
    async with cluster.connected(kubeconfig) as client:
        await _install_crd(client)
        say(f"creating {3 * tenants} namespaces")
        names = [name for tenant in raw["spec"]["tenants"] for name in tenant["namespaces"]]
        await cluster.make_namespaces(client, names)
        objects = plan(parse_policy(raw), Facts(), datetime.now(UTC)).objects
        bare, ours = [], []
        for number in range(rounds):
            await _empty(client)
            say(f"round {number + 1}: {len(objects)} objects by a bare client")
            bare.append(await cluster.send_bare(client, objects, WORKERS))
            await _empty(client)
            say(f"bare: {bare[-1]:.1f} s; the same by the operator")
            ours.append(await _by_operator(client, kubeconfig, raw))
            say(f"operator: {ours[-1]:.1f} s")
        ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
        bench.figure(
            "create-1k-tenants",
            statistics.median(ratios),
            unit="of bare",
            bar=1.25,
            raw={"bare_s": bare, "operator_s": ours, "objects": len(objects)},
        )
        await _unchanged(bench, client, kubeconfig)
        await _one_change(bench, client, kubeconfig, raw)


async def _install_crd(client: Client) -> None:
    import yaml

    for file in crds_dir().glob("*.yaml"):
        manifest = yaml.safe_load(file.read_text())
        await client.apply(CUSTOM_RESOURCE_DEFINITION, manifest, force=True)
    await cluster.until(lambda: _served(client), bool, 30)


async def _served(client: Client) -> bool:
    group = await client.discover(GPU_SCHEDULING_POLICY.group)
    return group is not None and group.serves(GPU_SCHEDULING_POLICY)


async def _empty(client: Client) -> None:
    """Remove policy and objects, and wait until Kueue rests."""
    for policy in await client.list_all(GPU_SCHEDULING_POLICY):
        name = policy["metadata"]["name"]
        await client.patch_merge(GPU_SCHEDULING_POLICY, name, {"metadata": {"finalizers": None}})
        await client.delete(GPU_SCHEDULING_POLICY, name)
    for kind in (LOCAL_QUEUE, CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, WORKLOAD_PRIORITY_CLASS):
        await cluster.remove_all(client, kind)
    for item in await client.list_all(PRIORITY_CLASS):
        if item["metadata"]["name"].startswith(NAME):
            await client.delete(PRIORITY_CLASS, item["metadata"]["name"])
    await cluster.settled(client)


async def _by_operator(client: Client, kubeconfig: Path, raw: dict[str, Any]) -> float:
    """Seconds from the creation of the policy until its last object is there."""
    wanted = 3 * len(raw["spec"]["tenants"])
    with cluster.operator(kubeconfig):
        await client.apply(GPU_SCHEDULING_POLICY, raw, field_manager="bench")
        return await cluster.until(
            lambda: cluster.count(client, LOCAL_QUEUE), lambda found: found == wanted, 600, 0.1
        )


async def _unchanged(bench: Bench, client: Client, kubeconfig: Path) -> None:
    """A fresh operator finds everything as it should be."""
    await cluster.settled(client)
    say("a fresh operator with nothing to change")
    before = await cluster.writes(client, KINDS)
    seconds = await asyncio.to_thread(_one_pass, kubeconfig)
    made = await cluster.writes(client, KINDS) - before
    bench.figure("noop-writes", sum(made.values()), unit="writes", bar=0, raw=dict(made))
    bench.figure("noop-s", seconds, unit="s", bar=2.0)


def _one_pass(kubeconfig: Path) -> float:
    """Seconds of one reconcile in a process that has never seen the policy."""
    command = [sys.executable, "-m", "tests.bench.one_pass", str(kubeconfig), NAME]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


async def _one_change(
    bench: Bench, client: Client, kubeconfig: Path, raw: dict[str, Any], times: int = 5
) -> None:
    """One tenant's weight changes while the operator runs."""
    seconds, counts = [], []
    say("one changed weight")
    with cluster.operator(kubeconfig):
        await cluster.settled(client)
        for number in range(times):
            changed = copy.deepcopy(raw)
            tenant = changed["spec"]["tenants"][number]
            tenant["weight"] = 7
            before = await cluster.writes(client, KINDS)
            await client.apply(GPU_SCHEDULING_POLICY, changed, force=True, field_manager="bench")
            seconds.append(
                await cluster.until(
                    lambda name=tenant["name"]: client.get(CLUSTER_QUEUE, name),
                    _has_weight,
                    30,
                    0.01,
                )
            )
            raw = changed
            await cluster.settled(client)
            made: Counter[str] = await cluster.writes(client, KINDS) - before
            counts.append(sum(made.values()))
    bench.figure("one-change-writes", max(counts), unit="writes", bar=1, raw={"each": counts})
    bench.figure("one-change-s", max(seconds), unit="s", bar=1.0, raw={"each_s": seconds})


def _has_weight(queue: dict[str, Any]) -> bool:
    return bool(queue["spec"]["fairSharing"]["weight"] == "7")


if __name__ == "__main__":
    sys.exit(main())
