"""What the checks look up in a policy, worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from gpufair.api.flavors import Flavor
from gpufair.api.messages import shown
from gpufair.api.policy import Policy, PolicySpec
from gpufair.api.problems import Problem, error
from gpufair.api.tenants import Quota
from gpufair.api.windows import QuotaOverride


class Owner(NamedTuple):
    """A tenant or cohort that has quota: where it stands, and its quota."""

    path: str
    name: str
    quota: Sequence[Quota]


@dataclass(frozen=True)
class Context:
    """A policy and its indexes. The first of several things of one name is the one meant."""

    policy: Policy

    @property
    def spec(self) -> PolicySpec:
        return self.policy.spec

    @cached_property
    def flavors(self) -> dict[str, Flavor]:
        found: dict[str, Flavor] = {}
        for flavor in self.spec.flavors:
            found.setdefault(flavor.name, flavor)
        return found

    @cached_property
    def tiers(self) -> dict[str, int]:
        """The position of each tier."""
        return _positions([tier.name for tier in self.spec.tiers])

    @cached_property
    def cohorts(self) -> dict[str, int]:
        """The position of each cohort."""
        return _positions([cohort.name for cohort in self.spec.cohorts])

    @cached_property
    def tenants(self) -> dict[str, int]:
        """The position of each tenant."""
        return _positions([tenant.name for tenant in self.spec.tenants])

    @cached_property
    def owners(self) -> list[Owner]:
        spec = self.spec
        tenants = (
            Owner(f"spec.tenants[{index}]", tenant.name, tenant.quota)
            for index, tenant in enumerate(spec.tenants)
        )
        cohorts = (
            Owner(f"spec.cohorts[{index}]", cohort.name, cohort.quota)
            for index, cohort in enumerate(spec.cohorts)
        )
        return [*tenants, *cohorts]

    def resource(self, quota: Quota | QuotaOverride) -> str | None:
        """Return the resource that a quota is of, None when flavor or resource are unknown."""
        flavor = self.flavors.get(quota.flavor)
        if flavor is None:
            return None
        if quota.resource:
            return quota.resource if quota.resource in flavor.resources else None
        return flavor.resources[0] if len(flavor.resources) == 1 else None

    def known_quota(self, owner: Owner) -> Iterator[tuple[str, str, str, Quota]]:
        """Yield path, flavor, resource and quota of each entry whose references are known."""
        for index, quota in enumerate(owner.quota):
            resource = self.resource(quota)
            if resource is not None:
                yield f"{owner.path}.quota[{index}]", quota.flavor, resource, quota


def _positions(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, name in enumerate(names):
        found.setdefault(name, index)
    return found


def listed(names: Collection[str]) -> str:
    """Return names for a message, in their order and not more than eight."""
    first = ", ".join(islice(names, 8))
    return f"{first} or {len(names) - 8} more" if len(names) > 8 else first


def unknown(path: str, value: str, what: str, known: Collection[str]) -> Problem:
    """Return the error for a name that refers to nothing."""
    if not known:
        return error(
            path, f"is {shown(value)}, but the policy has no {what}s: add it, or remove it"
        )
    many = "one of " if len(known) > 1 else ""
    return error(path, f"is {shown(value)}, which is no {what}: write {many}{listed(known)}")


def duplicates(values: Sequence[str], path: str, key: str = "") -> Iterator[Problem]:
    """Yield an error for each value that a list already had; `key` is the field in its items."""
    first: dict[str, int] = {}
    for index, value in enumerate(values):
        if first.setdefault(value, index) != index:
            yield error(
                f"{path}[{index}]{'.' if key else ''}{key}",
                f"is {shown(value)}, as is {path}[{first[value]}]: each may be there only once",
            )
