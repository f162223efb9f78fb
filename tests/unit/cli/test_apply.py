"""apply: what is sent, what is waited for, and how it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gpufair.cli import connect
from gpufair.cluster.errors import ApiError
from gpufair.errors import GpufairError
from tests.unit.builders import Json
from tests.unit.cli.conftest import Run, Write


class Server:
    """Takes policies at generation 2; each look at one finds the next status of `story`."""

    def __init__(self) -> None:
        self.applied: list[Json] = []
        self.options: list[Json] = []
        self.story: list[Json] = []
        self.status = 201
        self.refusal: ApiError | None = None

    async def apply(self, resource: Any, manifest: Json, **options: Any) -> tuple[int, Json]:
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(manifest)
        self.options.append(options)
        return self.status, {"metadata": manifest["metadata"] | {"generation": 2}}

    async def get(self, resource: Any, name: str) -> Json:
        found = self.story.pop(0) if len(self.story) > 1 else (self.story or [{}])[0]
        return {"metadata": {"name": name}, "status": found}


def ready(status: str, reason: str, generation: int = 2) -> Json:
    found = {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": f"It is {reason}.",
        "observedGeneration": generation,
    }
    return {"conditions": [found]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()

    def with_client(_: Any, __: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            return await work(found)

        return asyncio.run(run())

    monkeypatch.setattr(connect, "with_client", with_client)
    return found


def test_the_policy_is_sent_as_it_was_written(run: Run, write: Write, server: Server) -> None:
    result = run("apply", "-f", write("bank", queueName="h100s"), "--no-wait")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "bank: created\n"
    (manifest,) = server.applied
    assert manifest["metadata"] == {"name": "bank"}
    assert manifest["spec"]["queueName"] == "h100s"
    assert "defaultQueue" not in manifest["spec"]
    assert "status" not in manifest
    assert server.options[0]["field_manager"] == "gpufair-cli"


def test_it_waits_until_ready_and_tells_each_state_once(
    run: Run, write: Write, server: Server
) -> None:
    server.status = 200
    waiting = ready("False", "QueuesInactive")
    server.story = [{}, ready("True", "Applied", generation=1), waiting, waiting, _applied()]
    result = run("apply", "-f", write())
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "pool: applied",
        "pool: waiting for the operator",
        "pool: QueuesInactive: It is QueuesInactive.",
        "pool: Applied: It is Applied.",
    ]


def _applied() -> Json:
    return ready("True", "Applied")


def test_a_policy_that_the_operator_finds_invalid_is_exit_1(
    run: Run, write: Write, server: Server
) -> None:
    server.story = [ready("False", "Invalid")]
    result = run("apply", "-f", write())
    assert result.exit_code == 1
    assert "pool: Invalid: It is Invalid." in result.stderr


def test_without_an_operator_the_wait_ends_with_a_hint(
    run: Run, write: Write, server: Server
) -> None:
    result = run("apply", "-f", write(), "--timeout", "0.01")
    assert str(result.exception) == (
        "pool is not Ready after 0.01 s: waiting for the operator. "
        "Is the operator running (gpufair run)?"
    )


def test_what_is_waited_for_is_told_at_the_end(run: Run, write: Write, server: Server) -> None:
    server.story = [ready("False", "Conflict")]
    result = run("apply", "-f", write(), "--timeout", "0.01")
    assert str(result.exception) == "pool is not Ready after 0.01 s: Conflict: It is Conflict."


def test_without_the_crd_it_says_how_to_install_it(run: Run, write: Write, server: Server) -> None:
    server.refusal = ApiError(404, "NotFound")
    result = run("apply", "-f", write())
    assert isinstance(result.exception, GpufairError)
    assert "gpufair crd | kubectl apply" in str(result.exception)
    assert result.exception.exit_code == 2


def test_an_invalid_policy_is_not_sent(run: Run, write: Write, server: Server) -> None:
    result = run("apply", "-f", write("good"), "-f", write("bad", tiers=[]))
    assert isinstance(result.exception, GpufairError)
    assert server.applied == []


def test_several_are_applied_one_after_the_other(run: Run, write: Write, server: Server) -> None:
    server.story = [_applied()]
    result = run("apply", "-f", write("a"), "-f", write("b"))
    assert result.exit_code == 0
    assert [m["metadata"]["name"] for m in server.applied] == ["a", "b"]
