"""Writes a batch of objects: waves in order, a bounded number at once, one outcome for each.

Writes are server-side applies. What is new to us is sent without force and only for objects that do
not exist, so that what somebody else has under that name is never touched; what is ours is sent
with force, tied to the uid that we know.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from gpufair.api.kinds import Resource
from gpufair.cluster.client import FIELD_MANAGER, Client, Json
from gpufair.cluster.errors import ApiError, ClusterError
from gpufair.errors import GpufairError
from gpufair.plan.fieldset import owned_fields

Gate = Callable[[], Awaitable[None]]
Manifest = Mapping[str, Any]

ORPHAN_MANAGER: Final = "gpufair-released"
_REMEMBERED: Final = 20_000


class Verb(StrEnum):
    APPLY = "apply"
    DELETE = "delete"
    RELEASE = "release"


class Result(StrEnum):
    """What became of an operation."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    RELEASED = "released"
    CONFLICT = "conflict"  # somebody else's object, or fields
    STALE = "stale"  # changed or gone since it was read; the next pass sees it
    ERROR = "error"
    SKIPPED = "skipped"  # an earlier wave that it depends on did not succeed


SUCCEEDED: Final = frozenset(
    (Result.CREATED, Result.CONFIGURED, Result.UNCHANGED, Result.DELETED, Result.RELEASED)
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One write. Use the class methods; `uid` and `resource_version` are those last seen."""

    verb: Verb
    resource: Resource
    name: str
    namespace: str | None = None
    manifest: Manifest | None = None
    ours: bool = False
    uid: str | None = None
    resource_version: str | None = None

    @classmethod
    def create(cls, resource: Resource, manifest: Manifest) -> Operation:
        """Apply an object that nobody is known to have."""
        name, namespace = _identity(manifest)
        return cls(Verb.APPLY, resource, name, namespace, manifest)

    @classmethod
    def update(
        cls,
        resource: Resource,
        manifest: Manifest,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> Operation:
        """Apply an object that is ours (or that asks to be adopted)."""
        name, namespace = _identity(manifest)
        return cls(Verb.APPLY, resource, name, namespace, manifest, True, uid, resource_version)

    @classmethod
    def delete(
        cls, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None
    ) -> Operation:
        """Delete an object of ours, if it is still the one with this uid."""
        return cls(Verb.DELETE, resource, name, namespace, uid=uid)

    @classmethod
    def release(
        cls,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        keep: Manifest | None = None,
        uid: str | None = None,
    ) -> Operation:
        """Give up our fields of an object that stays.

        What only we own disappears with that, so the fields that shall stay go into `keep`: they
        are first handed to the field manager `gpufair-released`.
        """
        return cls(Verb.RELEASE, resource, name, namespace, keep, True, uid)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one operation; `message` is one sentence unless all went well."""

    operation: Operation
    result: Result
    message: str = ""
    object: Json | None = None

    @property
    def ok(self) -> bool:
        return self.result in SUCCEEDED


@dataclass(frozen=True, slots=True)
class Wave:
    """Operations that may run in any order. With `needs_success` they are skipped unless all
    operations of the earlier waves succeeded."""

    operations: Collection[Operation]
    needs_success: bool = False


@dataclass(slots=True)
class Report:
    """All outcomes, in the order of the operations."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(outcome.ok for outcome in self.outcomes)

    @property
    def failed(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if not outcome.ok]

    @property
    def conflicts(self) -> list[Outcome]:
        return [one for one in self.outcomes if one.result is Result.CONFLICT]

    @property
    def counts(self) -> Counter[Result]:
        return Counter(outcome.result for outcome in self.outcomes)


class Applier:
    """Executes waves of operations with a client.

    `gate`, when given, is awaited before every write and raises a GpufairError when we may not
    write (any more); the operation then fails with its message. Keep one Applier for the life of
    the client: it remembers what it created, so that an object made a moment ago, not yet in
    anybody's cache, is not taken for somebody else's.
    """

    def __init__(
        self,
        client: Client,
        *,
        workers: int = 16,
        gate: Gate | None = None,
        dry_run: bool = False,
        retry_for: float = 5.0,
    ) -> None:
        self._client = client
        self._workers = max(1, workers)
        self._gate = gate
        self._dry_run = dry_run
        self._retry_for = retry_for
        self._made: OrderedDict[str, None] = OrderedDict()

    async def run(
        self,
        waves: Iterable[Wave | Collection[Operation]],
        *,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> Report:
        """Run wave after wave; one failed operation stops no other of its wave."""
        report = Report()
        for given in waves:
            wave = given if isinstance(given, Wave) else Wave(given)
            if wave.needs_success and not report.ok:
                skipped = "An earlier step did not succeed."
                done = [Outcome(one, Result.SKIPPED, skipped) for one in wave.operations]
                if on_outcome is not None:
                    for outcome in done:
                        on_outcome(outcome)
            else:
                done = await self._wave(wave.operations, on_outcome)
            report.outcomes.extend(done)
        return report

    async def _wave(
        self, operations: Collection[Operation], on_outcome: Callable[[Outcome], None] | None
    ) -> list[Outcome]:
        outcomes: list[Outcome | None] = [None] * len(operations)
        queue = iter(enumerate(operations))

        async def work() -> None:
            for index, operation in queue:
                outcome = await self._execute(operation)
                outcomes[index] = outcome
                if on_outcome is not None:
                    on_outcome(outcome)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._workers, len(operations))):
                group.create_task(work())
        return [outcome for outcome in outcomes if outcome is not None]

    async def _execute(self, operation: Operation) -> Outcome:
        try:
            if self._gate is not None:
                await self._gate()
            if operation.verb is Verb.DELETE:
                return await self._delete(operation)
            if operation.verb is Verb.RELEASE:
                return await self._release(operation)
            if operation.ours:
                return await self._update(operation)
            return await self._create(operation)
        except ApiError as error:
            return _refused(operation, error)
        except GpufairError as error:
            return Outcome(operation, Result.ERROR, str(error))

    async def _create(self, operation: Operation) -> Outcome:
        manifest = _manifest(operation)
        # Version 0 of an object that exists is refused for custom resources: a create that never
        # touches what is there. Kinds that allow unconditional updates ignore it.
        metadata = {**manifest["metadata"], "resourceVersion": "0"}
        try:
            status, made = await self._apply(operation, {**manifest, "metadata": metadata})
        except ApiError as error:
            if error.is_conflict or (error.is_invalid and "resourceVersion" in error.message):
                return await self._met(operation, error)
            raise
        uid = made["metadata"].get("uid", "")
        if status == 201:
            self._remember(uid)
            return Outcome(operation, Result.CREATED, object=made)
        if uid in self._made or not foreign_managers(made, manifest):
            return Outcome(operation, Result.CONFIGURED, object=made)
        await self._drop_fields(operation, uid)
        return Outcome(operation, Result.CONFLICT, _taken(operation), made)

    async def _met(self, operation: Operation, error: ApiError) -> Outcome:
        """A create met an object: ours, not yet in the caller's cache, or somebody else's."""
        try:
            live = await self._client.get(operation.resource, operation.name, operation.namespace)
        except ApiError as gone:
            if gone.is_not_found:
                raise error from None
            raise
        if owned_fields(live) is None:
            return Outcome(operation, Result.CONFLICT, _taken(operation), live)
        metadata = live["metadata"]
        return await self._update(
            replace(
                operation,
                ours=True,
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        )

    async def _update(self, operation: Operation) -> Outcome:
        manifest = _manifest(operation)
        if operation.uid:
            metadata = {**manifest["metadata"], "uid": operation.uid}
            manifest = {**manifest, "metadata": metadata}
        status, made = await self._apply(operation, manifest, force=True)
        metadata = made["metadata"]
        if status == 201:
            self._remember(metadata.get("uid", ""))
            return Outcome(operation, Result.CREATED, object=made)
        known = operation.resource_version
        same = known is not None and metadata.get("resourceVersion") == known
        return Outcome(operation, Result.UNCHANGED if same else Result.CONFIGURED, object=made)

    async def _delete(self, operation: Operation) -> Outcome:
        there = await self._client.delete(
            operation.resource,
            operation.name,
            operation.namespace,
            uid=operation.uid,
            dry_run=self._dry_run,
            retry_for=self._retry_for,
        )
        return Outcome(operation, Result.DELETED if there else Result.UNCHANGED)

    async def _release(self, operation: Operation) -> Outcome:
        uid = operation.uid
        if uid is None:
            try:
                live = await self._client.get(
                    operation.resource, operation.name, operation.namespace
                )
            except ApiError as error:
                if error.is_not_found:
                    return Outcome(operation, Result.UNCHANGED)
                raise
            uid = live["metadata"]["uid"]
        if operation.manifest is not None:
            metadata = {**operation.manifest["metadata"], "uid": uid}
            kept = {**operation.manifest, "metadata": metadata}
            await self._apply(operation, kept, force=True, field_manager=ORPHAN_MANAGER)
        released = await self._drop_fields(operation, uid)
        return Outcome(operation, Result.RELEASED, object=released)

    async def _drop_fields(self, operation: Operation, uid: str) -> Json:
        """An empty apply: the server removes what only we own, and forgets us. The uid keeps it
        from creating an object that was deleted meanwhile."""
        metadata = {"name": operation.name, "uid": uid}
        if operation.namespace:
            metadata["namespace"] = operation.namespace
        _, left = await self._apply(
            operation,
            {
                "apiVersion": operation.resource.api_version,
                "kind": operation.resource.kind,
                "metadata": metadata,
            },
        )
        return left

    async def _apply(
        self,
        operation: Operation,
        manifest: Manifest,
        *,
        force: bool = False,
        field_manager: str = FIELD_MANAGER,
    ) -> tuple[int, Json]:
        return await self._client.apply(
            operation.resource,
            manifest,
            force=force,
            dry_run=self._dry_run,
            field_manager=field_manager,
            retry_for=self._retry_for,
        )

    def _remember(self, uid: str) -> None:
        if self._dry_run:
            return
        self._made[uid] = None
        if len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)


def foreign_managers(live: Manifest, desired: Manifest) -> list[str]:
    """Names of the other field managers that wrote content which `desired` also has.

    Metadata that others add to an object of ours (finalizers, annotations) and subresources such as
    status do not make it theirs.
    """
    content = {"f:" + key for key in desired if key not in ("apiVersion", "kind", "metadata")}
    return [
        entry.get("manager", "")
        for entry in live["metadata"].get("managedFields") or ()
        if entry.get("manager") not in (FIELD_MANAGER, ORPHAN_MANAGER)
        and not entry.get("subresource")
        and content & (entry.get("fieldsV1") or {}).keys()
    ]


def _refused(operation: Operation, error: ApiError) -> Outcome:
    # Another object of that name is a conflict for a delete, and an invalid uid for an apply.
    other = error.is_invalid and bool(operation.uid) and "metadata.uid" in error.message
    if not error.is_conflict and not other:
        return Outcome(operation, Result.ERROR, str(error))
    if operation.verb is Verb.APPLY and not operation.ours:
        return Outcome(operation, Result.CONFLICT, _taken(operation))
    where = f"{operation.resource.kind} {_name(operation)}"
    return Outcome(operation, Result.STALE, f"{where} has changed or vanished meanwhile.")


def _taken(operation: Operation) -> str:
    return f"{operation.resource.kind} {_name(operation)} exists and is not gpufair's."


def _name(operation: Operation) -> str:
    return f"{operation.namespace}/{operation.name}" if operation.namespace else operation.name


def _identity(manifest: Manifest) -> tuple[str, str | None]:
    metadata = manifest["metadata"]
    return metadata["name"], metadata.get("namespace")


def _manifest(operation: Operation) -> Manifest:
    if operation.manifest is None:
        raise ClusterError(f"There is nothing to apply to {_name(operation)}.")
    return operation.manifest
