"""What running work has against peers and against more urgent tiers."""

from typing import Any

import pytest

from gpufair.api.bands import Bands, bands_of
from gpufair.api.tiers import Tier
from gpufair.policies.shield import Reason, protected_priority, protection, shield
from gpufair.policies.workload import Phase, Workload

NOW = 1_000_000.0


def tiers(**preemption: Any) -> tuple[Tier, Bands]:
    """The middle one of three tiers, and their bands: 200 to 999, 1000 to 9995, 10000."""
    middle = {"name": "prod", "priority": 1000, "preemption": preemption}
    if preemption.get("mode") == "AtCheckpoint":
        middle["checkpoint"] = {"requiredAfter": "4h", "interval": "15m"}
    others = [{"name": "dev", "priority": 200}, {"name": "inference", "priority": 10_000}]
    found = [Tier.model_validate(tier) for tier in (middle, *others)]
    return found[0], bands_of(found)


def running(seconds: float = 60.0, **fields: Any) -> Workload:
    return Workload(
        uid="w",
        tier="prod",
        own_priority=1000,
        phase=Phase.ADMITTED,
        waits_from=NOW - 10 * seconds,
        admitted_at=NOW - seconds,
        **fields,
    )


def test_the_shield_is_one_below_the_ceiling_of_the_band() -> None:
    _, bands = tiers()
    assert shield(running(), bands) == 9994


def test_work_that_aged_into_the_next_band_is_shielded_there() -> None:
    _, bands = tiers()
    promoted = Workload("w", "dev", 200, Phase.ADMITTED, NOW, admitted_at=NOW, band_priority=1000)
    assert shield(promoted, bands) == 9994
    stayed = Workload("w", "dev", 200, Phase.ADMITTED, NOW, admitted_at=NOW, band_priority=980)
    assert shield(stayed, bands) == 998


@pytest.mark.parametrize(
    ("preemption", "priority"),
    [
        ({}, 9995),
        ({"protectFrom": "prod"}, 9995),
        ({"protectFrom": "inference"}, 10_000),
        ({"mode": "Never"}, 10_000),
        ({"mode": "Never", "protectFrom": "prod"}, 9995),
    ],
)
def test_protection_holds_against_the_tier_that_it_names(
    preemption: dict[str, Any], priority: int
) -> None:
    tier, bands = tiers(**preemption)
    assert protected_priority(tier, running(), bands) == priority


def test_anytime_protects_nothing_by_itself() -> None:
    tier, _ = tiers()
    assert not protection(tier, running(), NOW).holds


def test_mode_never_always_protects() -> None:
    tier, _ = tiers(mode="Never")
    assert protection(tier, running(), NOW).reasons == (Reason.MODE_NEVER,)


def test_young_work_is_protected_until_it_has_run_long_enough() -> None:
    tier, _ = tiers(minRuntime="10m")
    young = protection(tier, running(60), NOW)
    assert young.reasons == (Reason.YOUNG,)
    assert young.next_change == NOW + 540
    assert not protection(tier, running(600), NOW).holds


def test_a_spent_budget_protects_until_the_period_is_over() -> None:
    tier, _ = tiers(budget={"count": 2, "per": "4h"})
    spent = running(preempted_at=(NOW - 5 * 3600, NOW - 3600, NOW - 1800))
    found = protection(tier, spent, NOW)
    assert found.reasons == (Reason.BUDGET_SPENT,)
    assert found.next_change == NOW + 3 * 3600
    assert not protection(tier, running(preempted_at=(NOW - 3600,)), NOW).holds


def test_at_checkpoint_work_is_open_only_shortly_after_a_checkpoint() -> None:
    tier, _ = tiers(mode="AtCheckpoint", maxLostWork="15m")
    fresh = protection(tier, running(7200, last_checkpoint=NOW - 300), NOW)
    assert not fresh.holds
    assert fresh.next_change == NOW + 600
    stale = protection(tier, running(7200, last_checkpoint=NOW - 901), NOW)
    assert stale.reasons == (Reason.WORK_AT_RISK,)


def test_work_that_never_reports_loses_protection_after_the_required_time() -> None:
    tier, _ = tiers(mode="AtCheckpoint", maxLostWork="15m", budget={"count": 1, "per": "4h"})
    silent = protection(tier, running(4 * 3600 - 1), NOW)
    assert silent.holds
    assert silent.next_change == NOW + 1
    overdue = protection(tier, running(4 * 3600 + 1, preempted_at=(NOW - 5 * 3600,)), NOW)
    assert overdue.overdue
    assert not overdue.holds


def test_a_pending_workload_is_not_protected() -> None:
    tier, _ = tiers(minRuntime="10m")
    waiting = Workload("w", "prod", 1000, Phase.PENDING, NOW)
    assert not protection(tier, waiting, NOW).holds
