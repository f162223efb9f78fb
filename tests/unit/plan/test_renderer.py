"""An object is rendered again only when its values are others."""

from typing import Any

import pytest

from gpufair.api.kinds import COHORT, TOPOLOGY
from gpufair.plan import renderer as module
from gpufair.plan.plan import plan
from gpufair.plan.renderer import Renderer
from tests.unit.builders import NOW, facts, policy, tenant


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The templates that were rendered, in order."""
    done: list[str] = []
    render = module.render

    def counted(name: str, context: dict[str, Any]) -> str:
        done.append(name)
        return render(name, context)

    monkeypatch.setattr(module, "render", counted)
    return done


def cohort(renderer: Renderer, name: str = "a", parent: str = "pool") -> Any:
    values = {
        "policy": "pool",
        "name": name,
        "namespace": "",
        "owner": "",
        "parent": parent,
        "weight": "1",
        "groups": [],
    }
    return renderer(COHORT, name, "", values)


def test_the_same_values_give_the_same_object(rendered: list[str]) -> None:
    renderer = Renderer()
    assert cohort(renderer) is cohort(renderer)
    assert rendered == ["kueue/cohort"]


def test_other_values_give_another_object(rendered: list[str]) -> None:
    renderer = Renderer()
    before, after = cohort(renderer), cohort(renderer, parent="research")
    assert (before.key, len(rendered)) == (after.key, 2)
    assert after.manifest["spec"]["parentName"] == "research"
    assert before.manifest["spec"]["parentName"] == "pool"


def test_objects_of_one_name_and_different_kinds_do_not_meet() -> None:
    renderer = Renderer()
    first = cohort(renderer)
    values = {"policy": "pool", "name": "a", "namespace": "", "owner": "", "levels": ["rack"]}
    second = renderer(TOPOLOGY, "a", "", values)
    assert (first.manifest["kind"], second.manifest["kind"]) == ("Cohort", "Topology")


def test_what_was_not_asked_for_since_is_forgotten(rendered: list[str]) -> None:
    renderer = Renderer()
    cohort(renderer, "a"), cohort(renderer, "b")
    renderer.forget_unused()
    cohort(renderer, "a")
    renderer.forget_unused()
    assert len(rendered) == 2
    cohort(renderer, "b")
    assert len(rendered) == 3


def test_a_second_plan_renders_only_what_changed(rendered: list[str]) -> None:
    renderer, known = Renderer(), facts("nlp", "cv")
    before = policy(tenants=[tenant("nlp"), tenant("cv")])
    first = plan(before, known, NOW, renderer)
    rendered.clear()
    assert list(plan(before, known, NOW, renderer).objects) == list(first.objects)
    assert rendered == []
    plan(policy(tenants=[tenant("nlp"), tenant("cv", weight=2)]), known, NOW, renderer)
    assert rendered == ["kueue/clusterqueue"]
