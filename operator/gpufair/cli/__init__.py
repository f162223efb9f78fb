"""The command line: `gpufair` and, as a kubectl plugin, `kubectl gpufair`.

Commands are imported when they are used, so that `validate` does not wait for kopf.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from gpufair import __version__
from gpufair.errors import GpufairError

COMMANDS = {
    "validate": ("policy", "Check policy files without a cluster."),
    "render": ("policy", "Print the objects that a policy asks for."),
    "diff": ("diff", "Show what a policy would change on the cluster."),
    "apply": ("apply", "Apply policies and wait until they are in force."),
    "status": ("status", "Show policies, tenants and tiers as they are now."),
    "run": ("run", "Run the operator."),
    "local": ("local", "A real control plane on this machine, without containers."),
    "demo": ("demo", "Play a bank's day of GPU work on the local cluster."),
    "crd": ("policy", "Print the CustomResourceDefinition."),
    "completion": ("shell", "Print the tab completion script for a shell."),
    "version": ("shell", "Print the version."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"gpufair.cli.{module}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output has left, as `head` does. Nothing is said, and nothing is
            # claimed either: the exit code is that of a program which SIGPIPE ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            if close:
                hint = f"No such command {args[0]!r}: did you mean {close[0]!r}?"
                raise click.UsageError(hint, ctx) from error
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpufair", message="%(prog)s %(version)s")
def gpufair() -> None:
    """Policy as code for shared GPU clusters.

    One GpuSchedulingPolicy becomes Kueue queues, quotas and priority classes, kept true by an
    operator. Try it on this machine: gpufair local up, gpufair demo.
    """


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line and exit; failures are one sentence on stderr."""
    # Looking for plugins of pydantic reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    called = Path(sys.argv[0]).name
    program = "kubectl gpufair" if called.startswith("kubectl-") else "gpufair"
    try:
        gpufair.main(args=arguments, prog_name=program, complete_var="_GPUFAIR_COMPLETE")
    except GpufairError as error:
        click.echo(f"gpufair: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        click.echo(f"gpufair: {error}.", err=True)
        sys.exit(2)
