"""Tiers: bands that keep clear of each other, and protections that can be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gpufair.api.bands import LEAST_WIDTH, bands_of, highest_ceiling
from gpufair.api.checks.context import Context, unknown
from gpufair.api.problems import Problem, error, warning
from gpufair.api.scalars import Percentage
from gpufair.api.tiers import GangBinding, PodGroupKind, PreemptionMode, Tier


def equal_priorities(context: Context) -> Iterator[Problem]:
    first: dict[int, int] = {}
    for index, tier in enumerate(context.spec.tiers):
        other = first.setdefault(tier.priority, index)
        if other != index:
            yield error(
                f"spec.tiers[{index}].priority",
                f"is {tier.priority}, as is spec.tiers[{other}].priority: write a distinct one",
            )


def bands(context: Context) -> Iterator[Problem]:
    """Each band lies below the next floor, the last below the lift band, and is wide enough."""
    ordered = _by_priority(context)
    if ordered is None:
        return
    tiers = [tier for _, tier in ordered]
    for rank, (index, tier) in enumerate(ordered[:-1]):
        highest, above = highest_ceiling(list(tiers), rank), tiers[rank + 1]
        reason = f"the floor of {above.name} is {above.priority}"
        if rank == len(tiers) - 2:
            reason += f", below which {2 * (len(tiers) - 1)} priorities are kept for lifted work"
        yield from _band(f"spec.tiers[{index}]", tier, highest, reason)


def _band(path: str, tier: Tier, highest: int, reason: str) -> Iterator[Problem]:
    needed = tier.priority + LEAST_WIDTH
    if highest < needed:
        yield error(
            f"{path}.priority",
            f"is {tier.priority}, too close to the next tier ({reason}): write at most"
            f" {highest - LEAST_WIDTH}, or raise the tiers above"
            if highest > LEAST_WIDTH
            else f"is {tier.priority}, and there is no room below the next tier ({reason}): raise"
            f" the tiers above by {needed - highest}",
        )
    elif tier.ceiling is not None and tier.ceiling > highest:
        yield error(
            f"{path}.ceiling",
            f"is {tier.ceiling}, but {reason}: write at most {highest}",
        )
    elif tier.ceiling is not None and tier.ceiling < needed:
        yield error(
            f"{path}.ceiling",
            f"is {tier.ceiling}, with a priority of {tier.priority}: write at least {needed}",
        )


def top_ceiling(context: Context) -> Iterator[Problem]:
    for index, tier in _top(context):
        if tier.ceiling is not None and tier.ceiling < tier.priority + LEAST_WIDTH:
            yield error(
                f"spec.tiers[{index}].ceiling",
                f"is {tier.ceiling}, with a priority of {tier.priority}: write at least"
                f" {tier.priority + LEAST_WIDTH}, or leave it out",
            )


def aging_limit(context: Context) -> Iterator[Problem]:
    ordered = _by_priority(context)
    if ordered is None:
        return
    most = bands_of(context.spec.tiers).limit
    for index, tier in ordered[:-1]:
        limit = tier.aging.limit if tier.aging else None
        if limit is None or most is None:
            continue
        path = f"spec.tiers[{index}].aging.limit"
        if limit < tier.priority:
            yield error(
                path, f"is {limit}, below the tier's priority: write {tier.priority} to {most}"
            )
        elif limit > most:
            yield error(
                path,
                f"is {limit}, above the highest that aging may reach here: write at most {most}",
            )


def aging_increase(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        if tier.aging and not tier.aging.increase.fraction:
            yield error(
                f"spec.tiers[{index}].aging.increase",
                "is zero: write a percentage above 0%, or leave aging out",
            )


def top_tier_without_effect(context: Context) -> Iterator[Problem]:
    for index, tier in _top(context):
        path, why = f"spec.tiers[{index}]", "has no effect on the top tier, which goes first anyway"
        if tier.aging:
            yield warning(f"{path}.aging", f"{why}: leave it out")
        if tier.max_wait is not None and tier.max_wait.delta:
            yield warning(f"{path}.maxWait", f"{why}: leave it out")


def protect_from(context: Context) -> Iterator[Problem]:
    priorities = {tier.name: tier.priority for tier in context.spec.tiers}
    for index, tier in enumerate(context.spec.tiers):
        name, path = tier.preemption.protect_from, f"spec.tiers[{index}].preemption.protectFrom"
        if name is None:
            continue
        if name not in priorities:
            yield unknown(path, name, "tier", list(priorities))
        elif priorities[name] < tier.priority:
            higher = [other for other in priorities if priorities[other] >= tier.priority]
            yield error(
                path,
                f"is '{name}', less urgent than {tier.name}, which it never threatens: write"
                f" {' or '.join(higher[:8])}",
            )


def protection_without_effect(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        rules = tier.preemption
        if rules.protect_from is None or rules.mode != PreemptionMode.ANYTIME:
            continue
        if rules.budget is None and rules.min_runtime is None:
            yield warning(
                f"spec.tiers[{index}].preemption.protectFrom",
                "has no effect without something to protect: add a budget, minRuntime or another"
                " mode",
            )


def checkpoint_missing(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        if tier.preemption.mode == PreemptionMode.AT_CHECKPOINT and tier.checkpoint is None:
            yield error(
                f"spec.tiers[{index}].checkpoint",
                "is required with preemption mode AtCheckpoint: write requiredAfter and interval",
            )


def max_lost_work(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        rules, path = tier.preemption, f"spec.tiers[{index}].preemption.maxLostWork"
        if rules.mode == PreemptionMode.AT_CHECKPOINT:
            if rules.max_lost_work is None:
                yield error(
                    path, "is required with mode AtCheckpoint: write a duration, as in '15m'"
                )
            elif not rules.max_lost_work.delta:
                yield error(
                    path, "is zero, so nothing is ever preempted: write more, or mode Never"
                )
        elif rules.max_lost_work is not None:
            yield warning(path, f"has no effect with mode {rules.mode}: write mode AtCheckpoint")


def checkpoint_interval(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        rule = tier.checkpoint
        if rule and rule.interval.delta > rule.required_after.delta:
            yield warning(
                f"spec.tiers[{index}].checkpoint.interval",
                f"is {rule.interval}, longer than requiredAfter: write at most"
                f" {rule.required_after}",
            )


def gang_members(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        share = tier.gang.min_member.fraction
        if not 0 < share <= 1:
            yield error(
                f"spec.tiers[{index}].gang.minMember",
                f"is {tier.gang.min_member}: write a percentage above 0% and at most 100%",
            )


def gang_without_group(context: Context) -> Iterator[Problem]:
    for index, tier in enumerate(context.spec.tiers):
        gang = tier.gang
        changed = gang.min_member != Percentage("100%") or gang.binding != GangBinding.TEMPLATE
        if gang.pod_group == PodGroupKind.NONE and changed:
            yield warning(
                f"spec.tiers[{index}].gang",
                "has no effect with podGroup None: write podGroup Volcano or Coscheduling",
            )


def _by_priority(context: Context) -> list[tuple[int, Tier]] | None:
    """The tiers and their positions, lowest first; None when they have no order."""
    ordered = sorted(enumerate(context.spec.tiers), key=lambda item: item[1].priority)
    distinct = {tier.priority for _, tier in ordered}
    return ordered if len(distinct) == len(ordered) else None


def _top(context: Context) -> list[tuple[int, Tier]]:
    return (_by_priority(context) or [])[-1:]


CHECKS: tuple[Callable[[Context], Iterator[Problem]], ...] = (
    equal_priorities,
    bands,
    top_ceiling,
    aging_limit,
    aging_increase,
    top_tier_without_effect,
    protect_from,
    protection_without_effect,
    checkpoint_missing,
    max_lost_work,
    checkpoint_interval,
    gang_members,
    gang_without_group,
)
