"""The I/O layer against a real API server with a real Kueue."""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from gpufair import local
from gpufair.api.kinds import (
    ALL,
    CLUSTER_QUEUE,
    COHORT,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    LEASE,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    WORKLOAD_PRIORITY_CLASS,
    Resource,
    resource_of,
)
from gpufair.cluster.applier import Applier, Operation
from gpufair.cluster.client import Client
from gpufair.cluster.errors import ApiError
from gpufair.cluster.events import EventRecorder
from gpufair.cluster.informer import Informer
from gpufair.cluster.lease import LeaderElection
from gpufair.plan.fieldset import NOT_OWNED, UNDESIRED, VALUE, differences, differs, owned_fields

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
HOSTILE = "quote\" newline\n{{ jinja }} &anchor *alias é 漢 <&> \\ 'x' # no: comment"


@pytest_asyncio.fixture
async def client(cluster: local.Instance) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(cluster.kubeconfig) as made:
        yield made


@pytest_asyncio.fixture
async def prefix(client: Client) -> AsyncIterator[str]:
    """A name of this test alone; what carries it as a label is removed at the end."""
    name = f"io-{uuid.uuid4().hex[:8]}"
    yield name
    for resource in reversed(ALL):
        if (
            resource.group in ("kueue.x-k8s.io", "scheduling.k8s.io")
            and resource.kind != "Workload"
        ):
            for item in await client.list_all(resource, label_selector=f"test={name}"):
                metadata = item["metadata"]
                await client.delete(resource, metadata["name"], metadata.get("namespace"))


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)


def manifest(resource: Resource, name: str, prefix: str, **content: Any) -> Json:
    metadata: Json = {"name": name, "labels": {"test": prefix, "gpufair.io/policy": "p"}}
    if resource.namespaced:
        metadata["namespace"] = "default"
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **content,
    }


def quota(nominal: str, **limits: str) -> Json:
    return {"name": "nvidia.com/gpu", "nominalQuota": nominal, **limits}


def groups(flavor: str, *resources: Json) -> list[Json]:
    return [
        {
            "coveredResources": [resource["name"] for resource in resources],
            "flavors": [{"name": flavor, "resources": list(resources)}],
        }
    ]


def everything(name: str) -> list[Json]:
    """One object of each kind that a policy becomes, with the fields that a policy drives."""
    kinds = {resource.kind: resource for resource in ALL}

    def made(kind: str, suffix: str = "", **content: Any) -> Json:
        return manifest(kinds[kind], name + suffix, name, **content)

    taint = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    wide = {"name": "cpu", "nominalQuota": "1000000000"}
    memory = {"name": "memory", "nominalQuota": "1Pi"}
    selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["default", "b"]}
    return [
        made("Topology", spec={"levels": [{"nodeLabel": "rack"}, {"nodeLabel": "host"}]}),
        made(
            "ResourceFlavor",
            spec={
                "nodeLabels": {"gpu": "h100"},
                "nodeTaints": [taint],
                "tolerations": [toleration],
                "topologyName": name,
            },
        ),
        made("Cohort", spec={"fairSharing": {"weight": "0.5"}}),
        made(
            "Cohort",
            "-child",
            spec={
                "parentName": name,
                "fairSharing": {"weight": "1"},
                "resourceGroups": groups(name, quota("16", lendingLimit="4000m")),
            },
        ),
        made("WorkloadPriorityClass", value=1000, description=HOSTILE),
        made(
            "PriorityClass",
            value=1000,
            preemptionPolicy="Never",
            globalDefault=False,
            description=HOSTILE,
        ),
        made("AdmissionCheck", spec={"controllerName": "gpufair.io/gang"}),
        made(
            "ClusterQueue",
            spec={
                "cohortName": name + "-child",
                "queueingStrategy": "BestEffortFIFO",
                "namespaceSelector": {"matchExpressions": [selector]},
                "fairSharing": {"weight": "1.5"},
                "preemption": {
                    "withinClusterQueue": "LowerPriority",
                    "reclaimWithinCohort": "LowerPriority",
                },
                "flavorFungibility": {"whenCanBorrow": "TryNextFlavor"},
                "resourceGroups": groups(
                    name,
                    quota("16", borrowingLimit="8", lendingLimit="12"),
                    wide,
                    memory,
                ),
                "admissionChecksStrategy": {
                    "admissionChecks": [{"name": name, "onFlavors": [name]}, {"name": "others"}]
                },
            },
        ),
        made("LocalQueue", spec={"clusterQueue": name, "stopPolicy": "Hold"}),
    ]


async def read(client: Client, wanted: Json) -> Json:
    resource = resource_of(wanted["apiVersion"], wanted["kind"])
    metadata = wanted["metadata"]
    return await client.get(resource, metadata["name"], metadata.get("namespace"))


def operation(wanted: Json) -> Operation:
    return Operation.create(resource_of(wanted["apiVersion"], wanted["kind"]), wanted)


# -- compare -------------------------------------------------------------------------------------


async def test_nothing_differs_after_an_apply_and_a_second_one_changes_nothing(
    client: Client, prefix: str
) -> None:
    objects = everything(prefix)
    applier = Applier(client)
    first = await applier.run([[operation(wanted)] for wanted in objects])
    assert [outcome.result.value for outcome in first.outcomes] == ["created"] * len(objects)
    again = []
    for wanted in objects:
        live = await read(client, wanted)
        assert differences(wanted, live) == [], wanted["kind"]
        metadata = live["metadata"]
        again.append(
            Operation.update(
                resource_of(wanted["apiVersion"], wanted["kind"]),
                wanted,
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
        )
    second = await applier.run([again])
    for outcome in second.outcomes:
        # Kueue writes the status of its objects meanwhile; what we own must not have moved.
        assert outcome.ok
        assert outcome.object is not None
        assert outcome.operation.manifest is not None
        assert differences(outcome.operation.manifest, outcome.object) == []


async def test_hostile_text_arrives_as_it_is(client: Client, prefix: str) -> None:
    for resource in (WORKLOAD_PRIORITY_CLASS, PRIORITY_CLASS):
        wanted = manifest(resource, prefix, prefix, value=7, description=HOSTILE)
        wanted["metadata"]["annotations"] = {"gpufair.io/x": HOSTILE * 5}
        _, made = await client.apply(resource, wanted)
        assert made["description"] == HOSTILE
        live = await read(client, wanted)
        assert live["metadata"]["annotations"]["gpufair.io/x"] == HOSTILE * 5
        assert differs(wanted, live) == []


EDITS: list[tuple[str, tuple[str, ...], Any]] = [
    ("Cohort", ("spec", "fairSharing", "weight"), "3"),
    ("WorkloadPriorityClass", ("description",), "edited"),
    ("PriorityClass", ("description",), "edited"),
    ("ClusterQueue", ("spec", "preemption", "withinClusterQueue"), "Never"),
    ("ClusterQueue", ("spec", "fairSharing", "weight"), "9"),
    ("ClusterQueue", ("spec", "namespaceSelector"), {"matchLabels": {"a": "b"}}),
    ("LocalQueue", ("spec", "stopPolicy"), "None"),
    ("ResourceFlavor", ("metadata", "labels", "gpufair.io/policy"), "edited"),
    ("Topology", ("metadata", "labels", "gpufair.io/policy"), "edited"),
    ("AdmissionCheck", ("metadata", "labels", "gpufair.io/policy"), None),
]


@pytest.mark.parametrize(("kind", "path", "value"), EDITS)
async def test_an_edit_shows_and_a_forced_apply_undoes_it(
    client: Client, prefix: str, kind: str, path: tuple[str, ...], value: Any
) -> None:
    objects = everything(prefix)
    wanted = next(one for one in objects if one["kind"] == kind)
    needed = objects[: objects.index(wanted) + 1]
    applier = Applier(client)
    assert (await applier.run([[operation(one)] for one in needed])).ok
    resource = resource_of(wanted["apiVersion"], kind)
    metadata = wanted["metadata"]
    patch: Any = value
    for part in reversed(path):
        patch = {part: patch}
    await client.patch_merge(resource, metadata["name"], patch, metadata.get("namespace"))
    # The patch came from our own field manager, but as an Update: the Apply lost the field.
    live = await read(client, wanted)
    (found,) = differences(wanted, live)
    assert found.path.startswith(".".join(path))
    # A merge leaves what is beside its own keys, so in a selector only the owner has changed.
    assert found.reason == (NOT_OWNED if path[-1] == "namespaceSelector" else VALUE)
    report = await applier.run([[Operation.update(resource, wanted, uid=live["metadata"]["uid"])]])
    assert [outcome.result.value for outcome in report.outcomes] == ["configured"]
    assert differs(wanted, await read(client, wanted)) == []


async def test_an_edit_inside_the_quota_shows_where(client: Client, prefix: str) -> None:
    objects = everything(prefix)
    applier = Applier(client)
    assert (await applier.run([[operation(one)] for one in objects])).ok
    wanted = next(one for one in objects if one["kind"] == "ClusterQueue")
    spot = "/spec/resourceGroups/0/flavors/0/resources/0"
    await client.patch_json(
        CLUSTER_QUEUE, prefix, [{"op": "replace", "path": f"{spot}/nominalQuota", "value": "17"}]
    )
    (found,) = differences(wanted, await read(client, wanted))
    assert found[:2] == (spot[1:].replace("/0", "[0]").replace("/", ".") + ".nominalQuota", VALUE)
    assert (await applier.run([[Operation.update(CLUSTER_QUEUE, wanted)]])).ok

    dropped = copy.deepcopy(wanted)
    del dropped["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"]
    (found,) = differences(dropped, await read(client, wanted))
    assert found.path == "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"
    assert (await applier.run([[Operation.update(CLUSTER_QUEUE, dropped)]])).ok
    live = await read(client, wanted)
    assert differs(dropped, live) == []
    resources = live["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    assert "borrowingLimit" not in resources[0]


async def test_a_field_no_longer_desired_shows_and_goes(client: Client, prefix: str) -> None:
    objects = everything(prefix)
    applier = Applier(client)
    assert (await applier.run([[operation(one)] for one in objects])).ok
    wanted = copy.deepcopy(next(one for one in objects if one["kind"] == "ClusterQueue"))
    del wanted["spec"]["fairSharing"]
    del wanted["spec"]["flavorFungibility"]
    del wanted["spec"]["admissionChecksStrategy"]["admissionChecks"][0]
    del wanted["metadata"]["labels"]["gpufair.io/policy"]
    found = differences(wanted, await read(client, wanted))
    assert {(one.path, one.reason) for one in found} == {
        ("spec.fairSharing", UNDESIRED),
        ("spec.flavorFungibility", UNDESIRED),
        (f"spec.admissionChecksStrategy.admissionChecks[name={prefix}]", UNDESIRED),
        ("metadata.labels.gpufair.io/policy", UNDESIRED),
    }
    assert (await applier.run([[Operation.update(CLUSTER_QUEUE, wanted)]])).ok
    live = await read(client, wanted)
    assert differs(wanted, live) == []
    assert "fairSharing" not in live["spec"]
    assert "gpufair.io/policy" not in live["metadata"]["labels"]


async def test_a_field_taken_over_with_the_same_value_is_not_lost(
    client: Client, prefix: str
) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "2"}})
    await client.apply(COHORT, wanted)
    await client.apply(COHORT, wanted, field_manager="helm", force=True)
    assert differs(wanted, await read(client, wanted)) == []
    changed = copy.deepcopy(wanted)
    changed["spec"]["fairSharing"]["weight"] = "3"
    await client.apply(COHORT, changed, field_manager="helm", force=True)
    found = differences(wanted, await read(client, wanted))
    assert [(one.path, one.reason) for one in found] == [("spec.fairSharing.weight", VALUE)]
    back = copy.deepcopy(wanted)
    await client.apply(COHORT, back, field_manager="helm", force=True)
    found = differences(wanted, await read(client, wanted))
    assert [(one.path, one.reason) for one in found] == [("spec.fairSharing.weight", NOT_OWNED)]


# -- apply ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("resource", [COHORT, PRIORITY_CLASS, WORKLOAD_PRIORITY_CLASS])
@pytest.mark.parametrize("same", [True, False])
async def test_an_object_of_somebody_else_is_left_exactly_as_it_was(
    client: Client, prefix: str, resource: Resource, same: bool
) -> None:
    def content(number: int) -> Json:
        if resource is COHORT:
            return {"spec": {"fairSharing": {"weight": str(number)}}}
        return {"value": number}

    foreign = manifest(resource, prefix, prefix, **content(5))
    del foreign["metadata"]["labels"]["gpufair.io/policy"]
    await client.apply(resource, foreign, field_manager="somebody")
    before = await read(client, foreign)
    wanted = manifest(resource, prefix, prefix, **content(5 if same else 6))
    report = await Applier(client).run([[Operation.create(resource, wanted)]])
    assert [outcome.result.value for outcome in report.outcomes] == ["conflict"]
    after = await read(client, foreign)
    for found in (before, after):
        # Kueue adds a status when it likes.
        found.pop("status", None)
        metadata = found["metadata"]
        del metadata["resourceVersion"]
        metadata["managedFields"] = [
            entry for entry in metadata["managedFields"] if not entry.get("subresource")
        ]
    assert after == before


async def test_our_own_object_that_the_cache_does_not_know_yet_is_ours(
    client: Client, prefix: str
) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "2"}})
    assert (await Applier(client).run([[Operation.create(COHORT, wanted)]])).ok
    changed = copy.deepcopy(wanted)
    changed["spec"]["fairSharing"]["weight"] = "3"
    report = await Applier(client).run([[Operation.create(COHORT, changed)]])
    assert [outcome.result.value for outcome in report.outcomes] == ["configured"]
    live = await read(client, wanted)
    assert live["spec"]["fairSharing"]["weight"] == "3"
    assert differs(changed, live) == []


async def test_an_update_never_touches_a_successor_of_the_same_name(
    client: Client, prefix: str
) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "2"}})
    _, first = await client.apply(COHORT, wanted)
    assert await client.delete(COHORT, prefix, uid=first["metadata"]["uid"])
    update = Operation.update(COHORT, wanted, uid=first["metadata"]["uid"])
    applier = Applier(client)
    report = await applier.run([[update]])
    assert [outcome.result.value for outcome in report.outcomes] == ["stale"]
    with pytest.raises(ApiError) as caught:
        await client.get(COHORT, prefix)
    assert caught.value.is_not_found
    successor = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "7"}})
    await client.apply(COHORT, successor, field_manager="somebody")
    operations = [update, Operation.delete(COHORT, prefix, uid=first["metadata"]["uid"])]
    report = await applier.run([operations])
    assert [outcome.result.value for outcome in report.outcomes] == ["stale", "stale"]
    assert (await client.get(COHORT, prefix))["spec"]["fairSharing"]["weight"] == "7"


async def test_release_leaves_the_object_and_drops_our_labels(client: Client, prefix: str) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "2"}})
    await client.apply(COHORT, wanted)
    keep = copy.deepcopy(wanted)
    del keep["metadata"]["labels"]["gpufair.io/policy"]
    report = await Applier(client).run([[Operation.release(COHORT, prefix, keep=keep)]])
    assert [outcome.result.value for outcome in report.outcomes] == ["released"]
    live = await client.get(COHORT, prefix)
    assert live["spec"] == {"fairSharing": {"weight": "2"}}
    assert live["metadata"]["labels"] == {"test": prefix}
    assert owned_fields(live) is None


async def test_unknown_fields_are_refused_not_pruned(client: Client, prefix: str) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"wait": "2"}})
    report = await Applier(client).run([[Operation.create(COHORT, wanted)]])
    assert [outcome.result.value for outcome in report.outcomes] == ["error"]
    assert "wait" in report.outcomes[0].message


async def test_a_dry_run_changes_nothing(client: Client, prefix: str) -> None:
    wanted = manifest(COHORT, prefix, prefix, spec={"fairSharing": {"weight": "2"}})
    report = await Applier(client, dry_run=True).run([[Operation.create(COHORT, wanted)]])
    assert [outcome.result.value for outcome in report.outcomes] == ["created"]
    assert client.writes == 0
    with pytest.raises(ApiError):
        await client.get(COHORT, prefix)


# -- informer ------------------------------------------------------------------------------------


def raw(item: Json) -> tuple[str, str]:
    return item["metadata"]["uid"], json.dumps(item.get("spec"), sort_keys=True)


async def test_the_store_follows_the_server(client: Client, prefix: str) -> None:
    applier = Applier(client)

    def cohort(number: int, weight: int = 1) -> Json:
        spec = {"fairSharing": {"weight": str(weight)}}
        return manifest(COHORT, f"{prefix}-{number}", prefix, spec=spec)

    before = [operation(cohort(number)) for number in range(7)]
    assert (await applier.run([before])).ok
    events: list[tuple[str, str]] = []
    informer: Informer[tuple[str, str]] = Informer(
        client,
        COHORT,
        slim=raw,
        label_selector=f"test={prefix}",
        page_size=3,
        on_change=lambda change, old, new: events.append((change.value, (new or old or ("",))[0])),
    )
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(20):
            await informer.synced()
        assert len(informer.store) == 7
        events.clear()
        late = [operation(cohort(number)) for number in range(7, 30)]
        changed = [Operation.update(COHORT, cohort(number, 5)) for number in range(3)]
        gone = [Operation.delete(COHORT, f"{prefix}-{number}") for number in range(3, 7)]
        assert (await applier.run([late + changed + gone])).ok
        await until(lambda: len(events) >= 30)
        await until(lambda: len(informer.store) == 26)
        kinds = [kind for kind, _ in events]
        counts = {kind: kinds.count(kind) for kind in ("added", "modified", "deleted")}
        assert counts == {"added": 23, "modified": 3, "deleted": 4}
        live = await client.list_all(COHORT, label_selector=f"test={prefix}")
        assert dict(informer.store) == {("", item["metadata"]["name"]): raw(item) for item in live}
        assert informer.lists == 1
        assert informer.fresh()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def crd(prefix: str) -> Json:
    group = f"{prefix}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def test_a_kind_that_comes_and_goes(client: Client, prefix: str) -> None:
    definition = crd(prefix)
    name, group = definition["metadata"]["name"], definition["spec"]["group"]
    resource = Resource(group, "v1", "things", "Thing")
    presence: list[bool] = []
    informer: Informer[str] = Informer(
        client,
        resource,
        slim=lambda item: str(item["metadata"]["name"]),
        on_presence=presence.append,
        absence_retry=1.0,
    )
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(20):
            await informer.synced()
        assert informer.absent
        assert await client.discover(group) is None
        await client.apply(CUSTOM_RESOURCE_DEFINITION, definition)
        await until(lambda: not informer.absent)
        found = await client.discover(group)
        assert found is not None
        assert found.serves(resource)
        thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}}
        await client.apply(resource, thing)
        await until(lambda: ("", "a") in informer.store)
        await client.delete(CUSTOM_RESOURCE_DEFINITION, name)
        await until(lambda: informer.absent and not informer.store, 60)
        await client.apply(CUSTOM_RESOURCE_DEFINITION, definition)
        await until(lambda: not informer.absent)
        await client.apply(resource, {**thing, "metadata": {"name": "b"}})
        await until(lambda: set(informer.store) == {("", "b")})
        assert presence == [True, False, True, False]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.delete(CUSTOM_RESOURCE_DEFINITION, name)


# -- lease and events ----------------------------------------------------------------------------


async def test_two_holders_hand_over(client: Client, prefix: str) -> None:
    def contender(identity: str) -> LeaderElection:
        return LeaderElection(
            client,
            namespace="default",
            name=prefix,
            identity=identity,
            lease_duration=3.0,
            renew_deadline=2.0,
            retry_period=0.3,
        )

    first, second = contender("a"), contender("b")
    try:
        async with first.running():
            async with asyncio.timeout(10):
                await first.acquired()
            async with second.running():
                await until(lambda: second.holder == "a")
                renewals: set[str] = set()
                async with asyncio.timeout(20):
                    while len(renewals) < 8:
                        spec = (await client.get(LEASE, prefix, "default"))["spec"]
                        renewals.add(spec["renewTime"])
                        assert spec["holderIdentity"] == "a"
                        assert first.is_leader
                        assert not second.is_leader
        third = contender("c")
        async with third.running(), asyncio.timeout(2.5):
            await third.acquired()
        assert (await client.get(LEASE, prefix, "default"))["spec"]["holderIdentity"] == ""
    finally:
        await client.delete(LEASE, prefix, "default")


async def test_events_are_accepted_and_counted(client: Client, prefix: str) -> None:
    wanted = manifest(LOCAL_QUEUE, prefix, prefix, spec={"clusterQueue": prefix})
    _, queue = await client.apply(LOCAL_QUEUE, wanted)
    recorder = EventRecorder(client)
    for _ in range(4):
        recorder.record(
            LOCAL_QUEUE, queue["metadata"], "QueueHeld", HOSTILE + "x" * 3000, type_="Warning"
        )
    await recorder.flush()
    assert recorder.dropped == 0
    (event,) = [
        item
        for item in await client.list_all(EVENT, "default")
        if item["regarding"].get("uid") == queue["metadata"]["uid"]
    ]
    assert event["reason"] == "QueueHeld"
    assert event["series"]["count"] == 4
    assert event["note"].startswith(HOSTILE)
    await client.delete(EVENT, event["metadata"]["name"], "default")
