"""Kueue resource groups from flavors and quotas.

Kueue wants each resource and each flavor in one group of a ClusterQueue, and every resource of a
group in each of its flavors, in the same order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpufair.api.flavors import Flavor
from gpufair.api.quantity import canonical
from gpufair.api.tenants import Quota

# Quotas that nobody reaches. Kueue adds them up over all tenants in thousandths of a core and in
# bytes as int64: a thousand times these still fit.
_UNREACHED = {"memory": "1Pi", "ephemeral-storage": "1Pi"}
_UNREACHED_COUNT = "1G"


@dataclass(frozen=True, slots=True)
class Group:
    """Flavors that share resources; `other` are the resources that ride along without limit."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]
    other: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """How a policy's flavors fall into groups, and the flavor of what rides along, if it has one.

    With several groups, cpu and memory cannot be in each; one group of their own, of a flavor
    without node labels, keeps them from pulling pods to the nodes of the wrong flavor.
    """

    groups: tuple[Group, ...]
    shared: Group | None = None


def layout(policy: str, flavors: Sequence[Flavor]) -> Layout:
    """Return the resource groups of the policy's flavors, in order of first appearance."""
    grouped: dict[tuple[str, ...], list[Flavor]] = {}
    for flavor in flavors:
        grouped.setdefault(tuple(flavor.resources), []).append(flavor)
    inline = len(grouped) == 1
    groups = tuple(
        Group(
            key,
            tuple(flavor.name for flavor in members),
            tuple(members[0].other_resources) if inline else (),
        )
        for key, members in grouped.items()
    )
    names = dict.fromkeys(name for flavor in flavors for name in flavor.other_resources)
    if inline or not names:
        return Layout(groups)
    return Layout(groups, Group((), (other_flavor(policy),), tuple(names)))


def other_flavor(policy: str) -> str:
    """Name of the ResourceFlavor for cpu, memory and the like where groups cannot hold them."""
    return f"{policy}-other"


def resource_groups(
    quotas: Iterable[Quota], layout: Layout, *, open_rest: bool = False
) -> list[dict[str, Any]]:
    """Return the resource groups of an owner: those flavors that it has quota of.

    Resources of such a flavor that it has no quota of get none, and may not be borrowed either
    unless `open_rest`: a cohort must not bar its tenants from what it has no part in itself.
    """
    by_key = {(q.flavor, q.resource): q for q in quotas}
    owned = {flavor for flavor, _ in by_key}
    groups = [
        _group(group, [name for name in group.flavors if name in owned], by_key, open_rest)
        for group in layout.groups
        if owned.intersection(group.flavors)
    ]
    if groups and layout.shared is not None:
        groups.append(_group(layout.shared, list(layout.shared.flavors), {}, open_rest))
    return groups


def _group(
    group: Group, flavors: list[str], quotas: dict[tuple[str, str], Quota], open_rest: bool
) -> dict[str, Any]:
    single = len(group.resources) == 1
    return {
        "resources": [*group.resources, *group.other],
        "flavors": [
            {
                "name": flavor,
                "resources": [
                    *(
                        _limits(
                            name,
                            quotas.get((flavor, name))
                            or (quotas.get((flavor, "")) if single else None),
                            open_rest,
                        )
                        for name in group.resources
                    ),
                    *(_unreached(name) for name in group.other),
                ],
            }
            for flavor in flavors
        ],
    }


def _limits(name: str, quota: Quota | None, open_rest: bool) -> dict[str, Any]:
    if quota is None:  # a resource of the flavor that the owner has no part in
        borrowing = None if open_rest else "0"
        return {"name": name, "nominal": "0", "borrowing": borrowing, "lending": None}
    return {
        "name": name,
        "nominal": canonical(quota.nominal),
        "borrowing": None if quota.borrowing_limit is None else canonical(quota.borrowing_limit),
        "lending": None if quota.lending_limit is None else canonical(quota.lending_limit),
    }


def _unreached(name: str) -> dict[str, Any]:
    nominal = _UNREACHED.get(name, _UNREACHED_COUNT)
    return {"name": name, "nominal": nominal, "borrowing": None, "lending": None}


def weight(value: float) -> str:
    """Return a fair-sharing weight as a canonical quantity: 0.5 is `500m`."""
    return canonical(Fraction(str(value)))
