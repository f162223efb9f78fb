"""validate, render, crd: what goes to stdout, what to stderr, and the exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufair.resources import crds_dir
from tests.unit.builders import quota, tenant, tier, weekly, window
from tests.unit.cli.conftest import Run, Write

AGING = {"increase": "10%", "every": "6h"}
TIERS = [tier("prod", 1000), tier("dev", 100, aging=AGING)]


# -- validate ------------------------------------------------------------------------------------


def test_a_valid_policy_is_exit_0_with_nothing_on_stdout(run: Run, write: Write) -> None:
    file = write()
    result = run("validate", "-f", file)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{file}: valid (pool: 1 tenants, 1 tiers)\n"


def test_an_error_is_exit_1_with_a_line_on_stdout(run: Run, write: Write) -> None:
    file = write(tenants=[tenant("nlp", cohort="nowhere"), tenant("cv", tiers=["none"])])
    result = run("validate", "-f", file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{file}: spec.tenants[0].cohort: ")
    assert lines[1].startswith(f"{file}: spec.tenants[1].tiers[0]: ")
    assert "valid (" not in result.stderr


def test_warnings_keep_exit_0_and_go_to_stderr(run: Run, write: Write) -> None:
    file = write(tiers=TIERS, tenants=[tenant("nlp", quota(99))])
    result = run("validate", "-f", file)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"warning: {file}: spec.flavors[0].capacity: " in result.stderr
    assert f"warning: {file}: Not acted on yet, all else is applied: spec.tiers[1].aging.\n" in (
        result.stderr
    )


def test_findings_as_json(run: Run, write: Write) -> None:
    file = write(tiers=TIERS, tenants=[tenant("nlp", cohort="nowhere")])
    result = run("validate", "-f", file, "-o", "json")
    assert result.exit_code == 1
    error, warning = json.loads(result.stdout)
    assert (error["file"], error["severity"], error["path"]) == (
        file,
        "error",
        "spec.tenants[0].cohort",
    )
    assert (warning["severity"], warning["path"]) == ("warning", "")
    assert result.stderr == ""


def test_json_of_a_valid_policy_is_an_empty_list(run: Run, write: Write) -> None:
    result = run("validate", "-f", write(), "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_a_syntax_error_names_its_line(run: Run, write: Write) -> None:
    file = write(text="apiVersion: gpufair.io/v1alpha1\nspec: [\n")
    result = run("validate", "-f", file, "-o", "json")
    (finding,) = json.loads(result.stdout)
    assert (result.exit_code, finding["path"]) == (1, "")
    assert finding["line"] >= 2
    assert run("validate", "-f", file).stdout.startswith(f"{file}:{finding['line']}: ")


@pytest.mark.parametrize("text", ["", "kind: Deployment\n", "- 1\n", "just text", "\x00\x01"])
def test_a_file_without_a_policy_is_an_error(run: Run, write: Write, text: str) -> None:
    file = write(text=text or "\n")
    result = run("validate", "-f", file)
    assert result.exit_code == 1
    assert result.stdout.startswith(file)


def test_a_file_that_is_not_there_is_an_error(run: Run) -> None:
    result = run("validate", "-f", "/nonexistent.yaml")
    assert (result.exit_code, result.stdout) == (
        1,
        "/nonexistent.yaml: cannot be read: No such file or directory\n",
    )


def test_all_files_are_judged(run: Run, write: Write) -> None:
    good, bad = write("good"), write("bad", tenants=[tenant("nlp", cohort="nowhere")])
    result = run("validate", "-f", bad, "-f", good)
    assert result.exit_code == 1
    assert f"{good}: valid" in result.stderr


def test_standard_input(run: Run, write: Write) -> None:
    result = run("validate", "-f", "-", input=Path(write()).read_text())
    assert result.exit_code == 0
    assert "<stdin>: valid (pool" in result.stderr


def test_a_folder_stands_for_its_files(run: Run, write: Write) -> None:
    folder = write("one").rpartition("/")[0]
    write("two")
    result = run("validate", "-f", folder)
    assert result.exit_code == 0
    assert result.stderr.count(": valid (") == 2


# -- render --------------------------------------------------------------------------------------


def documents(text: str) -> list[Any]:
    return list(yaml.safe_load_all(text))


def test_render_prints_the_objects_as_yaml(run: Run, write: Write) -> None:
    result = run("render", "-f", write())
    assert (result.exit_code, result.stderr) == (0, "")
    assert [d["kind"] for d in documents(result.stdout)] == [
        "ResourceFlavor",
        "Cohort",
        "WorkloadPriorityClass",
        "PriorityClass",
        "ClusterQueue",
        "LocalQueue",
    ]


def test_json_is_a_list_of_the_same_objects(run: Run, write: Write) -> None:
    file = write()
    found = json.loads(run("render", "-f", file, "-o", "json").stdout)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert found["items"] == documents(run("render", "-f", file).stdout)


def test_warnings_of_render_go_to_stderr(run: Run, write: Write) -> None:
    selector = {"matchLabels": {"team": "nlp"}}
    file = write(tiers=TIERS, tenants=[tenant(namespaceSelector=selector)])
    result = run("render", "-f", file)
    assert result.exit_code == 0
    assert "spec.tiers[1].aging" in result.stderr
    assert "note: tenant nlp selects namespaces by label" in result.stderr
    assert "LocalQueue" not in result.stdout


def test_at_chooses_the_moment(run: Run, write: Write) -> None:
    day = window(
        zone="Europe/Berlin",
        weekly=weekly("Tue", "09:00", "17:00"),
        tenants=[{"name": "nlp", "weight": 7}],
    )
    file = write(windows=[day])

    def weight(at: str) -> str:
        found = documents(run("render", "-f", file, "--at", at).stdout)
        return str(found[4]["spec"]["fairSharing"]["weight"])

    assert weight("2026-12-01T08:00:00Z") == weight("2026-12-01T09:00:00+01:00") == "7"
    assert weight("2026-12-01T07:59:59Z") == weight("2026-12-01T16:00:00Z") == "1"


@pytest.mark.parametrize(
    "at",
    [
        "noon",
        "2026-12-01",
        "2026-12-01T09:00:00",
        "",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_a_time_that_is_none_is_exit_2_with_a_sentence(run: Run, write: Write, at: str) -> None:
    day = window(weekly=weekly("Mon", "09:00", "17:00"), tenants=[{"name": "nlp", "weight": 7}])
    result = run("render", "-f", write(windows=[day]), "--at", at)
    assert result.stdout == ""
    assert str(result.exception).startswith(f"--at: {at!r} is no time with a zone: write it as in")
    assert getattr(result.exception, "exit_code", None) == 2


def test_an_invalid_policy_renders_nothing(run: Run, write: Write) -> None:
    file = write(tenants=[tenant("nlp", cohort="nowhere")])
    result = run("render", "-f", write("good"), "-f", file)
    assert result.stdout == ""
    assert f"{file}: spec.tenants[0].cohort: " in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == 2


def test_the_same_input_gives_the_same_output(run: Run, write: Write) -> None:
    file = write(tenants=[tenant("nlp"), tenant("cv")])
    assert run("render", "-f", file).stdout == run("render", "-f", file).stdout


def test_nodes_has_no_effect_yet_and_says_so(run: Run, write: Write) -> None:
    result = run("render", "-f", write(), "--nodes", "nodes.json")
    assert result.exit_code == 0
    assert "warning: --nodes has no effect yet" in result.stderr


def test_an_engine_that_is_not_built_renders_nothing_and_says_so(run: Run, write: Write) -> None:
    result = run("render", "-f", write(engine="Volcano"))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "Engine Volcano is not built yet" in result.stderr


# -- crd -----------------------------------------------------------------------------------------


def test_crd_prints_the_packaged_definition(run: Run) -> None:
    result = run("crd")
    (file,) = crds_dir().glob("*.yaml")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == file.read_text()
    assert documents(result.stdout)[0]["kind"] == "CustomResourceDefinition"
