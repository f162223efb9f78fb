"""Random policies in their JSON form: mostly valid, and wrong in all the ways that checks know."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
GPU, SLICE_1, SLICE_2 = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
FLAVORS = ["h100", "a100", "slices"]
COHORTS = ["research", "vision", "speech"]
TENANTS = ["fraud", "nlp", "cv", "ads"]
NAMESPACES = [f"ns-{letter}" for letter in "abcdefgh"]

durations = st.sampled_from(["1s", "15m", "1h30m", "0.5h", "6h", "48h", "0s", "9000h", "87840h"])
percentages = st.sampled_from(["0%", "1%", "10%", "33.3%", "100%", "100.1%", "250%"])
quantities = st.sampled_from([0, 1, 4, 8, 64, "8", "500m", "1k", "2Ki", "1e2", "+3", "0.5", ".5"])
labels = st.dictionaries(
    st.sampled_from(["gpu", "example.com/gpu", "Team_1", "a.b/c"]),
    st.sampled_from(["", "h100", "A_1.b"]),
    max_size=2,
)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


def some(values: list[str], most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), max_size=most, unique=True)


def rates() -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({"count": st.integers(1, 99), "per": durations})


def flavors() -> st.SearchStrategy[list[Json]]:
    plain = optional(
        nodeLabels=labels,
        capacity=st.integers(0, 100),
        topologyLevels=some(["zone", "example.com/rack", "kubernetes.io/hostname"]),
        tolerations=st.lists(
            optional(
                key=st.just("gpu"),
                operator=st.sampled_from(["Exists", "Equal"]),
                value=st.sampled_from(["", "x"]),
                effect=st.sampled_from(["NoSchedule", "NoExecute"]),
                tolerationSeconds=st.integers(0, 60),
            ),
            max_size=2,
        ),
        nodeTaints=st.lists(
            st.fixed_dictionaries({"key": st.just("gpu"), "effect": st.just("NoSchedule")}),
            max_size=2,
        ),
    )
    sliced: st.SearchStrategy[Json] = st.fixed_dictionaries(
        {"resources": st.sampled_from([[SLICE_1, SLICE_2], [SLICE_2], [SLICE_1, GPU]])},
        optional={
            "capacities": st.dictionaries(st.sampled_from([SLICE_1, GPU]), quantities),
            "otherResources": st.sampled_from([["cpu"], ["cpu", "memory", "ephemeral-storage"]]),
        },
    )
    parts = st.tuples(plain, plain, sliced)
    return parts.flatmap(
        lambda three: st.integers(1, 3).map(
            lambda count: [
                {"name": name, **part}
                for name, part in list(zip(FLAVORS, three, strict=True))[:count]
            ]
        )
    )


@st.composite
def tiers(draw: st.DrawFn) -> list[Json]:
    floors = st.one_of(
        st.integers(1, 60), st.integers(1, 10**9), st.sampled_from([100, 1000, 9000])
    )
    found = []
    for index in range(draw(st.integers(1, 4))):
        floor = draw(floors)
        near = st.integers(max(1, floor - 2), min(10**9, floor + 40))
        preemption = optional(
            mode=st.sampled_from(["Anytime", "AtCheckpoint", "Never"]),
            maxLostWork=durations,
            budget=rates(),
            minRuntime=durations,
            protectFrom=st.sampled_from(["tier-0", "tier-1", "tier-2"]),
        )
        aging = st.fixed_dictionaries(
            {"increase": percentages, "every": durations},
            optional={"limit": near, "growth": st.sampled_from(["Linear", "Compound"])},
        )
        checkpoint = st.fixed_dictionaries({"requiredAfter": durations, "interval": durations})
        gang = optional(podGroup=st.sampled_from(["None", "Volcano"]), minMember=percentages)
        part = draw(
            optional(
                ceiling=near,
                preemption=preemption,
                aging=aging,
                checkpoint=checkpoint,
                gang=gang,
                maxWait=durations,
                guard=st.sampled_from(["Drain", "Evict"]),
            )
        )
        found.append({"name": f"tier-{index}", "priority": floor, **part})
    return found


def mostly(right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is right, but once in ten times what is wrong."""
    return st.integers(0, 9).flatmap(lambda chance: wrong if chance == 9 else right)


def quotas(made: list[Json]) -> st.SearchStrategy[list[Json]]:
    """Quotas of the flavors that were made, now and then of others."""
    pairs = [
        (flavor["name"], resource)
        for flavor in made
        for resource in flavor.get("resources", ["", GPU])
    ]
    wrong = st.tuples(st.sampled_from(FLAVORS), st.sampled_from(["", GPU, SLICE_1]))
    quota = st.builds(
        lambda pair, nominal, limits: {
            "flavor": pair[0],
            **({"resource": pair[1]} if pair[1] else {}),
            "nominal": nominal,
            **limits,
        },
        mostly(st.sampled_from(pairs), wrong),
        quantities,
        optional(
            lendingLimit=mostly(st.sampled_from([0, "0", "1m"]), quantities),
            borrowingLimit=quantities,
        ),
    )
    return st.lists(
        quota, max_size=3, unique_by=lambda item: (item["flavor"], item.get("resource"))
    )


def cohorts() -> st.SearchStrategy[list[Json]]:
    part = optional(parent=st.sampled_from(COHORTS), weight=st.sampled_from([1, 0.5, 3]))
    return st.lists(part, max_size=3).map(
        lambda parts: [{"name": name, **part} for name, part in zip(COHORTS, parts, strict=False)]
    )


@st.composite
def tenants(draw: st.DrawFn, made: list[Json]) -> list[Json]:
    found = []
    for index, name in enumerate(TENANTS[: draw(st.integers(0, 4))]):
        own = NAMESPACES[2 * index : 2 * index + 2]
        where = draw(
            st.one_of(
                st.just({"namespaces": own}),
                st.just({"namespaceSelector": {"matchLabels": {"team": name}}}),
                st.fixed_dictionaries({"namespaces": some(NAMESPACES, 2)}),
                st.fixed_dictionaries({"namespaceSelector": optional(matchLabels=labels)}),
            )
        )
        part = draw(
            optional(
                cohort=st.sampled_from(COHORTS),
                weight=st.sampled_from([0.001, 1, 2.5, 10]),
                tiers=mostly(st.just(["tier-0"]), some(["tier-0", "tier-1"], 2)),
                hold=st.booleans(),
                quota=quotas(made),
                borrowWithinCohort=optional(policy=st.sampled_from(["Never", "LowerPriority"])),
            )
        )
        found.append({"name": name, **where, **part})
    return found


@st.composite
def windows(draw: st.DrawFn, made: list[Json], known: list[str]) -> list[Json]:
    weekly = st.fixed_dictionaries(
        {
            "days": st.sampled_from([["Mon"], ["Sat", "Sun"]]),
            "from": st.sampled_from(["00:00", "22:00"]),
            "to": st.sampled_from(["00:00", "06:30"]),
        }
    )
    days = st.sampled_from(["2027-01-01", "2027-02-29", "2028-02-29", "2027-12-31", "0001-01-01"])
    dates = st.fixed_dictionaries({"from": days, "to": days})
    once = st.just({"from": "2027-01-01", "to": "2028-02-29"})
    names = st.sampled_from(TENANTS)
    tenant = st.fixed_dictionaries(
        {"name": mostly(st.sampled_from(known), names) if known else names},
        optional={"weight": st.sampled_from([1, 4]), "hold": st.booleans(), "quota": quotas(made)},
    )
    rest = optional(
        tenants=st.lists(tenant, max_size=2, unique_by=lambda item: item["name"]),
        fairness=optional(
            reclaim=st.sampled_from(["Any", "Any", "Never"]), utilizationTarget=percentages
        ),
    )
    found = []
    for index in range(draw(st.integers(0, 2))):
        when = draw(
            mostly(
                st.one_of(
                    st.fixed_dictionaries({"weekly": weekly}),
                    st.fixed_dictionaries({"dates": once}),
                ),
                optional(weekly=weekly, dates=dates),
            )
        )
        zone = draw(
            mostly(st.sampled_from(["UTC", "Europe/Zurich"]), st.sampled_from(["Mars/Base", "EST"]))
        )
        found.append({"name": f"window-{index}", "timeZone": zone, **when, **draw(rest)})
    return found


@st.composite
def policies(draw: st.DrawFn) -> Json:
    """Policies that the schema accepts or nearly does; whether their parts agree is chance."""
    made = draw(flavors())
    owners = draw(tenants(made))
    rest = optional(
        cohorts=cohorts(),
        windows=windows(made, [owner["name"] for owner in owners]),
        fairness=optional(
            reclaim=st.sampled_from(["LowerPriority", "Any", "Never"]),
            utilizationTarget=percentages,
            window=durations,
        ),
        preemptionRateLimit=rates(),
    )
    return {
        "apiVersion": "gpufair.io/v1alpha1",
        "kind": "GpuSchedulingPolicy",
        "metadata": {"name": "random"},
        "spec": {"flavors": made, "tiers": draw(tiers()), "tenants": owners, **draw(rest)},
    }


def repaired(raw: Json, verdict: Any, most: int = 40) -> Json | None:
    """Return the policy without the parts that `verdict` (paths of errors) finds wrong.

    Random parts seldom agree by themselves; what is wrong in one is therefore taken out until
    nothing is. None when it cannot be.
    """
    for _ in range(most):
        paths = verdict(raw)
        if not paths:
            return raw
        if not _drop(raw, paths[0]):
            return None
    return None


def _drop(raw: Json, path: str) -> bool:
    """Remove what stands at a path, or the nearest part above it that may be left out."""
    steps = [
        int(step) if step.isdigit() else step
        for step in path.split('["', maxsplit=1)[0].replace("[", ".").replace("]", "").split(".")
    ]
    while len(steps) > 1:
        *above, last = steps
        at: Any = raw
        for step in above:
            at = at.get(step, {}) if isinstance(at, dict) else at[step]
        needed = last in ("name", "flavor", "nominal", "priority", "from", "to", "days", "timeZone")
        if isinstance(at, list) and isinstance(last, int) and last < len(at):
            del at[last]
            return True
        if isinstance(at, dict) and last in at and not needed:
            del at[last]
            return True
        steps = above
    return False
