"""The applier: order, concurrency, outcomes. What the real server answers: tests/cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from gpufair.api.kinds import COHORT, LOCAL_QUEUE
from gpufair.cluster.applier import Applier, Operation, Result, Wave, foreign_managers
from gpufair.errors import GpufairError


def manifest(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": name},
        "spec": spec or {"parentName": "root"},
    }


class Server:
    """Applies by name: answers from `answers`, else 201 for new names and 200 for known ones."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, web.Response] = {}
        self.refusals: dict[str, Callable[[], web.Response]] = {}  # of applies without force
        self.running = self.peak = 0
        self.order: list[str] = []
        self.version = 1

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rsplit("/", 1)[1]
        self.running += 1
        self.peak = max(self.peak, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        self.order.append(name)
        if name in self.answers:
            return self.answers[name]
        if request.method == "DELETE":
            found = self.objects.pop(name, None)
            return web.json_response({}, status=200 if found else 404)
        if request.method == "GET":
            found = self.objects.get(name)
            return web.json_response(found or {}, status=200 if found else 404)
        if name in self.refusals and request.query["force"] == "false":
            return self.refusals[name]()
        body = await request.json()
        old = self.objects.get(name)
        if old is None or old["spec"] != body.get("spec"):
            self.version += 1
            self.objects[name] = {
                **body,
                "metadata": {
                    "name": name,
                    "uid": f"uid-{name}",
                    "resourceVersion": str(self.version),
                    "managedFields": (old or {}).get("metadata", {}).get("managedFields", []),
                },
            }
        return web.json_response(self.objects[name], status=200 if old else 201)


@pytest.fixture
def server(stub: Any) -> Server:
    made = Server()
    stub.handler = made
    return made


def results(report: Any) -> list[str]:
    return [outcome.result.value for outcome in report.outcomes]


async def test_waves_run_in_order_and_each_at_bounded_concurrency(
    server: Server, client: Any
) -> None:
    waves = [[Operation.create(COHORT, manifest(f"{w}-{n}")) for n in range(20)] for w in "abc"]
    seen: list[str] = []
    report = await Applier(client, workers=4).run(
        waves, on_outcome=lambda outcome: seen.append(outcome.operation.name)
    )
    assert report.ok
    assert report.counts == {Result.CREATED: 60}
    assert [name[0] for name in server.order] == ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    assert 1 < server.peak <= 4
    assert sorted(seen) == sorted(server.order)
    assert [one.operation.name for one in report.outcomes] == [
        operation.name for wave in waves for operation in wave
    ]


async def test_create_does_not_force_and_update_does(
    server: Server, stub: Any, client: Any
) -> None:
    report = await Applier(client).run([
        [Operation.create(COHORT, manifest("x"))],
        [Operation.update(COHORT, manifest("x", parentName="b"), uid="uid-x")],
    ])  # fmt: skip
    assert results(report) == ["created", "configured"]
    assert [seen.query["force"] for seen in stub.seen] == ["false", "true"]
    assert "uid" not in stub.seen[0].body["metadata"]
    assert stub.seen[1].body["metadata"]["uid"] == "uid-x"


async def test_an_update_that_changed_nothing_is_unchanged(server: Server, client: Any) -> None:
    applier = Applier(client)
    first = (await applier.run([[Operation.create(COHORT, manifest("x"))]])).outcomes[0]
    assert first.object is not None
    version = first.object["metadata"]["resourceVersion"]
    report = await applier.run(
        [[Operation.update(COHORT, manifest("x"), uid="uid-x", resource_version=version)]]
    )
    assert results(report) == ["unchanged"]


async def test_one_failure_stops_no_other_of_its_wave(
    server: Server, client: Any, tools: Any
) -> None:
    server.answers["bad"] = tools.status(422, "Invalid", "spec.parentName: too long")
    names = ["a", "bad", "b", "c"]
    waves = [
        Wave([Operation.create(COHORT, manifest(name)) for name in names]),
        Wave([Operation.create(COHORT, manifest("next"))]),
        Wave([Operation.create(COHORT, manifest("careful"))], needs_success=True),
    ]
    report = await Applier(client, workers=1).run(waves)
    assert results(report) == ["created", "error", "created", "created", "created", "skipped"]
    assert "too long" in report.outcomes[1].message
    assert "careful" not in server.objects
    assert [outcome.operation.name for outcome in report.failed] == ["bad", "careful"]
    assert not report.ok


EXISTS = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [(409, "Conflict", 'conflict with "kubectl": .spec'), (422, "Invalid", EXISTS)],
)
async def test_what_a_create_meets_is_somebody_elses_unless_we_own_fields_of_it(
    server: Server, stub: Any, client: Any, tools: Any, code: int, reason: str, message: str
) -> None:
    server.objects["x"] = manifest("x")
    server.refusals = {"x": lambda: tools.status(code, reason, message)}
    report = await Applier(client).run([[Operation.create(COHORT, manifest("x"))]])
    assert results(report) == ["conflict"]
    assert report.outcomes[0].message == "Cohort x exists and is not gpufair's."
    assert report.conflicts == report.outcomes
    assert [seen.method for seen in stub.seen] == ["PATCH", "GET"]
    assert stub.seen[0].body["metadata"]["resourceVersion"] == "0"

    own = {"manager": "gpufair", "operation": "Apply", "fieldsV1": {"f:spec": {}}}
    server.objects["x"]["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [own]}
    report = await Applier(client).run([[Operation.create(COHORT, manifest("x"))]])
    assert results(report) == ["unchanged"]
    assert stub.seen[-1].body["metadata"] == {"name": "x", "uid": "u"}
    assert stub.seen[-1].query["force"] == "true"


async def test_an_invalid_manifest_is_an_error_not_a_conflict(
    server: Server, client: Any, tools: Any
) -> None:
    server.refusals = {"x": lambda: tools.status(422, "Invalid", EXISTS)}
    server.answers["y"] = tools.status(422, "Invalid", "spec.parentName: too long")
    report = await Applier(client).run(
        [[Operation.create(COHORT, manifest("x")), Operation.create(COHORT, manifest("y"))]]
    )
    assert results(report) == ["error", "error"]
    assert "must be specified" in report.outcomes[0].message


async def test_a_conflict_on_update_is_stale_not_foreign(
    server: Server, client: Any, tools: Any
) -> None:
    for name in "xy":
        server.answers[name] = tools.status(409, "Conflict", "uid mismatch")
    for name in "zw":
        server.answers[name] = tools.status(422, "Invalid", "metadata.uid: field is immutable")
    report = await Applier(client).run([[
        Operation.update(COHORT, manifest("x"), uid="u"),
        Operation.delete(COHORT, "y", uid="u"),
        Operation.update(COHORT, manifest("z"), uid="u"),
        Operation.update(COHORT, manifest("w")),
    ]])  # fmt: skip
    assert results(report) == ["stale", "stale", "stale", "error"]


def entry(manager: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields, **more}


async def test_a_foreign_object_met_on_create_is_left_again(
    server: Server, stub: Any, client: Any
) -> None:
    server.objects["x"] = {
        **manifest("x"),
        "metadata": {
            "name": "x",
            "uid": "uid-x",
            "resourceVersion": "1",
            "managedFields": [entry("kubectl-create", {"f:spec": {"f:parentName": {}}})],
        },
    }
    report = await Applier(client).run([[Operation.create(COHORT, manifest("x"))]])
    assert results(report) == ["conflict"]
    assert len(stub.seen) == 2
    assert stub.seen[1].body == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": "x", "uid": "uid-x"},
    }
    assert stub.seen[1].query["force"] == "false"


async def test_our_own_object_that_no_cache_knows_yet_is_not_foreign(
    server: Server, stub: Any, client: Any
) -> None:
    applier = Applier(client)
    await applier.run([[Operation.create(COHORT, manifest("x"))]])
    changed = manifest("x", parentName="other")
    server.objects["x"]["metadata"]["managedFields"] = [
        entry("kubectl-edit", {"f:spec": {"f:parentName": {}}})
    ]
    report = await applier.run([[Operation.create(COHORT, changed)]])
    assert results(report) == ["configured"]
    assert len(stub.seen) == 2


@pytest.mark.parametrize(
    ("managed", "found"),
    [
        ([entry("gpufair", {"f:spec": {}})], []),
        ([entry("kueue", {"f:metadata": {"f:finalizers": {}}})], []),
        ([entry("kueue", {"f:status": {}}, subresource="status")], []),
        ([entry("helm", {"f:spec": {"f:x": {}}}), entry("a", {"f:value": {}})], ["helm"]),
        ([], []),
    ],
)
def test_who_counts_as_a_foreign_manager(managed: list[Any], found: list[str]) -> None:
    assert foreign_managers({"metadata": {"managedFields": managed}}, manifest("x")) == found


async def test_deleting_what_is_gone_is_unchanged(server: Server, client: Any) -> None:
    server.objects["x"] = manifest("x")
    operations = [Operation.delete(COHORT, "x"), Operation.delete(COHORT, "y")]
    report = await Applier(client).run([operations])
    assert results(report) == ["deleted", "unchanged"]


async def test_release_hands_over_what_shall_stay(server: Server, stub: Any, client: Any) -> None:
    keep: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "gpu", "namespace": "ns"},
        "spec": {"clusterQueue": "a"},
    }
    server.objects["gpu"] = {**keep, "metadata": {**keep["metadata"], "uid": "u"}}
    report = await Applier(client).run([[Operation.release(LOCAL_QUEUE, "gpu", "ns", keep=keep)]])
    assert results(report) == ["released"]
    _, handed, dropped = stub.seen
    assert handed.query["fieldManager"] == "gpufair-released"
    assert handed.body["spec"] == {"clusterQueue": "a"}
    assert dropped.query["fieldManager"] == "gpufair"
    assert dropped.body["metadata"] == {"name": "gpu", "namespace": "ns", "uid": "u"}
    assert "spec" not in dropped.body


async def test_release_without_a_known_uid_never_creates(
    server: Server, stub: Any, client: Any, tools: Any
) -> None:
    server.answers["x"] = tools.status(404, "NotFound")
    report = await Applier(client).run([[Operation.release(COHORT, "x")]])
    assert results(report) == ["unchanged"]
    assert [seen.method for seen in stub.seen] == ["GET"]


async def test_a_closed_gate_lets_no_write_through(server: Server, stub: Any, client: Any) -> None:
    passes = iter((True, True, False, False))

    async def gate() -> None:
        if not next(passes):
            raise GpufairError("Somebody else leads.")

    operations = [Operation.create(COHORT, manifest(name)) for name in "abcd"]
    report = await Applier(client, workers=1, gate=gate).run([operations])
    assert results(report) == ["created", "created", "error", "error"]
    assert report.outcomes[3].message == "Somebody else leads."
    assert len(stub.seen) == 2


async def test_a_server_that_is_gone_is_an_error_of_each_operation(
    server: Server, stub: Any, client: Any
) -> None:
    async def lost(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    stub.handler = lost
    operations = [Operation.create(COHORT, manifest(name)) for name in "ab"]
    report = await Applier(client).run([operations])
    assert results(report) == ["error", "error"]
    assert "cannot be reached" in report.outcomes[0].message


async def test_a_dry_run_says_so_to_the_server(server: Server, stub: Any, client: Any) -> None:
    await Applier(client, dry_run=True).run([
        [Operation.create(COHORT, manifest("x")), Operation.delete(COHORT, "y")]
    ])  # fmt: skip
    assert [seen.query["dryRun"] for seen in stub.seen] == ["All", "All"]
    assert client.writes == 0
