"""A policy as Kueue objects (kueue.x-k8s.io/v1beta2) and priority classes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpufair.api.flavors import Flavor
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
from gpufair.api.policy import PolicySpec
from gpufair.api.tenants import Cohort, Tenant
from gpufair.api.tiers import Tier
from gpufair.plan.objects import Desired
from gpufair.plan.quotas import cohort_groups, layout, resource_groups, weight
from gpufair.plan.selectors import NAMESPACE_NAME, Facts
from gpufair.plan.templates import render

Render = Callable[[Resource, str, str, dict[str, Any]], Desired]
"""Kind, name, namespace and template values to the desired object."""


class KueuePlan:
    """The objects of one policy at one moment; `spec` has the active windows applied.

    `collisions` names, once `objects` is through, the namespaces that a second tenant claims.
    """

    def __init__(self, name: str, spec: PolicySpec, facts: Facts, render: Render) -> None:
        self.collisions: list[str] = []
        self._name = name
        self._spec = spec
        self._facts = facts
        self._template = render
        self._layout = layout(name, spec.flavors)

    def objects(self) -> Iterator[Desired]:
        """Yield the desired objects in the order in which they are applied."""
        spec = self._spec
        yield from (self._topology(f) for f in spec.flavors if f.topology_levels)
        yield from (self._flavor(f) for f in spec.flavors)
        if self._layout.shared and any(self._layout.shares(t.quota) for t in spec.tenants):
            yield self._flavor(Flavor.model_construct(name=self._layout.shared.flavors[0]))
        yield self._cohort(Cohort(name=self._name), parent="")
        yield from (self._cohort(c, parent=c.parent or self._name) for c in spec.cohorts)
        yield from (self._workload_priority_class(t) for t in spec.tiers)
        yield from (self._priority_class(t) for t in spec.tiers)
        yield from (self._cluster_queue(t) for t in spec.tenants)
        yield from self._local_queues()

    def _topology(self, flavor: Flavor) -> Desired:
        return self._render(TOPOLOGY, flavor.name, levels=flavor.topology_levels)

    def _flavor(self, flavor: Flavor) -> Desired:
        return self._render(
            RESOURCE_FLAVOR,
            flavor.name,
            node_labels=flavor.node_labels,
            node_taints=[_stated(t) for t in flavor.node_taints],
            tolerations=[_stated(t) for t in flavor.tolerations],
            topology=flavor.name if flavor.topology_levels else "",
        )

    def _cohort(self, cohort: Cohort, parent: str) -> Desired:
        return self._render(
            COHORT,
            cohort.name,
            parent=parent,
            weight=weight(cohort.weight),
            groups=cohort_groups(cohort.quota, self._layout),
        )

    def _workload_priority_class(self, tier: Tier) -> Desired:
        return self._render(
            WORKLOAD_PRIORITY_CLASS, tier.name, value=tier.priority, description=self._of_tier()
        )

    def _priority_class(self, tier: Tier) -> Desired:
        return self._render(
            PRIORITY_CLASS,
            tier.name,
            value=tier.priority,
            preemption_policy=tier.pod_preemption.value,
            description=self._of_tier(),
        )

    def _of_tier(self) -> str:
        return f"Tier of GpuSchedulingPolicy {self._name}."

    def _cluster_queue(self, tenant: Tenant) -> Desired:
        return self._render(
            CLUSTER_QUEUE,
            tenant.name,
            cohort=tenant.cohort or self._name,
            weight=weight(tenant.weight),
            namespace_selector=_namespace_selector(tenant),
            reclaim=self._spec.fairness.reclaim.value,
            borrow_within_cohort=_stated(tenant.borrow_within_cohort),
            flavor_fungibility=_stated(tenant.flavor_fungibility),
            admission_checks=tenant.admission_checks,
            groups=resource_groups(tenant.quota, self._layout),
        )

    def _local_queue(self, tenant: Tenant, namespace: str) -> Desired:
        return self._render(
            LOCAL_QUEUE,
            self._spec.local_queue_name,
            namespace=namespace,
            owner=self._facts.owner_uid,
            cluster_queue=tenant.name,
            stop_policy="Hold" if tenant.hold else "None",
        )

    def _local_queues(self) -> Iterator[Desired]:
        claimed: dict[str, str] = {}
        for tenant in self._spec.tenants:
            for namespace in self._facts.namespaces_of(tenant):
                first = claimed.setdefault(namespace, tenant.name)
                if first is tenant.name:
                    yield self._local_queue(tenant, namespace)
                else:
                    self.collisions.append(
                        f"namespace {namespace} stays with tenant {first}, the first in the list: "
                        f"tenant {tenant.name} must not select it"
                    )

    def _render(
        self,
        resource: Resource,
        name: str,
        /,
        *,
        namespace: str = "",
        owner: str = "",
        **values: Any,
    ) -> Desired:
        context = {"policy": self._name, "name": name, "namespace": namespace, "owner": owner}
        return self._template(resource, name, namespace, context | values)


def _namespace_selector(tenant: Tenant) -> dict[str, Any]:
    if tenant.namespace_selector is not None:
        return _stated(tenant.namespace_selector)
    return {
        "matchExpressions": [
            {"key": NAMESPACE_NAME, "operator": "In", "values": sorted(tenant.namespaces)}
        ]
    }


def _stated(model: Any) -> dict[str, Any]:
    """What a part that is passed through says beyond its defaults.

    Defaults are left out: the API server fills them into a policy, and Kueue refuses some of them
    (an empty value of a toleration that has the operator Exists).
    """
    if model is None:
        return {}
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return dumped


def stopped_queue(policy: str, owner: str, live: Mapping[str, Any], stop: str) -> Desired:
    """A LocalQueue of the policy as it is, but stopped: what is retired admits nothing more."""
    metadata = live["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    values = {
        "policy": policy,
        "name": name,
        "namespace": namespace,
        "owner": owner,
        "cluster_queue": live["spec"]["clusterQueue"],
        "stop_policy": stop,
    }
    return Desired(LOCAL_QUEUE, name, namespace, render("kueue/localqueue", values))
