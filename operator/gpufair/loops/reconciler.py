"""Reconciles one policy: from what it says and what the cluster holds to writes and a status."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from gpufair.api.kinds import CLUSTER_QUEUE, GPU_SCHEDULING_POLICY
from gpufair.api.policy import Engine, Policy
from gpufair.api.problems import Problem
from gpufair.cluster.client import Client
from gpufair.loops.caches import Caches
from gpufair.loops.enforce import Enforcer, Passed
from gpufair.loops.engine import engine_condition
from gpufair.loops.policies import Json, Memory, PolicyStore
from gpufair.loops.report import Reporter, counters, kept
from gpufair.loops.teardown import FINALIZER, Teardown
from gpufair.plan import conditions as say
from gpufair.plan.changes import count_by_kind
from gpufair.plan.conditions import FALSE, TRUE, Condition
from gpufair.plan.ownership import policy_of
from gpufair.plan.status import figures, status_fields
from gpufair.plan.support import sentence, unsupported

log = logging.getLogger(__name__)

CLOCK_CHECK = 300.0
"""Seconds until the clock is compared with the next transition again."""
RETIRE_RETRY = 15.0
"""Seconds until what waits for work to end is looked at again, should an event be missed."""
ENGINE_RETRY = 5.0
"""Seconds until a missing engine is looked for again: of other versions of it no event tells."""


class Reconciler:
    """`reconcile(name)` brings one policy into force; it can be called at any time, any often."""

    def __init__(
        self,
        *,
        client: Client,
        caches: Caches,
        store: PolicyStore,
        enforcer: Enforcer,
        teardown: Teardown,
        reporter: Reporter,
        gate: Callable[[], Awaitable[None]],
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._caches = caches
        self._store = store
        self._enforcer = enforcer
        self._teardown = teardown
        self._reporter = reporter
        self._gate = gate
        self._now = now
        self._memories: dict[str, Memory] = {}

    async def reconcile(self, name: str) -> float | None:
        """Reconcile the policy; return after how many seconds it must be looked at again."""
        raw = self._store.get(name)
        if raw is None:
            self._memories.pop(name, None)
            return None
        await self._gate()
        memory = self._memories.setdefault(name, Memory())
        if raw["metadata"].get("deletionTimestamp"):
            return await self._teardown.step(raw, memory, self._now())
        policy, problems = memory.judge(raw)
        if policy is None:
            return await self._refuse(raw, memory, problems)
        engine = await self._engine(policy)
        if policy.spec.suspend or engine.status != TRUE:
            return await self._stand_still(raw, memory, policy, problems, engine)
        raw = await self._hold_on(raw)
        now = self._now()
        passed = await self._enforcer.enforce(policy, memory, now)
        if passed.tally.written:
            log.info("%s: %s", name, passed.tally.written)
        found = self._findings(policy, problems, engine, passed)
        soon = await self._reporter.report(raw, memory, found, self._counters(passed, now), now)
        return _next(passed, soon, now)

    async def _refuse(self, raw: Json, memory: Memory, problems: Sequence[Problem]) -> float | None:
        """An invalid policy changes nothing that is there."""
        message = "Nothing is changed while the policy is not valid: see the condition Valid."
        found = [Condition("Ready", FALSE, "Invalid", message), say.valid(problems)]
        found += kept(raw, found)
        return await self._reporter.report(raw, memory, found, counters(raw), self._now())

    async def _stand_still(
        self,
        raw: Json,
        memory: Memory,
        policy: Policy,
        problems: Sequence[Problem],
        engine: Condition,
    ) -> float | None:
        """Suspended, or no engine: say so, write nothing."""
        spec = policy.spec
        off = say.suspended(spec.suspend)
        cause = off if spec.suspend else engine
        found = [
            Condition("Ready", FALSE, cause.reason, cause.message),
            say.valid(problems),
            say.supported(_missing(policy)),
            engine,
            off,
        ]
        soon = await self._reporter.report(raw, memory, found, counters(raw), self._now())
        return soon if engine.status == TRUE else ENGINE_RETRY

    async def _engine(self, policy: Policy) -> Condition:
        if policy.spec.engine is not Engine.KUEUE:
            message = "Engine Volcano is not built yet: nothing is applied. Use engine Kueue."
            return Condition("EngineAvailable", FALSE, "EngineNotBuilt", message)
        return await engine_condition(self._client, self._caches.absent())

    async def _hold_on(self, raw: Json) -> Json:
        """Put our finalizer on the policy before anything is made for it."""
        metadata = raw["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER in finalizers:
            return raw
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": [*finalizers, FINALIZER],
            }
        }
        made = await self._client.patch_merge(GPU_SCHEDULING_POLICY, metadata["name"], patch)
        self._store.put(made)
        return made

    def _findings(
        self, policy: Policy, problems: Sequence[Problem], engine: Condition, passed: Passed
    ) -> list[Condition]:
        queues = self._queues(policy)
        return [
            ready(passed, say.inactive_queues(queues)),
            say.valid(problems),
            say.supported(_missing(policy)),
            engine,
            say.fair_sharing(queues),
            say.within_capacity(passed.plan.over_capacity),
            say.conflicts(passed.tally.conflicts),
            say.suspended(False),
        ]

    def _queues(self, policy: Policy) -> list[Json]:
        keys = ((CLUSTER_QUEUE, "", tenant.name) for tenant in policy.spec.tenants)
        found = (self._caches.live.get(key) for key in keys)
        return [queue for queue in found if queue and policy_of(queue) == policy.name]

    def _counters(self, passed: Passed, now: datetime) -> dict[str, Any]:
        planned = passed.plan
        live = self._caches.live
        own = {key: there for key, there in live.items() if policy_of(there) == planned.policy}
        found = figures(planned.spec, own, self._caches.workloads.values(), now)
        fields = status_fields(found)
        present = (item.key for item in planned.objects if item.key in live)
        fields["appliedObjects"] = count_by_kind(present)
        if planned.active_windows:
            fields["activeWindows"] = list(planned.active_windows)
        if planned.next_transition is not None:
            at = planned.next_transition.strftime("%Y-%m-%dT%H:%M:%SZ")
            fields["nextTransitionTime"] = at
        return fields


def ready(passed: Passed, inactive: Sequence[str]) -> Condition:
    """Ready: applied, nothing foreign in the way, every ClusterQueue Active."""
    for reason, lead, clauses in (
        ("ApplyFailed", "Not everything could be applied", passed.tally.errors),
        ("Conflict", "Some objects belong to somebody else", passed.tally.conflicts),
        ("QueuesInactive", "Applied, but Kueue does not use all queues yet", inactive),
    ):
        if clauses:
            return Condition("Ready", FALSE, reason, say.joined(lead, clauses))
    message = f"{len(passed.plan.objects)} objects are applied, every ClusterQueue is active."
    if passed.tally.waits:
        message += " " + say.joined("Still to be removed", passed.tally.waits)
    if passed.missing:
        message += " " + say.joined("Namespaces that do not exist yet", passed.missing)
    return Condition("Ready", TRUE, "Applied", message)


def _next(passed: Passed, soon: float | None, now: datetime) -> float | None:
    """Seconds until the next look: at whatever comes first."""
    waits = [] if soon is None else [soon]
    if passed.tally.again:
        waits.append(0.2)
    if passed.tally.errors:
        waits.append(3.0)
    if passed.tally.waits or passed.changes.replaced:
        waits.append(RETIRE_RETRY)
    if passed.plan.next_transition is not None:
        # Timers run on a clock that a suspended machine stops: look at the real one now and then.
        left = (passed.plan.next_transition - now).total_seconds()
        waits.append(min(max(0.0, left), CLOCK_CHECK))
    return min(waits, default=None)


def _missing(policy: Policy) -> str:
    missing = unsupported(policy.spec)
    return sentence(missing) if missing else ""
