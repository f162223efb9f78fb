"""Cohorts: a forest below the pool."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.checks.context import Context, unknown
from gpufair.api.messages import shown
from gpufair.api.problems import Problem, error


def named_like_policy(context: Context) -> Iterator[Problem]:
    for index, cohort in enumerate(context.spec.cohorts):
        if cohort.name == context.policy.name:
            yield error(
                f"spec.cohorts[{index}].name",
                f"is '{cohort.name}', which is the policy's name and so the pool's cohort: write"
                " another",
            )


def unknown_parent(context: Context) -> Iterator[Problem]:
    for index, cohort in enumerate(context.spec.cohorts):
        if cohort.parent is None or cohort.parent in context.cohorts:
            continue
        path = f"spec.cohorts[{index}].parent"
        if cohort.parent == context.policy.name:
            yield error(path, f"is {shown(cohort.parent)}, the pool itself: leave parent out")
        else:
            others = [name for name in context.cohorts if name != cohort.name]
            yield unknown(path, cohort.parent, "cohort", others)


def own_parent(context: Context) -> Iterator[Problem]:
    for index, cohort in enumerate(context.spec.cohorts):
        if cohort.parent == cohort.name:
            yield error(
                f"spec.cohorts[{index}].parent",
                "is the cohort itself: write another cohort, or leave it out",
            )


def cycles(context: Context) -> Iterator[Problem]:
    """One error per cycle of two or more, at the member that comes first in the policy."""
    parents = {cohort.name: cohort.parent for cohort in context.spec.cohorts}
    done: set[str] = set()
    for index, cohort in enumerate(context.spec.cohorts):
        cycle = _cycle_from(cohort.name, parents, done)
        if len(cycle) > 1:
            # Start at the cohort itself where it is part of the cycle.
            start = cycle.index(cohort.name) if cohort.name in cycle else 0
            names = cycle[start:] + cycle[:start]
            yield error(
                f"spec.cohorts[{index}].parent",
                f"closes a cycle, {' -> '.join([*names, names[0]])}: give one of them another"
                " parent, or none",
            )


def _cycle_from(name: str, parents: dict[str, str | None], done: set[str]) -> list[str]:
    """Return the cycle that the way up from a cohort runs into, if it is a new one."""
    way: list[str] = []
    at: str | None = name
    while at is not None and at in parents and at not in done:
        done.add(at)
        way.append(at)
        at = parents[at]
    return way[way.index(at) :] if at in way else []


def unknown_cohort_of_tenant(context: Context) -> Iterator[Problem]:
    for index, tenant in enumerate(context.spec.tenants):
        if tenant.cohort is not None and tenant.cohort not in context.cohorts:
            path = f"spec.tenants[{index}].cohort"
            if tenant.cohort == context.policy.name:
                yield error(path, f"is {shown(tenant.cohort)}, the pool itself: leave cohort out")
            else:
                yield unknown(path, tenant.cohort, "cohort", context.cohorts)


CHECKS = (named_like_policy, unknown_parent, own_parent, cycles, unknown_cohort_of_tenant)
