"""The CustomResourceDefinition, generated from the model.

Pydantic's JSON schema becomes a structural one: references are written out, optional fields lose
their null, the model's docstrings become descriptions, and CEL rules (`gpufair.api.rules`) are
put where they belong. The same model always gives the same text.
Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from gpufair.api.base import Model
from gpufair.api.policy import GROUP, KIND, VERSION, Policy
from gpufair.api.rules import FORMATS, RULES, Place, unique
from gpufair.api.scalars import MAX_NAME_LENGTH
from gpufair.api.status import PolicyStatus

PLURAL: Final = "gpuschedulingpolicies"
NAME: Final = f"{PLURAL}.{GROUP}"
_HEADER: Final = "# Generated from operator/gpufair/api by `gpufair crd`. Do not edit.\n"
_MARKER: Final = "x-gpufair-"
_DROPPED: Final = frozenset(
    {"title", "additionalProperties", "patternProperties", "propertyNames", "const"}
)
_FIRST: Final = ("description", "type", "format", "default", "enum")
_LAST: Final = ("items", "required", "properties", "x-kubernetes-validations")

Schema = dict[str, Any]


def crd_yaml() -> str:
    """Return the CRD as the YAML of `crds/gpufair.io_gpuschedulingpolicies.yaml`."""
    text = yaml.dump(
        crd(), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True, indent=2
    )
    return f"{_HEADER}{text}"


def crd() -> dict[str, Any]:
    """Return the CRD as an object for the API server."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["gsp"],
                "categories": ["gpufair"],
            },
            "scope": "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": _columns(),
                    "schema": {"openAPIV3Schema": schema()},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def _columns() -> list[dict[str, Any]]:
    return [
        _column("Ready", _condition("Ready", "status"), "Whether it is applied"),
        _column("Engine", ".spec.engine", "The queueing system"),
        _column("Tenants", ".status.tenantCount", "Number of tenants", kind="integer"),
        _column("Utilization", ".status.utilization", "Share of the GPUs that is in use"),
        _column("Share Error", ".status.worstShareError", "The largest of a tenant"),
        _column("Valid", _condition("Valid", "status"), "Whether it agrees with itself", wide=True),
        _column("Supported", _condition("Supported", "status"), "Acted on in full", wide=True),
        _column("Message", _condition("Ready", "message"), "Why it is ready or not", wide=True),
        _column("Age", ".metadata.creationTimestamp", "Time since its creation", kind="date"),
    ]


def _column(
    name: str, path: str, description: str, *, kind: str = "string", wide: bool = False
) -> dict[str, Any]:
    column = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


def schema() -> Schema:
    """Return the structural schema of a policy and its status."""
    root = _Generator(Policy).schema()
    properties = root["properties"]
    properties["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": MAX_NAME_LENGTH}},
    }
    properties["status"] = _Generator(PolicyStatus).schema()
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}
    return _ordered({**root, "required": ["spec"]})


def _ordered(node: Schema) -> Schema:
    """Return a schema with its keys in the order in which people read them."""
    nested = {
        key: {name: _ordered(item) for name, item in value.items()}
        if key == "properties"
        else _ordered(value)
        if key in ("items", "additionalProperties")
        else value
        for key, value in node.items()
    }
    middle = sorted(key for key in nested if key not in (*_FIRST, *_LAST))
    return {key: nested[key] for key in (*_FIRST, *middle, *_LAST) if key in nested}


class _Generator:
    """Turns the JSON schema of one model into a structural one."""

    def __init__(self, model: type[Model]) -> None:
        raw = model.model_json_schema(by_alias=True, mode="validation")
        self._definitions: dict[str, Schema] = raw.pop("$defs", {})
        self._root = raw
        self._model = model
        self._models = {item.__name__: item for item in _models()}

    def schema(self) -> Schema:
        return self._object(self._root, self._model)

    def _node(self, raw: Schema) -> Schema:
        """Return the structural form of any node."""
        raw = self._without_null(raw)
        reference = raw.get("$ref")
        if reference is not None:
            return self._referenced(reference.rpartition("/")[2], raw)
        node = {key: value for key, value in raw.items() if not self._is_dropped(key)}
        if "const" in raw:
            node["enum"] = [raw["const"]]
        if raw.get("type") == "array":
            node["items"] = self._node(raw["items"])
        values = _map_values(raw)
        if values is not None:
            node["additionalProperties"] = self._node(values)
        self._add_format_rules(raw, node)
        return _without_default_of_nothing(_with_whole_minimum(_with_integer_format(node)))

    def _referenced(self, name: str, beside: Schema) -> Schema:
        target = self._definitions[name]
        if name in self._models:
            node = self._object(target, self._models[name])
        else:
            node = self._node(target)
            node.pop("description", None)  # an enum's docstring speaks of the type
        if "default" in beside:
            default = beside["default"]
            node["default"] = {} if isinstance(default, dict) else default
        if "description" in beside:
            node["description"] = beside["description"]
        return node

    def _object(self, raw: Schema, model: type[Model]) -> Schema:
        docs = field_docs(model)
        node: Schema = {"type": "object"}
        if model.__doc__:
            node["description"] = _one_line(model.__doc__)
        if raw.get("required"):
            node["required"] = list(raw["required"])
        node["properties"] = {
            alias: self._property(model, alias, item, docs)
            for alias, item in raw["properties"].items()
        }
        return _with_rules(node, model)

    def _property(
        self, model: type[Model], alias: str, raw: Schema, docs: Mapping[str, str]
    ) -> Schema:
        node = self._node(raw)
        if alias in docs:
            node["description"] = docs[alias]
        if "items" in node:
            node["items"] = _with_rules(node["items"], (model, f"{alias}[]"))
        return _with_rules(node, (model, alias))

    def _without_null(self, raw: Schema) -> Schema:
        """An optional field is one that may be left out, not one that may be null."""
        options = raw.get("anyOf", [])
        if {"type": "null"} not in options:
            return raw
        (option,) = (item for item in options if item != {"type": "null"})
        rest = {key: value for key, value in raw.items() if key not in ("anyOf", "default")}
        return {**rest, **option}

    @staticmethod
    def _is_dropped(key: str) -> bool:
        return key in _DROPPED or key.startswith(_MARKER)

    @staticmethod
    def _add_format_rules(raw: Schema, node: Schema) -> None:
        formats = [raw[f"{_MARKER}format"]] if f"{_MARKER}format" in raw else []
        if raw.get(f"{_MARKER}positive"):
            formats.append("positive")
        rules = [rule.schema() for name in formats for rule in FORMATS[name]]
        if f"{_MARKER}unique" in raw:
            rules.append(unique(raw[f"{_MARKER}unique"]).schema())
        if rules:
            node["x-kubernetes-validations"] = rules


def _map_values(raw: Schema) -> Schema | None:
    """Return the schema of a map's values; what its keys must match is left to CEL."""
    patterns: Schema = raw.get("patternProperties", {})
    values = next(iter(patterns.values()), raw.get("additionalProperties"))
    return values if isinstance(values, dict) else None


def _models() -> Iterator[type[Model]]:
    """Yield every model of the API."""
    pending = list(Model.__subclasses__())
    while pending:
        found = pending.pop()
        pending += found.__subclasses__()
        yield found


def _with_rules(node: Schema, place: Place) -> Schema:
    rules = [rule.schema() for rule in RULES.get(place, ())]
    if not rules:
        return node
    return {**node, "x-kubernetes-validations": [*node.get("x-kubernetes-validations", []), *rules]}


def _with_integer_format(node: Schema) -> Schema:
    if node.get("type") != "integer" or "x-kubernetes-int-or-string" in node:
        return node
    small = node.get("maximum", 2**31) < 2**31
    return {**node, "format": "int32" if small else "int64"}


def _with_whole_minimum(node: Schema) -> Schema:
    """The server cuts a minimum to a whole number when it meets one: 0 would pass for 0.001."""
    least = node.get("minimum", 0)
    if least == int(least):
        return node
    return {**node, "minimum": int(least), "exclusiveMinimum": True}


def _without_default_of_nothing(node: Schema) -> Schema:
    """Empty lists, maps and strings say nothing that their absence does not."""
    if node.get("default", 0) in ([], {}, None) and "default" in node:
        return {key: value for key, value in node.items() if key != "default"}
    return node


def field_docs(model: type[Model]) -> dict[str, str]:
    """Return the docstrings that follow the fields of a model, by alias, from its source.

    Pydantic could collect them too, but would do so at each start of the program.
    """
    source = textwrap.dedent(inspect.getsource(model))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            alias = model.model_fields[field.target.id].alias or field.target.id
            docs[alias] = _one_line(str(after.value.value))
    return docs


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _Dumper(yaml.SafeDumper):
    """Writes lists indented below their key, and nothing by reference."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        del indentless
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True
