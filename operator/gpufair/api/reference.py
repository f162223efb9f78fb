"""The reference of all fields, as Markdown, from the models (docs/policy.md)."""

import sys
from collections.abc import Iterator
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gpufair.api.base import Model
from gpufair.api.crd import field_docs
from gpufair.api.policy import PolicySpec
from gpufair.api.scalars import Duration, Percentage, Quantity

_HEAD = """\
# The policy, field by field

<!-- Generated from operator/gpufair/api by `make goldens`. Do not edit. -->

`apiVersion: gpufair.io/v1alpha1`, `kind: GpuSchedulingPolicy`, cluster-scoped, short name `gsp`.
Durations are Go-style (`6h`, `1h30m`, `45s`; no days), percentages `10%`, quantities those of
Kubernetes. A field in bold is required. Complete policies are in [examples](examples).
"""
_SCALARS = {
    Duration: "duration",
    Percentage: "percentage",
    Quantity: "quantity",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
}


def reference() -> str:
    """Return the whole page."""
    sections = [_section(path, model) for path, model in _models("spec", PolicySpec)]
    return "\n".join([_HEAD, *sections])


def _models(path: str, model: type[Model]) -> Iterator[tuple[str, type[Model]]]:
    yield path, model
    for name, field in model.model_fields.items():
        part = _part(field.annotation)
        if part is not None:
            suffix = "[]" if _is_list(field.annotation) else ""
            yield from _models(f"{path}.{field.alias or name}{suffix}", part)


def _section(path: str, model: type[Model]) -> str:
    about = " ".join((model.__doc__ or "").split())
    lines = [f"## `{path}`", "", *([about, ""] if about else [])]
    lines += ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    docs = field_docs(model)
    lines += [_row(f.alias or name, f, docs) for name, f in model.model_fields.items()]
    return "\n".join([*lines, ""])


def _row(name: str, field: FieldInfo, docs: dict[str, str]) -> str:
    shown = f"**`{name}`**" if field.is_required() else f"`{name}`"
    default = field.get_default(call_default_factory=True)
    meaning = docs.get(name, "").replace("|", "\\|")
    cells = (shown, _type(field.annotation), _default(default), meaning)
    return f"| {' | '.join(cells)} |"


def _default(value: Any) -> str:
    if value is None or value is PydanticUndefined or value in ({}, [], "") or _is_model(value):
        return ""
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    shown = str(value).lower() if isinstance(value, bool) else f"{value}"
    return f"`{shown}`"


def _is_model(value: Any) -> bool:
    return isinstance(value, Model)


def _type(annotation: Any) -> str:
    annotation = _bare(annotation)
    if get_origin(annotation) is list:
        return f"list of {_type(get_args(annotation)[0])}"
    if get_origin(annotation) is dict:
        return f"map to {_type(get_args(annotation)[1])}"
    if isinstance(annotation, type):
        if issubclass(annotation, Model):
            return "object"
        if issubclass(annotation, Enum):
            return " \\| ".join(f"`{item.value}`" for item in annotation)
    return _SCALARS.get(annotation, "string")


def _part(annotation: Any) -> type[Model] | None:
    annotation = _bare(annotation)
    if get_origin(annotation) is list:
        return _part(get_args(annotation)[0])
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return None


def _is_list(annotation: Any) -> bool:
    return get_origin(_bare(annotation)) is list


def _bare(annotation: Any) -> Any:
    """The type without Annotated and without None."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        arguments = [a for a in get_args(annotation) if a is not type(None)]
        annotation = arguments[0]
    return annotation


if __name__ == "__main__":
    sys.stdout.write(reference())
