"""The figures of the status: who has what, and who has less than is theirs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from gpufair.plan.records import workload_record
from gpufair.plan.status import (
    LISTED_TENANTS,
    Figures,
    TenantFigures,
    capacity,
    figures,
    percent,
    status_fields,
)
from tests.unit.builders import (
    GPU,
    NOW,
    Json,
    bare_flavor,
    cluster_queue,
    flavor,
    keyed,
    local_queue,
    policy,
    quota,
    tenant,
    tier,
    workload,
)


def reserving(name: str, total: str, borrowed: str = "0", resource: str = GPU) -> Json:
    """A ClusterQueue that reports so much use."""
    used = {"name": resource, "total": total, "borrowed": borrowed}
    return cluster_queue(
        name, status={"flavorsReservation": [{"name": "h100", "resources": [used]}]}
    )


def found(
    *objects: Json, workloads: Sequence[Json] = (), queue: str = "nlp", **spec: Any
) -> Figures:
    there = keyed(*(objects or (cluster_queue("nlp"),)), local_queue("nlp", queue))
    return figures(policy(**spec).spec, there, map(workload_record, workloads), NOW)


def only(result: Figures) -> TenantFigures:
    (one,) = result.tenants
    return one


def test_use_and_what_of_it_is_borrowed_are_those_of_the_queue() -> None:
    result = only(found(reserving("nlp", "6", "2")))
    assert (result.nominal, result.used, result.borrowed) == ({GPU: 4}, {GPU: 6}, {GPU: 2})


def test_use_is_summed_over_flavors() -> None:
    queue = reserving("nlp", "1")
    queue["status"]["flavorsReservation"] *= 2
    assert only(found(queue)).used == {GPU: 2}


def test_what_rides_along_is_no_use() -> None:
    assert only(found(reserving("nlp", "64", resource="cpu"))).used == {GPU: 0}


def test_a_queue_that_is_not_there_uses_nothing() -> None:
    result = only(found())
    assert (result.used, result.borrowed, result.pending) == ({GPU: 0}, {}, {})


def test_pending_is_what_active_waiting_work_asks_for() -> None:
    jobs = [
        workload("a", gpus=3),
        workload("b", gpus=2),
        workload("c", gpus=8, active=False),
        workload("d", gpus=8, conditions=["QuotaReserved"], cluster_queue="nlp"),
        workload("e", gpus=8, conditions=["Finished"]),
        workload("f", gpus=8, queue="of-nobody"),
    ]
    assert only(found(workloads=jobs)).pending == {GPU: 5}


def test_work_of_a_queue_that_is_not_the_policys_does_not_count() -> None:
    result = found(cluster_queue("another"), workloads=[workload()])
    assert only(result).pending == {}
    assert result.tiers[0].pending == 0


def test_work_of_other_queues_does_not_count() -> None:
    result = found(workloads=[workload()], queue="somebody-elses")
    assert only(result).pending == {}
    assert [t.pending for t in result.tiers] == [0]


@pytest.mark.parametrize(
    ("used", "pending", "short"),
    [
        ("0", 0, 0),  # asks for nothing
        ("1", 2, 2),  # asks for less than its quota
        ("1", 9, 3),  # asks for more: its claim ends at its quota
        ("4", 9, 0),
        ("6", 9, 0),  # has more than its quota
    ],
)
def test_share_error_is_the_claim_that_is_asked_for_and_not_had(
    used: str, pending: int, short: int
) -> None:
    jobs = [workload(gpus=pending)] if pending else []
    result = found(reserving("nlp", used), workloads=jobs)
    assert only(result).shortfall(GPU) == short
    assert result.share_error(only(result)) == Fraction(short, 8)


def test_share_is_that_of_the_resource_of_which_it_is_largest() -> None:
    result = found(
        flavors=[
            bare_flavor("a", "x.io/one", "x.io/two", capacities={"x.io/one": 10, "x.io/two": 100})
        ],
        tenants=[],
    )
    assert result.share({"x.io/one": Fraction(2), "x.io/two": Fraction(30)}) == Fraction(3, 10)


def test_utilization_is_use_over_capacity() -> None:
    result = found(
        reserving("nlp", "4"),
        reserving("cv", "2"),
        tenants=[tenant("nlp"), tenant("cv")],
    )
    assert result.utilization == Fraction(6, 8)


def test_a_pool_of_nothing_has_no_shares() -> None:
    result = found(flavors=[flavor(capacity=0)], tenants=[tenant("nlp", quota(0))])
    assert result.utilization == 0
    assert result.share_error(only(result)) == 0


def test_capacity_is_what_is_stated_over_all_flavors() -> None:
    spec = policy(flavors=[flavor("a", capacity=8), flavor("b", capacity=4)], tenants=[]).spec
    assert capacity(spec) == {GPU: 12}


def test_capacity_that_is_not_stated_is_what_is_promised() -> None:
    spec = policy(
        flavors=[bare_flavor("a", GPU)],
        cohorts=[{"name": "c", "quota": [quota(2, "a")]}],
        tenants=[tenant("nlp", quota(3, "a")), tenant("cv", quota(1, "a"))],
    ).spec
    assert capacity(spec) == {GPU: 6}


def test_a_flavor_without_capacity_counts_beside_one_that_states_it() -> None:
    spec = policy(
        flavors=[flavor("a", capacity=8), bare_flavor("b", GPU)],
        tenants=[tenant("nlp", quota(2, "a"), quota(3, "b"))],
    ).spec
    assert capacity(spec) == {GPU: 11}


def test_a_resource_without_capacity_counts_beside_one_that_states_it() -> None:
    two = bare_flavor("a", "x.io/one", "x.io/two", capacities={"x.io/one": 8})
    owned = [quota(1, "a", resource=name) for name in two["resources"]]
    spec = policy(flavors=[two], tenants=[tenant("nlp", *owned)]).spec
    assert capacity(spec) == {"x.io/one": 8, "x.io/two": 1}


def test_tiers_count_running_and_waiting_work() -> None:
    admitted = {"conditions": ["QuotaReserved", "Admitted"], "cluster_queue": "nlp"}
    jobs = [
        workload("a", **admitted),
        workload("b", conditions=["QuotaReserved"], cluster_queue="nlp"),
        workload("c", created="2026-12-01T10:30:00Z"),
        workload("d", tier="dev", **admitted),
        workload("e", tier="of-others"),
        workload("f", conditions=["Finished"]),
    ]
    tiers = found(workloads=jobs, tiers=[tier("prod"), tier("dev", 7)]).tiers
    assert [(t.name, t.pending, t.running) for t in tiers] == [("prod", 2, 1), ("dev", 0, 1)]
    assert [t.longest_wait for t in tiers] == [5400, 0]


def test_deactivated_work_does_not_wait() -> None:
    (counts,) = found(workloads=[workload(active=False)]).tiers
    assert (counts.pending, counts.longest_wait) == (0, 0)


def test_work_from_the_future_has_not_waited_yet() -> None:
    late = (NOW + timedelta(seconds=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    (counts,) = found(workloads=[workload(created=late)]).tiers
    assert (counts.pending, counts.longest_wait) == (1, 0)


def test_fields_as_they_are_stored() -> None:
    jobs = [workload(gpus=3, created="2026-12-01T08:58:31Z")]
    fields = status_fields(found(reserving("nlp", "3", "1"), workloads=jobs))
    assert fields == {
        "tenantCount": 1,
        "utilization": "37.5%",
        "worstShareError": "12.5%",
        "tenants": [
            {
                "name": "nlp",
                "weight": 1,
                "nominal": {GPU: "4"},
                "used": {GPU: "3"},
                "borrowed": {GPU: "1"},
                "pending": {GPU: "3"},
                "share": "37.5%",
                "entitledShare": "50.0%",
                "shareError": "12.5%",
            }
        ],
        "tiers": [{"name": "prod", "pending": 1, "running": 0, "longestWait": "3h1m0s"}],
    }


def test_a_short_wait_is_told_in_minutes() -> None:
    fields = status_fields(found(workloads=[workload(created="2026-12-01T11:57:01Z")]))
    assert fields["tiers"][0]["longestWait"] == "2m0s"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.0%"), (Fraction(1, 3), "33.3%"), (1, "100.0%"), (1.5, "150.0%")]
)
def test_percent(value: Any, text: str) -> None:
    assert percent(Fraction(value)) == text


def many(count: int, short: int) -> Figures:
    """A pool of `count` tenants, of which the last `short` lack more and more."""
    listed = []
    for index in range(count):
        lack = max(0, index - (count - short) + 1)
        name = f"tenant-{index:04}-{'x' * 50}"
        nominal, used = Fraction(10_000), Fraction(10_000 - lack)
        amounts = ({GPU: nominal}, {GPU: used}, {GPU: Fraction(0)}, {GPU: nominal})
        listed.append(TenantFigures(name, 1.5, *amounts))
    return Figures(listed, [], {GPU: Fraction(10_000 * count)})


def test_up_to_a_hundred_tenants_all_are_listed() -> None:
    assert len(status_fields(many(LISTED_TENANTS, 0))["tenants"]) == LISTED_TENANTS


def test_beyond_a_hundred_only_those_with_a_share_error_are() -> None:
    fields = status_fields(many(LISTED_TENANTS + 1, 2))
    assert [t["name"][:11] for t in fields["tenants"]] == ["tenant-0099", "tenant-0100"]
    assert fields["tenantCount"] == LISTED_TENANTS + 1


def test_beyond_a_hundred_a_tenant_whose_queue_is_not_active_is_listed() -> None:
    pool = many(LISTED_TENANTS + 1, 0)
    broken = replace(pool.tenants[7], active=False)
    tenants = [broken if t.name == broken.name else t for t in pool.tenants]
    listed = status_fields(replace(pool, tenants=tenants))["tenants"]
    assert [t["name"] for t in listed] == [broken.name]


def test_of_too_many_with_a_share_error_the_worst_are_listed_in_the_policys_order() -> None:
    listed = status_fields(many(1000, 300))["tenants"]
    assert [t["name"][:11] for t in listed] == [f"tenant-{i:04}" for i in range(900, 1000)]


@pytest.mark.parametrize("short", [0, 1000])
def test_a_thousand_tenants_fit_the_size_of_a_status(short: int) -> None:
    fields = status_fields(many(1000, short))
    assert len(json.dumps(fields)) < 100 * 1024
