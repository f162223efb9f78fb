"""Quota: of known flavors and resources, within itself and within capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from gpufair.api.checks.context import Context, Owner, unknown
from gpufair.api.flavors import Flavor
from gpufair.api.messages import shown
from gpufair.api.problems import Problem, error, warning
from gpufair.api.quantity import canonical
from gpufair.api.tenants import Quota
from gpufair.api.windows import QuotaOverride, TenantOverride

Key = tuple[str, str]
"""Flavor and resource."""


def unknown_flavor_or_resource(context: Context) -> Iterator[Problem]:
    for owner in context.owners:
        for index, quota in enumerate(owner.quota):
            problem = reference_problem(context, f"{owner.path}.quota[{index}]", quota)
            if problem:
                yield problem


def reference_problem(context: Context, path: str, quota: Quota | QuotaOverride) -> Problem | None:
    """Return what is wrong with the flavor or resource that a quota names."""
    flavor = context.flavors.get(quota.flavor)
    if flavor is None:
        return unknown(f"{path}.flavor", quota.flavor, "flavor", context.flavors)
    if quota.resource and quota.resource not in flavor.resources:
        what = f"resource of {flavor.name}"
        return unknown(f"{path}.resource", quota.resource, what, flavor.resources)
    if not quota.resource and len(flavor.resources) > 1:
        names = ", ".join(flavor.resources)
        return error(
            f"{path}.resource",
            f"is required, because {flavor.name} has several: write one of {names}",
        )
    return None


def given_twice(context: Context) -> Iterator[Problem]:
    for owner in context.owners:
        if len(owner.quota) > 1:
            yield from repeated(context, owner.path, owner.quota)


def repeated(
    context: Context, path: str, quotas: Sequence[Quota | QuotaOverride]
) -> Iterator[Problem]:
    """Yield an error for each entry of a flavor and resource that an earlier one has."""
    first: dict[Key, int] = {}
    for index, quota in enumerate(quotas):
        key = (quota.flavor, context.resource(quota) or quota.resource)
        other = first.setdefault(key, index)
        if other != index:
            yield error(
                f"{path}.quota[{index}]",
                f"is of the flavor and resource of {path}.quota[{other}]: keep one of them",
            )


def lending_above_nominal(context: Context) -> Iterator[Problem]:
    """Of tenants only: a cohort lends what is below it, which its own nominal does not bound."""
    for index, tenant in enumerate(context.spec.tenants):
        for position, quota in enumerate(tenant.quota):
            limit, nominal = quota.lending_limit, quota.nominal
            if limit is not None and limit.value > nominal.value:
                yield error(
                    f"spec.tenants[{index}].quota[{position}].lendingLimit",
                    f"is {limit}, above nominal {nominal}: write at most {nominal}",
                )


def nominal_above_capacity(context: Context) -> Iterator[Problem]:
    sums = nominal_sums(context)
    for index, flavor in enumerate(context.spec.flavors):
        for resource, field, capacity in capacities(flavor):
            excess = sums.get((flavor.name, resource), Fraction(0)) - capacity
            if excess > 0:
                yield warning(
                    f"spec.flavors[{index}].{field}",
                    f"is {canonical(capacity)} {resource} of {flavor.name}, but nominal quotas sum"
                    f" to {canonical(capacity + excess)}, {canonical(excess)} above it: lower"
                    " them, or owners may not all get their quota at once",
                )


def capacities(flavor: Flavor) -> Iterator[tuple[str, str, Fraction]]:
    """Yield resource, field and units of each capacity that a flavor states."""
    if flavor.capacity is not None:
        yield flavor.resources[0], "capacity", Fraction(flavor.capacity)
    for resource, units in (flavor.capacities or {}).items():
        yield resource, f"capacities[{shown(resource)}]", units.value


def nominal_sums(context: Context) -> dict[Key, Fraction]:
    """Return the sum of nominal quota, of tenants and cohorts, by flavor and resource."""
    sums: dict[Key, Fraction] = {}
    for owner in context.owners:
        for _, flavor, resource, quota in context.known_quota(owner):
            key = (flavor, resource)
            sums[key] = sums.get(key, Fraction(0)) + quota.nominal.value
    return sums


def merged(context: Context, owner: Owner, override: TenantOverride) -> dict[Key, Fraction]:
    """Return by how much an override changes the nominal quota of its tenant."""
    base = {
        (flavor, resource): quota.nominal.value
        for _, flavor, resource, quota in context.known_quota(owner)
    }
    changes: dict[Key, Fraction] = {}
    for quota in override.quota:
        resource = context.resource(quota)
        if resource is not None and quota.nominal is not None:
            key = (quota.flavor, resource)
            changes[key] = quota.nominal.value - base.get(key, Fraction(0))
    return changes


CHECKS = (
    unknown_flavor_or_resource,
    given_twice,
    lending_above_nominal,
    nominal_above_capacity,
)
