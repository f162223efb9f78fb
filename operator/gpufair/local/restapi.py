"""A small synchronous client of the API server, for the few requests that `up` makes."""

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufair.errors import GpufairError

Manifest = dict[str, Any]

_TIMEOUT = 30.0
_AGAIN = 0.2


class UnreachableError(GpufairError):
    """The API server did not answer a request."""


@dataclass(frozen=True)
class Response:
    """The status and the JSON or text body of an answer."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether the status is a 2xx."""
        return 200 <= self.status < 300


class RestApi:
    """Requests to `127.0.0.1:port`; safe to use from several threads, a connection for each."""

    def __init__(self, port: int, ca: Path, client: Path | None = None) -> None:
        """`client` is the path of a certificate, with its key beside it as `.key`."""
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(ca))
        if client:
            self._tls.load_cert_chain(client, client.with_suffix(".key"))
        self._local = threading.local()

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Response:
        """Send one request; raise `UnreachableError` when there is no answer.

        An answer of 429 (a kind that has just been added, for example) is asked for again for up
        to half a minute, and only then returned.
        """
        deadline = time.monotonic() + _TIMEOUT
        while True:
            response = self._once(method, path, body, content_type)
            if response.status != 429 or time.monotonic() >= deadline:
                return response
            time.sleep(_AGAIN)

    def _once(self, method: str, path: str, body: Any, content_type: str) -> Response:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "gpufair-local"}
        if data is not None:
            headers["Content-Type"] = content_type
        reused = hasattr(self._local, "connection")
        try:
            return self._send(method, path, data, headers)
        except (OSError, http.client.HTTPException) as error:
            self._local.connection.close()
            del self._local.connection
            if reused:
                # The server has restarted since this connection was made.
                return self._once(method, path, body, content_type)
            raise UnreachableError(
                f"The API server does not answer on 127.0.0.1:{self._port} ({error})."
            ) from error

    def _send(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> Response:
        connection = self._connection()
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        raw = answer.read()
        is_json = "json" in answer.headers.get("Content-Type", "")
        return Response(answer.status, json.loads(raw) if is_json else raw.decode())

    def get(self, path: str) -> Any:
        """Return an object or a list; raise `GpufairError` with the server's reason."""
        return _checked(self.request("GET", path), f"Reading {path}")

    def create_or_replace(self, manifest: Manifest) -> None:
        """Create an object, or put it in the place of the one that has its name."""
        path = collection_path(manifest)
        created = self.request("POST", path, manifest)
        if created.status != 409:
            _checked(created, _described("Creating", manifest))
            return
        path = f"{path}/{manifest['metadata']['name']}"
        present = self.get(path)
        version = present["metadata"]["resourceVersion"]
        metadata = manifest["metadata"] | {"resourceVersion": version}
        replaced = self.request("PUT", path, manifest | {"metadata": metadata})
        _checked(replaced, _described("Replacing", manifest))

    def _connection(self) -> http.client.HTTPSConnection:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self._port, timeout=_TIMEOUT, context=self._tls
            )
            self._local.connection = connection
        return connection


def collection_path(manifest: Manifest) -> str:
    """Return the URL path of the collection that an object belongs to."""
    version = manifest["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    if namespace:
        base += f"/namespaces/{namespace}"
    return f"{base}/{_plural(manifest['kind'])}"


def _plural(kind: str) -> str:
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _described(verb: str, manifest: Manifest) -> str:
    return f"{verb} {manifest['kind']} {manifest['metadata']['name']}"


def _checked(response: Response, what: str) -> Any:
    if response.ok:
        return response.body
    body = response.body
    reason = body.get("message", body) if isinstance(body, dict) else body
    raise GpufairError(f"{what} failed with status {response.status}: {reason}")
