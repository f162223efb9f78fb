"""The demo as users run it, for the morning only: on a cluster of its own."""

import json
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpufair import local
from gpufair.api.kinds import CLUSTER_QUEUE, WORKLOAD
from gpufair.api.quantity import parse_quantity
from gpufair.cluster.client import Client
from gpufair.demo import records
from gpufair.local import paths

pytestmark = pytest.mark.slow
_SECONDS = 400


@pytest.fixture(scope="module")
def name() -> Iterator[str]:
    name = f"demo-{uuid.uuid4().hex[:8]}"
    yield name
    clean(name)


def clean(name: str) -> None:
    local.down(name)
    shutil.rmtree(logs(name), ignore_errors=True)


def logs(name: str) -> Path:
    return paths.cache_dir() / "logs" / f"demo-{name}"


def start(name: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpufair", "demo", "--name", name, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.fixture(scope="module")
def morning(name: str) -> dict[str, Any]:
    """What came of the day up to the window that opens at 09:00; the cluster stays up."""
    demo = start(name, "--minutes", "2.5", "--until", "10:30", "--keep", "-o", "json")
    output, errors = demo.communicate(timeout=_SECONDS)
    assert demo.returncode == 0, errors
    assert "gpufair local down" in errors
    found: dict[str, Any] = json.loads(output)
    found["live"] = errors
    return found


def test_every_team_gets_something_and_the_idle_quota_is_lent(morning: dict[str, Any]) -> None:
    tenants = morning["tenants"]
    assert all(tenant["gpu_hours"] > 0 for tenant in tenants.values())
    assert tenants["nlp"]["peak_used"] > 200
    assert 0 < tenants["nlp"]["peak_borrowed"] <= 256
    assert 0 < tenants["recsys"]["peak_borrowed"] <= 256
    assert 0.3 < morning["pool"]["utilization"] <= 1


def test_fraud_takes_its_quota_back(morning: dict[str, Any]) -> None:
    texts = [event["text"] for event in morning["events"]]
    assert any(text.startswith("fraud's inference takes back") for text in texts), texts
    assert morning["tenants"]["fraud"]["preempted"] == 0
    assert morning["tenants"]["fraud"]["preempting"] > 0
    assert not any("somebody" in text for text in texts)


def test_the_operator_lives_by_the_clock_of_the_day(morning: dict[str, Any]) -> None:
    (event,) = (e for e in morning["events"] if e["text"].startswith("fraud lends"))
    assert event["text"] == "fraud lends at most 128 GPUs now, 384 before"
    assert "09:00" <= event["time"] < "10:30"


def test_a_pipe_sees_the_day_pass(morning: dict[str, Any]) -> None:
    lines = morning["live"].splitlines()
    assert sum("fraud" in line and "of 512" in line for line in lines) >= 5
    assert any("> fraud's inference takes back" in line for line in lines)


async def test_borrowing_is_counted_as_kueue_counts_it(morning: dict[str, Any], name: str) -> None:
    """Once nothing moves for a moment, both must say the same."""
    deadline = time.monotonic() + 60
    async with Client.from_kubeconfig(local.get(name).kubeconfig) as client:
        while True:
            ours, kueues = await _counted(client)
            if ours == kueues or time.monotonic() > deadline:
                break
    assert ours == kueues
    assert sum(used for used, _ in ours.values()) > 0


async def _counted(client: Client) -> tuple[dict[str, Any], dict[str, Any]]:
    """Used and borrowed GPUs by ClusterQueue: from Workloads, and as its status has it."""
    queues = await client.list_all(CLUSTER_QUEUE)
    works = [records.work(live) for live in await client.list_all(WORKLOAD)]
    ours, kueues = {}, {}
    for live in queues:
        queue = records.queue(live)
        held: dict[str, int] = {}
        for work in works:
            if work is not None and work.runs and work.queue == queue.name:
                for flavor, units in work.flavors:
                    held[flavor] = held.get(flavor, 0) + units
        ours[queue.name] = sum(held.values()), queue.borrowed(held)
        kueues[queue.name] = _status(live, "total"), _status(live, "borrowed")
    return ours, kueues


def _status(live: dict[str, Any], key: str) -> int:
    return int(
        sum(
            parse_quantity(resource[key])
            for flavor in live["status"]["flavorsReservation"]
            for resource in flavor["resources"]
            if resource["name"] == "nvidia.com/gpu"
        )
    )


def test_a_dead_operator_ends_the_demo_and_the_cluster_goes_down(
    morning: dict[str, Any], name: str
) -> None:
    """On the cluster of the first demo, whose Jobs must go before the day begins anew."""
    demo = start(name, "--minutes", "10", bufsize=1)
    assert demo.stdout is not None
    first = demo.stdout.readline()
    assert first.startswith("00:"), demo.communicate()
    assert "0% used" in first
    _operator(demo.pid).kill()
    _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "The operator has ended" in errors
    assert "Traceback" not in errors
    assert f"All logs of the demo are in {logs(name)}." in errors
    assert {"operator.log", "kueue.log"} <= {log.name for log in logs(name).iterdir()}
    assert name not in local.names()


def test_ctrl_c_leaves_nothing_behind() -> None:
    name = f"demo-{uuid.uuid4().hex[:8]}"
    demo = start(name, bufsize=1)
    try:
        assert demo.stdout is not None
        assert demo.stdout.readline().startswith("00:")
        operator = _operator(demo.pid)
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=60)
        assert demo.returncode == 1
        assert "Traceback" not in errors
        assert name not in local.names()
        assert not operator.is_running()
        assert not logs(name).exists()
    finally:
        demo.kill()
        clean(name)


def _operator(demo: int) -> psutil.Process:
    children = psutil.Process(demo).children(recursive=True)
    (found,) = (child for child in children if "gpufair.demo.operator" in child.cmdline())
    return found
