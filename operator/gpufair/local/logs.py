"""Read the end of a log file."""

from pathlib import Path

_WINDOW = 64 * 1024


def tail(log: Path, *, lines: int = 15, width: int = 400, since: int = 0) -> str:
    """Return the last lines of a log, each cut to `width` characters; empty without a log.

    `since` is an offset in bytes before which nothing is read.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(since, log.stat().st_size - _WINDOW))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(line[:width] for line in text.splitlines()[-lines:])
