"""The checks on random policies: they always end in a verdict, and bands are as designed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufair.api.bands import LEAST_WIDTH, bands_of
from gpufair.api.checks import check, check_change
from gpufair.api.load import InvalidPolicy, load_text, parse_policy
from tests.property.api_policies import Json, policies, repaired


def verdict(raw: Json) -> list[str]:
    """Return the paths of what is wrong."""
    try:
        policy = parse_policy(raw)
    except InvalidPolicy as refusal:
        return [problem.path for problem in refusal.problems]
    return [problem.path for problem in check(policy) if problem.is_error]


@settings(max_examples=200, deadline=None)
@given(policies())
def test_every_policy_gets_a_verdict(raw: Json) -> None:
    try:
        policy = parse_policy(raw)
    except InvalidPolicy as refusal:
        found = refusal.problems
    else:
        found = check(policy)
        assert check_change(policy, policy) == []
        # What is kept is what was written: nothing changes on the way through the model.
        again = json.loads(policy.model_dump_json(by_alias=True, exclude_none=True))
        assert parse_policy(again) == policy
    for problem in found:
        assert str(problem).isprintable()
        assert problem.path.startswith("spec")


@settings(max_examples=100, deadline=None)
@given(policies())
def test_a_problem_goes_away_with_the_part_that_it_names(raw: Json) -> None:
    found = repaired(raw, verdict)
    assert found is None or verdict(found) == []


@dataclass(frozen=True)
class FakeTier:
    name: str
    priority: int
    ceiling: int | None = None


@given(st.data())
def test_bands(data: st.DataObject) -> None:
    """For every set of tiers that the checks let pass, the promises of the bands hold."""
    gaps = data.draw(st.lists(st.integers(LEAST_WIDTH + 1, 10**6), min_size=1, max_size=15))
    below = len(gaps)
    floors = [1]
    for gap in gaps:
        floors.append(floors[-1] + gap)
    floors[-1] += 2 * below
    tiers = [FakeTier(f"t{n}", floor) for n, floor in enumerate(floors)]
    for rank in range(below):
        most = floors[rank + 1] - 1 - (2 * below if rank == below - 1 else 0)
        if data.draw(st.booleans()):
            ceiling = data.draw(st.integers(floors[rank] + LEAST_WIDTH, most))
            tiers[rank] = FakeTier(tiers[rank].name, floors[rank], ceiling)
    bands = bands_of(reversed(tiers))
    raw = {
        "apiVersion": "gpufair.io/v1alpha1",
        "kind": "GpuSchedulingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "flavors": [{"name": "h100"}],
            "tiers": [
                {"name": tier.name, "priority": tier.priority}
                | ({"ceiling": tier.ceiling} if tier.ceiling else {})
                for tier in tiers
            ],
        },
    }
    assert verdict(raw) == []

    lower, top = bands.bands[:-1], bands.top
    assert [band.rank for band in bands.bands] == list(range(below + 1))
    for band, above in zip(lower, bands.bands[1:], strict=True):
        assert band.width >= LEAST_WIDTH
        # Waiting and running work of a band, protected too, stays below the next band.
        assert band.floor < band.shield < band.ceiling < above.floor
        # Lifted work stands above all bands below the top, in the order of its tiers.
        assert lower[-1].ceiling < band.lifted < band.lifted_protected < top.floor
        assert band.lifted_protected < above.lifted
        assert bands.reached(band.floor) is band
        assert bands.reached(band.ceiling) is band
    assert bands.limit == lower[-1].shield
    priority = data.draw(st.integers(0, top.floor - 1))
    settled = bands.settled(priority)
    # Aging never reaches what shields or protects in a band, and never carries over a floor.
    assert settled <= min(priority, bands.reached(priority).shield)
    assert bands.reached(settled) is bands.reached(priority)
    assert bands.settled(settled) == settled


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_verdict(content: bytes) -> None:
    for loaded in load_text(content, "p.yaml"):
        assert loaded.policy is not None or loaded.problems
        for problem in loaded.problems:
            assert loaded.describe(problem).isprintable()


yaml_text = st.text(st.sampled_from("ab:-[]{},&*!|>'\"#%@ \n\t?~<1.0x"), max_size=60)


@settings(max_examples=500, deadline=None)
@given(yaml_text)
def test_any_yaml_gives_a_verdict(text: str) -> None:
    head = "apiVersion: gpufair.io/v1alpha1\nkind: GpuSchedulingPolicy\n"
    for loaded in load_text((head + text).encode(), "p.yaml"):
        assert loaded.policy is None
        assert any(problem.is_error for problem in loaded.problems)
        for problem in loaded.problems:
            assert loaded.describe(problem).isprintable()
