"""Small policies and live objects to test with: what a test does not state is the plainest."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from itertools import count
from typing import Any

from gpufair.api.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, Resource, resource_of
from gpufair.api.load import parse_policy
from gpufair.api.policy import Policy
from gpufair.api.windows import Window
from gpufair.plan.objects import Desired, Key
from gpufair.plan.plan import Plan, plan
from gpufair.plan.selectors import Facts, NamespaceFact

Json = dict[str, Any]
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
_versions = count(1000)


def utc(text: str) -> datetime:
    """`2026-12-01T09:00` in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# -- policies ------------------------------------------------------------------------------------


def flavor(name: str = "h100", **fields: Any) -> Json:
    return {"name": name, "capacity": 8, **fields}


def bare_flavor(name: str, *resources: str, **fields: Any) -> Json:
    """A flavor of several resources, with no capacity stated."""
    return {"name": name, "resources": list(resources), **fields}


def tier(name: str = "prod", priority: int = 1000, **fields: Any) -> Json:
    return {"name": name, "priority": priority, **fields}


def quota(nominal: int | str = 4, flavor: str = "h100", **fields: Any) -> Json:
    return {"flavor": flavor, "nominal": nominal, **fields}


def tenant(name: str = "nlp", *quotas: Json, **fields: Any) -> Json:
    own = {} if "namespaceSelector" in fields else {"namespaces": [name]}
    return {"name": name, "quota": list(quotas) or [quota()], **own, **fields}


def window(name: str = "w", zone: str = "UTC", **fields: Any) -> Json:
    return {"name": name, "timeZone": zone, **fields}


def weekly(days: str, start: str, end: str) -> Json:
    """`weekly("Mon Tue", "09:00", "17:00")`."""
    return {"days": days.split(), "from": start, "to": end}


def raw_policy(name: str = "pool", **spec: Any) -> Json:
    """A policy as JSON; `spec` replaces whole fields of a minimal one."""
    base = {"flavors": [flavor()], "tiers": [tier()], "tenants": [tenant()]}
    return {
        "apiVersion": "gpufair.io/v1alpha1",
        "kind": "GpuSchedulingPolicy",
        "metadata": {"name": name},
        "spec": deepcopy(base | spec),
    }


def policy(name: str = "pool", **spec: Any) -> Policy:
    return parse_policy(raw_policy(name, **spec))


def windows(*listed: Json) -> list[Window]:
    return policy(windows=list(listed)).spec.windows


def stored_policy(name: str = "pool", uid: str = "u1", generation: int = 1, **spec: Any) -> Json:
    """A policy as the server gives it."""
    raw = raw_policy(name, **spec)
    raw["metadata"] |= {
        "uid": uid,
        "generation": generation,
        "resourceVersion": str(next(_versions)),
        "finalizers": ["gpufair.io/objects"],
    }
    return raw


# -- plans ---------------------------------------------------------------------------------------


def facts(*names: str, **labels: Mapping[str, str]) -> Facts:
    """A cluster that has these namespaces; keyword arguments have labels."""
    known = {name: NamespaceFact(name) for name in names}
    known |= {name: NamespaceFact(name, found) for name, found in labels.items()}
    return Facts(known, "uid-1")


def planned(subject: Policy, known: Facts | None = None, now: datetime = NOW) -> Plan:
    return plan(subject, known or Facts(), now)


def manifests(subject: Policy, known: Facts | None = None, now: datetime = NOW) -> dict[str, Json]:
    """The planned objects by `Kind name` or `Kind namespace/name`."""
    return {str(item): item.manifest for item in planned(subject, known, now).objects}


# -- live objects --------------------------------------------------------------------------------


def live_of(desired: Desired, *, manager: str = "gpufair", **metadata: Any) -> Json:
    """The object as the server has it after an apply by `manager`."""
    found = deepcopy(desired.manifest)
    found["metadata"] |= {
        "uid": f"uid-of-{desired}",
        "resourceVersion": str(next(_versions)),
        "generation": 1,
        "managedFields": applied_by(manager, desired.manifest),
    }
    found["metadata"] |= metadata
    return found


def applied_by(manager: str, manifest: Mapping[str, Any]) -> list[Json]:
    """The managedFields of an object that one manager has applied."""
    return [{"manager": manager, "operation": "Apply", "fieldsV1": fields_v1(manifest)}]


def fields_v1(value: Mapping[str, Any]) -> Json:
    """What managedFields say of a manifest, with every list taken as atomic."""
    identity = ("apiVersion", "kind", "name", "namespace")
    return {
        f"f:{key}": fields_v1(item) if isinstance(item, dict) else {}
        for key, item in value.items()
        if key not in identity
    }


def cluster_of(
    objects: Sequence[Desired], make: Callable[[Desired], Json] = live_of
) -> dict[Key, Json]:
    """A cluster that holds exactly what was planned."""
    return {item.key: make(item) for item in objects}


def live(
    kind: Resource,
    name: str,
    namespace: str = "",
    *,
    policy: str = "pool",
    spec: Json | None = None,
    status: Json | None = None,
    **metadata: Any,
) -> Json:
    """A live object of a policy (of nobody's with `policy=""`)."""
    labels = {"app.kubernetes.io/managed-by": "gpufair", "gpufair.io/policy": policy}
    meta: Json = {
        "name": name,
        "uid": f"uid-of-{namespace}/{name}",
        "resourceVersion": str(next(_versions)),
        "labels": labels if policy else {},
        **metadata,
    }
    if namespace:
        meta["namespace"] = namespace
    found: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    found["spec"] = spec or {}
    if status is not None:
        found["status"] = status
    return found


def local_queue(namespace: str, queue: str = "nlp", name: str = "gpu", **fields: Any) -> Json:
    spec = {"clusterQueue": queue, **fields.pop("spec", {})}
    return live(LOCAL_QUEUE, name, namespace, spec=spec, **fields)


def cluster_queue(name: str = "nlp", **fields: Any) -> Json:
    return live(CLUSTER_QUEUE, name, **fields)


def keyed(*objects: Json) -> dict[Key, Json]:
    """Live objects by key."""
    found: dict[Key, Json] = {}
    for item in objects:
        kind, metadata = resource_of(item["apiVersion"], item["kind"]), item["metadata"]
        found[kind, metadata.get("namespace", ""), metadata["name"]] = item
    return found


def workload(
    name: str = "w",
    namespace: str = "nlp",
    *,
    queue: str = "gpu",
    gpus: int = 1,
    tier: str = "prod",
    conditions: Sequence[str] = (),
    cluster_queue: str = "",
    created: str = "2026-12-01T11:00:00Z",
    **spec: Any,
) -> Json:
    """A Workload of one pod; the `conditions` named are True."""
    requests = {"cpu": "4", GPU: str(gpus)}
    found: Json = {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
        "spec": {
            "queueName": queue,
            "priorityClassRef": {"group": "kueue.x-k8s.io", "name": tier},
            "podSets": [
                {
                    "count": 1,
                    "template": {"spec": {"containers": [{"resources": {"requests": requests}}]}},
                }
            ],
            **spec,
        },
        "status": {"conditions": [{"type": c, "status": "True"} for c in conditions]},
    }
    if cluster_queue:
        found["status"]["admission"] = {"clusterQueue": cluster_queue}
    return found
