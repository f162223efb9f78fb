"""The policies as last seen, and the memory that spares work but changes no result."""

from typing import Any

import pytest

from gpufair.loops import policies as module
from gpufair.loops.policies import Memory, PolicyStore
from gpufair.plan.selectors import Facts
from tests.unit.builders import (
    NOW,
    Json,
    cluster_of,
    facts,
    live_of,
    policy,
    quota,
    stored_policy,
    tenant,
    utc,
    weekly,
    window,
)


def version(raw: Json, number: int, **metadata: Any) -> Json:
    return {**raw, "metadata": raw["metadata"] | {"resourceVersion": str(number)} | metadata}


# -- PolicyStore ---------------------------------------------------------------------------------


def test_a_newer_version_replaces_an_older_one() -> None:
    store, raw = PolicyStore(), stored_policy()
    assert store.put(version(raw, 9))
    assert store.put(version(raw, 10))
    found = store.get("pool")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "10"


@pytest.mark.parametrize("number", [10, 9])
def test_what_is_not_newer_is_no_news(number: int) -> None:
    store, raw = PolicyStore(), stored_policy()
    store.put(version(raw, 10))
    assert not store.put(version(raw, number))


def test_a_policy_made_anew_replaces_the_old_one() -> None:
    store, raw = PolicyStore(), stored_policy()
    store.put(version(raw, 10))
    assert store.put(version(raw, 11, uid="u2"))
    found = store.get("pool")
    assert found is not None
    assert found["metadata"]["uid"] == "u2"


def test_a_late_word_of_the_old_one_changes_nothing() -> None:
    store, raw = PolicyStore(), stored_policy()
    store.put(version(raw, 11, uid="u2"))
    assert not store.put(version(raw, 10))
    store.remove(version(raw, 10))
    assert list(store) == ["pool"]


def test_a_deleted_policy_is_gone() -> None:
    store, raw = PolicyStore(), stored_policy()
    store.put(raw)
    store.remove(version(raw, 99))
    assert store.get("pool") is None
    store.remove(raw)


def test_the_names_can_be_walked_while_policies_come_and_go() -> None:
    store = PolicyStore()
    store.put(stored_policy("a"))
    store.put(stored_policy("b"))
    for name in store:
        store.put(stored_policy(f"{name}-more"))
    assert sorted(store) == ["a", "a-more", "b", "b-more"]


# -- Memory: judging -----------------------------------------------------------------------------


def test_a_valid_policy_is_read() -> None:
    found, problems = Memory().judge(stored_policy())
    assert found is not None
    assert (found.name, problems) == ("pool", [])


def test_a_policy_that_cannot_be_read_is_none_with_its_problems() -> None:
    raw = stored_policy()
    raw["spec"]["tiers"][0]["priority"] = "high"
    found, problems = Memory().judge(raw)
    assert found is None
    assert [p.path for p in problems] == ["spec.tiers[0].priority"]


def test_a_policy_whose_parts_do_not_agree_is_none_with_its_problems() -> None:
    raw = stored_policy(tenants=[tenant("nlp", cohort="nowhere")])
    found, problems = Memory().judge(raw)
    assert found is None
    assert [p.path for p in problems] == ["spec.tenants[0].cohort"]


def test_warnings_do_not_make_it_invalid() -> None:
    found, problems = Memory().judge(stored_policy(tenants=[tenant("nlp", quota(99))]))
    assert found is not None
    assert [p.is_error for p in problems] == [False]


def test_a_generation_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = counted(monkeypatch, "parse_policy")
    memory, raw = Memory(), stored_policy()
    first = memory.judge(raw)
    again = memory.judge(version(raw, 99999) | {"status": {}})
    assert (again[0] is first[0], len(judged)) == (True, 1)
    memory.judge(version(raw, 99999, generation=2))
    memory.judge(version(raw, 99999, generation=2, uid="u2"))
    assert len(judged) == 3


# -- Memory: planning ----------------------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    calls: list[Any] = []
    real = getattr(module, name)

    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(module, name, call)
    return calls


def judged(memory: Memory, raw: Json) -> Any:
    found, _ = memory.judge(raw)
    assert found is not None
    return found


def test_a_plan_holds_until_policy_namespaces_or_time_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = counted(monkeypatch, "plan")
    day = window("day", weekly=weekly("Tue", "09:00", "17:00"), tenants=[{"name": "nlp"}])
    memory, raw, known = Memory(), stored_policy(windows=[day]), facts("nlp")

    def plan(raw: Json = raw, revision: int = 1, now: str = "2026-12-01T10:00") -> int:
        memory.plan(judged(memory, raw), known, revision, utc(now))
        return len(planned)

    assert plan() == 1
    assert plan(now="2026-12-01T16:59") == 1
    assert plan(now="2026-12-01T17:00") == 2
    assert plan(now="2026-12-01T18:00") == 2
    assert plan(now="2026-12-01T18:00", revision=2) == 3
    assert plan(version(raw, 9, generation=2), 2, "2026-12-01T18:00") == 4
    assert plan(version(raw, 9, generation=2, uid="u2"), 2, "2026-12-01T18:00") == 5


def test_a_plan_follows_the_namespaces() -> None:
    memory, raw = Memory(), stored_policy()
    before = memory.plan(judged(memory, raw), Facts({}, "u"), 1, NOW)
    after = memory.plan(judged(memory, raw), facts("nlp"), 2, NOW)
    assert len(after.objects) == len(before.objects) + 1


# -- Memory: comparing ---------------------------------------------------------------------------


def test_the_same_two_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch, "compare")
    memory = Memory()
    item = memory.plan(policy(), facts("nlp"), 1, NOW).objects[0]
    there = live_of(item)
    assert list(memory.differs(item, there)) == list(memory.differs(item, there)) == []
    assert len(compared) == 1


def test_a_changed_object_is_compared_anew() -> None:
    memory = Memory()
    (queue,) = [i for i in memory.plan(policy(), Facts(), 1, NOW).objects if i.name == "nlp"]
    there = live_of(queue)
    assert not memory.differs(queue, there)
    there["spec"]["fairSharing"] = {"weight": "7"}
    there["metadata"]["resourceVersion"] = "99999"
    assert list(memory.differs(queue, there)) == ["spec.fairSharing.weight"]


def test_a_changed_wish_is_compared_anew() -> None:
    memory = Memory()
    before = memory.plan(policy(), Facts(), 1, NOW).objects
    there = cluster_of(before)
    assert not any(memory.differs(item, there[item.key]) for item in before)
    after = memory.plan(policy(tenants=[tenant(weight=2)]), Facts(), 2, NOW).objects
    changed = [str(item) for item in after if memory.differs(item, there[item.key])]
    assert changed == ["ClusterQueue nlp"]
