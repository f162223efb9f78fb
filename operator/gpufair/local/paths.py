"""Where the local cluster keeps things: a cache of binaries, and one directory per instance."""

import os
import re
from pathlib import Path

from gpufair.errors import GpufairError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def cache_dir() -> Path:
    """Return the cache of built binaries; `GPUFAIR_CACHE_DIR` overrides the user's cache."""
    if override := os.environ.get("GPUFAIR_CACHE_DIR"):
        return Path(override).absolute()
    import platformdirs

    return platformdirs.user_cache_path("gpufair")


def state_dir() -> Path:
    """Return the parent of all instances; `GPUFAIR_STATE_DIR` overrides the user's state."""
    if override := os.environ.get("GPUFAIR_STATE_DIR"):
        return Path(override).absolute() / "local"
    import platformdirs

    return platformdirs.user_state_path("gpufair") / "local"


def instance_dir(name: str) -> Path:
    """Return the directory of an instance; raise `GpufairError` when the name cannot be one."""
    if not _NAME.fullmatch(name):
        raise GpufairError(
            f"{name!r} cannot name a local cluster: use at most 40 lower-case letters, digits "
            "and dashes, with a letter or digit at both ends."
        )
    return state_dir() / name


def make(directory: Path) -> None:
    """Create a directory for its owner only; raise `GpufairError` when that cannot be done."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        if directory.exists() and not directory.is_dir():
            raise GpufairError(f"{directory} is no directory.") from None
    except OSError as error:
        raise GpufairError(f"{directory} cannot be created: {error.strerror}.") from error


def lock_path(name: str) -> Path:
    """Return the file whose lock serialises `up`, `down` and `reset` of one instance."""
    return state_dir() / f".{name}.lock"
