"""Policies for tests: small ones, whose names carry the prefix of their test."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpufair.api.kinds import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    WORKLOAD_PRIORITY_CLASS,
    Resource,
)

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
QUEUE = "gpu"
KINDS: tuple[Resource, ...] = (
    TOPOLOGY,
    RESOURCE_FLAVOR,
    COHORT,
    WORKLOAD_PRIORITY_CLASS,
    PRIORITY_CLASS,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
)
"""Every kind that a policy becomes."""


def policy(name: str, **spec: Any) -> Json:
    """A policy with one flavor `NAME-h100` of 8 GPUs and the tiers `NAME-prod` and `NAME-dev`."""
    basis = {
        "flavors": [{"name": f"{name}-h100", "capacity": 8}],
        "tiers": [
            {"name": f"{name}-prod", "priority": 1000},
            {"name": f"{name}-dev", "priority": 200},
        ],
        "tenants": [],
    }
    return {
        "apiVersion": "gpufair.io/v1alpha1",
        "kind": "GpuSchedulingPolicy",
        "metadata": {"name": name},
        "spec": basis | spec,
    }


def tenant(
    name: str,
    flavor: str,
    nominal: int,
    namespaces: Sequence[str] = (),
    *,
    limits: Mapping[str, int] | None = None,
    **more: Any,
) -> Json:
    """A tenant with quota of one flavor; its namespaces default to one of its own name."""
    where = {} if "namespaceSelector" in more else {"namespaces": list(namespaces) or [name]}
    quota = {"flavor": flavor, "nominal": nominal} | dict(limits or {})
    return {"name": name, "quota": [quota]} | where | more


def pair(name: str, nominal: int = 4, **spec: Any) -> Json:
    """A policy of two tenants, `NAME-a` and `NAME-b`, with a namespace of that name each."""
    tenants = [tenant(f"{name}-{x}", f"{name}-h100", nominal) for x in "ab"]
    return policy(name, **({"tenants": tenants} | spec))
