"""Tenants: each namespace has one owner, and each owner something to own."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.checks.context import Context, unknown
from gpufair.api.fairness import Reclaim
from gpufair.api.messages import shown
from gpufair.api.problems import Problem, error, warning
from gpufair.api.tenants import (
    BorrowWithinCohortPolicy,
    FungibilityWhenBorrow,
    LabelSelector,
    SelectorOperator,
    SelectorRequirement,
    Tenant,
)


def namespaces_or_selector(context: Context) -> Iterator[Problem]:
    for path, tenant in _tenants(context):
        if tenant.namespaces and tenant.namespace_selector is not None:
            yield error(path, "has both namespaces and namespaceSelector: write one of them")
        elif not tenant.namespaces and tenant.namespace_selector is None:
            yield error(path, "has neither namespaces nor namespaceSelector: write one of them")


def namespace_of_two_tenants(context: Context) -> Iterator[Problem]:
    owner: dict[str, str] = {}
    for path, tenant in _tenants(context):
        for index, namespace in enumerate(tenant.namespaces):
            first = owner.setdefault(namespace, tenant.name)
            if first != tenant.name:
                yield error(
                    f"{path}.namespaces[{index}]",
                    f"is {shown(namespace)}, which tenant {first} has already: give it to one of"
                    " them",
                )


def namespace_selector(context: Context) -> Iterator[Problem]:
    for path, tenant in _tenants(context):
        if tenant.namespace_selector is not None:
            yield from _selector(f"{path}.namespaceSelector", tenant.namespace_selector)


def _selector(path: str, selector: LabelSelector) -> Iterator[Problem]:
    if not selector.match_labels and not selector.match_expressions:
        yield error(path, "is empty, which selects every namespace: write a label to match")
    for index, requirement in enumerate(selector.match_expressions):
        yield from _requirement(f"{path}.matchExpressions[{index}]", requirement)


def _requirement(path: str, requirement: SelectorRequirement) -> Iterator[Problem]:
    takes_values = requirement.operator in (SelectorOperator.IN, SelectorOperator.NOT_IN)
    if takes_values and not requirement.values:
        yield error(f"{path}.values", f"is required with operator {requirement.operator}: write it")
    elif not takes_values and requirement.values:
        yield error(
            f"{path}.values", f"has no meaning with operator {requirement.operator}: leave it out"
        )


def unknown_tier(context: Context) -> Iterator[Problem]:
    for path, tenant in _tenants(context):
        for index, name in enumerate(tenant.tiers):
            if name not in context.tiers:
                yield unknown(f"{path}.tiers[{index}]", name, "tier", context.tiers)


def without_quota(context: Context) -> Iterator[Problem]:
    for path, tenant in _tenants(context):
        if not tenant.quota:
            yield warning(
                f"{path}.quota",
                "is empty, so the tenant can run nothing: write its quota, with nominal 0 if it"
                " only borrows",
            )


def topology_across_groups(context: Context) -> Iterator[Problem]:
    """Kueue places a pod by topology only when all that it requests is of one flavor."""
    flavors = {flavor.name: flavor for flavor in context.spec.flavors}
    for path, tenant in _tenants(context):
        owned = [flavors[quota.flavor] for quota in tenant.quota if quota.flavor in flavors]
        groups = {tuple(flavor.resources) for flavor in owned}
        rides = any(flavor.other_resources for flavor in owned)
        if rides and len(groups) > 1 and any(flavor.topology_levels for flavor in owned):
            yield warning(
                f"{path}.quota",
                "is of flavors of different resources, one with topologyLevels, whose nodes Kueue"
                " then gives to no pod that requests otherResources: write a tenant for each",
            )


def fungibility_preference(context: Context) -> Iterator[Problem]:
    for path, tenant in _tenants(context):
        rules = tenant.flavor_fungibility
        if rules is None or rules.preference is None:
            continue
        both = {rules.when_can_borrow, rules.when_can_preempt}
        if both != {FungibilityWhenBorrow.TRY_NEXT_FLAVOR}:
            yield error(
                f"{path}.flavorFungibility.preference",
                "needs TryNextFlavor for both whenCanBorrow and whenCanPreempt: write them, or"
                " leave it out",
            )


def borrow_without_reclaim(context: Context) -> Iterator[Problem]:
    """Kueue refuses a ClusterQueue that preempts within its cohort but may not reclaim."""
    never = _where_reclaim_is_never(context)
    if never is None:
        return
    for path, tenant in _tenants(context):
        rules = tenant.borrow_within_cohort
        if rules is not None and rules.policy != BorrowWithinCohortPolicy.NEVER:
            yield error(
                f"{path}.borrowWithinCohort.policy",
                f"is {rules.policy}, but {never} is Never: write Never in both places or in"
                " neither",
            )


def _where_reclaim_is_never(context: Context) -> str | None:
    if context.spec.fairness.reclaim == Reclaim.NEVER:
        return "spec.fairness.reclaim"
    for index, window in enumerate(context.spec.windows):
        if window.fairness is not None and window.fairness.reclaim == Reclaim.NEVER:
            return f"spec.windows[{index}].fairness.reclaim"
    return None


def _tenants(context: Context) -> Iterator[tuple[str, Tenant]]:
    for index, tenant in enumerate(context.spec.tenants):
        yield f"spec.tenants[{index}]", tenant


CHECKS = (
    namespaces_or_selector,
    namespace_of_two_tenants,
    namespace_selector,
    unknown_tier,
    without_quota,
    topology_across_groups,
    fungibility_preference,
    borrow_without_reclaim,
)
