"""The probes: 200 with `ok`, or 503 with what is wrong."""

import aiohttp
import pytest

from gpufair.loops.health import HealthServer


async def ask(path: str, healthy: list[str], ready: list[str]) -> tuple[int, str]:
    server = HealthServer(("127.0.0.1", 0), lambda: healthy, lambda: ready)
    async with server, aiohttp.ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{server.port}{path}")
        return answer.status, await answer.text()


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_ok_when_nothing_is_wrong(path: str) -> None:
    assert await ask(path, [], []) == (200, "ok")


async def test_each_probe_says_what_is_wrong_with_it() -> None:
    assert await ask("/healthz", ["stale: jobs", "stale: pods"], []) == (
        503,
        "stale: jobs\nstale: pods",
    )
    assert await ask("/healthz", [], ["not yet"]) == (200, "ok")
    assert await ask("/readyz", [], ["not yet"]) == (503, "not yet")


async def test_nothing_else_is_served() -> None:
    assert (await ask("/", [], []))[0] == 404
