"""The policy at one moment: windows over it, the later one winning field by field."""

from typing import Any

from gpufair.api.policy import PolicySpec
from gpufair.api.tenants import Quota, Tenant
from gpufair.policies.overrides import effective, quota_resource
from tests.unit.builders import GPU, bare_flavor, flavor, policy, quota, tenant, window

ALWAYS = {"dates": {"from": "2026-01-01", "to": "2027-01-01"}}


def overridden(*listed: dict[str, Any], **spec: Any) -> PolicySpec:
    named = [window(f"w{i}", **ALWAYS, **part) for i, part in enumerate(listed)]
    subject = policy(windows=named, **spec).spec
    return effective(subject, subject.windows)


def only(spec: PolicySpec) -> Tenant:
    (found,) = spec.tenants
    return found


def own(**fields: Any) -> dict[str, Any]:
    return {"tenants": [{"name": "nlp", **fields}]}


def figures(quota: Quota) -> tuple[str, str | None, str | None]:
    return quota.nominal, quota.borrowing_limit, quota.lending_limit


def test_no_window_changes_nothing() -> None:
    spec = policy().spec
    assert effective(spec, []) == spec


def test_what_a_window_does_not_state_stays() -> None:
    base = tenant("nlp", quota(8, borrowingLimit=2, lendingLimit=3), weight=5, hold=True)
    found = only(overridden(own(quota=[{"flavor": "h100", "lendingLimit": 1}]), tenants=[base]))
    assert figures(found.quota[0]) == ("8", "2", "1")
    assert (found.weight, found.hold) == (5, True)


def test_the_later_window_wins_field_by_field() -> None:
    first = own(weight=2, hold=True, quota=[{"flavor": "h100", "nominal": 6, "borrowingLimit": 1}])
    second = own(weight=3, quota=[{"flavor": "h100", "borrowingLimit": 0}])
    found = only(overridden(first, second))
    assert (found.weight, found.hold) == (3, True)
    assert figures(found.quota[0]) == ("6", "0", None)


def test_the_order_of_the_list_decides_not_the_name() -> None:
    found = only(overridden(own(weight=9), own(weight=7)))
    assert found.weight == 7


def test_hold_can_be_switched_off() -> None:
    found = only(overridden(own(hold=False), tenants=[tenant(hold=True)]))
    assert found.hold is False


def test_only_the_named_tenant_changes() -> None:
    spec = overridden(own(weight=9), tenants=[tenant("cv"), tenant("nlp")])
    assert [(t.name, t.weight) for t in spec.tenants] == [("cv", 1), ("nlp", 9)]


def test_quota_is_matched_by_flavor_and_resource() -> None:
    spec = overridden(
        own(quota=[{"flavor": "a", "resource": "x.io/fast", "nominal": 9}]),
        flavors=[bare_flavor("a", "x.io/slow", "x.io/fast")],
        tenants=[
            tenant(
                "nlp",
                quota(1, "a", resource="x.io/slow"),
                quota(2, "a", resource="x.io/fast"),
            )
        ],
    )
    assert [(q.resource, q.nominal) for q in only(spec).quota] == [
        ("x.io/slow", "1"),
        ("x.io/fast", "9"),
    ]


def test_an_empty_resource_means_the_flavors_only_one() -> None:
    named = own(quota=[{"flavor": "h100", "resource": GPU, "nominal": 6}])
    unnamed = own(quota=[{"flavor": "h100", "nominal": 7}])
    for base in (quota(4), quota(4, resource=GPU)):
        for override, nominal in ((named, "6"), (unnamed, "7")):
            found = only(overridden(override, tenants=[tenant("nlp", base)]))
            assert [q.nominal for q in found.quota] == [nominal]


def test_quota_that_the_tenant_does_not_have_is_added() -> None:
    spec = overridden(
        own(quota=[{"flavor": "a100", "nominal": 2}]), flavors=[flavor("h100"), flavor("a100")]
    )
    found = only(spec).quota
    assert [(q.flavor, q.nominal) for q in found] == [("h100", "4"), ("a100", "2")]


def test_fairness_is_overridden_field_by_field() -> None:
    spec = overridden(
        {"fairness": {"reclaim": "Any"}},
        {"fairness": {"utilizationTarget": "80%"}},
        fairness={"reclaim": "Never", "window": "24h", "utilizationTarget": "90%"},
    )
    fairness = spec.fairness
    assert (fairness.reclaim.value, fairness.utilization_target, fairness.window) == (
        "Any",
        "80%",
        "24h",
    )


def test_the_policy_itself_is_left_as_it_was() -> None:
    named = [window(**ALWAYS, **own(weight=9, quota=[quota(1)]))]
    spec = policy(windows=named).spec
    before = spec.model_dump()
    effective(spec, spec.windows)
    assert spec.model_dump() == before


def test_quota_resource_is_its_own_or_the_flavors_only_one() -> None:
    spec = policy(tenants=[tenant("nlp", quota(4))]).spec
    bare = spec.tenants[0].quota[0]
    assert quota_resource(bare, spec.flavors) == GPU
    named = bare.model_copy(update={"resource": "x.io/other"})
    assert quota_resource(named, spec.flavors) == "x.io/other"
