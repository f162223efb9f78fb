"""Find a Go toolchain: on the PATH, or the one that the extra `gpufair[local]` installs."""

import os
import re
import shutil
import site
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpufair.errors import GpufairError

Version = tuple[int, ...]


@dataclass(frozen=True)
class Go:
    """A Go command that is new enough, and its version, such as `(1, 26, 8)`."""

    command: Path
    version: Version


def required_version(go_mod: str) -> Version:
    """Return the version of the `go` line of a go.mod; raise `GpufairError` without one."""
    found = re.search(r"^go (\d+(?:\.\d+)*)", go_mod, re.MULTILINE)
    if not found:
        raise GpufairError("The go.mod of the local cluster has no go line.")
    return _parse(found[1])


def find_go(minimum: Version) -> Go:
    """Return the first Go that is at least `minimum`; raise `GpufairError` when there is none."""
    for command in _candidates():
        version = _version_of(command)
        if version and version >= minimum:
            return Go(command, version)
    wanted = ".".join(map(str, minimum[:2]))
    raise GpufairError(
        f"Building the local cluster needs Go {wanted} or newer, and none was found: "
        "pip install 'gpufair[local]' brings one."
    )


def environment() -> dict[str, str]:
    """Return the environment of a Go command: the user's, less what would change the result."""
    fixed = {
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
        "GOFLAGS": "",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    dropped = {"GOOS", "GOARCH", "GOEXPERIMENT", "GODEBUG"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | fixed


def _candidates() -> list[Path]:
    """Return the Go of the PATH, then those that pip may have installed, if they exist."""
    on_path = shutil.which("go")
    found = [Path(on_path)] if on_path else []
    found += [Path(sys.executable).parent / "go", Path(site.getuserbase()) / "bin" / "go"]
    return [command for command in found if command.exists()]


def _version_of(command: Path) -> Version | None:
    try:
        done = subprocess.run(
            [command, "env", "GOVERSION"],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.match(r"go(\d+(?:\.\d+)*)", done.stdout.strip())
    return _parse(found[1]) if found else None


def _parse(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))
