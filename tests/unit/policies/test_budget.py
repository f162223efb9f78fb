"""What a preemption budget has room for."""

from hypothesis import given
from hypothesis import strategies as st

from gpufair.api.tiers import Rate
from gpufair.policies.budget import room

RATE = Rate.model_validate({"count": 2, "per": "100s"})


def test_without_a_budget_there_is_always_room() -> None:
    assert room(None, [1.0, 2.0], 3.0).left
    assert room(None, [], 3.0).next_change is None


def test_old_evictions_are_forgotten() -> None:
    assert room(RATE, [0.0, 10.0], 99.0).left == 0
    assert room(RATE, [0.0, 10.0], 100.0).left == 1


def test_it_says_when_there_is_room_again() -> None:
    assert room(RATE, [0.0, 10.0, 20.0], 50.0).next_change == 110.0


@given(st.lists(st.floats(0, 1000), max_size=12).map(sorted), st.floats(0, 1200))
def test_the_next_change_is_when_there_is_room(evictions: list[float], now: float) -> None:
    past = [at for at in evictions if at <= now]
    found = room(RATE, past, now)
    assert (found.left == 0) == (found.next_change is not None)
    if found.next_change is not None:
        assert room(RATE, past, found.next_change + 0.001).left > 0
        assert room(RATE, past, found.next_change - 0.001).left == 0
