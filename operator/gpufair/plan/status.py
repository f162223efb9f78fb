"""The figures in a policy's status: who has what, now. Pure, from the plan and the records.

Shares are of the pool's capacity, now. The share error is what a tenant has a claim to and asks
for, but does not have: max(0, min(nominal, used + pending) - used) / capacity.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from gpufair.api.flavors import Flavor
from gpufair.api.kinds import CLUSTER_QUEUE
from gpufair.api.policy import PolicySpec
from gpufair.api.quantity import canonical, parse_quantity
from gpufair.api.tenants import Cohort, Tenant
from gpufair.plan.changes import Live
from gpufair.plan.conditions import TRUE, condition_of
from gpufair.plan.records import State, WorkloadRecord, queue_of
from gpufair.policies.overrides import quota_resource

LISTED_TENANTS = 100
_ZERO = Fraction(0)
Amounts = Mapping[str, Fraction]
"""Units by resource, over all flavors."""


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """What one tenant has and waits for."""

    name: str
    weight: float
    nominal: Amounts
    used: Amounts
    borrowed: Amounts
    pending: Amounts
    active: bool = True
    """Whether Kueue uses the ClusterQueue."""

    def shortfall(self, resource: str) -> Fraction:
        """Units that the tenant has a claim to and asks for, but does not have."""
        used = self.used.get(resource, _ZERO)
        wanted = used + self.pending.get(resource, _ZERO)
        return max(_ZERO, min(self.nominal.get(resource, _ZERO), wanted) - used)


@dataclass(frozen=True, slots=True)
class TierFigures:
    """Workloads of one tier; `longest_wait` in seconds."""

    name: str
    pending: int
    running: int
    longest_wait: int


@dataclass(frozen=True, slots=True)
class Figures:
    """What one pass found."""

    tenants: Sequence[TenantFigures]
    tiers: Sequence[TierFigures]
    capacity: Amounts

    @property
    def utilization(self) -> Fraction:
        used = sum((sum(tenant.used.values(), _ZERO) for tenant in self.tenants), _ZERO)
        there = sum(self.capacity.values(), _ZERO)
        return used / there if there else _ZERO

    def share(self, amounts: Amounts) -> Fraction:
        """The dominant share of the pool: of the resource of which it is largest (DRF)."""
        shares = (
            amounts[r] / there for r, there in self.capacity.items() if there and r in amounts
        )
        return max(shares, default=_ZERO)

    def share_error(self, tenant: TenantFigures) -> Fraction:
        return self.share({resource: tenant.shortfall(resource) for resource in self.capacity})


def figures(
    spec: PolicySpec, live: Live, workloads: Iterable[WorkloadRecord], now: datetime
) -> Figures:
    """Count use from the ClusterQueues' status, and what waits from the Workloads.

    `live` are the policy's own objects: what uses others' queues of the same name is theirs.
    """
    resources = dict.fromkeys(name for flavor in spec.flavors for name in flavor.resources)
    waiting: dict[str, dict[str, Fraction]] = {
        tenant.name: {} for tenant in spec.tenants if (CLUSTER_QUEUE, "", tenant.name) in live
    }
    tiers = _TierCount(spec, now)
    for record in workloads:
        asked = waiting.get(queue_of(record, live))
        if asked is None or record.state is State.FINISHED:
            continue
        if record.state is State.PENDING and not record.active:
            continue  # deactivated: it waits for nothing
        tiers.add(record)
        if record.state is State.PENDING:
            _add(asked, ((name, n) for name, n in record.requests if name in resources))
    tenants = [
        _tenant(
            t, live.get((CLUSTER_QUEUE, "", t.name)) or {}, waiting.get(t.name, {}), spec.flavors
        )
        for t in spec.tenants
    ]
    return Figures(tenants, tiers.result(), capacity(spec))


def capacity(spec: PolicySpec) -> dict[str, Fraction]:
    """Units by resource, over all flavors; where one states none, the sum of nominal quotas."""
    promised: dict[tuple[str, str], Fraction] = {}
    owners: list[Cohort | Tenant] = [*spec.cohorts, *spec.tenants]
    for quota in (quota for owner in owners for quota in owner.quota):
        key = (quota.flavor, quota_resource(quota, spec.flavors))
        promised[key] = promised.get(key, _ZERO) + quota.nominal.value
    totals: dict[str, Fraction] = {}
    for flavor in spec.flavors:
        stated = _stated(flavor)
        rest = {r: promised.get((flavor.name, r), _ZERO) for r in flavor.resources}
        _add(totals, (rest | stated).items())
    return totals


def _stated(flavor: Flavor) -> dict[str, Fraction]:
    if flavor.capacity is not None:
        return {flavor.resources[0]: Fraction(flavor.capacity)}
    return {name: quantity.value for name, quantity in (flavor.capacities or {}).items()}


def _nominal(owner: Tenant, flavors: Sequence[Flavor]) -> list[tuple[str, Fraction]]:
    return [(quota_resource(quota, flavors), quota.nominal.value) for quota in owner.quota]


def _add(totals: dict[str, Fraction], amounts: Iterable[tuple[str, Fraction]]) -> None:
    for name, units in amounts:
        totals[name] = totals.get(name, _ZERO) + units


def _tenant(
    tenant: Tenant, queue: Mapping[str, Any], pending: Amounts, flavors: Sequence[Flavor]
) -> TenantFigures:
    nominal: dict[str, Fraction] = {}
    _add(nominal, _nominal(tenant, flavors))
    used: dict[str, Fraction] = dict.fromkeys(nominal, _ZERO)
    borrowed: dict[str, Fraction] = {}
    for flavor in (queue.get("status") or {}).get("flavorsReservation") or ():
        for resource in flavor.get("resources") or ():
            if resource["name"] in nominal:
                _add(used, [(resource["name"], parse_quantity(resource.get("total", 0)))])
                _add(borrowed, [(resource["name"], parse_quantity(resource.get("borrowed", 0)))])
    active = not queue or condition_of(queue, "Active").get("status") == TRUE
    return TenantFigures(tenant.name, tenant.weight, nominal, used, borrowed, pending, active)


class _TierCount:
    def __init__(self, spec: PolicySpec, now: datetime) -> None:
        self._now = now
        self._counts = {tier.name: [0, 0, 0] for tier in spec.tiers}

    def add(self, record: WorkloadRecord) -> None:
        counts = self._counts.get(record.workload_class)
        if counts is None:
            return
        if record.state is State.ADMITTED:
            counts[1] += 1
        else:
            counts[0] += 1
            created = datetime.fromisoformat(record.created)
            counts[2] = max(counts[2], int((self._now - created).total_seconds()))

    def result(self) -> list[TierFigures]:
        return [TierFigures(name, *counts) for name, counts in self._counts.items()]


def status_fields(found: Figures) -> dict[str, Any]:
    """The figures as they are stored.

    Beyond 100 tenants only those in trouble are: queues that are not active, then the worst share
    errors.
    """
    errors = {tenant.name: found.share_error(tenant) for tenant in found.tenants}
    listed = list(found.tenants)
    if len(listed) > LISTED_TENANTS:
        troubled = [t for t in listed if errors[t.name] or not t.active]
        troubled.sort(key=lambda t: (t.active, -errors[t.name]))
        shown = {tenant.name for tenant in troubled[:LISTED_TENANTS]}
        listed = [tenant for tenant in listed if tenant.name in shown]
    return {
        "tenantCount": len(found.tenants),
        "utilization": percent(found.utilization),
        "worstShareError": percent(max(errors.values(), default=_ZERO)),
        "tenants": [_tenant_fields(tenant, found) for tenant in listed],
        "tiers": [
            {
                "name": tier.name,
                "pending": tier.pending,
                "running": tier.running,
                "longestWait": _duration(tier.longest_wait),
            }
            for tier in found.tiers
        ],
    }


def _tenant_fields(tenant: TenantFigures, found: Figures) -> dict[str, Any]:
    return {
        "name": tenant.name,
        "weight": tenant.weight,
        "nominal": _amounts(tenant.nominal),
        "used": _amounts(tenant.used),
        "borrowed": _amounts(tenant.borrowed),
        "pending": _amounts(tenant.pending),
        "share": percent(found.share(tenant.used)),
        "entitledShare": percent(found.share(tenant.nominal)),
        "shareError": percent(found.share_error(tenant)),
    }


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {name: canonical(units) for name, units in sorted(amounts.items())}


def percent(value: Fraction) -> str:
    """`12.5%`, with one decimal."""
    return f"{float(value) * 100:.1f}%"


def _duration(seconds: int) -> str:
    # Whole minutes: a text that changes every second would be a write every second.
    minutes = seconds // 60
    return f"{minutes // 60}h{minutes % 60}m0s" if minutes >= 60 else f"{minutes}m0s"
