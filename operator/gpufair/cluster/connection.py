"""One connection pool to the API server: TLS, tokens, counting, and what is repeated when.

`kubernetes.aio` gives the configuration, the TLS context and the tokens; requests go straight to
aiohttp, because at thousands of objects the generated models cost more than the requests.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import ssl
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio.client.rest import RESTClientObject
from yarl import URL

from gpufair import __version__
from gpufair.cluster.backoff import Backoff, Jitter
from gpufair.cluster.credentials import Load
from gpufair.cluster.errors import ApiError, NoClusterError, UnreachableError, api_error

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]

JSON: Final = "application/json"
_LOST: Final = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(slots=True)
class Call:
    """One request and the rules for repeating it."""

    verb: str
    resource: str
    method: str
    target: str  # path and query
    body: bytes | None = None
    content_type: str = JSON
    repeatable: bool = True  # may be sent again when nobody knows whether it arrived


class Connection:
    """Sends requests to one server and repeats those that failed for the moment.

    `requests` counts what was sent, by verb and resource.
    """

    def __init__(
        self,
        load: Load,
        *,
        timeout: float = 30.0,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        jitter: Jitter = random.random,
    ) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.url = ""
        self.configuration: Any = None
        self._load = load
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, 10.0))
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._transport: tuple[object, ...] = ()
        self._extra: dict[str, Any] = {}
        self._renewal = asyncio.Lock()
        self._generation = 0

    async def send(self, call: Call, retry_for: float) -> tuple[int, bytes]:
        """Send until there is an answer below 400, or no time or no point is left to repeat."""
        backoff = Backoff(cap=5.0, jitter=self._jitter)
        give_up = self._clock() + retry_for
        renewed = False
        while True:
            generation = self._generation
            failure: ApiError | UnreachableError
            try:
                status, body, headers = await self._attempt(call)
            except _LOST as error:
                failure = self._unreachable(error)
                again = call.repeatable or isinstance(error, aiohttp.ClientConnectorError)
                cause: BaseException | None = error
            else:
                if status < 400:
                    return status, body
                failure = api_error(status, body, headers)
                again = _worth_repeating(failure, call.repeatable)
                cause = None
                if status == 401 and not renewed:
                    renewed = True
                    await self._renew(generation)
                    continue
            wait = backoff.pause(failure.retry_after if isinstance(failure, ApiError) else None)
            if not again or self._clock() + wait > give_up:
                raise failure from cause
            await self._sleep(wait)

    async def stream(self, call: Call, idle_timeout: float) -> AsyncGenerator[bytes, None]:
        """Yield the lines of an answer as they come, after an empty one once it has begun.

        Nothing is repeated, but a 401, which reads the credentials again. Raises ApiError for an
        error status, UnreachableError when the connection is lost or silent for `idle_timeout`
        seconds.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=idle_timeout)
        try:
            async with await self._start_stream(call, limits) as response:
                yield b""
                async for line in _lines(response.content):
                    yield line
        except _LOST as error:
            raise self._unreachable(error) from error

    async def close(self) -> None:
        for session in (*self._retired, *filter(None, (self._session,))):
            await session.close()
        self._retired, self._session, self._transport = [], None, ()

    async def _attempt(self, call: Call) -> tuple[int, bytes, Mapping[str, str]]:
        response = await self._start(call, self._timeout)
        async with response:
            return response.status, await response.read(), response.headers

    async def _start(self, call: Call, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("Client is used outside of its context.")
        self.requests[call.verb, call.resource] += 1
        headers = {"Content-Type": call.content_type} if call.body is not None else {}
        if self.configuration.api_key:
            token = await self.configuration.get_api_key_with_prefix(
                "BearerToken", alias="authorization"
            )
            if token:
                headers["Authorization"] = token
        return await self._session.request(
            call.method,
            URL(self.url + call.target, encoded=True),
            data=call.body,
            headers=headers,
            timeout=limits,
            allow_redirects=False,
            **self._extra,
        )

    async def _start_stream(
        self, call: Call, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        for last in (False, True):
            generation = self._generation
            response = await self._start(call, limits)
            if response.status < 400:
                return response
            async with response:
                error = api_error(response.status, await response.read(), response.headers)
            if last or not error.is_unauthorized:
                break
            await self._renew(generation)
        raise error

    def _unreachable(self, error: BaseException) -> UnreachableError:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else _why(error)
        return UnreachableError(
            f"The Kubernetes API server at {self.url} cannot be reached: {why}."
        )

    async def open(self) -> None:
        """Load the configuration; open a session, unless the present one has the same TLS."""
        configuration = await self._load()
        url = str(configuration.host or "").rstrip("/")
        host = urlsplit(url).hostname
        if not host:
            raise NoClusterError("The kubeconfig names no server for its current context.")
        try:
            transport = _transport(configuration, url)
            if transport != self._transport:
                tls = RESTClientObject(configuration).ssl_context
                if self._session is not None:
                    # Others may be in the middle of a request on it.
                    self._retired.append(self._session)
                self._session, self._transport = _new_session(tls), transport
        except OSError as error:
            raise NoClusterError(
                f"The certificates for {url} cannot be used: {_why(error)}."
            ) from error
        self.url, self.configuration = url, configuration
        extra = {
            "server_hostname": configuration.tls_server_name,
            # Looked up once: aiohttp's trust_env would parse the environment at every request.
            "proxy": configuration.proxy or _proxy_of_environment(url, host),
            "proxy_headers": configuration.proxy_headers,
        }
        self._extra = {key: value for key, value in extra.items() if value}
        self._generation += 1

    async def _renew(self, generation: int) -> None:
        """Read the credentials again after a 401, once for all who saw it."""
        async with self._renewal:
            if generation == self._generation:
                await self.open()


def _new_session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=tls),
        headers={
            "Accept": JSON,
            # Compressing big lists costs the server more than a nearby network does.
            "Accept-Encoding": "identity",
            "User-Agent": f"gpufair/{__version__}",
        },
        read_bufsize=2**18,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _transport(configuration: Any, url: str) -> tuple[object, ...]:
    """All that makes up the TLS connection; the same again needs no new session."""
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return (
        url,
        configuration.verify_ssl,
        *(Path(name).read_bytes() if name else b"" for name in files),
    )


def _proxy_of_environment(url: str, host: str) -> str | None:
    if proxy_bypass(host):
        return None
    return getproxies().get(urlsplit(url).scheme)


def _worth_repeating(error: ApiError, repeatable: bool) -> bool:
    if error.status == 429 or (error.status == 503 and error.retry_after is not None):
        return True
    return repeatable and error.status >= 500 and error.status != 501 and not error.is_invalid


def _why(error: BaseException) -> str:
    """The innermost reason of a lost connection, as one phrase."""
    inner = getattr(error, "os_error", None) or error
    text = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    if isinstance(inner, OSError) and inner.errno is not None and inner.errno in errno.errorcode:
        text = os.strerror(inner.errno)
    return " ".join(str(text).split()).rstrip(".")


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Split a stream at newlines; unlike StreamReader.readline without a limit on their length."""
    rest = b""
    async for chunk in content.iter_any():
        if b"\n" not in chunk:
            rest += chunk
            continue
        first, *lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if first:
            yield first
        for line in lines:
            if line:
                yield line
    if rest.strip():
        yield rest
