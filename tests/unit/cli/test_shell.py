"""version and completion."""

import json

import pytest

from gpufair import __version__
from gpufair.cli.shell import complete_kubectl
from tests.unit.cli.conftest import Run


def test_version(run: Run) -> None:
    assert run("version").stdout == f"gpufair {__version__}\n"
    assert run("--version").stdout == f"gpufair {__version__}\n"
    assert json.loads(run("version", "-o", "json").stdout) == {"version": __version__}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_the_program(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "_GPUFAIR_COMPLETE" in result.stdout


def completed(run: Run, *words: str) -> tuple[list[str], str]:
    """The choices and the directive that kubectl gets."""
    *lines, directive = run("completion", "kubectl", "--", *words).stdout.splitlines()
    return [line.partition("\t")[0] for line in lines], directive


def test_kubectl_gets_the_commands_that_begin_so(run: Run) -> None:
    assert completed(run, "va") == (["validate"], ":4")
    names, directive = completed(run, "")
    assert {"validate", "render", "local"} <= set(names)
    assert directive == ":4"


def test_kubectl_gets_options_and_their_values(run: Run) -> None:
    assert "--filename" in completed(run, "validate", "--")[0]
    assert completed(run, "version", "-o", "j") == (["json"], ":4")
    assert completed(run, "local", "do")[0] == ["down"]


def test_kubectl_completes_files_itself(run: Run) -> None:
    assert completed(run, "validate", "-f", "pol") == ([], ":0")


def test_the_entry_point_reads_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-gpufair", "compl"])
    complete_kubectl()
    assert capsys.readouterr().out.splitlines()[0].startswith("completion\t")
