"""Commands about the program itself: version, completion."""

import json
import sys

import click

from gpufair import __version__
from gpufair.cli import options

KUBECTL_COMPLETION = """\
#!/bin/sh
# kubectl asks this for completions of `kubectl gpufair`; put it on your PATH, executable.
exec gpufair completion kubectl -- "$@"
"""


@click.command()
@options.output("text", "json")
def version(output: str | None) -> None:
    """Print the version."""
    if output == "json":
        click.echo(json.dumps({"version": __version__}))
    else:
        click.echo(f"gpufair {__version__}")


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "kubectl"]))
@click.argument("words", nargs=-1)
def completion(shell: str, words: tuple[str, ...]) -> None:
    """Print the tab completion script for a shell.

    \b
    bash:    source <(gpufair completion bash)
    zsh:     source <(gpufair completion zsh)
    fish:    gpufair completion fish | source
    kubectl: the command kubectl_complete-gpufair is installed beside gpufair.
    """
    from click.shell_completion import get_completion_class

    from gpufair.cli import gpufair

    if shell == "kubectl":
        _complete_for_kubectl(words)
        return
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(gpufair, {}, "gpufair", "_GPUFAIR_COMPLETE").source())


def complete_kubectl() -> None:
    """Entry point `kubectl_complete-gpufair`: kubectl runs it with the words typed so far."""
    _complete_for_kubectl(tuple(sys.argv[1:]))


def _complete_for_kubectl(words: tuple[str, ...]) -> None:
    # The answer is Cobra's: a line per choice, then a directive; 4 is "no file names", 0 "those".
    from click.shell_completion import ShellComplete

    from gpufair.cli import gpufair

    typed = list(words) or [""]
    completer = ShellComplete(gpufair, {}, "gpufair", "_GPUFAIR_COMPLETE")
    items = completer.get_completions(typed[:-1], typed[-1])
    names = [item for item in items if item.type == "plain"]
    for item in names:
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(":4" if names else ":0")
