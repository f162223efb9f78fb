"""The end of a policy: behind one finalizer of ours, without harm to what runs."""

from datetime import datetime

from gpufair.api.kinds import GPU_SCHEDULING_POLICY
from gpufair.api.policy import DeletionPolicy
from gpufair.cluster.applier import Applier, Operation, Result
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.errors import GpufairError
from gpufair.loops.caches import Caches
from gpufair.loops.enforce import Enforcer, Tally
from gpufair.loops.policies import Json, Memory, PolicyStore
from gpufair.loops.report import Reporter, counters, kept
from gpufair.plan import conditions as say
from gpufair.plan.conditions import FALSE, Condition
from gpufair.plan.objects import APPLY_ORDER, Key
from gpufair.plan.ownership import policy_of

FINALIZER = "gpufair.io/objects"
_RETRY = 5.0


class Teardown:
    """Removes, evicts or leaves what a deleted policy made, as its deletionPolicy says."""

    def __init__(
        self,
        *,
        client: Client,
        caches: Caches,
        store: PolicyStore,
        applier: Applier,
        enforcer: Enforcer,
        reporter: Reporter,
    ) -> None:
        self._client = client
        self._applier = applier
        self._caches = caches
        self._store = store
        self._enforcer = enforcer
        self._reporter = reporter

    async def step(self, raw: Json, memory: Memory, now: datetime) -> float | None:
        """Take the next steps; return after how many seconds to look again, None when done.

        The policy's deletionPolicy is read as it is: a policy may be invalid and yet be deleted.
        """
        if FINALIZER not in (raw["metadata"].get("finalizers") or ()):
            return None
        name = raw["metadata"]["name"]
        mode = (raw.get("spec") or {}).get("deletionPolicy", DeletionPolicy.WAIT)
        going = self._objects(name)
        if mode == DeletionPolicy.ORPHAN:
            await self._orphan(going)
            going = []
        if not going:
            await self._let_go(raw)
            return None
        tally = Tally()
        ending = DeletionPolicy.EVICT if mode == DeletionPolicy.EVICT else DeletionPolicy.WAIT
        uid = raw["metadata"]["uid"]
        await self._enforcer.retire(name, uid, going, tally, ending=ending)
        waits = [*tally.errors, *tally.waits] or ["the last objects to disappear"]
        message = say.joined(f"Deletion ({mode}) waits for", waits)
        found = [Condition("Ready", FALSE, "Deleting", message)]
        await self._reporter.report(raw, memory, [*found, *kept(raw, found)], counters(raw), now)
        return _RETRY

    def _objects(self, policy: str) -> list[Key]:
        order = {kind: i for i, kind in enumerate(APPLY_ORDER)}
        keys = [key for key, live in self._caches.live.items() if policy_of(live) == policy]
        return sorted(keys, key=lambda key: (-order[key[0]], key[1], key[2]))

    async def _orphan(self, keys: list[Key]) -> None:
        """Leave the objects as they are, without our labels and owner references.

        Raises GpufairError when one of them could not be released: the policy then stays.
        """
        operations = [self._release(key) for key in keys]
        report = await self._applier.run([operations])
        for outcome in report.failed:
            if outcome.result is not Result.STALE:
                raise GpufairError(outcome.message)

    def _release(self, key: Key) -> Operation:
        kind, namespace, name = key
        live = self._caches.live[key]
        content = {k: v for k, v in live.items() if k not in ("metadata", "status")}
        place = {"namespace": namespace} if namespace else {}
        keep = content | {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name} | place,
        }
        uid = live["metadata"]["uid"]
        return Operation.release(kind, name, namespace or None, keep=keep, uid=uid)

    async def _let_go(self, raw: Json) -> None:
        metadata = raw["metadata"]
        finalizers = [f for f in metadata.get("finalizers") or () if f != FINALIZER]
        patch = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "finalizers": finalizers or None,
            }
        }
        self._caches.retiring.discard(metadata["name"])
        try:
            await self._client.patch_merge(GPU_SCHEDULING_POLICY, metadata["name"], patch)
        except ApiError as error:
            if not error.is_not_found:
                raise
