"""The conditions of a policy: pure findings about one reconcile pass.

Each has a stable reason and a sentence. Order and names are those of the design.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpufair.api.problems import Problem

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MESSAGE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition without its times (meta/v1 Condition)."""

    type: str
    status: str
    reason: str
    message: str
    generation: int | None = None
    """The generation that it speaks of, where that is not the present one."""


def valid(problems: Sequence[Problem]) -> Condition:
    wrong = [str(problem) for problem in problems if problem.is_error]
    if not wrong:
        return Condition("Valid", TRUE, "Valid", "The policy is valid.")
    return Condition("Valid", FALSE, "Invalid", joined("The policy is not valid", wrong))


def supported(missing: str) -> Condition:
    if missing:
        return Condition("Supported", FALSE, "FieldsNotBuilt", missing)
    return Condition("Supported", TRUE, "AllFields", "Every field in use is acted on.")


def conflicts(found: Sequence[str]) -> Condition:
    if found:
        return Condition("Conflict", TRUE, "ForeignObjects", joined("Left untouched", found))
    return Condition("Conflict", FALSE, "NoConflict", "No object belongs to somebody else.")


def suspended(on: bool) -> Condition:
    if on:
        message = "spec.suspend is true: nothing is written, objects stay as they are."
        return Condition("Suspended", TRUE, "SuspendedBySpec", message)
    return Condition("Suspended", FALSE, "NotSuspended", "The policy is in force.")


def within_capacity(warnings: Sequence[Problem]) -> Condition:
    over = [str(problem) for problem in warnings]
    if over:
        message = joined("More is promised than there is", over)
        return Condition("QuotaWithinCapacity", FALSE, "QuotaAboveCapacity", message)
    message = "The nominal quotas fit the stated capacity."
    return Condition("QuotaWithinCapacity", TRUE, "WithinCapacity", message)


def fair_sharing(queues: Sequence[Mapping[str, Any]]) -> Condition:
    """Whether Kueue shares fairly; it says so in the status of every ClusterQueue."""
    seen = [queue for queue in queues if condition_of(queue, "Active").get("status") == TRUE]
    if not seen:
        message = "No ClusterQueue is active yet."
        return Condition("FairSharingActive", UNKNOWN, "NoActiveQueue", message)
    if all("fairSharing" in queue["status"] for queue in seen):
        return Condition("FairSharingActive", TRUE, "Enabled", "Kueue shares by weight.")
    return Condition(
        "FairSharingActive",
        FALSE,
        "FairSharingOff",
        "ClusterQueues report no fair-sharing status, so weights have no effect: set "
        "fairSharing.preemptionStrategies in Kueue's configuration.",
    )


def inactive_queues(queues: Sequence[Mapping[str, Any]]) -> list[str]:
    """One clause for each ClusterQueue that is not Active, with Kueue's own message."""
    clauses = []
    for queue in queues:
        active = condition_of(queue, "Active")
        if active.get("status") != TRUE:
            why = active.get("message") or "not yet seen by Kueue"
            clauses.append(f"ClusterQueue {queue['metadata']['name']}: {why}")
    return clauses


def condition_of(live: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of that type of a live object; empty when it has none."""
    for condition in (live.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            found: Mapping[str, Any] = condition
            return found
    return {}


def joined(lead: str, clauses: Sequence[str], most: int = 10) -> str:
    """`lead: a; b; c (and 4 more)`, within what a condition's message may hold."""
    more = f" (and {len(clauses) - most} more)" if len(clauses) > most else ""
    body = "; ".join(clause.rstrip(".") for clause in clauses[:most])
    return f"{lead}: {body}"[: MESSAGE_LIMIT - len(more) - 2] + more + "."


def stamped(
    found: Sequence[Condition],
    before: Sequence[Mapping[str, Any]],
    generation: int,
    now: datetime,
) -> list[dict[str, Any]]:
    """Conditions as they are stored: the transition time changes only with the status."""
    known = {condition["type"]: condition for condition in before}
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    stored = []
    for condition in found:
        old = known.get(condition.type, {})
        kept = old.get("status") == condition.status
        stored.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": old.get("lastTransitionTime", at) if kept else at,
                "observedGeneration": condition.generation or generation,
            }
        )
    return stored
