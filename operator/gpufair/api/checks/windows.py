"""Windows: times that exist, and overrides that are valid when they hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from functools import cache
from importlib.resources import files

from gpufair.api.checks.context import Context, Owner, duplicates, unknown
from gpufair.api.checks.quota import (
    Key,
    capacities,
    merged,
    nominal_sums,
    reference_problem,
    repeated,
)
from gpufair.api.messages import shown
from gpufair.api.problems import Problem, error, warning
from gpufair.api.quantity import canonical
from gpufair.api.tenants import Quota
from gpufair.api.windows import QuotaOverride, TenantOverride, Window


def weekly_or_dates(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        if window.weekly and window.dates:
            yield error(path, "has both weekly and dates: write one of them")
        elif not window.weekly and not window.dates:
            yield error(path, "has neither weekly nor dates: write one of them")


def unreal_dates(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        if window.dates is None:
            continue
        days = {"from": window.dates.from_, "to": window.dates.to}
        unreal = [name for name, day in days.items() if _date(day) is None]
        for name in unreal:
            yield error(
                f"{path}.dates.{name}", f"is {shown(days[name])}, no day of the calendar: write one"
            )
        if not unreal and days["from"] >= days["to"]:
            yield error(
                f"{path}.dates.to",
                f"is {shown(days['to'])}, not after from: write a date after {days['from']}",
            )


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def unknown_time_zone(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        if window.time_zone not in _time_zones():
            yield error(
                f"{path}.timeZone",
                f"is {shown(window.time_zone)}, no IANA time zone: write one such as"
                " 'America/New_York' or 'UTC'",
            )


@cache
def _time_zones() -> frozenset[str]:
    """The names of the tzdata package, so that verdicts do not depend on the machine's own."""
    names = files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return frozenset(names.split())


def nothing_overridden(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        if not any(map(_overrides, window.tenants)) and not _fairness_overrides(window):
            yield warning(path, "changes nothing: write what differs in it, or remove it")


def _overrides(tenant: TenantOverride) -> bool:
    return tenant.weight is not None or tenant.hold is not None or bool(tenant.quota)


def _fairness_overrides(window: Window) -> bool:
    fairness = window.fairness
    return fairness is not None and any(
        part is not None
        for part in (fairness.reclaim, fairness.utilization_target, fairness.history)
    )


def unknown_tenant(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        for index, override in enumerate(window.tenants):
            if override.name not in context.tenants:
                yield unknown(
                    f"{path}.tenants[{index}].name", override.name, "tenant", context.tenants
                )


def tenant_given_twice(context: Context) -> Iterator[Problem]:
    for path, window in _windows(context):
        names = [override.name for override in window.tenants]
        yield from duplicates(names, f"{path}.tenants", "name")


def quota_references(context: Context) -> Iterator[Problem]:
    for path, override in _overridden(context):
        for index, quota in enumerate(override.quota):
            problem = reference_problem(context, f"{path}.quota[{index}]", quota)
            if problem:
                yield problem
        yield from repeated(context, path, override.quota)


def quota_without_base(context: Context) -> Iterator[Problem]:
    """An override of quota that the tenant does not have must say nominal itself."""
    for path, override, quota, base in _quota_overrides(context):
        if base is None and quota.nominal is None:
            yield error(
                f"{path}.nominal",
                f"is required, because {override.name} has no quota of {quota.flavor} otherwise:"
                " write it",
            )


def lending_above_nominal(context: Context) -> Iterator[Problem]:
    """An override of either is held against the other as it then is."""
    for path, override, quota, base in _quota_overrides(context):
        nominal = quota.nominal or (base.nominal if base else None)
        limit = quota.lending_limit or (base.lending_limit if base else None)
        if nominal is None or limit is None or limit.value <= nominal.value:
            continue
        if quota.lending_limit is not None:
            yield error(
                f"{path}.lendingLimit",
                f"is {limit}, above nominal {nominal}: write at most {nominal}",
            )
        elif quota.nominal is not None:
            yield error(
                f"{path}.nominal",
                f"is {nominal}, below the lendingLimit {limit} that {override.name} has otherwise:"
                f" write a lendingLimit of at most {nominal} too",
            )


def nominal_above_capacity(context: Context) -> Iterator[Problem]:
    """Only where a window raises a sum: what is too much without it is reported once."""
    if not any(override.quota for _, override in _overridden(context)):
        return
    base = nominal_sums(context)
    limits = {
        (flavor.name, resource): units
        for flavor in context.spec.flavors
        for resource, _, units in capacities(flavor)
    }
    for path, window in _windows(context):
        for key, change in sorted(_changes(context, window).items()):
            total = base.get(key, Fraction(0)) + change
            if change > 0 and key in limits and total > limits[key]:
                yield warning(
                    path,
                    f"brings the sum of nominal {key[1]} of {key[0]} to {canonical(total)},"
                    f" {canonical(total - limits[key])} above the capacity of"
                    f" {canonical(limits[key])}: lower it",
                )


def _changes(context: Context, window: Window) -> dict[Key, Fraction]:
    changes: dict[Key, Fraction] = {}
    for override in window.tenants:
        index = context.tenants.get(override.name)
        if index is None or not override.quota:
            continue
        tenant = context.spec.tenants[index]
        owner = Owner(f"spec.tenants[{index}]", tenant.name, tenant.quota)
        for key, change in merged(context, owner, override).items():
            changes[key] = changes.get(key, Fraction(0)) + change
    return changes


def _quota_overrides(
    context: Context,
) -> Iterator[tuple[str, TenantOverride, QuotaOverride, Quota | None]]:
    """Yield each override of quota with a known tenant, flavor and resource, and its base."""
    for path, override in _overridden(context):
        index = context.tenants.get(override.name)
        if index is None or not override.quota:
            continue
        tenant = context.spec.tenants[index]
        owner = Owner(f"spec.tenants[{index}]", tenant.name, tenant.quota)
        base = {(flavor, name): quota for _, flavor, name, quota in context.known_quota(owner)}
        for position, quota in enumerate(override.quota):
            resource = context.resource(quota)
            if resource is not None:
                found = base.get((quota.flavor, resource))
                yield f"{path}.quota[{position}]", override, quota, found


def _overridden(context: Context) -> Iterator[tuple[str, TenantOverride]]:
    for path, window in _windows(context):
        for index, override in enumerate(window.tenants):
            yield f"{path}.tenants[{index}]", override


def _windows(context: Context) -> Iterator[tuple[str, Window]]:
    for index, window in enumerate(context.spec.windows):
        yield f"spec.windows[{index}]", window


CHECKS = (
    weekly_or_dates,
    unreal_dates,
    unknown_time_zone,
    nothing_overridden,
    unknown_tenant,
    tenant_given_twice,
    quota_references,
    quota_without_base,
    lending_above_nominal,
    nominal_above_capacity,
)
