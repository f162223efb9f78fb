"""Kopf's part: it watches the policies and hands them to the runtime, no more.

`on.event` only: Kopf's diff base would copy a policy into an annotation, and a policy of a
thousand tenants does not fit there. `kopf run -m gpufair.handlers` works as `gpufair run` does.
"""

import asyncio
import logging
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import kopf

from gpufair.api.kinds import GPU_SCHEDULING_POLICY
from gpufair.api.policy import GROUP, VERSION
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ClusterError
from gpufair.handlers.login import connection_info
from gpufair.loops.runtime import Runtime
from gpufair.settings import Settings

log = logging.getLogger(__name__)

_KIND_RETRY = 2.0


class EndlessPauses:
    """Seconds between attempts to reach the API server: growing, and without an end.

    Kopf's own list ends after a minute and a half, and the operator with it. An API server that is
    away for an hour is no reason to lose the view of the cluster.
    """

    def __iter__(self) -> Iterator[float]:
        return chain((0.5, 1.0, 2.0, 5.0), repeat(10.0))


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: Any, **_: Any) -> None:
    """Keep Kopf's hands off the objects, and start the runtime unless somebody runs it already."""
    settings.posting.enabled = False
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 360
    settings.peering.standalone = True
    settings.networking.error_backoffs = EndlessPauses()
    if getattr(memo, "runtime", None) is None:
        memo.client = await Client.auto().__aenter__()
        memo.runtime = Runtime(memo.client, Settings())
        memo.task = asyncio.create_task(memo.runtime.run())
        memo.task.add_done_callback(_ended)
    await _kind_is_served(memo.runtime.client)


@kopf.on.cleanup()
async def stop(memo: Any, **_: Any) -> None:
    """Stop the runtime: Kopf would wait for its tasks for a while, and then cancel them itself."""
    task = getattr(memo, "task", None)
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
    client = getattr(memo, "client", None)
    if client is not None:
        await client.__aexit__(None, None, None)


@kopf.on.login()
async def login(memo: Any, **_: Any) -> kopf.ConnectionInfo:
    """Use the connection that the runtime uses."""
    return await connection_info(memo.runtime.client)


@kopf.on.event(GROUP, VERSION, "gpuschedulingpolicies")
async def policy_event(event: Any, memo: Any, **_: Any) -> None:
    """Hand a policy over."""
    raw = dict(event["object"])
    if event["type"] == "DELETED":
        memo.runtime.policy_gone(raw)
    else:
        memo.runtime.policy_seen(raw)


async def _kind_is_served(client: Client) -> None:
    """Wait until policies can be watched.

    Kopf looks for the kind once, and again at the moment that its CRD appears; the API server may
    serve it a little later, and Kopf would then never know.
    """
    told = False
    while not await _serves_policies(client):
        if not told:
            log.warning("There is no kind GpuSchedulingPolicy yet: install it with gpufair crd.")
            told = True
        await asyncio.sleep(_KIND_RETRY)


async def _serves_policies(client: Client) -> bool:
    try:
        group = await client.discover(GROUP)
    except ClusterError:
        return False  # the runtime's own watches tell of an API server that does not answer
    return group is not None and group.serves(GPU_SCHEDULING_POLICY)


def _ended(task: "asyncio.Task[None]") -> None:
    # An operator without its loops must not look alive.
    if not task.cancelled() and task.exception() is not None:
        log.critical("The operator's loops have failed.", exc_info=task.exception())
        asyncio.get_running_loop().stop()
