"""The program as a whole: processes, exit codes, and what a failure looks like."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpufair.cli import COMMANDS, gpufair
from tests.unit.cli.conftest import Run, Write

PROGRAM = [sys.executable, "-m", "gpufair"]


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=clean | environment,
        timeout=60,
        check=False,
    )


def modules_after(code: str) -> set[str]:
    """Top-level modules of a fresh interpreter that has run the code."""
    tail = "; print(' '.join({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}{tail}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


HEAVY = {"kopf", "kubernetes", "aiohttp", "rich", "cryptography", "jinja2"}


@pytest.mark.parametrize("command", ["validate", "render"])
def test_commands_without_a_cluster_import_nothing_for_one(write: Write, command: str) -> None:
    run = f"gpufair.main(['{command}', '-f', '{write()}'], standalone_mode=False)"
    found = modules_after(f"from gpufair.cli import gpufair; {run}")
    unneeded = HEAVY - ({"jinja2"} if command == "render" else set())
    assert found & unneeded == set()
    assert "gpufair" in found


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = "from gpufair.cli import gpufair; gpufair.main(['--help'], standalone_mode=False)"
    assert modules_after(code) & {*HEAVY, "pydantic", "yaml"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists_and_has_help(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: gpufair {name}")


def test_help_lists_every_command(run: Run) -> None:
    text = run("--help").stdout
    assert all(f"  {name} " in text for name in COMMANDS)
    assert run("-h").stdout == text


def test_an_unknown_command_suggests_the_closest(run: Run) -> None:
    result = run("validat")
    assert result.exit_code == 2
    assert "No such command 'validat': did you mean 'validate'?" in result.stderr


def test_an_unknown_command_like_none_suggests_none(run: Run) -> None:
    result = run("xyzzy")
    assert result.exit_code == 2
    assert "did you mean" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate"],
        ["render"],
        ["validate", "-f", "x", "-o", "xml"],
        ["apply"],
        ["run", "--no-such-option"],
        ["completion", "tcsh"],
    ],
)
def test_wrong_use_is_exit_2_with_a_hint(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["render", "-f", "/nonexistent"], "the policy is not valid:"),
        (["status"], "There is no kubeconfig"),
        (["diff", "-f", "POLICY"], "There is no kubeconfig"),
        (["apply", "-f", "POLICY"], "There is no kubeconfig"),
        (["validate", "--cluster", "-f", "POLICY"], "There is no kubeconfig"),
        (["run"], "There is no kubeconfig"),
    ],
)
def test_failures_are_a_sentence_on_stderr_and_no_traceback(
    write: Write, arguments: list[str], said: str
) -> None:
    file = write()
    done = process(*(file if a == "POLICY" else a for a in arguments), KUBECONFIG="/nonexistent")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith(f"gpufair: {said}")
    assert "Traceback" not in done.stderr


def test_as_a_plugin_it_calls_itself_kubectl_gpufair() -> None:
    code = (
        "import sys; sys.argv = ['/usr/bin/kubectl-gpufair', 'xyzzy']; "
        "from gpufair.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("Usage: kubectl gpufair ")


@pytest.mark.parametrize("arguments", [["crd"], ["version"], ["validate", "-f", "/nonexistent"]])
def test_a_reader_that_has_left_is_met_in_silence_and_not_with_success(
    arguments: list[str],
) -> None:
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written) as output:
        done = subprocess.run(
            [*PROGRAM, *arguments], stdout=output, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as output:
        done = subprocess.run(
            [*PROGRAM, "crd"], stdout=output, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "gpufair: [Errno 28] No space left on device.\n"


def test_the_group_lists_what_it_can_run() -> None:
    context = gpufair.make_context("gpufair", ["version"])
    assert gpufair.list_commands(context) == list(COMMANDS)
    assert gpufair.get_command(context, "nothing") is None
