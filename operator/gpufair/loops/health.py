"""Probes over HTTP: /healthz fails when a watch is stale, /readyz until the view is complete."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from gpufair.errors import GpufairError


class HealthServer:
    """Serves the probes; each check returns what is wrong, an empty list for nothing.

    Entering it raises GpufairError when the address cannot be served.
    """

    def __init__(
        self,
        address: tuple[str, int],
        healthy: Callable[[], list[str]],
        ready: Callable[[], list[str]],
    ) -> None:
        self._address = address
        self._checks = {"/healthz": healthy, "/readyz": ready}
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "HealthServer":
        app = web.Application()
        for path, check in self._checks.items():
            app.router.add_get(path, _handler(check))
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, *self._address).start()
        except OSError as error:
            await self._runner.cleanup()
            host, port = self._address
            raise GpufairError(f"--health: {host}:{port} cannot be served: {error}.") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port that is served, also where 0 was asked for."""
        assert self._runner is not None
        return int(self._runner.addresses[0][1])


def _handler(
    check: Callable[[], list[str]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(_: web.Request) -> web.StreamResponse:
        wrong = check()
        return web.Response(text="\n".join(wrong) or "ok", status=503 if wrong else 200)

    return handle
