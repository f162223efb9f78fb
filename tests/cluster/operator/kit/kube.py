"""A plain client of the API server for tests: no code of the operator's own is between."""

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from gpufair.api.kinds import Resource, resource_of

Json = dict[str, Any]
MANAGER = "tests"
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"


class RefusedError(Exception):
    """An answer with a status of 400 and above; `message` is the server's own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Kube:
    """Requests as the user of a kubeconfig's first context."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        server = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        address = urlsplit(server["server"])
        assert address.hostname is not None
        self._address = (address.hostname, address.port or 443)
        self._tls = _tls(server, user)
        self._headers = {"Accept": "application/json", "User-Agent": "gpufair-tests"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        self._connection: http.client.HTTPSConnection | None = None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        """Send one request, once more when a kept connection turns out to be closed."""
        given = {k: v for k, v in (query or {}).items() if v}
        target = f"{path}?{urlencode(given)}" if given else path
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": content_type} if data is not None else {})
        status, raw = self._send(method, target, data, headers)
        found: Json = json.loads(raw) if raw[:1] == b"{" else {"message": raw.decode()}
        if status >= 400:
            raise RefusedError(status, found.get("message", ""))
        return found

    def find(self, resource: Resource, name: str, namespace: str = "") -> Json | None:
        """Return an object, None when there is none."""
        try:
            return self.request("GET", resource.path(name, namespace))
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    def get(self, resource: Resource, name: str, namespace: str = "") -> Json:
        return self.request("GET", resource.path(name, namespace))

    def list(self, resource: Resource, namespace: str = "", selector: str = "") -> list[Json]:
        query = {"labelSelector": selector}
        items: list[Json] = self.request("GET", resource.collection(namespace), None, query)[
            "items"
        ]
        return items

    def create(self, manifest: Json) -> Json:
        resource, namespace = _place(manifest)
        return self.request("POST", resource.collection(namespace), manifest)

    def apply(self, manifest: Json, manager: str = MANAGER) -> Json:
        """Server-side apply, by force."""
        resource, namespace = _place(manifest)
        path = resource.path(manifest["metadata"]["name"], namespace)
        query = {"fieldManager": manager, "force": "true", "fieldValidation": "Strict"}
        return self.request("PATCH", path, manifest, query, _APPLY)

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        namespace: str = "",
        subresource: str = "",
    ) -> Json:
        """JSON merge patch, as `kubectl edit` would do it."""
        path = resource.path(name, namespace, subresource)
        return self.request("PATCH", path, patch, {"fieldManager": MANAGER}, _MERGE)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete an object; what is gone already is no error."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        with suppress(RefusedError):
            self.request("DELETE", resource.path(name, namespace), options)

    def _send(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        for last in (False, True):
            if self._connection is None:
                host, port = self._address
                self._connection = http.client.HTTPSConnection(
                    host, port, timeout=30, context=self._tls
                )
            try:
                self._connection.request(method, target, data, dict(headers))
                answer = self._connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException):
                self._connection.close()
                self._connection = None
                if last:
                    raise
                continue
            if answer.status == 429:
                # The server has just (re)built its cache of a kind.
                time.sleep(float(answer.headers.get("Retry-After", 1)))
                continue
            return answer.status, body
        raise RefusedError(429, "too many requests")


def _place(manifest: Json) -> tuple[Resource, str]:
    resource = resource_of(manifest["apiVersion"], manifest["kind"])
    return resource, manifest["metadata"].get("namespace", "")


def _tls(server: Json, user: Json) -> ssl.SSLContext:
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    if "client-certificate-data" in user:
        with tempfile.NamedTemporaryFile() as pair:
            pair.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            context.load_cert_chain(pair.name)
    return context
