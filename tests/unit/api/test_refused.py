"""Every refused policy of tests/data/refused, judged offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from gpufair.api.checks import CHECKS, check, check_change
from gpufair.api.checks.context import Context
from gpufair.api.load import InvalidPolicy, load_files, parse_policy
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem
from tests.unit.api.cases import Case, Json, base, cases, edited

CASES = cases()
EXAMPLES = sorted((Path(__file__).parents[3] / "docs" / "examples").glob("*.yaml"))


def problems(case: Case) -> list[str]:
    try:
        policy = parse_policy(case.policy)
    except InvalidPolicy as refusal:
        return [str(problem) for problem in refusal.problems]
    found = [problem for problem in check(policy) if problem.is_error]
    if case.old is not None:
        found += check_change(parse_policy(case.old), policy)
    return [str(problem) for problem in found]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_refused_with_these_lines(case: Case) -> None:
    assert problems(case) == case.problems


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_lines_are_single_and_say_where(case: Case) -> None:
    for line in case.problems:
        assert line.isprintable()
        assert line.startswith(("spec", "metadata"))
        assert ": " in line


def test_base_is_accepted_without_a_warning() -> None:
    assert check(parse_policy(base())) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.was], ids=lambda case: case.name)
def test_what_a_change_starts_from_is_accepted(case: Case) -> None:
    assert case.old is not None
    assert check(parse_policy(case.old)) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_accepted_without_a_warning(path: Path) -> None:
    (loaded,) = load_files([path])
    assert loaded.problems == []
    assert loaded.policy is not None
    assert check(loaded.policy) == []


@cache
def contexts() -> list[Context]:
    """The refused policies that can be read."""
    found = []
    for case in CASES:
        with suppress(InvalidPolicy):
            found.append(Context(parse_policy(case.policy)))
    return found


WARN_ONLY = {
    "top_tier_without_effect",
    "protection_without_effect",
    "checkpoint_interval",
    "gang_without_group",
    "without_quota",
    "topology_across_groups",
    "nominal_above_capacity",
    "nothing_overridden",
    "guarantee_without_effect",
}


@pytest.mark.parametrize("finding", CHECKS, ids=lambda finding: finding.__qualname__)
def test_each_check_has_a_case(finding: Callable[[Context], Iterator[Problem]]) -> None:
    refused = [
        problem for context in contexts() for problem in finding(context) if problem.is_error
    ]
    assert bool(refused) != (finding.__name__ in WARN_ONLY)


def read(policy: Json) -> Policy:
    return parse_policy(policy)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        (
            {"spec.flavors[1].capacity": 40},
            [
                "spec.flavors[1].capacity: is 40 nvidia.com/gpu of a100, but nominal quotas sum to"
                " 48, 8 above it: lower them, or owners may not all get their quota at once"
            ],
        ),
        (
            {"spec.cohorts[0].quota": [{"flavor": "h100", "nominal": 20}]},
            [
                "spec.flavors[0].capacity: is 64 nvidia.com/gpu of h100, but nominal quotas sum to"
                " 68, 4 above it: lower them, or owners may not all get their quota at once"
            ],
        ),
        (
            {"spec.flavors[2].capacities": {"nvidia.com/mig-1g.10gb": 13}},
            [
                'spec.flavors[2].capacities["nvidia.com/mig-1g.10gb"]: is 13'
                " nvidia.com/mig-1g.10gb of slices, but nominal quotas sum to 14, 1 above it: lower"
                " them, or owners may not all get their quota at once"
            ],
        ),
        (
            {"spec.windows[0].tenants[0].quota[0]": {"flavor": "h100", "nominal": 60}},
            [
                "spec.windows[0]: brings the sum of nominal nvidia.com/gpu of h100 to 76, 12 above"
                " the capacity of 64: lower it"
            ],
        ),
        (
            {"spec.tenants[2].quota": []},
            [
                "spec.tenants[2].quota: is empty, so the tenant can run nothing: write its quota,"
                " with nominal 0 if it only borrows"
            ],
        ),
        (
            {"spec.tenants[3].quota[1]": {"flavor": "h100", "nominal": 1}},
            [
                "spec.tenants[3].quota: is of flavors of different resources, one with"
                " topologyLevels, whose nodes Kueue then gives to no pod that requests"
                " otherResources: write a tenant for each"
            ],
        ),
        (
            {"spec.tiers[0].aging": {"increase": "1%", "every": "1h"}},
            [
                "spec.tiers[0].aging: has no effect on the top tier, which goes first anyway: leave"
                " it out"
            ],
        ),
        (
            {"spec.tiers[0].maxWait": "1h"},
            [
                "spec.tiers[0].maxWait: has no effect on the top tier, which goes first anyway:"
                " leave it out"
            ],
        ),
        ({"spec.tiers[0].maxWait": "0s"}, []),
        (
            {"spec.tiers[2].preemption": {"protectFrom": "training"}},
            [
                "spec.tiers[2].preemption.protectFrom: has no effect without something to protect:"
                " add a budget, minRuntime or another mode"
            ],
        ),
        ({"spec.tiers[2].preemption": {"protectFrom": "training", "minRuntime": "1h"}}, []),
        (
            {"spec.tiers[2].preemption": {"maxLostWork": "5m"}},
            [
                "spec.tiers[2].preemption.maxLostWork: has no effect with mode Anytime: write mode"
                " AtCheckpoint"
            ],
        ),
        (
            {"spec.tiers[1].checkpoint.interval": "5h"},
            [
                "spec.tiers[1].checkpoint.interval: is 5h, longer than requiredAfter: write at most"
                " 4h"
            ],
        ),
        (
            {"spec.tiers[1].gang": {"minMember": "50%"}},
            [
                "spec.tiers[1].gang: has no effect with podGroup None: write podGroup Volcano or"
                " Coscheduling"
            ],
        ),
        (
            {"spec.windows[1].tenants": [], "spec.windows[1].fairness": {}},
            ["spec.windows[1]: changes nothing: write what differs in it, or remove it"],
        ),
        (
            {
                "spec.mig[0].planning": "Fixed",
                "spec.mig[0].layout": [{"profile": "3g.40gb", "count": 2}],
                "spec.mig[0].guarantee": [{"profile": "3g.40gb", "count": 2}],
            },
            ["spec.mig[0].guarantee: has no effect with planning Fixed: leave it out"],
        ),
        # A cohort lends what is below it, which its own nominal does not bound.
        ({"spec.cohorts[0].quota": [{"flavor": "h100", "nominal": 1, "lendingLimit": 9}]}, []),
        # All of nominal may be lent, however it is written.
        ({"spec.tenants[0].quota[0].lendingLimit": 32}, []),
        ({"spec.tenants[0].quota[0].lendingLimit": "32000m"}, []),
        # Sums that fit exactly, and no capacity at all.
        ({"spec.flavors[1].capacity": 48}, []),
        # A ceiling for a top tier that will get a tier above it later.
        ({"spec.tiers[0].ceiling": 20000}, []),
    ],
)
def test_warnings(changes: Json, lines: list[str]) -> None:
    found = check(read(edited(base(), changes)))
    assert [str(problem) for problem in found] == lines
    assert not any(problem.is_error for problem in found)


def test_a_flavor_without_capacity_is_never_exceeded() -> None:
    policy = edited(
        base(), {"spec.tenants[1].quota[0].nominal": "1M"}, ["spec.flavors[0].capacity"]
    )
    assert check(read(policy)) == []


def test_errors_come_before_warnings() -> None:
    changes = {"spec.tiers[0].maxWait": "1h", "spec.tenants[1].cohort": "x"}
    found = check(read(edited(base(), changes)))
    assert [problem.is_error for problem in found] == [True, False]


def test_changes_that_are_allowed() -> None:
    old = parse_policy(base())
    new = edited(
        base(),
        {
            "spec.tiers[0].name": "serving",
            "spec.tiers[0].priority": 20000,
            "spec.flavors[1].nodeLabels": {"example.com/gpu": "a100x"},
            "spec.flavors[1].topologyLevels": ["kubernetes.io/hostname"],
            "spec.tenants[0].tiers": ["serving"],
        },
    )
    assert check_change(old, parse_policy(new)) == []
