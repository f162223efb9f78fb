"""Stand-ins for the client and what writes: they record, and play the server's plainest answers.

What a real server answers is proven in tests/cluster.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from gpufair.api.kinds import Resource
from gpufair.cluster.applier import Operation, Outcome, Report, Result, Verb, Wave
from gpufair.cluster.client import GroupInfo
from gpufair.cluster.errors import ApiError
from gpufair.loops.caches import Caches
from tests.unit.builders import Json, applied_by


class FakeClient:
    """Keeps policies by name; `refusal` is raised by the next write."""

    def __init__(self, *policies: Json) -> None:
        self.policies = {raw["metadata"]["name"]: raw for raw in policies}
        self.patches: list[Json] = []
        self.statuses: list[Json] = []
        self.group: GroupInfo | None = None
        self.pods: list[Json] = []
        self.refusal: ApiError | None = None
        self._version = 50_000

    async def discover(self, group: str) -> GroupInfo | None:
        return self.group

    async def patch_merge(self, resource: Resource, name: str, patch: Json) -> Json:
        self._refuse()
        self.patches.append(patch)
        return self._written(name, lambda raw: raw["metadata"].update(patch["metadata"]))

    async def apply_status(self, resource: Resource, manifest: Json) -> tuple[int, Json]:
        self._refuse()
        self.statuses.append(manifest["status"])
        name = manifest["metadata"]["name"]
        return 200, self._written(name, lambda raw: raw.update(status=manifest["status"]))

    async def list_pages(self, resource: Resource, **_: Any) -> AsyncIterator[Json]:
        yield {"items": self.pods}

    def _refuse(self) -> None:
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal

    def _written(self, name: str, change: Callable[[Json], Any]) -> Json:
        self._version += 1
        raw = self.policies[name]
        made = {**raw, "metadata": dict(raw["metadata"])}
        change(made)
        made["metadata"]["resourceVersion"] = str(self._version)
        self.policies[name] = made
        return made


class FakeApplier:
    """Records operations by wave; deletes take effect at once, `results` replace success."""

    def __init__(self, caches: Caches) -> None:
        self.waves: list[list[str]] = []
        self.operations: list[Operation] = []
        self.results: dict[str, tuple[Result, str]] = {}
        self._caches = caches
        self._version = 70_000

    async def run(
        self,
        waves: Iterable[Wave | Sequence[Operation]],
        *,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> Report:
        report = Report()
        for wave in waves:
            operations = wave.operations if isinstance(wave, Wave) else wave
            self.waves.append([_title(operation) for operation in operations])
            self.operations += operations
            for operation in operations:
                outcome = self._outcome(operation)
                report.outcomes.append(outcome)
                if on_outcome is not None:
                    on_outcome(outcome)
        return report

    def _outcome(self, operation: Operation) -> Outcome:
        result, message = self.results.get(_title(operation), (None, ""))
        if result is not None:
            return Outcome(operation, result, message)
        key = (operation.resource, operation.namespace or "", operation.name)
        if operation.verb is Verb.DELETE:
            del self._caches.live[key]
            return Outcome(operation, Result.DELETED)
        assert operation.manifest is not None
        self._version += 1
        known = self._caches.live.get(key, {"metadata": {"uid": f"uid-{operation.name}"}})
        metadata = known["metadata"] | operation.manifest["metadata"]
        made = {**operation.manifest, "metadata": metadata}
        made["metadata"]["resourceVersion"] = str(self._version)
        made["metadata"]["managedFields"] = applied_by("gpufair", operation.manifest)
        done = Result.CONFIGURED if operation.ours else Result.CREATED
        return Outcome(operation, done, object=made)


def _title(operation: Operation) -> str:
    where = f"{operation.namespace}/" if operation.namespace else ""
    verb = "create" if operation.verb is Verb.APPLY and not operation.ours else operation.verb.value
    return f"{verb} {operation.resource.kind} {where}{operation.name}"


class FakeRecorder:
    """Records events as (type, reason)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []

    def record(
        self, resource: Resource, about: Json, reason: str, message: str, *, type_: str
    ) -> None:
        self.events.append((type_, reason))


class Clock:
    """A monotonic clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def caches(client: Any = None, **callbacks: Any) -> Caches:
    """Caches that no informer feeds; callbacks do nothing unless given."""
    quiet: dict[str, Any] = {
        "on_object": lambda *_: None,
        "on_namespace": lambda: None,
        "on_presence": lambda _: None,
    }
    return Caches(client, **quiet | callbacks)
