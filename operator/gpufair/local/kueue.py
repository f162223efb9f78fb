"""Kueue: its configuration, and the objects that it needs on the API server.

Kueue runs as a plain process. With its internal certificate management on, it takes its webhook
certificate from a directory of our choice and needs no file at a fixed path; the certificate is
made here and put into the secret that its rotation looks at, so that it finds nothing to renew.
"""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpufair.local import health
from gpufair.local.manifests import Manifest

if TYPE_CHECKING:
    from gpufair.local.restapi import RestApi

NAMESPACE = "kueue-system"
SERVICE_ACCOUNT = "kueue-controller-manager"
USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
GROUPS = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
WEBHOOK_DNS = f"kueue-webhook-service.{NAMESPACE}.svc"
CA_NAME = "kueue-ca"
_AT_ONCE = 4
_CERTIFICATE = "kueue-webhook-server-cert"

FEATURE_GATES = {"PriorityBoost": True, "VisibilityOnDemand": False}
"""PriorityBoost is off by default. The visibility server would need files at /visibility."""

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset", "pod", "deployment", "statefulset")


def config(
    *,
    webhook_port: int,
    metrics_port: int,
    health_port: int,
    certs: Path,
    feature_gates: dict[str, bool],
    overrides: dict[str, Any],
) -> dict[str, Any]:
    """Return the Configuration; `feature_gates` and `overrides` (top-level fields) win."""
    settings: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {
            "bindAddress": f"127.0.0.1:{metrics_port}",
            "enableClusterQueueResources": True,
        },
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(certs)},
        "leaderElection": {"leaderElect": False},
        "controller": {
            "groupKindConcurrency": {
                "Job.batch": 5,
                "Pod": 5,
                "Workload.kueue.x-k8s.io": 5,
                "LocalQueue.kueue.x-k8s.io": 1,
                "Cohort.kueue.x-k8s.io": 1,
                "ClusterQueue.kueue.x-k8s.io": 1,
                "ResourceFlavor.kueue.x-k8s.io": 1,
            }
        },
        "clientConnection": {"qps": 500, "burst": 1000},
        "manageJobsWithoutQueueName": False,
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "fairSharing": {
            "preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
        },
    }
    gates = FEATURE_GATES | feature_gates
    return settings | {"featureGates": gates} | overrides


def write_config(path: Path, **settings: Any) -> None:
    """Write the Configuration as a file; see `config` for the settings."""
    path.write_text(json.dumps(config(**settings), indent=2))


def objects(bundle: list[Manifest], *, webhook_port: int, certs: Path) -> list[Manifest]:
    """Return Kueue's objects, with webhooks that are called on loopback.

    The API server cannot reach a Service here, so each reference to one becomes a URL.
    """
    ca = (certs / f"{CA_NAME}.crt").read_bytes()
    address = {"base": f"https://127.0.0.1:{webhook_port}", "ca": base64.b64encode(ca).decode()}
    return [*(_on_loopback(object_, address) for object_ in bundle), _secret(certs)]


def install(api: "RestApi", manifests: list[Manifest], *, seconds: float = 60.0) -> None:
    """Create the objects, or replace them, and wait until the API serves the new kinds.

    Raises `GpufairError` when the API server refuses one.
    """
    namespaces = [object_ for object_ in manifests if object_["kind"] == "Namespace"]
    others = [object_ for object_ in manifests if object_["kind"] != "Namespace"]
    for object_ in namespaces:
        api.create_or_replace(object_)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(api.create_or_replace, others))
    pending = [
        object_["metadata"]["name"]
        for object_ in others
        if object_["kind"] == "CustomResourceDefinition"
    ]
    late = f"The API server did not serve Kueue's kinds after {seconds:.0f} s."
    for name in pending:
        health.until(lambda name=name: _served(api, name), seconds, late)  # type: ignore[misc]


def _served(api: "RestApi", name: str) -> bool:
    """Whether a kind is established and its objects can be listed."""
    crd = api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    conditions = crd.get("status", {}).get("conditions") or []
    if not any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
        return False
    plural, _, group = name.partition(".")
    versions = [item["name"] for item in crd["spec"]["versions"] if item["storage"]]
    return api.request("GET", f"/apis/{group}/{versions[0]}/{plural}?limit=1").ok


def _on_loopback(value: Any, address: dict[str, str]) -> Any:
    """Return a copy of a manifest in which every clientConfig holds a URL."""
    if isinstance(value, list):
        return [_on_loopback(item, address) for item in value]
    if not isinstance(value, dict):
        return value
    if "service" in value.get("clientConfig", {}):
        path = value["clientConfig"]["service"].get("path", "")
        client = {"url": address["base"] + path, "caBundle": address["ca"]}
        return {key: _on_loopback(item, address) for key, item in value.items()} | {
            "clientConfig": client
        }
    return {key: _on_loopback(item, address) for key, item in value.items()}


def _secret(certs: Path) -> Manifest:
    files = {
        "ca.crt": f"{CA_NAME}.crt",
        "ca.key": f"{CA_NAME}.key",
        "tls.crt": "tls.crt",
        "tls.key": "tls.key",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _CERTIFICATE, "namespace": NAMESPACE},
        "data": {
            key: base64.b64encode((certs / file).read_bytes()).decode()
            for key, file in files.items()
        },
    }
