"""Fairness: targets that can be met."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.checks.context import Context
from gpufair.api.problems import Problem, error
from gpufair.api.scalars import Percentage


def utilization_target(context: Context) -> Iterator[Problem]:
    for path, target in _targets(context):
        if target is not None and not 0 < target.fraction <= 1:
            yield error(path, f"is {target}: write a percentage above 0% and at most 100%")


def _targets(context: Context) -> Iterator[tuple[str, Percentage | None]]:
    yield "spec.fairness.utilizationTarget", context.spec.fairness.utilization_target
    for index, window in enumerate(context.spec.windows):
        if window.fairness:
            path = f"spec.windows[{index}].fairness.utilizationTarget"
            yield path, window.fairness.utilization_target


CHECKS = (utilization_target,)
