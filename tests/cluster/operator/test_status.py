"""What a policy says of itself: conditions, their times, events."""

import copy
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from gpufair import local
from gpufair.api.kinds import GPU_SCHEDULING_POLICY

from .kit.kube import Json, Kube
from .kit.policies import pair, policy, tenant
from .kit.space import Space, condition
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")

ALL = {
    "Ready": "True",
    "Valid": "True",
    "Supported": "True",
    "EngineAvailable": "True",
    "FairSharingActive": "True",
    "QuotaWithinCapacity": "True",
    "Conflict": "False",
    "Suspended": "False",
}


def test_conditions_of_a_healthy_policy(space: Space) -> None:
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    said = space.settled(space.ready(made), "FairSharingActive", "True")
    conditions = {c["type"]: c for c in said["status"]["conditions"]}
    assert {kind: c["status"] for kind, c in conditions.items()} == ALL
    for found in conditions.values():
        assert found["observedGeneration"] == said["metadata"]["generation"]
        assert found["reason"].isalnum()
        assert found["message"].endswith(".")


def test_transition_times_change_with_the_status_only(space: Space) -> None:
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    first = space.settled(space.ready(made), "FairSharingActive", "True")
    times = _times(first)
    latest = datetime.fromisoformat(max(times.values()))
    until(lambda: datetime.now(UTC) - latest > timedelta(seconds=1), "another second has begun", 5)
    made["spec"]["tenants"][0]["weight"] = 2
    made["spec"]["tiers"][1]["aging"] = {"increase": "10%", "every": "6h"}
    second = space.settled(space.apply(made), "Supported", "False")
    assert "spec.tiers[1].aging" in condition(second, "Supported")["message"]
    assert all(c["observedGeneration"] == 2 for c in second["status"]["conditions"])
    changed = {kind for kind, at in _times(second).items() if times[kind] != at}
    assert changed == {"Supported"}


def test_quota_above_capacity(space: Space) -> None:
    p = space.prefix
    made = policy(p, tenants=[tenant(p, f"{p}-h100", 9)])
    space.namespaces_of(made)
    said = space.settled(space.apply(made), "QuotaWithinCapacity", "False")
    assert "capacity" in condition(said, "QuotaWithinCapacity")["message"]
    # A warning, no more.
    space.settled(said, "Ready", "True")


def test_events_at_turning_points(space: Space, kube: Kube) -> None:
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    wrong = copy.deepcopy(made)
    wrong["spec"]["tenants"][0]["quota"][0]["lendingLimit"] = 4
    override = {"flavor": f"{p}-h100", "nominal": 1}
    wrong["spec"]["windows"] = [
        {
            "name": "later",
            "timeZone": "UTC",
            "dates": {"from": "2090-01-01", "to": "2090-02-01"},
            "tenants": [{"name": f"{p}-a", "quota": [override]}],
        }
    ]
    space.settled(space.apply(wrong), "Valid", "False")
    space.ready(made)
    made["spec"]["suspend"] = True
    space.settled(space.apply(made), "Suspended", "True")
    found = until(
        lambda: (
            _reasons(space) >= {"Applied", "Invalid", "Valid", "SuspendedBySpec"}
            and space.events(p)
        ),
        "each turning point has its event",
        30,
        lambda: space.events(p),
    )
    assert isinstance(found, list)
    types = {event["reason"]: event["type"] for event in found}
    assert types["Invalid"] == "Warning"
    assert types["Applied"] == "Normal"
    uid = kube.get(GPU_SCHEDULING_POLICY, p)["metadata"]["uid"]
    assert {event["regarding"]["uid"] for event in found} == {uid}
    about = next(event for event in found if event["reason"] == "Invalid")
    assert about["note"].strip()


def test_columns_of_kubectl(space: Space, cluster: local.Instance) -> None:
    """`kubectl get gsp` has something to show in every column."""
    p = space.prefix
    made = pair(p)
    space.namespaces_of(made)
    space.ready(made)
    shown = subprocess.run(
        [cluster.kubectl, "--kubeconfig", cluster.kubeconfig, "get", "gsp", p],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    head = " ".join(shown[0].split())
    assert head == "NAME READY ENGINE TENANTS UTILIZATION SHARE ERROR AGE"
    assert shown[1].split()[:-1] == [p, "True", "Kueue", "2", "0.0%", "0.0%"]


def _times(policy: Json) -> dict[str, str]:
    return {c["type"]: c["lastTransitionTime"] for c in policy["status"]["conditions"]}


def _reasons(space: Space) -> set[str]:
    return {event["reason"] for event in space.events(space.prefix)}
