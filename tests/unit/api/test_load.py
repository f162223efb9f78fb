"""Reading policies from files, folders, standard input and the server's JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpufair.api.load import InvalidPolicy, Loaded, load_files, load_text, parse_policy
from tests.unit.api.cases import Json, base, edited

SMALL = """\
apiVersion: gpufair.io/v1alpha1
kind: GpuSchedulingPolicy
metadata: {name: small}
spec:
  flavors: [{name: h100}]
  tiers: [{name: prod, priority: 1000}]
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"


def lines(loaded: list[Loaded]) -> list[str]:
    return [item.describe(problem) for item in loaded for problem in item.problems]


def names(loaded: list[Loaded]) -> list[str]:
    return [item.policy.name for item in loaded if item.policy]


def test_one_policy(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(SMALL)
    (loaded,) = load_files([path])
    assert loaded.policy is not None
    assert (loaded.file, loaded.line, loaded.problems) == (str(path), 1, [])
    assert loaded.policy.spec.tiers[0].priority == 1000


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"kind: ]")))
    assert lines(load_files(["-"]))[0].startswith("<stdin>:1: is no YAML: ")


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(base(), indent=1))
    assert names(load_files([path])) == ["pool"]
    assert names(load_text(json.dumps(base()).encode(), "-")) == ["pool"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "a": 2}', "p.json: the key 'a' appears twice in one object: keep one"),
        ('{"a": [{"b": 1, "b": 1}]}', "p.json: the key 'b' appears twice in one object: keep one"),
        ('{"a": NaN}', "p.json: NaN is no number that JSON has: write a finite one"),
        ('{\n"a": }', "p.json:2: is no JSON: Expecting value"),
        ("[" * 100_000, "p.json: is nested too deeply"),
        ("a: 1", "p.json:1: is no JSON: Expecting value"),
    ],
)
def test_json_refused(text: str, expected: str) -> None:
    assert lines(load_text(text.encode(), "p.json")) == [expected]


def test_json_with_a_number_of_many_digits() -> None:
    (line,) = lines(load_text(b'{"a": ' + b"9" * 10_000 + b"}", "p.json"))
    assert line.startswith("p.json: ")


def test_flow_mapping_is_yaml() -> None:
    head = "apiVersion: gpufair.io/v1alpha1, kind: GpuSchedulingPolicy"
    text = f"{{{head}, metadata: {{name: a}}, spec: {{}}}}"
    found = load_text(text.encode(), "p.yaml")
    assert lines(found) == [
        "p.yaml: spec.flavors: is required: write it",
        "p.yaml: spec.tiers: is required: write it",
    ]


def test_other_documents_are_skipped_with_a_note() -> None:
    found = load_text(f"{NAMESPACE}---\n{SMALL}---\n- 1\n".encode(), "p.yaml")
    assert names(found) == ["small"]
    assert lines(found) == ["p.yaml: skips 2 other documents (Namespace)"]
    assert [problem.severity for problem in found[0].problems] == ["note"]


def test_several_policies_are_told_apart_by_line() -> None:
    text = f"{SMALL}---\n{SMALL.replace('prod', 'PROD').replace('small', 'other')}"
    found = load_text(text.encode(), "p.yaml")
    assert names(found) == ["small"]
    (line,) = lines(found)
    assert line.startswith('p.yaml:8: spec.tiers[0].name: is "PROD": write ')


def test_list_of_kubectl() -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [base(), {"kind": "Node"}]})
    found = load_text(text.encode(), "p.yaml")
    assert names(found) == ["pool"]
    assert lines(found) == ["p.yaml: skips 1 other document (Node)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "p.yaml: holds no GpuSchedulingPolicy: it is empty"),
        ("# only a comment\n", "p.yaml: holds no GpuSchedulingPolicy: it is empty"),
        (NAMESPACE, "p.yaml: holds no GpuSchedulingPolicy: it holds 1 other document (Namespace)"),
        ("just text", "p.yaml: holds no GpuSchedulingPolicy: it holds 1 other document"),
        (
            SMALL.replace("v1alpha1", "v1"),
            'p.yaml: apiVersion: is "gpufair.io/v1": write gpufair.io/v1alpha1; did you mean'
            " gpufair.io/v1alpha1?",
        ),
        (
            SMALL.replace("GpuScheduling", "GPUScheduling"),
            'p.yaml: kind: is "GPUSchedulingPolicy": write GpuSchedulingPolicy; did you mean'
            " GpuSchedulingPolicy?",
        ),
        (
            SMALL.replace("priority: 1000", "priority: 1000, priority: 2000"),
            "p.yaml:6: the key 'priority' appears twice in one mapping, first on line 6: keep one",
        ),
        (SMALL.replace("metadata: {name: small}\n", ""), "p.yaml: metadata: is required: write it"),
    ],
)
def test_refused(text: str, expected: str) -> None:
    found = load_text(text.encode(), "p.yaml")
    assert lines(found) == [expected]
    assert names(found) == []


def test_not_utf8() -> None:
    found = load_text(f"# a\n# {'é'}\n".encode("latin-1"), "p.yaml")
    assert lines(found) == ["p.yaml:2: is not UTF-8: save the file in that encoding"]


def test_byte_order_mark() -> None:
    mark = b"\xef\xbb\xbf"
    assert names(load_text(mark + SMALL.encode(), "p.yaml")) == ["small"]
    assert names(load_text(mark + json.dumps(base()).encode(), "p.json")) == ["pool"]


def test_too_large() -> None:
    assert lines(load_text(b" " * (16 * 2**20 + 1), "p.yaml")) == ["p.yaml: is larger than 16 MiB"]


def test_missing_file(tmp_path: Path) -> None:
    path = str(tmp_path / "none.yaml")
    assert lines(load_files([path])) == [f"{path}: cannot be read: No such file or directory"]


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(SMALL)
    (tmp_path / "b.yml").write_text(NAMESPACE)
    (tmp_path / "c.json").write_text(json.dumps(base()))
    (tmp_path / "README.md").write_text("no policy")
    found = load_files([tmp_path])
    assert names(found) == ["small", "pool"]
    assert not any(problem.is_error for item in found for problem in item.problems)


def test_folder_without_a_policy(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(NAMESPACE)
    assert lines(load_files([tmp_path]))[-1] == (
        f"{tmp_path}: holds no file with a GpuSchedulingPolicy"
    )


def test_unquoted_times_and_dates_are_read_as_written() -> None:
    text = SMALL + (
        "  tenants: [{name: a, namespaces: [a], quota: [{flavor: h100, nominal: 1}]}]\n"
        "  windows:\n"
        "    - {name: n, timeZone: UTC, weekly: {days: [Mon], from: 22:00, to: 06:00},"
        " tenants: [{name: a, weight: 2}]}\n"
        "    - {name: d, timeZone: UTC, dates: {from: 2027-01-01, to: 2027-04-01}}\n"
    )
    (loaded,) = load_text(text.encode(), "p.yaml")
    assert loaded.policy is not None
    night, dates = loaded.policy.spec.windows
    assert night.weekly is not None
    assert (night.weekly.from_, night.weekly.to) == ("22:00", "06:00")
    assert dates.dates is not None
    assert dates.dates.from_ == "2027-01-01"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec.tiers[0].priority": "10000"}, "spec.tiers[0].priority"),
        ({"spec.tiers[0].priority": 10000.0}, "spec.tiers[0].priority"),
        ({"spec.tiers[0].priority": True}, "spec.tiers[0].priority"),
        ({"spec.suspend": 1}, "spec.suspend"),
        ({"spec.tenants[1].weight": "2"}, "spec.tenants[1].weight"),
        ({"spec.tenants[0].quota[0].nominal": 1.5}, "spec.tenants[0].quota[0].nominal"),
        ({"spec.tenants[0].quota[0].nominal": True}, "spec.tenants[0].quota[0].nominal"),
        ({"spec.unknown": 1}, "spec.unknown"),
    ],
)
def test_json_of_the_server_is_read_strictly(changes: Json, expected: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(edited(base(), changes))
    assert [problem.path for problem in caught.value.problems] == [expected]
    assert str(caught.value).startswith(expected)


def test_metadata_and_status_of_the_server_are_passed_over() -> None:
    raw = edited(base(), {"metadata.managedFields": [{"manager": "x"}], "metadata.generation": 3})
    raw["status"] = {"anything": [1, None]}
    policy = parse_policy(raw)
    assert policy.metadata.generation == 3
    assert policy.status == {"anything": [1, None]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_what_is_not_json(value: object) -> None:
    with pytest.raises(InvalidPolicy, match="is not JSON"):
        parse_policy(edited(base(), {"spec.tenants[1].weight": value}))


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(InvalidPolicy):
        parse_policy(edited(base(), {"spec.tenants[0].name": "\ud800"}))


def test_nulls_are_named_by_path() -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_policy(edited(base(), {"spec.tiers[2].aging.limit": None, "spec.mig": [None]}))
    assert [problem.path for problem in caught.value.problems] == [
        "spec.tiers[2].aging.limit",
        "spec.mig[0]",
    ]


@pytest.mark.parametrize(
    "value", ["\n", "x" * 500, {"a\nb": None}, {"x" * 500: 1}, 10**19, -(10**4000), [[[[1]]]]]
)
def test_messages_stay_on_one_short_line(value: object) -> None:
    for path in ("spec.engine", "spec.mig", "spec.fairness", "spec.tiers[0].priority", "spec.x"):
        with pytest.raises(InvalidPolicy) as caught:
            parse_policy(edited(base(), {path: value}))
        for problem in caught.value.problems:
            assert str(problem).isprintable()
            assert len(str(problem)) < 300


@pytest.mark.parametrize("depth", [150, 300, 900])
def test_deeply_nested_json(depth: int) -> None:
    text = json.dumps(base())[:-1] + ', "x": ' + "[" * depth + "]" * depth + "}"
    (line,) = lines(load_text(text.encode(), "p.json"))
    assert line.isprintable()


def test_deeply_nested_objects() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidPolicy, match="nested too deeply"):
        parse_policy(edited(base(), {"spec.mig": []}) | {"x": deep})


def test_the_number_of_problems_is_said() -> None:
    with pytest.raises(InvalidPolicy, match=r"spec.flavors: is required: write it \(and 1 more\)"):
        parse_policy(edited(base(), {"spec": {}}))
