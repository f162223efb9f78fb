"""The Kubernetes API as gpufair uses it: raw JSON in and out, no models in between."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import urlencode

import orjson

from gpufair.api.kinds import Resource
from gpufair.cluster import credentials
from gpufair.cluster.backoff import Jitter
from gpufair.cluster.connection import Call, Clock, Connection, Sleep
from gpufair.cluster.errors import ApiError, UnreachableError
from gpufair.plan.fieldset import MANAGER

Json = dict[str, Any]
Manifest = Mapping[str, Any]
Validation = Literal["Strict", "Warn", "Ignore"]
Propagation = Literal["Background", "Foreground", "Orphan"]

FIELD_MANAGER: Final = MANAGER
WRITE_VERBS: Final = frozenset(("apply", "create", "patch", "delete"))

_APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"

_BIG: Final = 2**18


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """What the server serves of an API group: versions, best first, and their kinds by version."""

    group: str
    versions: tuple[str, ...]
    preferred: str
    kinds: Mapping[str, frozenset[str]]

    def serves(self, resource: Resource) -> bool:
        """True when this kind exists in the version that the resource names."""
        return resource.kind in self.kinds.get(resource.version, frozenset())


class Client:
    """Requests to one cluster. Use it as an async context manager; it may be shared by tasks.

    Requests are repeated on 429 (as the server asks), on 5xx and on lost connections until
    `retry_for` seconds have passed; then the last failure is raised: ApiError for an answer,
    UnreachableError when there was none (both GpufairErrors with exit code 2). `requests` counts
    what was sent, by (verb, resource), e.g. `("apply", "clusterqueues.kueue.x-k8s.io")`; dry runs
    count as `dry-run`.
    """

    def __init__(
        self,
        load: credentials.Load,
        *,
        retry_for: float = 15.0,
        timeout: float = 30.0,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        jitter: Jitter = random.random,
    ) -> None:
        self.retry_for = retry_for
        self._connection = Connection(
            load, timeout=timeout, sleep=sleep, clock=clock, jitter=jitter
        )

    @classmethod
    def from_kubeconfig(
        cls, path: str | os.PathLike[str] | None = None, context: str | None = None, **options: Any
    ) -> Self:
        """A client for a kubeconfig. Raises NoClusterError when the file does not exist."""
        return cls(credentials.from_kubeconfig(path, context), **options)

    @classmethod
    def in_cluster(cls, **options: Any) -> Self:
        """A client with the service account of the pod it runs in."""
        return cls(credentials.in_cluster(), **options)

    @classmethod
    def auto(
        cls,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        **options: Any,
    ) -> Self:
        """The given kubeconfig, KUBECONFIG, the service account, or ~/.kube/config, in that order.

        Raises NoClusterError (exit code 2) when there is none of them.
        """
        return cls(credentials.auto(kubeconfig, context), **options)

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connection.close()

    @property
    def url(self) -> str:
        """The server's URL, once the client was entered."""
        return self._connection.url

    @property
    def requests(self) -> Counter[tuple[str, str]]:
        """How many requests were sent, by (verb, resource)."""
        return self._connection.requests

    @property
    def configuration(self) -> Any:
        """The kubernetes.aio Configuration in use: host, CA, certificates, tokens."""
        return self._connection.configuration

    @property
    def writes(self) -> int:
        """How many writes were sent so far, dry runs not counted."""
        return sum(count for (verb, _), count in self.requests.items() if verb in WRITE_VERBS)

    # -- reading ---------------------------------------------------------------------------------

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, subresource: str = ""
    ) -> Json:
        """Return one object. Raises ApiError, `is_not_found` when it is not there."""
        path = resource.path(name, namespace, subresource)
        _, found = await self._json(Call("get", _label(resource, subresource), "GET", path))
        return found

    async def list_pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> AsyncIterator[Json]:
        """Yield the list page by page, as the server sent it: `items`, `metadata`.

        Items of a list carry no apiVersion and kind. Raises ApiError with `is_gone` when the
        snapshot that the pages belong to is no longer kept.
        """
        query = {"labelSelector": label_selector, "fieldSelector": field_selector}
        if limit:
            query["limit"] = str(limit)
        while True:
            target = _target(resource.collection(namespace), query)
            _, page = await self._json(Call("list", resource.name, "GET", target))
            yield page
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    async def list_all(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> list[Json]:
        """Return all items of a list, fetched by pages."""
        items: list[Json] = []
        async for page in self.list_pages(
            resource, namespace, label_selector=label_selector, field_selector=field_selector
        ):
            items.extend(page.get("items") or ())
        return items

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        lifetime: float = 300.0,
        idle_timeout: float = 90.0,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of one watch, bookmarks included, until the server ends it, which it
        does after `lifetime` seconds. The first line is empty: the server accepted the watch.

        Nothing is repeated here: ApiError when the watch is refused, UnreachableError when the
        connection is lost or brings nothing for `idle_timeout` seconds (the server sends a
        bookmark about once a minute).
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, round(lifetime))),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        target = _target(resource.collection(namespace), query)
        call = Call("watch", resource.name, "GET", target)
        async with aclosing(self._connection.stream(call, idle_timeout)) as lines:
            async for line in lines:
                yield line

    async def server_version(self, *, retry_for: float | None = 0.0) -> Json:
        """Return the server's /version; by default without repeating, so it tells at once whether
        the server can be reached (UnreachableError names its URL)."""
        call = Call("get", "version", "GET", "/version")
        _, found = await self._json(call, retry_for)
        return found

    async def discover(self, group: str) -> GroupInfo | None:
        """Return versions and kinds of an API group, None when the server does not serve it."""
        try:
            _, found = await self._json(Call("get", "apis", "GET", f"/apis/{group}"))
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        versions = tuple(entry["version"] for entry in found.get("versions") or ())
        kinds: dict[str, frozenset[str]] = {}
        for version in versions:
            call = Call("get", "apis", "GET", f"/apis/{group}/{version}")
            try:
                _, served = await self._json(call)
            except ApiError as error:
                if not error.is_not_found:
                    raise
                served = {}
            kinds[version] = frozenset(
                entry["kind"]
                for entry in served.get("resources") or ()
                if "/" not in entry.get("name", "")
            )
        preferred = (found.get("preferredVersion") or {}).get("version") or ""
        return GroupInfo(group, versions, preferred, kinds)

    # -- writing ---------------------------------------------------------------------------------

    async def apply(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        force: bool = False,
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
        field_validation: Validation = "Strict",
        subresource: str = "",
        retry_for: float | None = None,
    ) -> tuple[int, Json]:
        """Server-side apply; return (201 created or 200 there already, the object).

        With force=False a field that another manager set to another value is an ApiError with
        `is_conflict`. A `metadata.uid` in the manifest makes it a conflict, too, when the object
        is another one or gone.
        """
        metadata = manifest["metadata"]
        path = resource.path(metadata["name"], metadata.get("namespace"), subresource)
        query = {
            "fieldManager": field_manager,
            "force": "true" if force else "false",
            "fieldValidation": field_validation,
        }
        call = Call("apply", _label(resource, subresource), "PATCH", path, content_type=_APPLY)
        return await self._write(call, manifest, query, dry_run=dry_run, retry_for=retry_for)

    async def apply_status(
        self, resource: Resource, manifest: Manifest, *, force: bool = True, dry_run: bool = False
    ) -> tuple[int, Json]:
        """Server-side apply of the status subresource; the manifest has metadata and status."""
        return await self.apply(
            resource, manifest, force=force, dry_run=dry_run, subresource="status"
        )

    async def create(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        dry_run: bool = False,
        field_validation: Validation = "Strict",
        retry_for: float | None = None,
    ) -> Json:
        """Create an object. Raises ApiError, `is_already_exists` when the name is taken."""
        path = resource.collection((manifest.get("metadata") or {}).get("namespace"))
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": field_validation}
        call = Call("create", resource.name, "POST", path, repeatable=False)
        _, made = await self._write(call, manifest, query, dry_run=dry_run, retry_for=retry_for)
        return made

    async def patch_merge(
        self,
        resource: Resource,
        name: str,
        patch: Manifest,
        namespace: str | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: Validation = "Strict",
        retry_for: float | None = None,
    ) -> Json:
        """JSON merge patch; a `metadata.resourceVersion` in it makes it conditional."""
        path = resource.path(name, namespace, subresource)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": field_validation}
        call = Call("patch", _label(resource, subresource), "PATCH", path, content_type=_MERGE)
        _, found = await self._write(call, patch, query, dry_run=dry_run, retry_for=retry_for)
        return found

    async def patch_json(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Manifest],
        namespace: str | None = None,
        *,
        subresource: str = "",
        dry_run: bool = False,
        retry_for: float | None = None,
    ) -> Json:
        """JSON patch (RFC 6902); not repeated when nobody knows whether it arrived."""
        path = resource.path(name, namespace, subresource)
        query = {"fieldManager": FIELD_MANAGER}
        call = Call("patch", _label(resource, subresource), "PATCH", path)
        call.content_type, call.repeatable = _JSON_PATCH, False
        _, found = await self._write(call, operations, query, dry_run=dry_run, retry_for=retry_for)
        return found

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
        retry_for: float | None = None,
    ) -> bool:
        """Delete an object; False when it was gone already.

        With `uid` or `resource_version` only that very object (in that state) is deleted, else
        ApiError with `is_conflict`.
        """
        pairs = {"uid": uid, "resourceVersion": resource_version}
        conditions = {key: value for key, value in pairs.items() if value}
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        if conditions:
            options["preconditions"] = conditions
        call = Call("delete", resource.name, "DELETE", resource.path(name, namespace))
        try:
            await self._write(call, options, {}, dry_run=dry_run, retry_for=retry_for)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    # -- requests --------------------------------------------------------------------------------

    async def _write(
        self,
        call: Call,
        body: Manifest | Sequence[Manifest],
        query: dict[str, str],
        *,
        dry_run: bool,
        retry_for: float | None,
    ) -> tuple[int, Json]:
        if dry_run:
            query["dryRun"] = "All"
            call.verb = "dry-run"
        call.target = _target(call.target, query)
        call.body = orjson.dumps(body)
        return await self._json(call, retry_for)

    async def _json(self, call: Call, retry_for: float | None = None) -> tuple[int, Json]:
        seconds = self.retry_for if retry_for is None else retry_for
        status, body = await self._connection.send(call, seconds)
        found = _parsed(body)
        if not isinstance(found, dict):
            raise UnreachableError(f"What answers at {self.url} is no Kubernetes API server.")
        return status, found


def _label(resource: Resource, subresource: str) -> str:
    return f"{resource.name}/{subresource}" if subresource else resource.name


def _target(path: str, query: Mapping[str, str]) -> str:
    present = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(present)}" if present else path


def _parsed(body: bytes) -> Any:
    """The JSON of an answer, None when it is none. Big lists are read without the collector, which
    would walk all that was parsed so far again and again."""
    pause = len(body) > _BIG and gc.isenabled()
    if pause:
        gc.disable()
    try:
        return orjson.loads(body)
    except ValueError:
        return None
    finally:
        if pause:
            gc.enable()
