"""A local cluster for measurements: bare requests, request counts, the operator as a process."""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import aiohttp

from gpufair.api.kinds import NAMESPACE, Resource
from gpufair.cluster.client import Client
from gpufair.plan.objects import Desired

_WRITES = frozenset(("APPLY", "PATCH", "POST", "PUT", "DELETE"))
_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


async def send_bare(client: Client, objects: Iterable[Desired], workers: int) -> float:
    """Send objects as a bare client does, kind by kind; return the seconds it took.

    Bodies are encoded beforehand: what is timed is the server and nothing else.
    """
    waves = [
        [(item.resource.path(item.name, item.namespace or None), _body(item)) for item in wave]
        for _, wave in groupby(objects, lambda item: item.resource)
    ]
    configuration = client.configuration
    connector = aiohttp.TCPConnector(limit=workers, ssl=_tls(configuration))
    async with aiohttp.ClientSession(connector=connector) as session:
        started = time.perf_counter()
        for wave in waves:
            await _send(session, configuration.host, wave, workers)
        return time.perf_counter() - started


def _tls(configuration: Any) -> Any:
    import ssl

    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context


def _body(item: Desired) -> bytes:
    return json.dumps(item.manifest, separators=(",", ":")).encode()


async def _send(
    session: aiohttp.ClientSession, host: str, wave: list[tuple[str, bytes]], workers: int
) -> None:
    queue = iter(wave)

    async def work() -> None:
        for path, body in queue:
            async with session.patch(
                f"{host}{path}?fieldManager=bare&force=true",
                data=body,
                headers={"Content-Type": "application/apply-patch+yaml"},
            ) as response:
                answer = await response.read()
                assert response.status in (200, 201), answer

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())


async def make_namespaces(client: Client, names: list[str]) -> None:
    """Create namespaces and wait until the controllers are through with them."""
    queue = iter(names)

    async def work() -> None:
        for name in queue:
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await client.apply(NAMESPACE, manifest, force=True)

    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(work())
    accounts = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
    await until(lambda: count(client, accounts), lambda found: found >= len(names), 300)


async def remove_all(client: Client, resource: Resource, namespaces: Iterable[str] = ("",)) -> None:
    """Delete every object of a kind and wait until none is left."""
    found = await client.list_all(resource)
    queue = iter(found)

    async def work() -> None:
        for item in queue:
            metadata = item["metadata"]
            await client.delete(resource, metadata["name"], metadata.get("namespace"))

    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(work())
    await until(lambda: count(client, resource), lambda left: left == 0, 300)


async def count(client: Client, resource: Resource) -> int:
    """How many objects of a kind there are, by the cheapest request that tells."""
    async for page in client.list_pages(resource, limit=1):
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)
    return 0


async def until(
    look: Callable[[], Any], done: Callable[[Any], bool], seconds: float, pause: float = 0.05
) -> float:
    """Look until it is done; return the seconds it took. Raises TimeoutError after `seconds`."""
    started = time.perf_counter()
    async with asyncio.timeout(seconds):
        while not done(await look()):
            await asyncio.sleep(pause)
    return time.perf_counter() - started


async def _metrics(client: Client) -> str:
    connector = aiohttp.TCPConnector(ssl=_tls(client.configuration))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(client.url + "/metrics") as response,
    ):
        return await response.text()


async def writes(client: Client, kinds: Iterable[str]) -> Counter[str]:
    """Writes that the API server has seen so far, by kind (plural); subresources left out."""
    text = await _metrics(client)
    wanted, found = set(kinds), Counter[str]()
    for labels, value in _SAMPLE.findall(text):
        named = dict(_LABEL.findall(labels))
        if (
            named.get("resource") in wanted
            and not named.get("subresource")
            and named.get("verb") in _WRITES
        ):
            found[named["resource"]] += int(float(value))
    return found


async def settled(client: Client, seconds: float = 300) -> None:
    """Wait until Kueue has stopped writing: no status write for three seconds."""
    last, since = -1.0, time.perf_counter()

    async def total() -> float:
        text = await _metrics(client)
        return sum(
            float(value)
            for labels, value in _SAMPLE.findall(text)
            if 'group="kueue.x-k8s.io"' in labels
            and ('verb="PATCH"' in labels or 'verb="PUT"' in labels)
        )

    async with asyncio.timeout(seconds):
        while time.perf_counter() - since < 3.0:
            now = await total()
            if now != last:
                last, since = now, time.perf_counter()
            await asyncio.sleep(0.5)


@contextlib.contextmanager
def operator(kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The operator as a process of its own, as users run it."""
    with tempfile.NamedTemporaryFile(prefix="gpufair-bench-", suffix=".log") as log:
        command = [sys.executable, "-m", "gpufair", "run", "--kubeconfig", str(kubeconfig)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_text(Path(log.name), "view of the cluster is complete", process)
            yield process
        finally:
            process.terminate()
            process.wait(30)


def wait_for_text(log: Path, text: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while text not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"The operator does not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


@contextlib.asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as client:
        yield client
