"""Where the day takes place: nodes and namespaces that the policy asks for. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpufair.api.flavors import Flavor
from gpufair.api.policy import PolicySpec
from gpufair.api.tenants import Tenant
from gpufair.demo.day import GPUS_PER_POD, DayJob

HOSTNAME = "kubernetes.io/hostname"
NODES_PER_RACK = 8
RACKS_PER_ZONE = 4


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node to create."""

    name: str
    labels: Mapping[str, str]


def nodes(spec: PolicySpec) -> list[NodeSpec]:
    """The nodes of every flavor: as many as its capacity takes, in racks and zones."""
    return [node for flavor in spec.flavors for node in _nodes(flavor)]


def _nodes(flavor: Flavor) -> Iterator[NodeSpec]:
    for index in range((flavor.capacity or 0) // GPUS_PER_POD):
        zone, rest = divmod(index, NODES_PER_RACK * RACKS_PER_ZONE)
        rack, place = divmod(rest, NODES_PER_RACK)
        places = [f"{flavor.name}-z{zone + 1}", f"-r{rack + 1}", f"-n{place + 1}"]
        levels = [level for level in flavor.topology_levels if level != HOSTNAME]
        labels = {level: "".join(places[: depth + 1]) for depth, level in enumerate(levels)}
        name = "".join(places)
        yield NodeSpec(name, {**labels, **flavor.node_labels, HOSTNAME: name})


def namespaces(spec: PolicySpec, jobs: Iterable[DayJob]) -> list[dict[str, Any]]:
    """The namespaces that tenants list or jobs are in, with the labels that tenants select by."""
    tenants = {tenant.name: tenant for tenant in spec.tenants}
    names = {name: tenant for tenant in spec.tenants for name in tenant.namespaces}
    names |= {job.namespace: tenants[job.tenant] for job in jobs}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": _labels(tenant)},
        }
        for name, tenant in sorted(names.items())
    ]


def _labels(tenant: Tenant) -> dict[str, str]:
    selector = tenant.namespace_selector
    return {} if selector is None else dict(selector.match_labels)
