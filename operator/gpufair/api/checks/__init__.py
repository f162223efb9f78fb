"""Whether the parts of a policy agree: pure checks, one small function per finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from gpufair.api.checks import (
    cohorts,
    fairness,
    flavors,
    meetings,
    mig,
    names,
    quota,
    tenants,
    tiers,
    windows,
)
from gpufair.api.checks.context import Context
from gpufair.api.checks.transitions import check_change
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem

__all__ = ["CHECKS", "check", "check_change"]

CHECKS: Final[tuple[Callable[[Context], Iterator[Problem]], ...]] = (
    *names.CHECKS,
    *flavors.CHECKS,
    *tiers.CHECKS,
    *cohorts.CHECKS,
    *tenants.CHECKS,
    *quota.CHECKS,
    *fairness.CHECKS,
    *windows.CHECKS,
    *meetings.CHECKS,
    *mig.CHECKS,
)


def check(policy: Policy) -> list[Problem]:
    """Return what is wrong with a policy that was read: errors first, then warnings.

    Needs no cluster and no clock.
    """
    context = Context(policy)
    found = [problem for finding in CHECKS for problem in finding(context)]
    return sorted(found, key=lambda problem: not problem.is_error)
