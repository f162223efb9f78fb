"""Whether Kueue is there, in the version that is written; else what to install."""

from typing import Any

import pytest

from gpufair.api.kinds import CLUSTER_QUEUE, COHORT, PRIORITY_CLASS, WORKLOAD, Resource
from gpufair.cluster.client import GroupInfo
from gpufair.loops.engine import engine_condition
from gpufair.plan.conditions import Condition
from tests.unit.loops.fakes import FakeClient


async def verdict(absent: list[Resource], group: GroupInfo | None = None) -> Condition:
    client: Any = FakeClient()
    client.group = group
    return await engine_condition(client, absent)


@pytest.mark.parametrize("absent", [[], [PRIORITY_CLASS]])
async def test_kueue_is_available_when_all_its_kinds_are_served(absent: list[Resource]) -> None:
    found = await verdict(absent)
    assert (found.type, found.status, found.reason) == ("EngineAvailable", "True", "KueueServed")


async def test_without_kueue_it_says_what_to_install() -> None:
    found = await verdict([CLUSTER_QUEUE, WORKLOAD])
    assert (found.status, found.reason) == ("False", "KueueNotInstalled")
    assert "install Kueue 0.17 or later" in found.message


async def test_an_old_kueue_is_named_with_what_it_lacks() -> None:
    group = GroupInfo("kueue.x-k8s.io", ("v1beta1", "v1alpha1"), "v1beta1", {})
    found = await verdict([CLUSTER_QUEUE, COHORT], group)
    assert (found.status, found.reason) == ("False", "KueueTooOld")
    assert found.message.startswith(
        "Kueue serves v1beta1, v1alpha1 but not v1beta2 of ClusterQueue, Cohort: install Kueue"
    )
