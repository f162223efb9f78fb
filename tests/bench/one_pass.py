"""Prints how long a fresh process takes to reconcile a policy, its view being complete."""

import asyncio
import sys
import time

from gpufair.api.kinds import GPU_SCHEDULING_POLICY
from gpufair.cluster.client import Client
from gpufair.loops.runtime import Runtime
from gpufair.settings import Settings


async def main(kubeconfig: str, name: str) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        runtime = Runtime(client, Settings(lease_name="gpufair-bench"))
        loops = asyncio.create_task(runtime.run())
        await runtime.leading()
        runtime.store.put(await client.get(GPU_SCHEDULING_POLICY, name))
        started = time.perf_counter()
        await runtime.reconciler.reconcile(name)
        print(time.perf_counter() - started)
        loops.cancel()
        await asyncio.wait([loops])


asyncio.run(main(*sys.argv[1:3]))
