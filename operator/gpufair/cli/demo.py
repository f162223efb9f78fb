"""The command `demo`: a bank's day of GPU work on the local cluster."""

import json
import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from gpufair.cli import options

if TYPE_CHECKING:
    from gpufair.demo.summary import Summary


def _hour(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    hours, _, minutes = text.partition(":")
    if hours.isdecimal() and minutes.isdecimal() and int(minutes) < 60:
        hour = int(hours) + int(minutes) / 60
        if 0 < hour <= 24:
            return hour
    raise click.BadParameter(f"{text!r} is no time of the day: write it as in 17:30.")


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(0.5, 1440),
    default=3.0,
    show_default=True,
    help="How long 24 hours take.",
)
@click.option(
    "--until",
    callback=_hour,
    default="24:00",
    show_default=True,
    metavar="HH:MM",
    help="End the day at this time.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, another day.")
@click.option("--keep", is_flag=True, help="Leave the local cluster running afterwards.")
@click.option("--name", default="demo", show_default=True, help="Name of the local cluster.")
@options.output("text", "json")
def demo(
    *, minutes: float, until: float, seed: int, keep: bool, name: str, output: str | None
) -> None:
    """Play a bank's day of GPU work on the local cluster.

    Three teams share 1,024 GPUs under the policy fraud-and-research: real Jobs, a real API server,
    the real Kueue; only the nodes pretend. The operator's clock follows the day, so that the
    policy's windows open and close in it.
    """
    from gpufair.demo.run import Options, played

    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    began = time.monotonic()
    chosen = Options(name=name, minutes=minutes, until=until, seed=seed, keep=keep)
    live = sys.stderr if output == "json" else sys.stdout
    with played(chosen, live) as summary:
        _print(summary, output, time.monotonic() - began)


def _print(summary: "Summary", output: str | None, wall: float) -> None:
    if output == "json":
        click.echo(json.dumps(summary.to_dict() | {"wall_s": round(wall, 1)}, indent=2))
        return
    from rich.console import Console

    from gpufair.demo import view

    width = None if options.for_people() else view.WIDTH
    Console(width=width, highlight=False).print(view.report(summary))
    click.echo(f"All of it took {int(wall) // 60} min {int(wall) % 60} s.")
