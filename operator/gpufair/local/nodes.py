"""GPU nodes for the local cluster."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from gpufair.errors import GpufairError

if TYPE_CHECKING:
    from gpufair.local.restapi import RestApi

PRODUCT = "NVIDIA-H100-80GB-HBM3"
_AT_ONCE = 8
_CONDITIONS = (
    ("Ready", "True", "KubeletReady"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("NetworkUnavailable", "False", "RouteCreated"),
)


def manifest(
    name: str,
    *,
    gpus: int,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    resources: Mapping[str, str],
    now: str,
) -> dict[str, Any]:
    """Return a node that is Ready from the start; `now` is RFC 3339."""
    amounts = {
        "cpu": str(max(8, 24 * gpus)),
        "memory": f"{max(32, 256 * gpus)}Gi",
        "ephemeral-storage": "7Ti",
        "pods": "110",
    }
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    amounts |= resources
    own = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    if gpus:
        own |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": PRODUCT,
            "nvidia.com/gpu.count": str(gpus),
        }
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind, status, reason in _CONDITIONS
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": own | dict(labels),
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": _node_info(),
        },
    }


def add(
    api: "RestApi",
    count: int,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
    prefix: str = "gpu",
) -> list[str]:
    """Create `count` nodes called PREFIX-NUMBER, and return their names.

    Numbers go on after the highest in use. `resources` adds to or replaces the allocatable
    amounts. The `kubernetes.io/hostname` label is each node's own. Raises `GpufairError` when
    the API server refuses a node.
    """
    import datetime

    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    first = _next_number(api, prefix)
    names = [f"{prefix}-{number:03d}" for number in range(first, first + count)]

    def create(name: str) -> None:
        node = manifest(
            name,
            gpus=gpus,
            labels=labels or {},
            taints=taints,
            resources=resources or {},
            now=now,
        )
        answer = api.request("POST", "/api/v1/nodes", node)
        if not answer.ok:
            reason = answer.body.get("message") if isinstance(answer.body, dict) else answer.body
            raise GpufairError(f"The API server refused node {name}: {reason}")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(create, names))
    return names


def untainted(api: "RestApi", names: set[str]) -> bool:
    """Whether all of the named nodes exist without the taint that new nodes begin with."""
    ready = {
        node["metadata"]["name"]
        for node in api.get("/api/v1/nodes")["items"]
        if not any(
            taint["key"] == "node.kubernetes.io/not-ready"
            for taint in node["spec"].get("taints", [])
        )
    }
    return names <= ready


def _next_number(api: "RestApi", prefix: str) -> int:
    used = [node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"]]
    numbers = [name.removeprefix(f"{prefix}-") for name in used if name.startswith(f"{prefix}-")]
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


def _node_info() -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "kubeletVersion": "v1.35.4",
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "kwok",
        "osImage": "",
        "kernelVersion": "",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
