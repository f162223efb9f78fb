"""The one status write of a pass, and the events at its turning points."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gpufair.api.kinds import GPU_SCHEDULING_POLICY
from gpufair.api.policy import API_VERSION, KIND
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.cluster.events import EventRecorder
from gpufair.loops.policies import Json, Memory, PolicyStore
from gpufair.plan.conditions import FALSE, TRUE, Condition, stamped

COUNTER_PERIOD = 10.0
"""Seconds between two writes that only change counters."""

_BAD_WHEN = {"Conflict": TRUE, "Suspended": ""}
_QUIET = frozenset(("Suspended", "Supported"))


class Reporter:
    """Writes the status when it says something new."""

    def __init__(
        self, client: Client, store: PolicyStore, recorder: EventRecorder, clock: Any
    ) -> None:
        self._client = client
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def report(
        self,
        raw: Json,
        memory: Memory,
        conditions: Sequence[Condition],
        fields: Mapping[str, Any],
        now: datetime,
    ) -> float | None:
        """Write the status if it changed; return in how many seconds changed counters may follow.

        `conditions` and `fields` (the counters) are all that the status will have.
        """
        before = raw.get("status") or {}
        generation = raw["metadata"]["generation"]
        stored = stamped(conditions, before.get("conditions") or (), generation, now)
        status = {"observedGeneration": generation, "conditions": stored, **fields}
        turned = stored != before.get("conditions") or generation != before.get(
            "observedGeneration"
        )
        if not turned and not _differs(status, before):
            return None
        wait = memory.status_written + COUNTER_PERIOD - self._clock()
        if not turned and wait > 0:
            return float(wait)
        if not await self._write(raw, status):
            return None
        memory.status_written = self._clock()
        self._tell(raw, before.get("conditions") or (), stored)
        return None

    async def _write(self, raw: Json, status: Json) -> bool:
        """Write the status; False when the policy is gone, or is another one by now."""
        metadata = {"name": raw["metadata"]["name"], "uid": raw["metadata"]["uid"]}
        manifest = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": metadata,
            "status": status,
        }
        try:
            _, made = await self._client.apply_status(GPU_SCHEDULING_POLICY, manifest)
        except ApiError as error:
            if error.is_not_found or error.is_conflict:
                return False
            raise
        self._store.put(made)
        return True

    def _tell(self, raw: Json, before: Sequence[Any], after: Sequence[Any]) -> None:
        known = {condition["type"]: condition for condition in before}
        for condition in after:
            old = known.get(condition["type"])
            if _is_turning_point(old, condition):
                self._recorder.record(
                    GPU_SCHEDULING_POLICY,
                    raw["metadata"],
                    condition["reason"],
                    condition["message"],
                    type_="Warning" if _is_bad(condition) else "Normal",
                )


def counters(raw: Json) -> dict[str, Any]:
    """The counters that the policy's status has now."""
    fixed = ("observedGeneration", "conditions")
    return {k: v for k, v in (raw.get("status") or {}).items() if k not in fixed}


def kept(raw: Json, found: Sequence[Condition]) -> list[Condition]:
    """The conditions that `found` does not replace: they speak of the generation in force."""
    replaced = {condition.type for condition in found}
    return [
        Condition(c["type"], c["status"], c["reason"], c["message"], c.get("observedGeneration"))
        for c in (raw.get("status") or {}).get("conditions") or ()
        if c["type"] not in replaced
    ]


def _is_turning_point(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    if new["type"] in _QUIET and old is None:
        return False
    if old is None:
        return _is_bad(new) or new["type"] == "Ready"
    return (old["status"], old["reason"]) != (new["status"], new["reason"])


def _is_bad(condition: Mapping[str, Any]) -> bool:
    return bool(condition["status"] == _BAD_WHEN.get(condition["type"], FALSE))


def _differs(status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether anything differs but the waits, which grow by themselves."""
    return _without_waits(status) != _without_waits(before)


def _without_waits(status: Mapping[str, Any]) -> dict[str, Any]:
    tiers = [
        {k: v for k, v in tier.items() if k != "longestWait"} for tier in status.get("tiers") or ()
    ]
    return {**status, "tiers": tiers}
