"""Flavors: what Kueue's ResourceFlavors, Topologies and resource groups demand."""

from __future__ import annotations

from collections.abc import Iterator

from gpufair.api.checks.context import Context, listed
from gpufair.api.flavors import (
    Flavor,
    TaintEffect,
    Toleration,
    TolerationOperator,
    other_flavor,
)
from gpufair.api.messages import shown
from gpufair.api.problems import Problem, error

HOSTNAME = "kubernetes.io/hostname"
MOST_GROUPS = 16


def capacity_and_capacities(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        if flavor.capacity is not None and flavor.capacities is not None:
            yield error(path, "has both capacity and capacities: write one of them")


def capacity_of_several_resources(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        if flavor.capacity is not None and len(flavor.resources) > 1:
            yield error(
                f"{path}.capacity",
                f"is one number for {len(flavor.resources)} resources: write capacities, with one"
                f" for each of {listed(flavor.resources)}",
            )


def capacities_of_other_resources(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        for resource in flavor.capacities or {}:
            if resource not in flavor.resources:
                yield error(
                    f"{path}.capacities[{shown(resource)}]",
                    f"is no resource of the flavor: write {listed(flavor.resources)}, or add it to"
                    " resources",
                )


def resource_groups(context: Context) -> Iterator[Problem]:
    """Flavors that share a resource form a resource group, in which all lists are the same."""
    first: dict[str, tuple[str, Flavor]] = {}
    for path, flavor in _flavors(context):
        for resource in flavor.resources:
            other_path, other = first.setdefault(resource, (path, flavor))
            if other.resources != flavor.resources:
                yield error(
                    f"{path}.resources",
                    f"shares {resource} with {other_path}, so both need the same resources in the"
                    f" same order: write [{', '.join(other.resources)}]",
                )
                break
            if other.other_resources != flavor.other_resources:
                yield error(
                    f"{path}.otherResources",
                    f"differs from that of {other_path}, which shares {resource}: write"
                    f" [{', '.join(other.other_resources)}]",
                )
                break


def resources_covered_twice(context: Context) -> Iterator[Problem]:
    quota = {name: path for path, flavor in _flavors(context) for name in flavor.resources}
    for path, flavor in _flavors(context):
        for index, resource in enumerate(flavor.other_resources):
            if resource in quota:
                yield error(
                    f"{path}.otherResources[{index}]",
                    f"is {shown(resource)}, of which tenants have quota by {quota[resource]}"
                    ".resources: leave it out here",
                )


def reserved_name(context: Context) -> Iterator[Problem]:
    """With several groups, what their pods share is covered by a flavor of our own."""
    if not _shares(context):
        return
    reserved = other_flavor(context.policy.name)
    for path, flavor in _flavors(context):
        if flavor.name == reserved:
            yield error(
                f"{path}.name",
                f"is {shown(reserved)}, which this policy needs for otherResources: choose another",
            )


def too_many_groups(context: Context) -> Iterator[Problem]:
    groups = len(_groups(context)) + _shares(context)
    if groups > MOST_GROUPS:
        yield error(
            "spec.flavors",
            f"form {groups} resource groups, and Kueue allows {MOST_GROUPS}: let flavors share"
            " their resources, or write no otherResources",
        )


def _groups(context: Context) -> set[tuple[str, ...]]:
    return {tuple(flavor.resources) for flavor in context.spec.flavors}


def _shares(context: Context) -> bool:
    riding = any(flavor.other_resources for flavor in context.spec.flavors)
    return riding and len(_groups(context)) > 1


def topology_without_labels(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        if flavor.topology_levels and not flavor.node_labels:
            yield error(
                f"{path}.nodeLabels",
                "is empty, but topologyLevels is set: write at least one label of the nodes",
            )


def hostname_not_lowest(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        if HOSTNAME in flavor.topology_levels[:-1]:
            index = flavor.topology_levels.index(HOSTNAME)
            yield error(
                f"{path}.topologyLevels[{index}]",
                f"is {shown(HOSTNAME)}, which can only be the last level: move it to the end",
            )


def duplicate_taints(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        seen: dict[tuple[str, TaintEffect], int] = {}
        for index, taint in enumerate(flavor.node_taints):
            other = seen.setdefault((taint.key, taint.effect), index)
            if other != index:
                yield error(
                    f"{path}.nodeTaints[{index}]",
                    f"has the key and effect of nodeTaints[{other}]: remove one of them",
                )


def tolerations(context: Context) -> Iterator[Problem]:
    for path, flavor in _flavors(context):
        for index, toleration in enumerate(flavor.tolerations):
            message = _toleration_fault(toleration)
            if message:
                yield error(f"{path}.tolerations[{index}]", message)


def _toleration_fault(toleration: Toleration) -> str | None:
    exists = toleration.operator == TolerationOperator.EXISTS
    if toleration.key is None and not exists:
        return "has no key: write one, or operator Exists for all keys"
    if exists and toleration.value:
        return "has a value with operator Exists: remove the value, or write operator Equal"
    if toleration.toleration_seconds is not None and toleration.effect != TaintEffect.NO_EXECUTE:
        return "has tolerationSeconds: write effect NoExecute with it, or remove it"
    return None


def _flavors(context: Context) -> Iterator[tuple[str, Flavor]]:
    for index, flavor in enumerate(context.spec.flavors):
        yield f"spec.flavors[{index}]", flavor


CHECKS = (
    capacity_and_capacities,
    capacity_of_several_resources,
    capacities_of_other_resources,
    resource_groups,
    resources_covered_twice,
    reserved_name,
    too_many_groups,
    topology_without_labels,
    hostname_not_lowest,
    duplicate_taints,
    tolerations,
)
