"""Resource groups: what Kueue demands of their shape, and the figures in them."""

from typing import Any

import pytest

from gpufair.api.flavors import Flavor
from gpufair.api.quantity import parse_quantity
from gpufair.api.tenants import Quota
from gpufair.plan.quotas import Group, layout, other_flavor, resource_groups, weight
from tests.unit.builders import GPU, bare_flavor, flavor, policy, quota

MIG = "nvidia.com/mig-1g.10gb"
OTHER = ("cpu", "memory", "ephemeral-storage")


def flavors(*listed: dict[str, Any]) -> list[Flavor]:
    return policy(flavors=list(listed), tenants=[]).spec.flavors


def quotas(*listed: dict[str, Any]) -> list[Quota]:
    return [Quota.model_validate(item) for item in listed]


def groups(owned: list[dict[str, Any]], *listed: dict[str, Any]) -> list[dict[str, Any]]:
    return resource_groups(quotas(*owned), layout("pool", flavors(*listed)))


def shape(found: list[dict[str, Any]]) -> list[tuple[list[str], list[str]]]:
    return [(g["resources"], [f["name"] for f in g["flavors"]]) for g in found]


def test_flavors_of_the_same_resources_are_one_group_in_their_order() -> None:
    found = layout("pool", flavors(flavor("b"), flavor("a")))
    assert found.groups == (Group((GPU,), ("b", "a"), OTHER),)
    assert found.shared is None


def test_flavors_of_different_resources_are_groups_in_order_of_appearance() -> None:
    found = layout("pool", flavors(bare_flavor("m", MIG), flavor("a"), bare_flavor("n", MIG)))
    assert [g.flavors for g in found.groups] == [("m", "n"), ("a",)]


def test_with_several_groups_cpu_and_memory_get_a_group_and_flavor_of_their_own() -> None:
    listed = (flavor("a"), bare_flavor("m", MIG))
    assert shape(groups([quota(1, "a"), quota(1, "m")], *listed)) == [
        ([GPU], ["a"]),
        ([MIG], ["m"]),
        (list(OTHER), ["pool-other"]),
    ]


def test_a_queue_of_one_group_has_cpu_and_memory_in_it() -> None:
    """Topology-aware scheduling wants all resources of a pod from one flavor."""
    listed = (flavor("a"), bare_flavor("m", MIG))
    assert shape(groups([quota(1, "m")], *listed)) == [([MIG, *OTHER], ["m"])]


def test_one_group_that_has_cpu_still_shares_it_with_the_others() -> None:
    """Else pods of the other group would be pulled to the nodes of this one's flavor."""
    listed = (flavor("a"), bare_flavor("m", MIG, otherResources=[]))
    found = shape(groups([quota(1, "a"), quota(1, "m")], *listed))
    assert found[0] == ([GPU], ["a"])
    assert found[-1] == (list(OTHER), ["pool-other"])


def test_the_shared_group_has_the_resources_of_all_flavors_once() -> None:
    found = layout(
        "pool",
        flavors(
            flavor("a", otherResources=["memory", "cpu"]),
            bare_flavor("m", MIG, otherResources=["cpu", "pods"]),
        ),
    )
    assert found.shared is not None
    assert found.shared.other == ("memory", "cpu", "pods")


def test_without_other_resources_there_is_no_shared_group() -> None:
    found = layout(
        "pool", flavors(flavor("a", otherResources=[]), bare_flavor("m", MIG, otherResources=[]))
    )
    assert found.shared is None
    assert [g.other for g in found.groups] == [(), ()]


def test_a_queue_has_the_flavors_that_it_has_quota_of() -> None:
    listed = (flavor("a"), flavor("b"), bare_flavor("m", MIG))
    assert shape(groups([quota(1, "b")], *listed)) == [
        ([GPU, *OTHER], ["b"]),
    ]


def test_flavors_keep_the_policys_order_whatever_the_order_of_quotas() -> None:
    assert shape(groups([quota(1, "b"), quota(1, "a")], flavor("a"), flavor("b"))) == [
        ([GPU, *OTHER], ["a", "b"])
    ]


def test_without_quota_there_is_no_group() -> None:
    assert groups([], flavor("a"), bare_flavor("m", MIG)) == []


def test_every_flavor_of_a_group_lists_its_resources_in_the_groups_order() -> None:
    listed = (bare_flavor("a", "x.io/one", "x.io/two"), bare_flavor("b", "x.io/one", "x.io/two"))
    owned = [
        quota(2, "a", resource="x.io/two"),
        quota(1, "a", resource="x.io/one"),
        quota(3, "b", resource="x.io/two"),
    ]
    (found,) = groups(owned, *listed)
    assert found["resources"] == ["x.io/one", "x.io/two", *OTHER]
    for item in found["flavors"]:
        assert [r["name"] for r in item["resources"]] == found["resources"]


def test_a_resource_of_the_flavor_without_quota_gets_none_and_borrows_none() -> None:
    listed = (bare_flavor("a", "x.io/one", "x.io/two"),)
    (found,) = groups([quota(1, "a", resource="x.io/one")], *listed)
    assert found["flavors"][0]["resources"][1] == {
        "name": "x.io/two",
        "nominal": "0",
        "borrowing": "0",
        "lending": None,
    }


def test_limits_are_stated_only_where_the_quota_states_them() -> None:
    (found,) = groups([quota(1, "a"), quota(2, "b", borrowingLimit=0, lendingLimit=1)], *_ab())
    limits = [(f["resources"][0]["borrowing"], f["resources"][0]["lending"]) for f in _of(found)]
    assert limits == [(None, None), ("0", "1")]


def _ab() -> tuple[dict[str, Any], ...]:
    return flavor("a"), flavor("b")


def _of(group: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = group["flavors"]
    return found


@pytest.mark.parametrize(
    ("written", "nominal"), [("1000", "1k"), ("1500m", "1500m"), (4096, "4096"), ("4Ki", "4Ki")]
)
def test_quantities_are_written_as_the_server_stores_them(written: str, nominal: str) -> None:
    (found,) = groups([quota(written, "a")], flavor("a"))
    assert _of(found)[0]["resources"][0]["nominal"] == nominal


def test_a_quota_may_name_the_flavors_only_resource_or_not() -> None:
    named = groups([quota(3, "a", resource=GPU)], flavor("a"))
    assert named == groups([quota(3, "a")], flavor("a"))


def test_the_quota_nobody_reaches_fits_kueues_int64_at_a_thousand_tenants() -> None:
    (found,) = groups([quota(1, "a")], flavor("a", otherResources=[*OTHER, "x.io/count"]))
    for resource in _of(found)[0]["resources"][1:]:
        assert resource["borrowing"] is None
        units = 1000 if resource["name"] == "cpu" else 1  # Kueue counts thousandths of a core
        nominal = parse_quantity(resource["nominal"])
        assert nominal >= 10**9
        assert nominal * units * 1000 < 2**63


def test_the_other_flavor_is_named_after_the_policy() -> None:
    assert other_flavor("bank") == "bank-other"


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1"), (0.5, "500m"), (0.001, "1m"), (2.5, "2500m"), (1_000_000, "1M")]
)
def test_weights_are_canonical_quantities(value: float, text: str) -> None:
    assert weight(value) == text
