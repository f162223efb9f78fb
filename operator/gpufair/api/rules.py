"""CEL rules of the CRD: what the API server refuses beyond the schema.

Each stands beside the part of the model that it judges: a model, a field of it as
`(Model, "field")`, or the items of a list field as `(Model, "field[]")`; `self` is that value.
All of them are checks of `gpufair.api.checks` too, which judges more: what is missing here
needs more than CEL has. The functions used are those of Kubernetes 1.33.

Two idioms keep the cost linear, so that 1,000 tenants stay far below the server's budget when a
policy is judged: `[X].all(x, …)` gives a name to a value that is worked out once, and names are
looked up in a map that `transformMapEntry` makes of a list. They also keep the estimate low by
which the server accepts the rule at all, which else multiplies all list bounds.
Source: https://kubernetes.io/docs/reference/using-api/cel/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpufair.api.bands import LEAST_WIDTH
from gpufair.api.base import Model
from gpufair.api.fairness import Fairness
from gpufair.api.flavors import Flavor, Toleration
from gpufair.api.mig import Mig
from gpufair.api.policy import Policy, PolicySpec
from gpufair.api.scalars import DURATION_PATTERN, LONGEST_HOURS, PERCENTAGE_PATTERN, QUALIFIED_NAME
from gpufair.api.tenants import (
    Cohort,
    FlavorFungibility,
    LabelSelector,
    SelectorRequirement,
    Tenant,
)
from gpufair.api.tiers import Aging, Gang, Preemption, Tier
from gpufair.api.windows import (
    CALENDAR_DATE,
    TIME_OF_DAY,
    Dates,
    FairnessOverride,
    Window,
)

Place = type[Model] | tuple[type[Model], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One x-kubernetes-validations entry; `at` is the field below that a refusal names."""

    rule: str
    message: str
    at: str = ""
    details: str = ""
    """CEL expression of a better message; the plain one serves where it fails."""
    reason: str = "FieldValueInvalid"

    def schema(self) -> dict[str, Any]:
        """Return the entry as the CRD has it."""
        entry = {"rule": self.rule, "message": self.message, "reason": self.reason}
        if self.at:
            entry["fieldPath"] = self.at
        if self.details:
            entry["messageExpression"] = self.details
        return entry


def _immutable(field: str, message: str, when: str = "") -> Rule:
    same = (
        f"has(self.{field}) == has(oldSelf.{field})"
        f" && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
    return Rule(f"{when} || ({same})" if when else same, message, f".{field}")


def _either(first: str, second: str) -> Rule:
    return Rule(
        f"has(self.{first}) != has(self.{second})",
        f"needs either {first} or {second}: write exactly one of them",
    )


def _guarded(pattern: str, rule: str, message: str) -> Rule:
    """A rule for a string that holds only for strings of the pattern, which is refused apart."""
    return Rule(f"!self.matches(r'{pattern}') || {rule}", message)


_PERCENT = "double(self.substring(0, size(self) - 1))"
_UP_TO_100 = _guarded(
    PERCENTAGE_PATTERN,
    f"({_PERCENT} > 0.0 && {_PERCENT} <= 100.0)",
    "write a percentage above 0% and at most 100%",
)

FORMATS: Final[dict[str, tuple[Rule, ...]]] = {
    "duration": (
        Rule(
            f"self.matches(r'{DURATION_PATTERN}')",
            "is not a duration: write hours, minutes and seconds, as in '1h30m'",
        ),
        _guarded(
            DURATION_PATTERN,
            f"duration(self) <= duration('{LONGEST_HOURS}h')",
            "is longer than ten years: write a shorter duration",
        ),
    ),
    "positive": (
        _guarded(
            DURATION_PATTERN,
            "duration(self) > duration('0s')",
            "is not above zero: write a longer duration",
        ),
    ),
    "percentage": (
        Rule(
            f"self.matches(r'{PERCENTAGE_PATTERN}')",
            "is not a percentage: write a number and %, as in '10%'",
        ),
    ),
    "timeOfDay": (Rule(f"self.matches(r'{TIME_OF_DAY}')", "write a time from '00:00' to '23:59'"),),
    "date": (Rule(f"self.matches(r'{CALENDAR_DATE}')", "write a date such as '2027-01-31'"),),
    "timeZone": (
        Rule(
            "self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
            "is no IANA time zone: write one such as 'America/New_York' or 'UTC'",
        ),
    ),
}
"""Rules of strings, by the format that their type declares."""


def unique(keys: Sequence[str]) -> Rule:
    """The rule of a list whose items differ, or differ in the given fields."""
    key = " + '/' + ".join(f"x.{name}" for name in keys) or "x"
    return Rule(
        f"self.transformMapEntry(i, x, {{{key}: true}}).size() == self.size()",
        f"two entries have the same {' and '.join(keys)}: keep one"
        if keys
        else "an entry is there twice: keep one",
    )


_TOP = "self.map(t, t.priority).max()"
_BELOW = "2 * (size(self) - 1)"

TIERS = (
    Rule(
        "self.all(a, self.exists_one(b, b.priority == a.priority))",
        "two tiers have the same priority: write a distinct one for each",
    ),
    Rule(
        "self.all(a, self.all(b, b.priority <= a.priority"
        f" || a.priority + {LEAST_WIDTH} < b.priority))",
        f"two tiers are too close: write priorities at least {LEAST_WIDTH + 1} apart",
    ),
    Rule(
        f"self.all(a, a.priority == {_TOP} || a.priority + {LEAST_WIDTH + 1} + {_BELOW} <= {_TOP})",
        "the most urgent tier is too close to the next: with k tiers below it, its priority must"
        f" be at least 2k + {LEAST_WIDTH + 1} above theirs, because 2k are kept for lifted work",
    ),
    Rule(
        "self.all(a, !has(a.ceiling) || self.all(b, b.priority <= a.priority"
        " || a.ceiling < b.priority))",
        "a ceiling reaches into the band of the next tier: write one below that tier's priority",
    ),
    Rule(
        f"self.all(a, !has(a.ceiling) || a.priority == {_TOP}"
        f" || a.ceiling + 1 + {_BELOW} <= {_TOP})",
        "a ceiling reaches into the priorities kept for lifted work: with k tiers below the most"
        " urgent one, write at most its priority - 2k - 1",
    ),
    Rule(
        f"self.all(t, !has(t.aging) || !has(t.aging.limit) || t.priority == {_TOP}"
        " || t.aging.limit >= t.priority)",
        "an aging.limit is below its tier's priority: write at least the priority",
    ),
    Rule(
        f"self.all(t, !has(t.aging) || !has(t.aging.limit) || t.priority == {_TOP}"
        f" || (t.aging.limit + 2 + {_BELOW} <= {_TOP}"
        f" && self.all(b, !has(b.ceiling) || b.priority == {_TOP}"
        f" || self.exists(c, c.priority > b.priority && c.priority < {_TOP})"
        " || t.aging.limit < b.ceiling)))",
        "an aging.limit is above the highest that aging may reach, one below the ceiling of the"
        " tier just below the most urgent one: write at most that",
    ),
    Rule(
        "self.all(t, !has(t.preemption.protectFrom)"
        " || self.exists(x, x.name == t.preemption.protectFrom && x.priority >= t.priority))",
        "a preemption.protectFrom names no tier, or a less urgent one: write the tier's own name"
        " or that of a more urgent one",
    ),
)

_OLD_LEVELS = "!has(oldSelf.topologyLevels) || size(oldSelf.topologyLevels) == 0"
_NEW_FLAVOR = "is immutable once topologyLevels is set: write a flavor with a new name"
_NEW_TIER = "is immutable for a tier's name: write a tier with a new name"


def _names(field: str) -> str:
    """A map with the name of each item of a list of the spec, for look-ups."""
    names = f"self.{field}.transformMapEntry(i, x, {{x.name: true}})"
    always = field in ("flavors", "tiers")
    return names if always else f"(has(self.{field}) ? {names} : {{'': true}})"


def _known(owner: str, good: str, targets: str, message: str, *, table: str = "") -> Rule:
    """A rule that what the items of a list name exists.

    `good` says so of the item `o` by a map `names`; the refusal names the first bad item.
    """
    owners, table = f"{owner}s", table or _names(targets)
    bad = f"[{table}].map(names, [self.{owners}].map(all, all.filter(o, !({good})))[0])[0][0].name"
    text, values = f"{owner} %s {message}", bad
    if targets != "tenants":  # 1,000 names would be no help
        text, values = f"{text}: write one of %s", f"{bad}, self.{targets}.map(x, x.name)"
    return Rule(
        f"!has(self.{owners}) || [{table}].all(names,"
        f" [self.{owners}].all(all, all.all(o, {good})))",
        f"one of the {owners} {message}",
        f".{owners}",
        f"'{text}'.format([{values}])",
    )


_RESOURCES = (
    "self.flavors.transformMapEntry(i, f, {f.name:"
    " (size(f.resources) == 1 ? f.resources + [''] : f.resources)"
    ".transformMapEntry(j, r, {r: true})})"
)
"""For each flavor what a quota of it may have as resource."""


def _quota_known(quota: str) -> str:
    return (
        f"!has({quota}) || {quota}.all(q, q.flavor in names"
        " && [names[q.flavor]].all(m, q.resource in m))"
    )


_QUOTA_WORDS = (
    "has quota of a flavor or resource that spec.flavors does not have, or names no resource where"
    " its flavor has several"
)

_PARENTS = "self.transformMapEntry(i, c, {c.name: has(c.parent) ? c.parent : ''})"


def _acyclic() -> str:
    """Follow all parents 2, 4, … 64 steps up: where there is no cycle, all are at the top."""
    step = "[p.transformMap(k, v, v in p ? p[v] : '')].all(p, "
    return f"[{_PARENTS}].all(p, {step * 6}p.all(k, p[k] == ''){')' * 7}"


MOST_NAMES: Final = 10_000
"""Beyond so many namespaces the server would run out of budget and refuse a good policy."""
_NAMESPACES_TEXT = "'%s'.format([self.tenants.filter(t, has(t.namespaces)).map(t, t.namespaces)])"
_NAMESPACES = "x.replace('[', '').replace(']', '').split(', ').filter(n, n != '')"
"""All namespaces in one list: before 1.34, CEL flattens lists only by way of their text."""

_LENDING = "quantity(string(self.lendingLimit)).compareTo(quantity(string(self.nominal))) <= 0"

SPEC = (
    _known(
        "tenant",
        "!has(o.cohort) || o.cohort in names",
        "cohorts",
        "has a cohort that is not in spec.cohorts",
    ),
    _known(
        "tenant",
        "!has(o.tiers) || o.tiers.all(t, t in names)",
        "tiers",
        "has a tier that is not in spec.tiers",
    ),
    _known("tenant", _quota_known("o.quota"), "flavors", _QUOTA_WORDS, table=_RESOURCES),
    _known("cohort", _quota_known("o.quota"), "flavors", _QUOTA_WORDS, table=_RESOURCES),
    _known(
        "window",
        "!has(o.tenants) || o.tenants.all(t, t.name in names)",
        "tenants",
        "changes a tenant that is not in spec.tenants",
    ),
    _known(
        "window",
        f"!has(o.tenants) || o.tenants.all(t, {_quota_known('t.quota')})",
        "flavors",
        _QUOTA_WORDS,
        table=_RESOURCES,
    ),
    Rule(
        "!has(self.windows) || [self.windows].all(all, all.all(w, !has(w.tenants)"
        " || w.tenants.all(t, !has(t.quota) || t.quota.all(q, !has(q.lendingLimit)"
        f" || !has(q.nominal) || {_LENDING.replace('self', 'q')}))))",
        "a window has a lendingLimit above the nominal beside it: write at most nominal",
        ".windows",
    ),
    Rule(
        "!has(self.tenants)"
        f" || self.tenants.map(t, has(t.namespaces) ? size(t.namespaces) : 0).sum() > {MOST_NAMES}"
        f" || [{_NAMESPACES_TEXT}].all(x, [{_NAMESPACES}].all(l,"
        " l.transformMapEntry(i, n, {n: true}).size() == l.size()))",
        "two tenants have the same namespace: give it to one of them",
        ".tenants",
    ),
    Rule(
        "!has(self.tenants) || self.tenants.all(t, !has(t.borrowWithinCohort)"
        " || t.borrowWithinCohort.policy == 'Never' || (self.fairness.reclaim != 'Never'"
        " && (!has(self.windows) || !self.windows.exists(w, has(w.fairness)"
        " && has(w.fairness.reclaim) && w.fairness.reclaim == 'Never'))))",
        "a borrowWithinCohort.policy is LowerPriority while reclaim is Never: write Never in both"
        " places or in neither",
        ".tenants",
    ),
)

_KEYS = Rule(
    f"self.all(k, size(k) <= 317 && k.matches(r'{QUALIFIED_NAME}'))",
    "has a key that is no label's: write one such as 'example.com/name', at most 63 characters"
    " after the '/'",
)


RULES: Final[dict[Place, tuple[Rule, ...]]] = {
    Policy: (
        Rule(
            "!has(self.spec.cohorts) || self.spec.cohorts.all(c, c.name != self.metadata.name)",
            "a cohort has the policy's name, which is the pool's own cohort: write another",
            ".spec.cohorts",
        ),
    ),
    PolicySpec: SPEC,
    (PolicySpec, "tiers"): TIERS,
    (PolicySpec, "flavors"): (
        Rule(
            "self.all(a, self.all(b, a.resources == b.resources"
            " || !sets.intersects(a.resources, b.resources)))",
            "flavors that share a resource need the same resources in the same order",
        ),
        Rule(
            "self.all(a, self.all(b, a.resources != b.resources"
            " || a.otherResources == b.otherResources))",
            "flavors that share a resource need the same otherResources in the same order",
        ),
        Rule(
            "self.all(a, self.all(b, !sets.intersects(a.otherResources, b.resources)))",
            "a resource is among otherResources and among resources: leave it out of one of them",
        ),
    ),
    Flavor: (
        Rule(
            "!has(self.capacity) || !has(self.capacities)",
            "has both capacity and capacities: write one of them",
        ),
        Rule(
            "!has(self.capacity) || size(self.resources) == 1",
            "is one number for several resources: write capacities, with one for each",
            ".capacity",
        ),
        Rule(
            "!has(self.capacities) || self.capacities.all(r, r in self.resources)",
            "names a resource that the flavor does not have: write one of its resources",
            ".capacities",
        ),
        Rule(
            "!has(self.topologyLevels) || size(self.topologyLevels) == 0"
            " || (has(self.nodeLabels) && size(self.nodeLabels) > 0)",
            "topologyLevels needs at least one of nodeLabels: write a label of the nodes",
        ),
        _immutable("topologyLevels", _NEW_FLAVOR, _OLD_LEVELS),
        _immutable("nodeLabels", _NEW_FLAVOR, _OLD_LEVELS),
        _immutable("tolerations", _NEW_FLAVOR, _OLD_LEVELS),
    ),
    (Flavor, "nodeLabels"): (_KEYS,),
    (LabelSelector, "matchLabels"): (_KEYS,),
    (Mig, "nodeSelector"): (_KEYS,),
    (Flavor, "topologyLevels"): (
        Rule(
            "!self.exists(l, l == 'kubernetes.io/hostname')"
            " || self[size(self) - 1] == 'kubernetes.io/hostname'",
            "kubernetes.io/hostname can only be the last level: move it to the end",
        ),
    ),
    (Flavor, "nodeTaints"): (
        Rule(
            "self.all(a, self.exists_one(b, a.key == b.key && a.effect == b.effect))",
            "two taints have the same key and effect: remove one of them",
        ),
    ),
    Toleration: (
        Rule(
            "has(self.key) || self.operator == 'Exists'",
            "has no key: write one, or operator Exists for all keys",
        ),
        Rule(
            "self.operator != 'Exists' || !has(self.value) || self.value == ''",
            "has a value with operator Exists: remove the value, or write operator Equal",
        ),
        Rule(
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "has tolerationSeconds: write effect NoExecute with it, or remove it",
        ),
    ),
    Tier: (
        Rule(
            "!self.name.startsWith('system-')",
            "begins with 'system-', as only Kubernetes' own priority classes do: write another",
            ".name",
        ),
        Rule(
            f"!has(self.ceiling) || self.ceiling >= self.priority + {LEAST_WIDTH}",
            f"is too close to the priority: write at least the priority + {LEAST_WIDTH}",
            ".ceiling",
        ),
        Rule(
            "self.preemption.mode != 'AtCheckpoint' || has(self.checkpoint)",
            "is required with preemption mode AtCheckpoint: write requiredAfter and interval",
            ".checkpoint",
            reason="FieldValueRequired",
        ),
        _immutable("priority", _NEW_TIER),
        _immutable("ceiling", _NEW_TIER),
        _immutable("podPreemption", _NEW_TIER),
    ),
    (Aging, "increase"): (
        _guarded(
            PERCENTAGE_PATTERN,
            f"{_PERCENT} > 0.0",
            "is zero: write a percentage above 0%, or leave aging out",
        ),
    ),
    Preemption: (
        Rule(
            "!has(self.mode) || self.mode != 'AtCheckpoint' || has(self.maxLostWork)",
            "is required with mode AtCheckpoint: write a duration, as in '15m'",
            ".maxLostWork",
            reason="FieldValueRequired",
        ),
        Rule(
            "!has(self.mode) || self.mode != 'AtCheckpoint' || !has(self.maxLostWork)"
            f" || !self.maxLostWork.matches(r'{DURATION_PATTERN}')"
            " || duration(self.maxLostWork) > duration('0s')",
            "is zero, so nothing is ever preempted: write more, or mode Never",
            ".maxLostWork",
        ),
    ),
    (Gang, "minMember"): (_UP_TO_100,),
    (Fairness, "utilizationTarget"): (_UP_TO_100,),
    (FairnessOverride, "utilizationTarget"): (_UP_TO_100,),
    (PolicySpec, "cohorts"): (
        Rule(
            "self.all(c, !has(c.parent) || self.exists(p, p.name == c.parent))",
            "a parent names no cohort: write one of spec.cohorts, or leave it out for the pool",
        ),
        Rule(
            _acyclic(),
            "the parents of some cohorts form a cycle: give one of them another parent, or none",
        ),
    ),
    Cohort: (
        Rule(
            "!has(self.parent) || self.parent != self.name",
            "is the cohort itself: write another cohort, or leave it out",
            ".parent",
        ),
    ),
    Tenant: (
        Rule(
            "(has(self.namespaces) && size(self.namespaces) > 0) != has(self.namespaceSelector)",
            "needs either namespaces or namespaceSelector: write exactly one of them",
        ),
    ),
    (Tenant, "quota[]"): (
        Rule(
            f"!has(self.lendingLimit) || {_LENDING}",
            "is above nominal: write at most nominal",
            ".lendingLimit",
        ),
    ),
    LabelSelector: (
        Rule(
            "(has(self.matchLabels) && size(self.matchLabels) > 0)"
            " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "is empty, which selects every namespace: write a label to match",
        ),
    ),
    SelectorRequirement: (
        Rule(
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "operators In and NotIn need values, Exists and DoesNotExist take none",
            ".values",
        ),
    ),
    FlavorFungibility: (
        Rule(
            "!has(self.preference) || (has(self.whenCanBorrow) && has(self.whenCanPreempt)"
            " && self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",
            "needs TryNextFlavor for both whenCanBorrow and whenCanPreempt: write them, or leave it"
            " out",
            ".preference",
        ),
    ),
    Window: (_either("weekly", "dates"),),
    Dates: (
        Rule(
            f"!self.from.matches(r'{CALENDAR_DATE}') || !self.to.matches(r'{CALENDAR_DATE}')"
            " || timestamp(self.from + 'T00:00:00Z') < timestamp(self.to + 'T00:00:00Z')",
            "from and to must be days of the calendar, and to after from",
        ),
    ),
    Mig: (
        Rule(
            "(self.planning == 'Fixed') == (has(self.layout) && size(self.layout) > 0)",
            "is required with planning Fixed and has no meaning with Demand",
            ".layout",
        ),
    ),
}
"""Rules by the part of the model they judge."""
