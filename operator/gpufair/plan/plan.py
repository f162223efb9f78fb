"""The one way from a policy to the objects that it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpufair.api.checks.context import Context
from gpufair.api.checks.quota import nominal_above_capacity
from gpufair.api.policy import Engine, Policy, PolicySpec
from gpufair.api.problems import Problem
from gpufair.plan.kueue import KueuePlan
from gpufair.plan.objects import Desired
from gpufair.plan.renderer import Renderer
from gpufair.plan.selectors import Facts
from gpufair.policies.overrides import effective


@dataclass(frozen=True)
class Plan:
    """What a policy asks for at one moment.

    `objects` come in the order in which they are applied. `spec` is the policy with the active
    windows over it. `next_transition` is when the plan changes by itself, if it ever does.
    """

    objects: Sequence[Desired]
    spec: PolicySpec
    policy: str = ""
    collisions: Sequence[str] = ()
    """Namespaces that a second tenant claims, one clause each."""
    over_capacity: Sequence[Problem] = ()
    """Where the nominal quotas of this moment exceed the stated capacity."""
    active_windows: Sequence[str] = ()
    next_transition: datetime | None = None


def plan(policy: Policy, facts: Facts, now: datetime, renderer: Renderer | None = None) -> Plan:
    """Return the objects of `policy` at `now` (aware, any zone).

    A `renderer` kept from the last plan of the policy saves rendering what did not change.

    An engine that is not built yet gets no objects: nothing half-made is applied.
    """
    spec, upcoming = policy.spec, None
    names: tuple[str, ...] = ()
    if spec.windows:
        from gpufair.policies import windows

        active = windows.active(spec.windows, now)
        upcoming = windows.next_transition(spec.windows, now)
        spec, names = effective(spec, active), tuple(w.name for w in active)
    if spec.engine is not Engine.KUEUE:
        return Plan([], spec, policy.name, active_windows=names, next_transition=upcoming)
    renderer = renderer or Renderer()
    kueue = KueuePlan(policy.name, spec, facts, renderer)
    objects = list(kueue.objects())
    renderer.forget_unused()
    over = nominal_above_capacity(Context(policy.model_copy(update={"spec": spec})))
    return Plan(objects, spec, policy.name, kueue.collisions, list(over), names, upcoming)
