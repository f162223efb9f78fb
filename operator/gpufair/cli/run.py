"""The command `run`: the operator itself."""

import asyncio
import logging
from dataclasses import replace

import click

from gpufair.cli import options
from gpufair.errors import GpufairError
from gpufair.settings import Settings


@click.command()
@options.kubeconfig
@click.option("--lease-namespace", help="Namespace of the Lease; default: our own, or `default`.")
@click.option("--health", default="", metavar="HOST:PORT", help="Serve /healthz and /readyz there.")
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def run(
    kubeconfig: str | None,
    context: str | None,
    lease_namespace: str | None,
    health: str,
    verbose: bool,
) -> None:
    """Run the operator until it is stopped.

    Several may run: the holder of the Lease writes, the others stand by.
    """
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("kopf").setLevel(logging.INFO if verbose else logging.WARNING)
    settings = Settings(kubeconfig=kubeconfig, context=context, health=health)
    if lease_namespace:
        settings = replace(settings, lease_namespace=lease_namespace)
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_main(settings))
    except* GpufairError as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[GpufairError]) -> GpufairError:
    """The first failure: groups of tasks lie within groups."""
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop where there is one: at thousands of requests the loop itself is what costs."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


async def _main(settings: Settings) -> None:
    import gc

    import kopf

    from gpufair import handlers  # registers the handlers
    from gpufair.cluster.client import Client
    from gpufair.loops.runtime import Runtime

    del handlers
    async with Client.auto(settings.kubeconfig, settings.context) as client:
        await client.server_version()
        # Caches of many thousand objects live as long as the process: looking through them again
        # and again for garbage costs more than what is found.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        runtime = Runtime(client, settings)
        async with asyncio.TaskGroup() as group:
            loops = group.create_task(runtime.run())
            memo = kopf.Memo(runtime=runtime, task=loops)
            await kopf.operator(clusterwide=True, standalone=True, memo=memo)
