"""One lock per instance, which leaves no file behind."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpufair.errors import GpufairError
from gpufair.local import paths


@contextmanager
def instance_lock(name: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock of an instance; call `waiting` once if somebody else holds it now."""
    path = paths.lock_path(name)
    descriptor = _acquire(path, waiting)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)
        with contextlib.suppress(OSError):
            path.parent.rmdir()
            if path.parent.parent.name == "gpufair":
                path.parent.parent.rmdir()


def _acquire(path: Path, waiting: Callable[[], None] | None) -> int:
    """Lock the file and return its descriptor.

    Its holder unlinks it, so the file that we locked may not be the one that others see.
    """
    while True:
        paths.make(path.parent)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            # Whoever released the lock has removed the directory at this moment.
            continue
        except OSError as error:
            raise GpufairError(f"{path} cannot be written: {error.strerror}.") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                waiting()
            waiting = None
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)
