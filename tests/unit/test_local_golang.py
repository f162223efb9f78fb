"""Finding a Go toolchain."""

import site
import sys
from pathlib import Path

import pytest

from gpufair.errors import GpufairError
from gpufair.local import golang


def fake_go(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    command = directory / "go"
    command.write_text(f"#!/bin/sh\necho {version}\n")
    command.chmod(0o755)
    return command


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The directory on the PATH, and the one of the Python interpreter."""
    on_path, beside = tmp_path / "path", tmp_path / "python"
    beside.mkdir()
    monkeypatch.setenv("PATH", f"{on_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setattr(site, "getuserbase", lambda: str(tmp_path / "user"))
    return on_path, beside


@pytest.mark.parametrize(
    ("text", "version"), [("go 1.26.0\n", (1, 26, 0)), ("module m\n\ngo 1.25\n", (1, 25))]
)
def test_the_go_line_is_read(text: str, version: tuple[int, ...]) -> None:
    assert golang.required_version(text) == version


def test_a_go_mod_without_a_go_line_is_an_error() -> None:
    with pytest.raises(GpufairError, match="no go line"):
        golang.required_version("module m\n// go 1.2\n")


def test_the_go_on_the_path_comes_first(places: tuple[Path, Path]) -> None:
    command = fake_go(places[0], "go1.26.8")
    fake_go(places[1], "go1.27.3")
    assert golang.find_go((1, 26)) == golang.Go(command, (1, 26, 8))


@pytest.mark.parametrize("version", ["go1.25.9", "devel", ""])
def test_the_go_of_the_extra_is_taken_when_the_other_will_not_do(
    places: tuple[Path, Path], version: str
) -> None:
    fake_go(places[0], version)
    command = fake_go(places[1], "go1.27.3")
    assert golang.find_go((1, 26, 0)) == golang.Go(command, (1, 27, 3))


def test_the_go_of_a_user_install_is_found(places: tuple[Path, Path], tmp_path: Path) -> None:
    command = fake_go(tmp_path / "user" / "bin", "go1.27.3")
    assert golang.find_go((1, 26)).command == command


def test_a_release_candidate_counts_as_its_release(places: tuple[Path, Path]) -> None:
    fake_go(places[0], "go1.28rc1 X:nodwarf5")
    assert golang.find_go((1, 26)).version == (1, 28)


def test_without_a_go_the_error_says_what_to_install(places: tuple[Path, Path]) -> None:
    fake_go(places[0], "go1.20")
    with pytest.raises(GpufairError, match=r"Go 1\.26 or newer.*pip install 'gpufair\[local\]'"):
        golang.find_go((1, 26, 0))


def test_the_users_flags_do_not_change_what_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOFLAGS", "-race")
    monkeypatch.setenv("GOOS", "plan9")
    monkeypatch.setenv("GOPROXY", "https://proxy.example.com")
    environment = golang.environment()
    assert environment["GOFLAGS"] == ""
    assert "GOOS" not in environment
    assert environment["GOPROXY"] == "https://proxy.example.com"
