"""Kueue resource groups from flavors and quotas.

Kueue wants each resource and each flavor in one group of a ClusterQueue, and every resource of a
group in each of its flavors, in the same order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gpufair.api.flavors import Flavor, other_flavor
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
    """How a policy's flavors fall into groups, and the group of what rides along with several.

    A ClusterQueue of one group has cpu and memory in it. In one of several they cannot be in each;
    a group of their own, of a flavor without node labels, keeps them from pulling pods to the
    nodes of the wrong flavor.
    """

    groups: tuple[Group, ...]
    shared: Group | None = None

    def owned(self, quotas: Iterable[Quota]) -> list[Group]:
        """The groups that these quotas are of."""
        flavors = {quota.flavor for quota in quotas}
        return [group for group in self.groups if flavors.intersection(group.flavors)]

    def shares(self, quotas: Iterable[Quota]) -> bool:
        """Whether a queue of these quotas needs the shared group."""
        return self.shared is not None and len(self.owned(quotas)) > 1


def layout(policy: str, flavors: Sequence[Flavor]) -> Layout:
    """Return the resource groups of the policy's flavors, in order of first appearance."""
    grouped: dict[tuple[str, ...], list[Flavor]] = {}
    for flavor in flavors:
        grouped.setdefault(tuple(flavor.resources), []).append(flavor)
    groups = tuple(
        Group(key, tuple(flavor.name for flavor in members), tuple(members[0].other_resources))
        for key, members in grouped.items()
    )
    names = dict.fromkeys(name for flavor in flavors for name in flavor.other_resources)
    if len(groups) == 1 or not names:
        return Layout(groups)
    return Layout(groups, Group((), (other_flavor(policy),), tuple(names)))


def resource_groups(quotas: Sequence[Quota], layout: Layout) -> list[dict[str, Any]]:
    """Return the resource groups of a ClusterQueue: those flavors that it has quota of.

    Resources of such a flavor that it has no quota of get none, and may not be borrowed either.
    """
    shares = layout.shares(quotas)
    groups = [
        _group(group, quotas, other=() if shares else group.other) for group in layout.owned(quotas)
    ]
    if shares and layout.shared is not None:
        groups.append(_group(layout.shared, quotas, other=layout.shared.other))
    return groups


def cohort_groups(quotas: Sequence[Quota], layout: Layout) -> list[dict[str, Any]]:
    """Return the resource groups of a Cohort.

    It must not bar its tenants from borrowing what it has no part in itself.
    """
    return [_group(group, quotas, other=(), open_rest=True) for group in layout.owned(quotas)]


def _group(
    group: Group, quotas: Sequence[Quota], *, other: Sequence[str], open_rest: bool = False
) -> dict[str, Any]:
    by_key = {(quota.flavor, quota.resource): quota for quota in quotas}
    owned = {quota.flavor for quota in quotas}
    return {
        "resources": [*group.resources, *other],
        "flavors": [
            {
                "name": flavor,
                "resources": [
                    *(
                        _limits(n, _find(by_key, flavor, n, group), open_rest)
                        for n in group.resources
                    ),
                    *(_unreached(name) for name in other),
                ],
            }
            for flavor in group.flavors
            if flavor in owned or not group.resources
        ],
    }


def _find(
    by_key: dict[tuple[str, str], Quota], flavor: str, resource: str, group: Group
) -> Quota | None:
    """The quota of a resource, which need not be named in a group of one."""
    unnamed = by_key.get((flavor, "")) if len(group.resources) == 1 else None
    return by_key.get((flavor, resource)) or unnamed


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
