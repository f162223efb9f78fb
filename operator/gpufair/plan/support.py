"""Fields that a policy uses and the operator does not act on yet.

They are named in the condition `Supported`, and in warnings of validate and render; none is
ignored silently. A field counts as used when it says something else than its default.
"""

from collections.abc import Iterator
from typing import Any

from gpufair.api.base import Model
from gpufair.api.policy import Engine, PolicySpec

_POLICY = ("preemption_rate_limit", "mig")
_TIER = (
    "ceiling",
    "aging",
    "preemption",
    "checkpoint",
    "max_run_time",
    "gang",
    "max_wait",
    "guard",
)
_FAIRNESS = ("utilization_target", "window", "history")


def unsupported(spec: PolicySpec) -> list[str]:
    """Return the paths of the fields in use that have no effect yet, such as `tiers[0].aging`."""
    if spec.engine is not Engine.KUEUE:
        return ["spec.engine: Volcano"]
    return [f"spec.{path}" for path in _paths(spec)]


def sentence(paths: list[str]) -> str:
    """One sentence for the condition and the warning."""
    if paths == ["spec.engine: Volcano"]:
        return "Engine Volcano is not built yet: nothing is applied."
    shown = ", ".join(paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"Not acted on yet, all else is applied: {shown}{more}."


_SHOWN = 20


def _paths(spec: PolicySpec) -> Iterator[str]:
    yield from _used(spec, "", *_POLICY)
    yield from _used(spec.fairness, "fairness.", *_FAIRNESS)
    for i, flavor in enumerate(spec.flavors):
        if flavor.capacity is None and flavor.capacities is None:
            yield f"flavors[{i}].capacity (omitted: live count)"
    for i, tier in enumerate(spec.tiers):
        yield from _used(tier, f"tiers[{i}].", *_TIER)
    for i, tenant in enumerate(spec.tenants):
        yield from _used(tenant, f"tenants[{i}].", "tiers")
    for i, window in enumerate(spec.windows):
        if window.fairness is not None:
            yield from _used(
                window.fairness, f"windows[{i}].fairness.", "utilization_target", "history"
            )


def _used(part: Model, prefix: str, *names: str) -> Iterator[str]:
    fields = type(part).model_fields
    for name in names:
        value: Any = getattr(part, name)
        if value != fields[name].get_default(call_default_factory=True):
            yield prefix + (fields[name].alias or name)
