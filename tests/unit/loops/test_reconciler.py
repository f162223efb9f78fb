"""One policy, level-based: what stands still when, what is told, and when to look again."""

from datetime import timedelta
from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE
from gpufair.cluster.applier import Result
from gpufair.loops.enforce import Enforcer, Passed, Tally
from gpufair.loops.policies import PolicyStore
from gpufair.loops.reconciler import CLOCK_CHECK, RETIRE_RETRY, Reconciler, _next, ready
from gpufair.loops.report import Reporter
from gpufair.loops.teardown import FINALIZER, Teardown
from gpufair.plan.changes import Changes
from gpufair.plan.plan import Plan
from gpufair.plan.selectors import NamespaceFact
from tests.unit.builders import (
    NOW,
    Json,
    cluster_queue,
    keyed,
    policy,
    quota,
    stored_policy,
    tenant,
    weekly,
    window,
)
from tests.unit.loops.fakes import Clock, FakeApplier, FakeClient, FakeRecorder, caches


class Stage:
    """A reconciler of one policy."""

    def __init__(self, raw: Json) -> None:
        self.client = FakeClient(raw)
        client: Any = self.client
        self.store = PolicyStore()
        self.store.put(raw)
        self.caches = caches(client)
        self.caches.namespaces = {"nlp": NamespaceFact("nlp")}
        self.applier = FakeApplier(self.caches)
        applier: Any = self.applier
        recorder: Any = FakeRecorder()
        self.clock = Clock()
        reporter = Reporter(client, self.store, recorder, self.clock)
        enforcer = Enforcer(client, self.caches, applier)
        self.leads = True
        self._reconciler = Reconciler(
            client=client,
            caches=self.caches,
            store=self.store,
            enforcer=enforcer,
            teardown=Teardown(
                client=client,
                caches=self.caches,
                store=self.store,
                applier=applier,
                enforcer=enforcer,
                reporter=reporter,
            ),
            reporter=reporter,
            gate=self._gate,
            now=lambda: NOW,
        )

    async def _gate(self) -> None:
        if not self.leads:
            raise PermissionError

    async def reconcile(self) -> float | None:
        return await self._reconciler.reconcile("pool")

    def condition(self, type_: str) -> Json:
        (found,) = (c for c in self.client.statuses[-1]["conditions"] if c["type"] == type_)
        return dict(found)

    def change(self, **spec: Any) -> None:
        """The user changes the policy."""
        raw = self.store.get("pool")
        assert raw is not None
        metadata = raw["metadata"]
        newer = {
            "resourceVersion": str(int(metadata["resourceVersion"]) + 1),
            "generation": metadata["generation"] + 1,
        }
        made = {**raw, "metadata": metadata | newer, "spec": raw["spec"] | spec}
        self.client.policies["pool"] = made
        self.store.put(made)


async def test_a_policy_is_applied_and_its_status_written() -> None:
    stage = Stage(stored_policy())
    await stage.reconcile()
    assert len(stage.applier.operations) == 6
    status = stage.client.statuses[-1]
    assert [c["type"] for c in status["conditions"]] == [
        "Ready",
        "Valid",
        "Supported",
        "EngineAvailable",
        "FairSharingActive",
        "QuotaWithinCapacity",
        "Conflict",
        "Suspended",
    ]
    assert status["appliedObjects"]["ClusterQueue"] == 1
    assert (status["tenantCount"], status["observedGeneration"]) == (1, 1)


async def test_nothing_changed_is_nothing_written() -> None:
    stage = Stage(stored_policy())
    await stage.reconcile()
    await stage.reconcile()
    stage.applier.operations.clear()
    writes = len(stage.client.statuses)
    assert await stage.reconcile() is None
    assert (stage.applier.operations, len(stage.client.statuses)) == ([], writes)


async def test_our_finalizer_comes_before_anything_is_made() -> None:
    raw = stored_policy()
    raw["metadata"]["finalizers"] = ["example.com/others"]
    stage = Stage(raw)
    await stage.reconcile()
    (patch,) = stage.client.patches
    assert patch["metadata"]["finalizers"] == ["example.com/others", FINALIZER]
    assert patch["metadata"]["resourceVersion"] == raw["metadata"]["resourceVersion"]


async def test_who_does_not_lead_does_nothing() -> None:
    stage = Stage(stored_policy())
    stage.leads = False
    with pytest.raises(PermissionError):
        await stage.reconcile()
    assert (stage.applier.operations, stage.client.statuses, stage.client.patches) == ([], [], [])


async def test_a_policy_that_is_gone_needs_no_leader() -> None:
    stage = Stage(stored_policy())
    stage.leads = False
    raw = stage.store.get("pool")
    assert raw is not None
    stage.store.remove(raw)
    assert await stage.reconcile() is None


async def test_an_invalid_policy_changes_nothing_and_says_why() -> None:
    stage = Stage(stored_policy())
    await stage.reconcile()
    stage.applier.operations.clear()
    before = stage.client.statuses[-1]
    stage.change(tenants=[tenant("nlp", cohort="nowhere")])
    await stage.reconcile()
    assert stage.applier.operations == []
    assert stage.condition("Valid")["status"] == "False"
    assert "spec.tenants[0].cohort" in stage.condition("Valid")["message"]
    assert stage.condition("Ready")["reason"] == "Invalid"
    after = stage.client.statuses[-1]
    assert (after["tenants"], after["observedGeneration"]) == (before["tenants"], 2)
    assert stage.condition("EngineAvailable")["status"] == "True"


async def test_suspended_nothing_is_written_and_the_figures_stay() -> None:
    stage = Stage(stored_policy())
    await stage.reconcile()
    stage.applier.operations.clear()
    stage.change(suspend=True, tenants=[tenant(weight=5)])
    await stage.reconcile()
    assert stage.applier.operations == []
    assert stage.condition("Ready")["reason"] == "SuspendedBySpec"
    assert stage.condition("Suspended")["status"] == "True"
    assert stage.client.statuses[-1]["tenantCount"] == 1


async def test_a_suspended_policy_goes_on_when_it_is_released() -> None:
    stage = Stage(stored_policy(suspend=True))
    await stage.reconcile()
    stage.change(suspend=False)
    await stage.reconcile()
    assert len(stage.applier.operations) == 6


async def test_an_engine_that_is_not_built_applies_nothing() -> None:
    stage = Stage(stored_policy(engine="Volcano"))
    await stage.reconcile()
    assert stage.applier.operations == []
    assert stage.condition("EngineAvailable")["reason"] == "EngineNotBuilt"
    assert stage.condition("Supported")["status"] == "False"


async def test_without_kueue_nothing_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(stored_policy())
    monkeypatch.setattr(stage.caches, "absent", lambda: [CLUSTER_QUEUE])
    await stage.reconcile()
    assert stage.applier.operations == []
    assert stage.condition("EngineAvailable")["reason"] == "KueueNotInstalled"
    assert stage.condition("Ready")["reason"] == "KueueNotInstalled"
    monkeypatch.setattr(stage.caches, "absent", list)
    await stage.reconcile()
    assert len(stage.applier.operations) == 6


async def test_a_deleted_policy_is_torn_down() -> None:
    raw = stored_policy()
    raw["metadata"]["deletionTimestamp"] = "2026-12-01T12:00:00Z"
    stage = Stage(raw)
    assert await stage.reconcile() is None
    assert stage.client.patches[0]["metadata"]["finalizers"] is None


async def test_quota_above_capacity_is_a_condition() -> None:
    stage = Stage(stored_policy(tenants=[tenant("nlp", quota(99))]))
    await stage.reconcile()
    found = stage.condition("QuotaWithinCapacity")
    assert (found["status"], found["reason"]) == ("False", "QuotaAboveCapacity")
    assert found["message"].startswith("More is promised than there is: spec.flavors[0].capacity")
    assert stage.condition("Valid")["status"] == "True"


async def test_queues_of_others_do_not_speak_for_the_policy() -> None:
    stage = Stage(stored_policy())
    status = {"conditions": [{"type": "Active", "status": "False", "message": "theirs"}]}
    stage.caches.live = keyed(cluster_queue("nlp", policy="", status=status))
    await stage.reconcile()
    assert stage.condition("Ready")["reason"] == "Conflict"
    assert "theirs" not in stage.condition("Ready")["message"]


async def test_windows_are_told_and_bring_the_policy_back() -> None:
    day = window("day", weekly=weekly("Tue", "09:00", "12:04"), tenants=[{"name": "nlp"}])
    stage = Stage(stored_policy(windows=[day]))
    assert await stage.reconcile() == 240
    status = stage.client.statuses[-1]
    assert status["activeWindows"] == ["day"]
    assert status["nextTransitionTime"] == "2026-12-01T12:04:00Z"


async def test_the_clock_is_looked_at_again_before_a_far_transition() -> None:
    day = window("day", weekly=weekly("Tue", "09:00", "18:00"), tenants=[{"name": "nlp"}])
    assert await Stage(stored_policy(windows=[day])).reconcile() == CLOCK_CHECK


async def test_errors_bring_the_policy_back_and_are_told() -> None:
    stage = Stage(stored_policy())
    stage.applier.results = {"create ClusterQueue nlp": (Result.ERROR, "It was refused.")}
    soon = await stage.reconcile()
    assert soon is not None
    assert soon <= 5
    assert stage.condition("Ready")["reason"] == "ApplyFailed"
    assert "ClusterQueue nlp: It was refused" in stage.condition("Ready")["message"]


def passed(**tally: Any) -> Passed:
    return Passed(Plan([], policy().spec), Changes(), Tally(**tally))


@pytest.mark.parametrize(
    ("what", "inactive", "reason"),
    [
        (passed(), [], "Applied"),
        (passed(errors=["e"], conflicts=["c"]), ["q"], "ApplyFailed"),
        (passed(conflicts=["c"]), ["q"], "Conflict"),
        (passed(), ["q"], "QueuesInactive"),
        (passed(waits=["w"]), [], "Applied"),
    ],
)
def test_ready_names_what_matters_most(what: Passed, inactive: list[str], reason: str) -> None:
    found = ready(what, inactive)
    assert (found.status, found.reason) == ("True" if reason == "Applied" else "False", reason)


def test_ready_tells_what_is_still_to_come() -> None:
    what = passed(waits=["ClusterQueue a: 1 workload holds quota"])
    what.missing = ["nlp"]
    assert ready(what, []).message.endswith(
        "Still to be removed: ClusterQueue a: 1 workload holds quota. "
        "Namespaces that do not exist yet: nlp."
    )


def test_the_next_look_is_at_what_comes_first() -> None:
    assert _next(passed(), None, NOW) is None
    assert _next(passed(), 7.0, NOW) == 7.0
    assert _next(passed(waits=["w"]), None, NOW) == RETIRE_RETRY
    assert _next(passed(waits=["w"]), 3.0, NOW) == 3.0
    upcoming = passed()
    upcoming.plan = Plan([], upcoming.plan.spec, next_transition=NOW + timedelta(seconds=2))
    assert _next(upcoming, 3.0, NOW) == 2.0
    assert _next(upcoming, None, NOW + timedelta(seconds=9)) == 0.0
    again = _next(passed(again=True), 3.0, NOW)
    assert again is not None
    assert again < 1
