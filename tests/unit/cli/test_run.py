"""run: what is told of a failure deep in the operator's tasks."""

import asyncio
from typing import Any

import pytest

from gpufair.cli import run as module
from gpufair.errors import GpufairError
from gpufair.settings import Settings
from tests.unit.cli.conftest import Run


def started(monkeypatch: pytest.MonkeyPatch, *failures: Exception, depth: int = 0) -> list[Any]:
    """Run no operator; note the settings, and fail within so many groups of tasks."""
    seen: list[Any] = []

    async def nested(left: int) -> None:
        if left:
            async with asyncio.TaskGroup() as group:
                group.create_task(nested(left - 1))
        for failure in failures:
            raise failure

    async def main(settings: Settings) -> None:
        seen.append(settings)
        await nested(depth)

    monkeypatch.setattr(module, "_main", main)
    return seen


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_failure_is_told_as_it_is_however_deep(
    run: Run, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    started(monkeypatch, GpufairError("It is broken."), depth=depth)
    result = run("run")
    assert isinstance(result.exception, GpufairError)
    assert str(result.exception) == "It is broken."


def test_our_own_faults_keep_their_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started(monkeypatch, KeyError("bug"), depth=1)
    assert isinstance(run("run").exception, ExceptionGroup)


def test_options_become_settings(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUFAIR_NAMESPACE", "from-env")
    (seen,) = _settings(run, monkeypatch)
    assert seen == Settings(lease_namespace="from-env")
    (seen,) = _settings(
        run,
        monkeypatch,
        *("--kubeconfig", "k", "--context", "c", "--health", "127.0.0.1:1"),
        *("--lease-namespace", "n"),
    )
    assert seen == Settings("k", "c", "n", health="127.0.0.1:1")


def _settings(run: Run, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[Any]:
    seen = started(monkeypatch)
    assert run("run", *arguments).exit_code == 0
    return seen
