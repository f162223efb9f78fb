"""diff: exit 0 for nothing, 1 for something, above 1 on errors, as kubectl diff."""

import json
from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT
from gpufair.cli import connect
from gpufair.cluster.snapshot import Snapshot
from tests.unit.builders import cluster_of, facts, keyed, live, planned, policy, tenant
from tests.unit.cli.conftest import Run, Write

OWNED = {"metadata": {"uid": "uid-1"}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """A cluster that is as the plainest policy wants it."""
    known = facts("nlp", "cv")
    assert known.namespaces is not None
    taken = Snapshot(
        cluster_of(planned(policy(), known).objects), dict(known.namespaces), {"pool": OWNED}
    )
    monkeypatch.setattr(connect, "with_client", lambda *_: taken)
    return taken


def test_no_difference_is_exit_0(run: Run, write: Write, cluster: Snapshot) -> None:
    result = run("diff", "-f", write())
    assert (result.exit_code, result.stdout) == (0, "pool: no difference.\n")


def test_differences_are_exit_1_and_told(run: Run, write: Write, cluster: Snapshot) -> None:
    result = run("diff", "-f", write(tenants=[tenant("nlp", weight=3), tenant("cv")]))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "~ ClusterQueue nlp",
        "    spec.fairSharing.weight: 1 -> 3",
        "+ ClusterQueue cv",
        "+ LocalQueue cv/gpu",
        "pool: 1 to change, 2 to create.",
    ]


def test_removals_and_conflicts_are_told(run: Run, write: Write, cluster: Snapshot) -> None:
    cluster.live |= keyed(live(COHORT, "pool", policy=""), live(CLUSTER_QUEUE, "old"))
    result = run("diff", "-f", write())
    assert result.exit_code == 1
    removed, conflict, total = result.stdout.splitlines()
    assert removed == "- ClusterQueue old"
    assert conflict.startswith("! Cohort pool: exists and is not gpufair's")
    assert total == "pool: 1 to remove, 1 to conflict."


def test_as_json_by_policy(run: Run, write: Write, cluster: Snapshot) -> None:
    result = run("diff", "-f", write(tenants=[tenant("nlp", weight=3)]), "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "pool": [
            {
                "action": "change",
                "kind": "ClusterQueue",
                "name": "nlp",
                "fields": [{"path": "spec.fairSharing.weight", "from": "1", "to": "3"}],
            }
        ]
    }
    same: Any = run("diff", "-f", write(), "-o", "json")
    assert (same.exit_code, json.loads(same.stdout)) == (0, {"pool": []})


def test_without_kueue_it_is_exit_2(run: Run, write: Write, cluster: Snapshot) -> None:
    cluster.absent.append(CLUSTER_QUEUE)
    result = run("diff", "-f", write())
    assert "install Kueue 0.17 or later" in str(result.exception)
    assert getattr(result.exception, "exit_code", 0) == 2


def test_an_invalid_policy_is_exit_2(run: Run, write: Write, cluster: Snapshot) -> None:
    result = run("diff", "-f", write(tiers=[]))
    assert getattr(result.exception, "exit_code", 0) == 2
