"""Fields that have no effect yet are named, exactly when they say something."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from gpufair.api.policy import PolicySpec
from gpufair.plan.support import sentence, unsupported
from tests.unit.builders import bare_flavor, policy, quota, tenant, tier, weekly, window

ALWAYS = {"weekly": weekly("Mon", "00:00", "00:00")}
TIERS = [tier("top", 1000), tier("low", 100)]


def low(**fields: Any) -> dict[str, Any]:
    return {"tiers": [tier("top", 1000), tier("low", 100, **fields)]}


def in_window(**fairness: Any) -> dict[str, Any]:
    return {"windows": [window(**ALWAYS, fairness=fairness)]}


HISTORY = {"strength": 1, "halfLife": "24h"}
# What is not acted on: the spec that uses it, and the path that must be named.
UNBUILT: dict[str, dict[str, Any]] = {
    "spec.preemptionRateLimit": {"preemptionRateLimit": {"count": 3, "per": "1h"}},
    "spec.mig": {"mig": [{"nodeSelector": {"pool": "mig"}}]},
    "spec.fairness.utilizationTarget": {"fairness": {"utilizationTarget": "90%"}},
    "spec.fairness.window": {"fairness": {"window": "24h"}},
    "spec.fairness.history": {"fairness": {"history": HISTORY}},
    "spec.flavors[0].capacity (omitted: live count)": {
        "flavors": [bare_flavor("h100", "nvidia.com/gpu")]
    },
    "spec.tiers[1].ceiling": low(ceiling=900),
    "spec.tiers[1].aging": low(aging={"increase": "10%", "every": "6h"}),
    "spec.tiers[1].preemption": low(preemption={"mode": "Never"}),
    "spec.tiers[1].checkpoint": low(checkpoint={"requiredAfter": "4h", "interval": "1h"}),
    "spec.tiers[1].maxRunTime": low(maxRunTime="24h"),
    "spec.tiers[1].gang": low(gang={"podGroup": "Volcano"}),
    "spec.tiers[1].maxWait": low(maxWait="24h"),
    "spec.tiers[1].guard": low(guard="Evict"),
    "spec.tenants[0].tiers": {"tenants": [tenant(tiers=["prod"])]},
    "spec.windows[0].fairness.utilizationTarget": in_window(utilizationTarget="80%"),
    "spec.windows[0].fairness.history": in_window(history=HISTORY),
}


@pytest.mark.parametrize("path", UNBUILT)
def test_a_field_that_is_not_acted_on_is_named_when_it_is_used(path: str) -> None:
    assert unsupported(policy(**UNBUILT[path]).spec) == [path]


def test_a_policy_that_uses_none_is_fully_supported() -> None:
    assert unsupported(policy(tiers=TIERS).spec) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"preemptionRateLimit": None},
        {"mig": []},
        {"fairness": {"window": "168h"}},
        {"fairness": {"reclaim": "Any"}},
        low(preemption={"mode": "Anytime"}),
        low(gang={"podGroup": "None", "minMember": "100%", "binding": "Template"}),
        low(guard="Drain"),
        {"tenants": [tenant(tiers=[])]},
        in_window(reclaim="Any"),
    ],
)
def test_a_field_at_its_default_or_acted_on_is_not_named(spec: dict[str, Any]) -> None:
    stated = {key: value for key, value in spec.items() if value is not None}
    assert unsupported(policy(**stated).spec) == []


def test_engine_volcano_is_not_built_whatever_else_is_used() -> None:
    assert unsupported(policy(engine="Volcano", **low(guard="Evict")).spec) == [
        "spec.engine: Volcano"
    ]
    assert sentence(["spec.engine: Volcano"]) == (
        "Engine Volcano is not built yet: nothing is applied."
    )


def test_the_sentence_names_the_fields_up_to_a_length() -> None:
    assert sentence(["spec.a", "spec.b"]) == (
        "Not acted on yet, all else is applied: spec.a, spec.b."
    )
    assert sentence([f"spec.{i}" for i in range(25)]).endswith("spec.19 and 5 more.")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Every field of the model, by what becomes of it. A new field must be entered here: acted on by
# the plan or the operator, or a part of one of those above.
ACTED_ON = _words(
    """
    engine suspend deletionPolicy queueName defaultQueue flavors flavors.name flavors.nodeLabels
    flavors.resources flavors.otherResources flavors.nodeTaints flavors.nodeTaints.key
    flavors.nodeTaints.value flavors.nodeTaints.effect flavors.tolerations
    flavors.tolerations.key flavors.tolerations.operator flavors.tolerations.value
    flavors.tolerations.effect flavors.tolerations.tolerationSeconds flavors.capacity
    flavors.capacities flavors.topologyLevels tiers tiers.name tiers.priority
    tiers.podPreemption cohorts cohorts.name cohorts.parent cohorts.weight cohorts.quota
    cohorts.quota.flavor cohorts.quota.resource cohorts.quota.nominal
    cohorts.quota.borrowingLimit cohorts.quota.lendingLimit tenants tenants.name
    tenants.namespaces tenants.namespaceSelector tenants.namespaceSelector.matchLabels
    tenants.namespaceSelector.matchExpressions tenants.namespaceSelector.matchExpressions.key
    tenants.namespaceSelector.matchExpressions.operator
    tenants.namespaceSelector.matchExpressions.values tenants.cohort tenants.weight tenants.hold
    tenants.quota tenants.quota.flavor tenants.quota.resource tenants.quota.nominal
    tenants.quota.borrowingLimit tenants.quota.lendingLimit tenants.admissionChecks
    tenants.flavorFungibility tenants.flavorFungibility.whenCanBorrow
    tenants.flavorFungibility.whenCanPreempt tenants.flavorFungibility.preference
    tenants.borrowWithinCohort tenants.borrowWithinCohort.policy
    tenants.borrowWithinCohort.maxPriorityThreshold fairness fairness.reclaim windows
    windows.name windows.timeZone windows.weekly windows.weekly.days windows.weekly.from
    windows.weekly.to windows.dates windows.dates.from windows.dates.to windows.tenants
    windows.tenants.name windows.tenants.weight windows.tenants.hold windows.tenants.quota
    windows.tenants.quota.flavor windows.tenants.quota.resource windows.tenants.quota.nominal
    windows.tenants.quota.borrowingLimit windows.tenants.quota.lendingLimit windows.fairness
    windows.fairness.reclaim
    """
)
NAMED = frozenset(
    path.partition(" ")[0].removeprefix("spec.").replace("[0]", "").replace("[1]", "")
    for path in UNBUILT
)


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = prefix + (field.alias or name)
        yield path
        for part in _models(field.annotation):
            yield from fields(part, path + ".")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for part in typing.get_args(annotation):
        yield from _models(part)


def test_every_field_is_acted_on_or_named_as_not_built() -> None:
    found = set(fields(PolicySpec))
    unbuilt = {path for path in found if any(f"{path}.".startswith(f"{n}.") for n in NAMED)}
    assert found - unbuilt - ACTED_ON == set(), "new fields: act on them, or name them"
    assert found >= ACTED_ON, "fields that are gone"
    assert found >= NAMED
    assert {"flavors.capacity"} == NAMED & ACTED_ON


def test_several_fields_are_all_named_in_order() -> None:
    spec = policy(
        mig=[{"nodeSelector": {"pool": "mig"}}],
        tenants=[tenant("nlp", quota(1)), tenant("cv", quota(1), tiers=["prod"])],
        tiers=[tier("prod", guard="Evict", maxWait="1h")],
    ).spec
    assert unsupported(spec) == [
        "spec.mig",
        "spec.tiers[0].maxWait",
        "spec.tiers[0].guard",
        "spec.tenants[1].tiers",
    ]
