"""The command `diff`: what a policy would change on the cluster."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from gpufair.api.kinds import KUEUE_GROUP
from gpufair.api.policy import Policy
from gpufair.cli import options
from gpufair.cli.policy import load
from gpufair.errors import GpufairError
from gpufair.plan.difference import ObjectChange, counts, object_changes, value_text
from gpufair.plan.plan import plan

Changes = dict[str, list[ObjectChange]]

_STYLES = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "remove": ("-", "red"),
    "replace": ("±", "red"),
    "conflict": ("!", "magenta"),
}


@click.command()
@options.files
@options.kubeconfig
@options.output("text", "json")
def diff(
    filenames: tuple[str, ...], kubeconfig: str | None, context: str | None, output: str | None
) -> None:
    """Show what policies would change: exit 0 for nothing, 1 for something, above 1 on errors.

    Nothing is written. What the server or others fill in is no difference.
    """
    found = compare(load(filenames), kubeconfig, context)
    if output == "json":
        document = {name: [c.as_json() for c in listed] for name, listed in found.items()}
        click.echo(json.dumps(document, indent=2, default=str))
    else:
        for name, listed in found.items():
            _print(name, listed)
    if any(found.values()):
        sys.exit(1)


def compare(policies: Sequence[Policy], kubeconfig: str | None, context: str | None) -> Changes:
    """Compare policies with the cluster, as it is and at this moment.

    Raises GpufairError (exit code 2) when the cluster cannot be read or has no Kueue.
    """
    from gpufair.cli.connect import with_client
    from gpufair.cluster.snapshot import snapshot

    taken = with_client(kubeconfig, context, snapshot)
    if any(kind.group == KUEUE_GROUP for kind in taken.absent):
        raise GpufairError(
            "the cluster does not serve Kueue's API v1beta2: install Kueue 0.17 or later.",
            exit_code=2,
        )
    names = [policy.name for policy in policies]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GpufairError(f"policy {twice[0]} is given twice: give it once.", exit_code=2)
    now = datetime.now(UTC)
    return {
        policy.name: object_changes(
            policy.name, plan(policy, taken.facts(policy.name), now), taken.live
        )
        for policy in policies
    }


def _print(name: str, listed: Sequence[ObjectChange]) -> None:
    for change in listed:
        mark, colour = _STYLES[change.action]
        note = f": {change.message}" if change.message else ""
        click.secho(f"{mark} {change.title}{note}", fg=colour)
        for field in change.fields:
            before, after = value_text(field.live), value_text(field.desired)
            click.echo(f"    {field.path}: {before} -> {after}")
    figures = ", ".join(f"{count} to {action}" for action, count in counts(listed).items())
    click.echo(f"{name}: {figures or 'no difference'}.")
