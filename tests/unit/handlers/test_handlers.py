"""What Kopf is told, and what it hands over."""

from itertools import islice
from types import SimpleNamespace
from typing import Any

import kopf

from gpufair import handlers


class FakeRuntime:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.gone: list[Any] = []
        self.policy_seen = self.seen.append
        self.policy_gone = self.gone.append


async def test_events_reach_the_runtime() -> None:
    memo = SimpleNamespace(runtime=FakeRuntime())
    for kind in (None, "ADDED", "MODIFIED", "DELETED"):
        raw = {"metadata": {"name": str(kind)}}
        await handlers.policy_event(event={"type": kind, "object": raw}, memo=memo)
    assert [raw["metadata"]["name"] for raw in memo.runtime.seen] == ["None", "ADDED", "MODIFIED"]
    assert [raw["metadata"]["name"] for raw in memo.runtime.gone] == ["DELETED"]


def test_pauses_have_no_end_and_a_cap() -> None:
    pauses = handlers.EndlessPauses()
    assert list(islice(pauses, 6)) == [0.5, 1.0, 2.0, 5.0, 10.0, 10.0]
    assert sum(islice(pauses, 1000)) > 3600


async def test_kopf_keeps_its_hands_off_policies(monkeypatch: Any) -> None:
    async def served(_: Any) -> None:
        return None

    monkeypatch.setattr(handlers, "_kind_is_served", served)
    settings = kopf.OperatorSettings()
    await handlers.configure(
        settings=settings, memo=SimpleNamespace(runtime=SimpleNamespace(client=None))
    )
    assert not settings.posting.enabled
    assert isinstance(settings.networking.error_backoffs, handlers.EndlessPauses)
