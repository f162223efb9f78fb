"""Names: distinct in their lists, and fit for the objects made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from gpufair.api.checks.context import Context, duplicates
from gpufair.api.problems import Problem, error


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def duplicate_names(context: Context) -> Iterator[Problem]:
    spec = context.spec
    lists: dict[str, Sequence[_Named]] = {
        "spec.flavors": spec.flavors,
        "spec.tiers": spec.tiers,
        "spec.cohorts": spec.cohorts,
        "spec.tenants": spec.tenants,
        "spec.windows": spec.windows,
    }
    for path, items in lists.items():
        yield from duplicates([item.name for item in items], path, "name")


def duplicate_entries(context: Context) -> Iterator[Problem]:
    """Lists of plain strings in which each may be only once."""
    for path, values in _string_lists(context):
        if len(set(values)) < len(values):
            yield from duplicates(values, path)


def _string_lists(context: Context) -> Iterator[tuple[str, Sequence[str]]]:
    spec = context.spec
    for index, flavor in enumerate(spec.flavors):
        yield f"spec.flavors[{index}].resources", flavor.resources
        yield f"spec.flavors[{index}].otherResources", flavor.other_resources
        yield f"spec.flavors[{index}].topologyLevels", flavor.topology_levels
    for index, tier in enumerate(spec.tiers):
        if tier.checkpoint:
            path = f"spec.tiers[{index}].checkpoint.storageSchemes"
            yield path, tier.checkpoint.storage_schemes
    for index, tenant in enumerate(spec.tenants):
        yield f"spec.tenants[{index}].namespaces", tenant.namespaces
        yield f"spec.tenants[{index}].tiers", tenant.tiers
        yield f"spec.tenants[{index}].admissionChecks", tenant.admission_checks
    for index, window in enumerate(spec.windows):
        if window.weekly:
            yield f"spec.windows[{index}].weekly.days", window.weekly.days
    for index, mig in enumerate(spec.mig):
        yield f"spec.mig[{index}].layout", [item.profile for item in mig.layout]
        yield f"spec.mig[{index}].guarantee", [item.profile for item in mig.guarantee]


def system_tier_name(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        if tier.name.startswith("system-"):
            yield error(
                f"spec.tiers[{index}].name",
                f"is '{tier.name}': names that begin with 'system-' are Kubernetes' own priority"
                " classes; write another",
            )


CHECKS = (duplicate_names, duplicate_entries, system_tier_name)
