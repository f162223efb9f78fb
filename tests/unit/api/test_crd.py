"""The CRD: the file is what the generator gives, and the schema is structural."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufair.api.crd import crd, crd_yaml, schema
from gpufair.api.load import InvalidPolicy, parse_policy
from gpufair.api.policy import Policy
from gpufair.api.rules import FORMATS, RULES, Rule
from tests.unit.api.cases import base, edited

FILE = Path(__file__).parents[3] / "crds" / "gpufair.io_gpuschedulingpolicies.yaml"
NOT_STRUCTURAL = {"$ref", "$defs", "const", "oneOf", "allOf", "not", "title", "propertyNames"}
UNBOUNDED = {".apiVersion", ".kind", ".metadata"}
RULE_LIST = [rule for rules in (*RULES.values(), *FORMATS.values()) for rule in rules]


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, node
    for name, value in node.get("properties", {}).items():
        yield from nodes(value, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if "additionalProperties" in node:
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


NODES = dict(nodes(schema()))
SPEC = {path: node for path, node in NODES.items() if path.startswith(".spec")}


def test_the_file_is_what_the_generator_gives() -> None:
    assert FILE.read_text(encoding="utf-8") == crd_yaml(), "run `make crd`"


def test_yaml_and_object_agree() -> None:
    assert yaml.safe_load(crd_yaml()) == crd()


def test_nothing_that_is_not_structural() -> None:
    for path, node in NODES.items():
        assert not NOT_STRUCTURAL & set(node), path
        assert not any(key.startswith("x-gpufair") for key in node), path
        assert node.get("type") or node.get("x-kubernetes-int-or-string"), path
        assert isinstance(node.get("additionalProperties", {}), dict), path
        assert "anyOf" not in node or node["x-kubernetes-int-or-string"], path
        assert node.get("exclusiveMinimum", True) is True, path
        assert not ({"properties", "additionalProperties"} <= set(node)), path


def test_everything_is_bounded() -> None:
    for path, node in NODES.items():
        if path in UNBOUNDED:
            continue
        if node.get("type") == "string":
            assert "maxLength" in node or "enum" in node, path
        if node.get("type") == "array":
            assert "maxItems" in node, path
            assert node["x-kubernetes-list-type"] in ("map", "set", "atomic"), path
        if "additionalProperties" in node:
            assert "maxProperties" in node, path


def test_keys_of_list_maps_are_required_or_have_a_default() -> None:
    for path, node in NODES.items():
        for key in node.get("x-kubernetes-list-map-keys", []):
            item = node["items"]
            assert key in item["required"] or "default" in item["properties"][key], path


def test_only_named_things_merge_item_by_item() -> None:
    """The record of owners would outgrow the policy; and in a set, a default that nobody owns would
    be added to what is applied later."""
    merged = {
        path.rpartition(".")[2]: node["x-kubernetes-list-map-keys"]
        for path, node in SPEC.items()
        if node.get("x-kubernetes-list-type") in ("map", "set")
    }
    named = ("flavors", "tiers", "cohorts", "tenants", "windows")
    assert merged == {field: ["name"] for field in named}


def test_a_weight_of_zero_is_below_the_minimum() -> None:
    """The server compares whole numbers with the minimum cut to a whole number."""
    for path, node in SPEC.items():
        if path.endswith(".weight"):
            assert (node["minimum"], node["exclusiveMinimum"]) == (0, True), path


@pytest.mark.parametrize(
    ("path", "default"),
    [
        (".spec.engine", "Kueue"),
        (".spec.deletionPolicy", "Wait"),
        (".spec.queueName", "gpu"),
        (".spec.fairness", {}),
        (".spec.fairness.reclaim", "LowerPriority"),
        (".spec.fairness.window", "168h"),
        (".spec.flavors[].resources", ["nvidia.com/gpu"]),
        (".spec.flavors[].otherResources", ["cpu", "memory", "ephemeral-storage"]),
        (".spec.tiers[].preemption", {}),
        (".spec.tiers[].preemption.mode", "Anytime"),
        (".spec.tiers[].gang", {}),
        (".spec.tiers[].gang.minMember", "100%"),
        (".spec.tiers[].podPreemption", "Never"),
        (".spec.tenants[].weight", 1),
        (".spec.tenants[].quota[].resource", ""),
        (".spec.mig[].cooldown", "30m"),
    ],
)
def test_defaults(path: str, default: Any) -> None:
    assert NODES[path]["default"] == default


def test_a_default_object_has_defaults_to_fill() -> None:
    for path, node in SPEC.items():
        if node.get("default") == {}:
            assert any("default" in item for item in node["properties"].values()), path
            assert not node.get("required"), path


def test_optional_parts_have_no_default() -> None:
    for path in (".spec.tiers[].aging", ".spec.preemptionRateLimit", ".spec.tenants[].cohort"):
        assert "default" not in NODES[path], path


def test_every_field_of_the_model_is_there() -> None:
    spec = Policy.model_json_schema(by_alias=True)["$defs"]
    for name in ("PolicySpec", "Tier", "Tenant", "Window", "Flavor", "Mig"):
        aliases = set(spec[name]["properties"])
        assert any(set(node.get("properties", {})) == aliases for node in SPEC.values()), name


def test_fields_are_described() -> None:
    assert SPEC[".spec.queueName"]["description"] == (
        "Name of the LocalQueue in each tenant namespace."
    )
    described = [path for path, node in SPEC.items() if node.get("description")]
    assert len(described) > 60


def test_every_rule_is_in_the_schema() -> None:
    found = [
        rule["rule"] for node in NODES.values() for rule in node.get("x-kubernetes-validations", [])
    ]
    for rule in RULE_LIST:
        assert rule.rule in found, rule.message


@pytest.mark.parametrize("rule", RULE_LIST, ids=lambda rule: rule.message[:40])
def test_rules_speak_plainly(rule: Rule) -> None:
    assert rule.message.isprintable()
    assert not rule.message.endswith(".")
    assert "\n" not in rule.rule
    assert len(rule.message) < 300


def test_printer_columns() -> None:
    (version,) = crd()["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert shown == ["Ready", "Engine", "Tenants", "Utilization", "Share Error", "Age"]
    for column in columns:
        field = column["jsonPath"].split("[?")[0]
        assert field in NODES or field.startswith(".metadata"), field
    assert version["subresources"] == {"status": {}}


def test_names() -> None:
    names = crd()["spec"]["names"]
    assert (names["shortNames"], names["categories"]) == (["gsp"], ["gpufair"])
    assert crd()["spec"]["scope"] == "Cluster"
    assert crd()["metadata"]["name"] == "gpuschedulingpolicies.gpufair.io"


def test_enums_are_those_of_the_model() -> None:
    for choice in SPEC[".spec.tiers[].preemption.mode"]["enum"]:
        mode = {"spec.tiers[0].preemption": {"mode": choice, "maxLostWork": "1m"}}
        parse_policy(edited(base(), mode))
    with pytest.raises(InvalidPolicy):
        parse_policy(edited(base(), {"spec.tiers[0].preemption": {"mode": "Sometimes"}}))
