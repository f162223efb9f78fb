"""How commands reach a cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gpufair.cluster.client import Client
from gpufair.errors import GpufairError

T = TypeVar("T")


def with_client(
    kubeconfig: str | None, context: str | None, work: Callable[[Client], Awaitable[T]]
) -> T:
    """Run `work` with a client that has reached its server, and return what it returns.

    Raises ClusterError (exit code 2) when no cluster is configured or it does not answer.
    """

    async def run() -> T:
        async with Client.auto(kubeconfig, context) as client:
            await client.server_version()
            return await work(client)

    return asyncio.run(run())


def kind_unknown() -> GpufairError:
    """The failure of a command that needs the CRD, on a cluster without it."""
    return GpufairError(
        "the cluster does not know GpuSchedulingPolicy: install it with "
        "`gpufair crd | kubectl apply --server-side -f -`.",
        exit_code=2,
    )
