"""The end of a policy, as its deletionPolicy says, behind one finalizer."""

from typing import Any

import pytest

from gpufair.api.kinds import LOCAL_QUEUE
from gpufair.cluster.applier import Result
from gpufair.cluster.errors import ApiError
from gpufair.errors import GpufairError
from gpufair.loops.enforce import Enforcer
from gpufair.loops.policies import Memory, PolicyStore
from gpufair.loops.report import Reporter
from gpufair.loops.teardown import FINALIZER, Teardown
from tests.unit.builders import (
    NOW,
    Json,
    cluster_of,
    cluster_queue,
    facts,
    keyed,
    planned,
    policy,
    stored_policy,
)
from tests.unit.loops.fakes import Clock, FakeApplier, FakeClient, FakeRecorder, caches

OTHERS = "example.com/others"


class Scene:
    """A policy that is being deleted, and the objects that it made."""

    def __init__(self, **spec: Any) -> None:
        self.raw = stored_policy(**spec)
        self.raw["metadata"]["deletionTimestamp"] = "2026-12-01T12:00:00Z"
        self.client = FakeClient(self.raw)
        client: Any = self.client
        self.caches = caches(client)
        self.caches.live = cluster_of(planned(policy(), facts("nlp")).objects)
        self.applier = FakeApplier(self.caches)
        applier: Any = self.applier
        recorder: Any = FakeRecorder()
        store = PolicyStore()
        self._teardown = Teardown(
            client=client,
            caches=self.caches,
            store=store,
            applier=applier,
            enforcer=Enforcer(client, self.caches, applier),
            reporter=Reporter(client, store, recorder, Clock()),
        )

    async def step(self) -> float | None:
        return await self._teardown.step(self.raw, Memory(), NOW)

    def ready(self) -> Json:
        (found,) = self.client.statuses[-1]["conditions"]
        return dict(found)

    @property
    def let_go(self) -> bool:
        left = [patch["metadata"]["finalizers"] or () for patch in self.client.patches]
        return any(FINALIZER not in finalizers for finalizers in left)


async def test_wait_holds_the_queues_first_and_says_what_it_waits_for() -> None:
    scene = Scene()
    assert await scene.step() is not None
    assert scene.applier.waves[0] == ["apply LocalQueue nlp/gpu"]
    assert scene.caches.live[LOCAL_QUEUE, "nlp", "gpu"]["spec"]["stopPolicy"] == "Hold"
    found = scene.ready()
    assert (found["type"], found["status"], found["reason"]) == ("Ready", "False", "Deleting")
    assert found["message"].startswith(
        "Deletion (Wait) waits for: ClusterQueue nlp: 1 LocalQueue left"
    )
    assert not scene.let_go


async def test_steps_take_everything_away_leaves_first_and_then_let_go() -> None:
    scene = Scene()
    for _ in range(10):
        if await scene.step() is None:
            break
    assert scene.caches.live == {}
    assert scene.let_go
    deleted = [title for wave in scene.applier.waves for title in wave if "delete" in title]
    assert deleted.index("delete LocalQueue nlp/gpu") < deleted.index("delete ClusterQueue nlp")
    assert deleted.index("delete ClusterQueue nlp") < deleted.index("delete Cohort pool")
    assert deleted.index("delete ClusterQueue nlp") < deleted.index("delete ResourceFlavor h100")


async def test_work_that_holds_quota_keeps_the_policy() -> None:
    scene = Scene()
    queue = scene.caches.live[LOCAL_QUEUE, "nlp", "gpu"]
    queue["spec"]["stopPolicy"] = "Hold"
    queue["status"] = {"reservingWorkloads": 2}
    for _ in range(5):
        assert await scene.step() is not None
    assert (LOCAL_QUEUE, "nlp", "gpu") in scene.caches.live
    assert "LocalQueue nlp/gpu: 2 workloads hold quota" in scene.ready()["message"]
    assert not scene.let_go


async def test_evict_drains_the_queues() -> None:
    scene = Scene(deletionPolicy="Evict")
    await scene.step()
    assert scene.caches.live[LOCAL_QUEUE, "nlp", "gpu"]["spec"]["stopPolicy"] == "HoldAndDrain"
    assert scene.ready()["message"].startswith("Deletion (Evict) waits for")


async def test_orphan_leaves_the_objects_without_our_mark() -> None:
    scene = Scene(deletionPolicy="Orphan")
    count = len(scene.caches.live)
    assert await scene.step() is None
    assert scene.let_go
    assert len(scene.applier.operations) == count
    for operation in scene.applier.operations:
        there = scene.caches.live[operation.resource, operation.namespace or "", operation.name]
        assert operation.verb.value == "release"
        assert operation.uid == there["metadata"]["uid"]
        assert operation.manifest is not None
        place = {"namespace": operation.namespace} if operation.namespace else {}
        assert operation.manifest["metadata"] == {"name": operation.name} | place
        assert operation.manifest.get("spec") == there.get("spec")
        assert "status" not in operation.manifest


async def test_orphan_keeps_the_policy_when_an_object_cannot_be_released() -> None:
    scene = Scene(deletionPolicy="Orphan")
    scene.applier.results = {"release Cohort pool": (Result.ERROR, "It was refused.")}
    with pytest.raises(GpufairError, match="It was refused"):
        await scene.step()
    assert not scene.let_go


async def test_orphan_passes_over_an_object_that_is_gone_meanwhile() -> None:
    scene = Scene(deletionPolicy="Orphan")
    scene.applier.results = {"release Cohort pool": (Result.STALE, "It is gone.")}
    assert await scene.step() is None
    assert scene.let_go


async def test_an_invalid_policy_can_be_deleted() -> None:
    scene = Scene()
    scene.raw["spec"] = {"deletionPolicy": "Perhaps"}
    assert await scene.step() is not None
    assert scene.applier.waves[0] == ["apply LocalQueue nlp/gpu"]


async def test_without_our_finalizer_nothing_is_done() -> None:
    scene = Scene()
    scene.raw["metadata"]["finalizers"] = [OTHERS]
    assert await scene.step() is None
    assert (scene.applier.operations, scene.client.patches) == ([], [])


async def test_objects_of_others_stay() -> None:
    scene = Scene()
    scene.caches.live = keyed(cluster_queue(policy="bank"), cluster_queue("cv", policy=""))
    assert await scene.step() is None
    assert len(scene.caches.live) == 2
    assert scene.let_go


@pytest.mark.parametrize(
    ("before", "after"),
    [([FINALIZER], None), ([OTHERS, FINALIZER], [OTHERS]), ([FINALIZER, OTHERS], [OTHERS])],
)
async def test_only_our_finalizer_goes_and_only_from_the_version_seen(
    before: list[str], after: list[str] | None
) -> None:
    scene = Scene()
    scene.caches.live = {}
    scene.caches.retiring.add("pool")
    scene.raw["metadata"]["finalizers"] = before
    await scene.step()
    (patch,) = scene.client.patches
    assert patch["metadata"] == {
        "resourceVersion": scene.raw["metadata"]["resourceVersion"],
        "finalizers": after,
    }
    assert scene.caches.retiring == set()


@pytest.mark.parametrize(("status", "fails"), [(404, False), (409, True)])
async def test_a_policy_that_is_gone_already_is_let_go(status: int, fails: bool) -> None:
    scene = Scene()
    scene.caches.live = {}
    scene.client.refusal = ApiError(status, "Reason")
    if fails:
        with pytest.raises(ApiError):
            await scene.step()
    else:
        assert await scene.step() is None
