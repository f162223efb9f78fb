"""Options that several commands share."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from gpufair.errors import GpufairError

Command = Callable[..., Any]


def files(command: Command) -> Command:
    """`-f FILE…`: files, folders or `-`."""
    return click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        required=True,
        type=click.Path(allow_dash=True),
        metavar="FILE",
        help="A policy file, a folder of them, or - for standard input; may be repeated.",
    )(command)


def output(*formats: str) -> Callable[[Command], Command]:
    """`-o FORMAT`; without it the command chooses by whether people read the output."""
    return click.option(
        "-o", "--output", "output", type=click.Choice(formats), help="Form of the output."
    )


def kubeconfig(command: Command) -> Command:
    """`--kubeconfig` and `--context`, as kubectl has them."""
    command = click.option("--context", help="Context of the kubeconfig to use.")(command)
    return click.option(
        "--kubeconfig",
        type=click.Path(),
        help="Path of the kubeconfig; default: KUBECONFIG, then ~/.kube/config.",
    )(command)


def moment(text: str | None) -> datetime:
    """Read `--at`: RFC 3339 with an offset; None is now.

    Raises GpufairError when the text is no such time.
    """
    if text is None:
        return datetime.now(UTC)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not 1900 <= at.year <= 9000:
        raise GpufairError(
            f"--at: {text!r} is no time with a zone: write it as in 2026-12-01T09:00:00Z.",
            exit_code=2,
        )
    return at.astimezone(UTC)


def for_people() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()
