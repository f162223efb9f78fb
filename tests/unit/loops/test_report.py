"""One status write when something changed: conditions at once, counters now and then."""

from typing import Any

import pytest

from gpufair.cluster.errors import ApiError
from gpufair.loops.policies import Memory, PolicyStore
from gpufair.loops.report import COUNTER_PERIOD, Reporter
from gpufair.plan.conditions import FALSE, TRUE, UNKNOWN, Condition
from tests.unit.builders import NOW, stored_policy
from tests.unit.loops.fakes import Clock, FakeClient, FakeRecorder

READY = Condition("Ready", TRUE, "Applied", "All is applied.")
BROKEN = Condition("Ready", FALSE, "ApplyFailed", "It is not.")


class Desk:
    """A reporter with all that it uses."""

    def __init__(self) -> None:
        raw = stored_policy()
        self.client = FakeClient(raw)
        self.store = PolicyStore()
        self.store.put(raw)
        self.recorder = FakeRecorder()
        self.clock = Clock()
        self.memory = Memory()
        client: Any = self.client
        recorder: Any = self.recorder
        self._reporter = Reporter(client, self.store, recorder, self.clock)

    async def report(self, *conditions: Condition, **counters: Any) -> float | None:
        raw = self.store.get("pool")
        assert raw is not None
        return await self._reporter.report(raw, self.memory, conditions, counters, NOW)

    @property
    def writes(self) -> int:
        return len(self.client.statuses)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_the_first_report_is_written_at_once(desk: Desk) -> None:
    assert await desk.report(READY, tenantCount=3) is None
    (status,) = desk.client.statuses
    assert (status["observedGeneration"], status["tenantCount"]) == (1, 3)
    assert [c["type"] for c in status["conditions"]] == ["Ready"]


async def test_the_store_knows_the_written_version(desk: Desk) -> None:
    await desk.report(READY)
    stored = desk.store.get("pool")
    assert stored is not None
    assert stored["status"]["conditions"][0]["reason"] == "Applied"


async def test_the_same_report_again_writes_nothing(desk: Desk) -> None:
    await desk.report(READY, tenantCount=3)
    desk.clock.now += 3600
    assert await desk.report(READY, tenantCount=3) is None
    assert desk.writes == 1


async def test_changed_counters_wait_for_their_time(desk: Desk) -> None:
    await desk.report(READY, tenantCount=3)
    desk.clock.now += 4
    assert await desk.report(READY, tenantCount=4) == COUNTER_PERIOD - 4
    assert desk.writes == 1
    desk.clock.now += 6
    assert await desk.report(READY, tenantCount=4) is None
    assert desk.client.statuses[-1]["tenantCount"] == 4


async def test_changed_conditions_do_not_wait(desk: Desk) -> None:
    await desk.report(READY)
    assert await desk.report(BROKEN) is None
    assert desk.writes == 2


async def test_a_new_generation_is_acknowledged_at_once(desk: Desk) -> None:
    await desk.report(READY)
    raw = desk.store.get("pool")
    assert raw is not None
    metadata = raw["metadata"] | {"generation": 2, "resourceVersion": "999999"}
    desk.store.put({**raw, "metadata": metadata})
    await desk.report(READY)
    assert desk.client.statuses[-1]["observedGeneration"] == 2


async def test_a_wait_that_grows_by_itself_is_no_change(desk: Desk) -> None:
    def tiers(wait: str) -> list[dict[str, Any]]:
        return [{"name": "prod", "pending": 1, "longestWait": wait}]

    await desk.report(READY, tiers=tiers("1m0s"))
    desk.clock.now += 3600
    assert await desk.report(READY, tiers=tiers("61m0s")) is None
    assert desk.writes == 1


async def test_a_counter_that_is_gone_is_a_change(desk: Desk) -> None:
    await desk.report(READY, activeWindows=["day"])
    desk.clock.now += COUNTER_PERIOD
    await desk.report(READY)
    assert "activeWindows" not in desk.client.statuses[-1]


@pytest.mark.parametrize(("status", "reason"), [(404, "NotFound"), (409, "Conflict")])
async def test_a_policy_that_is_gone_or_another_by_now_is_no_failure(
    desk: Desk, status: int, reason: str
) -> None:
    desk.client.refusal = ApiError(status, reason)
    assert await desk.report(READY) is None
    assert desk.recorder.events == []


async def test_other_refusals_are_failures(desk: Desk) -> None:
    desk.client.refusal = ApiError(403, "Forbidden")
    with pytest.raises(ApiError):
        await desk.report(READY)
    assert await desk.report(READY, tenantCount=1) is None
    assert desk.writes == 1


def condition(type_: str, status: str, reason: str = "Reason") -> Condition:
    return Condition(type_, status, reason, "A message.")


@pytest.mark.parametrize(
    ("first", "events"),
    [
        (READY, [("Normal", "Applied")]),
        (BROKEN, [("Warning", "ApplyFailed")]),
        (condition("Valid", TRUE), []),
        (condition("Valid", FALSE), [("Warning", "Reason")]),
        (condition("Conflict", FALSE), []),
        (condition("Conflict", TRUE), [("Warning", "Reason")]),
        (condition("Suspended", FALSE), []),
        (condition("Supported", FALSE), []),
        (condition("FairSharingActive", UNKNOWN), []),
    ],
)
async def test_first_words_are_events_when_they_matter(
    desk: Desk, first: Condition, events: list[tuple[str, str]]
) -> None:
    await desk.report(first)
    assert desk.recorder.events == events


@pytest.mark.parametrize(
    ("second", "events"),
    [
        (Condition("Ready", TRUE, "Applied", "Other words."), []),
        (condition("Ready", TRUE, "Other"), [("Normal", "Other")]),
        (BROKEN, [("Warning", "ApplyFailed")]),
    ],
)
async def test_turning_points_are_events_and_other_words_are_not(
    desk: Desk, second: Condition, events: list[tuple[str, str]]
) -> None:
    await desk.report(READY)
    desk.recorder.events.clear()
    await desk.report(second)
    assert desk.recorder.events == events
    assert desk.writes == 2


async def test_suspension_is_told_without_alarm(desk: Desk) -> None:
    await desk.report(condition("Suspended", FALSE))
    await desk.report(condition("Suspended", TRUE))
    assert desk.recorder.events == [("Normal", "Reason")]
