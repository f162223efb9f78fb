"""MIG: fixed layouts are written down, planned ones are not."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.checks.context import Context
from gpufair.api.mig import Planning
from gpufair.api.problems import Problem, error, warning


def layout(context: Context) -> Iterator[Problem]:
    for index, pool in enumerate(context.spec.mig):
        path = f"spec.mig[{index}].layout"
        if pool.planning == Planning.FIXED and not pool.layout:
            yield error(path, "is required with planning Fixed: write the slices of each GPU")
        elif pool.planning == Planning.DEMAND and pool.layout:
            yield error(path, "is set, but planning is Demand: remove it, or write planning Fixed")


def guarantee_without_effect(context: Context) -> Iterator[Problem]:
    for index, pool in enumerate(context.spec.mig):
        if pool.planning == Planning.FIXED and pool.guarantee:
            yield warning(
                f"spec.mig[{index}].guarantee", "has no effect with planning Fixed: leave it out"
            )


CHECKS = (layout, guarantee_without_effect)
