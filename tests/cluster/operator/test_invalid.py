"""An invalid policy changes nothing that is there, in ways that the server cannot refuse."""

import copy

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, GPU_SCHEDULING_POLICY

from .kit.audit import Audit
from .kit.kube import Json, Kube
from .kit.policies import pair, policy, tenant
from .kit.rights import ACCOUNT
from .kit.space import Space, condition
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("operator")


def override(made: Json) -> str:
    """An override that is wrong only together with what it overrides."""
    first = made["spec"]["tenants"][0]
    first["quota"][0]["lendingLimit"] = 4
    quota = {"flavor": first["quota"][0]["flavor"], "nominal": 2}
    made["spec"]["windows"] = [
        {
            "name": "later",
            "timeZone": "UTC",
            "dates": {"from": "2090-01-01", "to": "2090-02-01"},
            "tenants": [{"name": first["name"], "quota": [quota]}],
        }
    ]
    return "spec.windows[0].tenants[0].quota[0].nominal"


def test_an_invalid_change(space: Space, audit: Audit) -> None:
    p = space.prefix
    good = policy(
        p,
        tenants=[tenant(f"{p}-a", f"{p}-h100", 4), tenant(f"{p}-b", f"{p}-h100", 4)],
    )
    space.namespaces_of(good)
    space.ready(good)
    space.job(f"{p}-a", "running", 2, tier=f"{p}-dev")
    space.admitted(f"{p}-a", "running")
    before = space.versions(p)
    audit.mark()

    bad = copy.deepcopy(good)
    bad["spec"]["tenants"][0]["weight"] = 7
    field = override(bad)
    said = space.settled(space.apply(bad), "Valid", "False")
    message = condition(said, "Valid")["message"]
    assert field in message
    assert condition(said, "Ready")["reason"] == "Invalid"
    assert said["status"]["observedGeneration"] == said["metadata"]["generation"]
    assert said["status"]["appliedObjects"]["ClusterQueue"] == 2
    # What the rest of the status says, it says of the generation that is in force.
    in_force = condition(said, "EngineAvailable")
    assert in_force["observedGeneration"] < said["metadata"]["generation"]

    assert space.versions(p) == before
    written = {entry.resource for entry in audit.writes(ACCOUNT, p)}
    assert written <= {"gpuschedulingpolicies/status", "events"}
    assert space.is_admitted(f"{p}-a", "running")

    space.ready(good | {"spec": good["spec"] | {"tenants": bad["spec"]["tenants"][:1]}})
    queue = space.kube.get(CLUSTER_QUEUE, f"{p}-a")
    assert queue["spec"]["fairSharing"]["weight"] == "7"


def test_invalid_from_the_start(space: Space, kube: Kube) -> None:
    """Nothing is made of it, and it can be deleted."""
    p = space.prefix
    bad = pair(p)
    override(bad)
    space.settled(space.apply(bad), "Valid", "False")
    assert space.owned(p) == {}
    space.delete_policy(p)
    space.policy_gone(p)


def test_an_invalid_policy_is_deleted(space: Space, kube: Kube) -> None:
    """What a valid generation of it had made goes, too."""
    p = space.prefix
    good = pair(p)
    space.ready(good)
    override(good)
    space.settled(space.apply(good), "Valid", "False")
    assert kube.get(GPU_SCHEDULING_POLICY, p)["metadata"]["finalizers"] == ["gpufair.io/objects"]
    space.delete_policy(p)
    space.policy_gone(p)
    until(lambda: space.owned(p) == {}, "all objects are gone")
