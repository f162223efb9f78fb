"""Policies to measure with."""

from typing import Any


def wide(name: str, tenants: int, namespaces: int = 3) -> dict[str, Any]:
    """A policy of two flavors and `tenants` tenants, each with quota of both."""
    return {
        "apiVersion": "gpufair.io/v1alpha1",
        "kind": "GpuSchedulingPolicy",
        "metadata": {"name": name},
        "spec": {
            "flavors": [
                {"name": f"{name}-h100", "capacity": 16 * tenants},
                {"name": f"{name}-a100", "capacity": 16 * tenants},
            ],
            "tiers": [
                {"name": f"{name}-prod", "priority": 1000},
                {"name": f"{name}-dev", "priority": 200},
            ],
            "tenants": [_tenant(name, index, namespaces) for index in range(tenants)],
        },
    }


def _tenant(policy: str, index: int, namespaces: int) -> dict[str, Any]:
    name = f"{policy}-{index:04}"
    return {
        "name": name,
        "namespaces": [f"{name}-{number}" for number in range(namespaces)],
        "weight": 1 + index % 4,
        "quota": [
            {"flavor": f"{policy}-h100", "nominal": 8, "borrowingLimit": 16},
            {"flavor": f"{policy}-a100", "nominal": 8, "lendingLimit": 4},
        ],
    }
