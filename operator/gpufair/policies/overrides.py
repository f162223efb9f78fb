"""What the policy says at one moment: its fields with those of the active windows over them."""

from collections.abc import Sequence
from typing import Any

from gpufair.api.base import Model
from gpufair.api.flavors import Flavor
from gpufair.api.policy import PolicySpec
from gpufair.api.tenants import Quota, Tenant
from gpufair.api.windows import QuotaOverride, TenantOverride, Window


def effective(spec: PolicySpec, windows: Sequence[Window]) -> PolicySpec:
    """The policy with the overrides of `windows` applied, the later one winning field by field."""
    for window in windows:
        spec = _apply(spec, window)
    return spec


def quota_resource(quota: Quota | QuotaOverride, flavors: Sequence[Flavor]) -> str:
    """The resource that the quota is about: its own, or the only one of its flavor."""
    if quota.resource:
        return quota.resource
    return next(f.resources[0] for f in flavors if f.name == quota.flavor)


def _apply(spec: PolicySpec, window: Window) -> PolicySpec:
    overrides = {override.name: override for override in window.tenants}
    changes: dict[str, Any] = {}
    if overrides:
        changes["tenants"] = [
            _tenant(t, overrides[t.name], spec.flavors) if t.name in overrides else t
            for t in spec.tenants
        ]
    if window.fairness is not None:
        changes["fairness"] = spec.fairness.model_copy(update=_stated(window.fairness))
    return spec.model_copy(update=changes) if changes else spec


def _tenant(tenant: Tenant, override: TenantOverride, flavors: Sequence[Flavor]) -> Tenant:
    quotas = {(q.flavor, quota_resource(q, flavors)): q for q in tenant.quota}
    for change in override.quota:
        key = (change.flavor, quota_resource(change, flavors))
        base = quotas.get(key) or Quota.model_validate({"flavor": key[0], "nominal": 0})
        quotas[key] = base.model_copy(
            update=_stated(change, "flavor", "resource") | {"resource": key[1]}
        )
    return tenant.model_copy(
        update=_stated(override, "name", "quota") | {"quota": list(quotas.values())}
    )


def _stated(override: Model, *but: str) -> dict[str, Any]:
    names = type(override).model_fields.keys() - set(but)
    return {n: v for n in names if (v := getattr(override, n)) is not None}
