"""The Kubernetes kinds that gpufair reads and writes, and their API paths. Pure data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

GPUFAIR_GROUP: Final = "gpufair.io"
KUEUE_GROUP: Final = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind served by the API server: where it lives and how its objects are addressed."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        """`apiVersion` as manifests spell it: `v1`, `kueue.x-k8s.io/v1beta2`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """`plural.group`, as RBAC, kubectl and the request counters name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """The path of the group and version: `/api/v1` or `/apis/GROUP/VERSION`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def collection(self, namespace: str | None = None) -> str:
        """The path to list, watch or create at; without a namespace, of all namespaces.

        Raises ValueError when a namespace is given for a cluster-scoped kind.
        """
        if namespace is None or namespace == "":
            return f"{self.root}/{self.plural}"
        if not self.namespaced:
            raise ValueError(f"{self.kind} is cluster-scoped and has no namespace.")
        return f"{self.root}/namespaces/{quote(namespace, safe='')}/{self.plural}"

    def path(self, name: str, namespace: str | None = None, subresource: str = "") -> str:
        """The path of one object or of its subresource.

        Raises ValueError when the namespace is missing or superfluous, or the name empty.
        """
        if not name:
            raise ValueError(f"A {self.kind} without a name has no path.")
        if self.namespaced and not namespace:
            raise ValueError(f"{self.kind} {name} needs a namespace.")
        path = f"{self.collection(namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


GPU_SCHEDULING_POLICY: Final = Resource(
    GPUFAIR_GROUP, "v1alpha1", "gpuschedulingpolicies", "GpuSchedulingPolicy"
)

COHORT: Final = Resource(KUEUE_GROUP, "v1beta2", "cohorts", "Cohort")
RESOURCE_FLAVOR: Final = Resource(KUEUE_GROUP, "v1beta2", "resourceflavors", "ResourceFlavor")
TOPOLOGY: Final = Resource(KUEUE_GROUP, "v1beta2", "topologies", "Topology")
CLUSTER_QUEUE: Final = Resource(KUEUE_GROUP, "v1beta2", "clusterqueues", "ClusterQueue")
LOCAL_QUEUE: Final = Resource(KUEUE_GROUP, "v1beta2", "localqueues", "LocalQueue", namespaced=True)
WORKLOAD_PRIORITY_CLASS: Final = Resource(
    KUEUE_GROUP, "v1beta2", "workloadpriorityclasses", "WorkloadPriorityClass"
)
ADMISSION_CHECK: Final = Resource(KUEUE_GROUP, "v1beta2", "admissionchecks", "AdmissionCheck")
WORKLOAD: Final = Resource(KUEUE_GROUP, "v1beta2", "workloads", "Workload", namespaced=True)

PRIORITY_CLASS: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
NAMESPACE: Final = Resource("", "v1", "namespaces", "Namespace")
NODE: Final = Resource("", "v1", "nodes", "Node")
POD: Final = Resource("", "v1", "pods", "Pod", namespaced=True)
CONFIG_MAP: Final = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
SERVICE_ACCOUNT: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True)
CORE_EVENT: Final = Resource("", "v1", "events", "Event", namespaced=True)
EVENT: Final = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
LEASE: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
CUSTOM_RESOURCE_DEFINITION: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"
)
JOB: Final = Resource("batch", "v1", "jobs", "Job", namespaced=True)

ALL: Final[tuple[Resource, ...]] = (
    GPU_SCHEDULING_POLICY,
    COHORT,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    WORKLOAD_PRIORITY_CLASS,
    ADMISSION_CHECK,
    WORKLOAD,
    PRIORITY_CLASS,
    NAMESPACE,
    NODE,
    POD,
    CONFIG_MAP,
    SERVICE_ACCOUNT,
    CORE_EVENT,
    EVENT,
    LEASE,
    CUSTOM_RESOURCE_DEFINITION,
    JOB,
)

_BY_GROUP_KIND: Final = {(resource.group, resource.kind): resource for resource in ALL}


def resource_of(api_version: str, kind: str) -> Resource:
    """Return the resource of a manifest's `apiVersion` and `kind`.

    A known kind in another version keeps that version. Raises KeyError for an unknown kind.
    """
    group, _, version = api_version.rpartition("/")
    known = _BY_GROUP_KIND.get((group, kind))
    if known is None:
        raise KeyError(f"{kind} of {api_version} is no kind that gpufair handles.")
    if known.version == version:
        return known
    return Resource(known.group, version, known.plural, known.kind, known.namespaced)
