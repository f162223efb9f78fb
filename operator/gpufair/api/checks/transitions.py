"""Changes of a policy: what must stay as it is, because the objects made of it cannot change."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.flavors import Flavor
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem, error
from gpufair.api.tiers import Tier


def check_change(old: Policy, new: Policy) -> list[Problem]:
    """Return what the new version of a policy may not change of the old one.

    Things are told apart by name, so a new name is never a change.
    """
    return [*_tiers(old, new), *_flavors(old, new)]


def _tiers(old: Policy, new: Policy) -> Iterator[Problem]:
    before = {tier.name: tier for tier in old.spec.tiers}
    for index, tier in enumerate(new.spec.tiers):
        if tier.name in before:
            yield from _tier(f"spec.tiers[{index}]", before[tier.name], tier)


def _tier(path: str, old: Tier, new: Tier) -> Iterator[Problem]:
    changes = {
        "priority": (old.priority, new.priority),
        "ceiling": (old.ceiling, new.ceiling),
        "podPreemption": (old.pod_preemption, new.pod_preemption),
    }
    for field, (was, now) in changes.items():
        if was != now:
            yield error(
                f"{path}.{field}",
                f"is {_value(now)}, but was {_value(was)}, which is immutable for the name"
                f" {new.name}: write a tier with a new name",
            )


def _flavors(old: Policy, new: Policy) -> Iterator[Problem]:
    before = {flavor.name: flavor for flavor in old.spec.flavors if flavor.topology_levels}
    for index, flavor in enumerate(new.spec.flavors):
        if flavor.name in before:
            yield from _flavor(f"spec.flavors[{index}]", before[flavor.name], flavor)


def _flavor(path: str, old: Flavor, new: Flavor) -> Iterator[Problem]:
    changes = {
        "topologyLevels": old.topology_levels != new.topology_levels,
        "nodeLabels": old.node_labels != new.node_labels,
        "tolerations": old.tolerations != new.tolerations,
    }
    for field, changed in changes.items():
        if changed:
            yield error(
                f"{path}.{field}",
                "has changed, but is immutable once topologyLevels is set: write a flavor with a"
                " new name",
            )


def _value(value: object) -> str:
    return "not set" if value is None else str(value)
