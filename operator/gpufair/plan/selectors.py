"""Which namespaces belong to a tenant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpufair.api.tenants import LabelSelector, SelectorOperator, SelectorRequirement, Tenant

NAMESPACE_NAME = "kubernetes.io/metadata.name"
_Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NamespaceFact:
    """A namespace of the cluster: what selectors look at."""

    name: str
    labels: _Labels = field(default_factory=dict)
    terminating: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the plan must know of the cluster.

    `namespaces` by name is None where there is no cluster to ask (render): then every namespace
    that is named is taken to exist. `owner_uid` is the policy's uid, for owner references; empty:
    none.
    """

    namespaces: Mapping[str, NamespaceFact] | None = None
    owner_uid: str = ""

    def namespaces_of(self, tenant: Tenant) -> list[str]:
        """Names of the tenant's namespaces that exist and stay, sorted."""
        if self.namespaces is None:
            return sorted(tenant.namespaces)
        if tenant.namespace_selector is None:
            named = (self.namespaces.get(name) for name in tenant.namespaces)
            return sorted(ns.name for ns in named if ns is not None and not ns.terminating)
        selector = tenant.namespace_selector
        return sorted(
            ns.name
            for ns in self.namespaces.values()
            if not ns.terminating and matches(selector, ns.labels)
        )

    def missing(self, tenant: Tenant) -> list[str]:
        """Names that the tenant lists and the cluster does not have."""
        known = self.namespaces
        return [] if known is None else [name for name in tenant.namespaces if name not in known]


def matches(selector: LabelSelector, labels: _Labels) -> bool:
    """Whether labels satisfy every part of the selector (meta/v1 LabelSelector)."""
    return all(labels.get(k) == v for k, v in selector.match_labels.items()) and all(
        _OPERATORS[part.operator](part, labels) for part in selector.match_expressions
    )


_OPERATORS: dict[SelectorOperator, Callable[[SelectorRequirement, _Labels], bool]] = {
    SelectorOperator.IN: lambda part, labels: labels.get(part.key) in part.values,
    SelectorOperator.NOT_IN: lambda part, labels: labels.get(part.key) not in part.values,
    SelectorOperator.EXISTS: lambda part, labels: part.key in labels,
    SelectorOperator.DOES_NOT_EXIST: lambda part, labels: part.key not in labels,
}
