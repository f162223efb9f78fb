"""Jinja2 templates: desired state in, manifests out.

Every value goes through `tojson`, so no string of a policy can add a field: the filter gives JSON
that YAML reads back as the same string, whatever is in it.
"""

import json
import re
from functools import lru_cache
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from gpufair.resources import templates_dir

# YAML folds or refuses these inside quotes, while JSON lets them stand bare.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def to_json(value: Any) -> Markup:
    """Return JSON that is YAML too and reads back as `value`."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return Markup(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))  # noqa: S704


def parse(text: str) -> dict[str, Any]:
    """Read one rendered manifest."""
    manifest: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506
    return manifest


def render(name: str, context: dict[str, Any]) -> str:
    """Render the template `name` (such as `kueue/clusterqueue`) to the text of one manifest."""
    return _template(name).render(context)


@lru_cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(templates_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is YAML; tojson is its escaping
    )
    environment.filters["tojson"] = to_json
    return environment


@lru_cache
def _template(name: str) -> Template:
    return _environment().get_template(f"{name}.yaml.j2")
