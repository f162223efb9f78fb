"""Whose a live object is. What is not ours is never touched."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gpufair.plan.objects import ADOPT_ANNOTATION, MANAGED_BY, MANAGER, POLICY_LABEL, Key


class Owner(Enum):
    OURS = "ours"
    ADOPTABLE = "adoptable"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Conflict:
    """An object that the policy asks for and that belongs to somebody else."""

    key: Key
    message: str

    def __str__(self) -> str:
        resource, namespace, name = self.key
        where = f"{namespace}/" if namespace else ""
        return f"{resource.kind} {where}{name} {self.message}"


def policy_of(live: Mapping[str, Any]) -> str:
    """Name of the policy that the live object is labelled with; empty when it is not ours."""
    labels = live["metadata"].get("labels") or {}
    return str(labels.get(POLICY_LABEL, "")) if labels.get(MANAGED_BY) == MANAGER else ""


def owner_of(live: Mapping[str, Any], policy: str) -> Owner:
    """Whose the live object is, as seen by `policy`.

    Our labels can be lost to somebody's edit; what we applied stays on record in managedFields.
    What another policy has cannot be adopted: both would take it from each other for ever.
    """
    labelled = policy_of(live)
    if labelled:
        return Owner.OURS if labelled == policy else Owner.FOREIGN
    if (live["metadata"].get("annotations") or {}).get(ADOPT_ANNOTATION) == "true":
        return Owner.ADOPTABLE
    if _applied_by_us(live):
        return Owner.OURS
    return Owner.FOREIGN


def conflict(key: Key, live: Mapping[str, Any]) -> Conflict:
    other = policy_of(live)
    if other:
        return Conflict(key, f"belongs to GpuSchedulingPolicy {other}: choose another name.")
    return Conflict(
        key,
        "exists and is not gpufair's: choose another name, or hand it over with the annotation "
        f'{ADOPT_ANNOTATION}="true".',
    )


def _applied_by_us(live: Mapping[str, Any]) -> bool:
    return any(
        entry.get("manager") == MANAGER
        and entry.get("operation") == "Apply"
        # The kinds with a spec, and the priority classes, which have their fields at the top.
        and not {"f:spec", "f:value"}.isdisjoint(entry.get("fieldsV1") or ())
        for entry in live["metadata"].get("managedFields") or ()
    )
