"""What a plan is made of: desired objects, and the facts about the cluster that shape them."""

from dataclasses import dataclass, field
from functools import cached_property
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
from gpufair.plan.fieldset import MANAGER as FIELD_MANAGER

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = FIELD_MANAGER
POLICY_LABEL = "gpufair.io/policy"
ADOPT_ANNOTATION = "gpufair.io/adopt"

APPLY_ORDER: tuple[Resource, ...] = (
    TOPOLOGY,
    RESOURCE_FLAVOR,
    COHORT,
    WORKLOAD_PRIORITY_CLASS,
    PRIORITY_CLASS,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
)
"""Kinds in the order in which they are applied; they are removed in the reverse one."""

Key = tuple[Resource, str, str]
"""Kind, namespace (empty for cluster-scoped kinds) and name."""


@dataclass(frozen=True)
class Desired:
    """An object that should exist, as the YAML that its template gave."""

    resource: Resource
    name: str
    namespace: str
    text: str = field(repr=False)

    @property
    def key(self) -> Key:
        return (self.resource, self.namespace, self.name)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        from gpufair.plan.templates import parse  # jinja2 is slow to import

        return parse(self.text)

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {where}{self.name}"
