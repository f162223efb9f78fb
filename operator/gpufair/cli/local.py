"""`gpufair local`: a control plane with GPU nodes on this machine, without containers."""

import sys
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from gpufair.local import Instance

Output = Literal["table", "json"]

_NAME = click.option(
    "--name", default="default", show_default=True, help="Which local cluster; several can run."
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default=None,
    help="Default: a table on a terminal, JSON in a pipe.",
)


@click.group()
def local() -> None:
    """Run a real control plane with GPU nodes on this machine, without containers."""


def _labels(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    labels = {}
    for value in values:
        key, separator, text = value.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE.")
        labels[key] = text
    return labels


@local.command()
@_NAME
@click.option(
    "--nodes", type=click.IntRange(0, 5000), default=4, show_default=True, help="How many nodes."
)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(0, 64),
    default=8,
    show_default=True,
    help="nvidia.com/gpu on each.",
)
@click.option(
    "--node-label",
    "node_labels",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_labels,
    help="A label on every node; may be repeated.",
)
@click.option("--audit/--no-audit", default=None, help="Write the API server's audit log.")
def up(
    name: str, nodes: int, gpus_per_node: int, node_labels: dict[str, str], audit: bool | None
) -> None:
    """Build what is missing, start the cluster, and return once all of it is ready.

    Pods run for the time in their annotation gpufair.io/run-for (90s, 1h30m), then succeed.
    """
    from gpufair import local as clusters
    from gpufair.local.progress import shown

    _end_like_ctrl_c()
    with shown() as progress:
        cluster = clusters.up(
            name,
            nodes=nodes,
            gpus_per_node=gpus_per_node,
            node_labels=node_labels,
            audit=audit,
            progress=progress,
        )
    _say_up(cluster, (nodes, gpus_per_node, node_labels))


def _say_up(cluster: "Instance", asked: tuple[int, int, dict[str, str]]) -> None:
    options = cluster.options
    if cluster.fresh:
        click.echo(f"Local cluster {cluster.name!r} is ready.", err=True)
    else:
        click.echo(f"Local cluster {cluster.name!r} already runs.", err=True)
        if asked != (options.nodes, options.gpus_per_node, options.node_labels):
            click.echo(
                f"It was made with {options.nodes} nodes of {options.gpus_per_node} GPUs and "
                "stays so: take it down first to change that.",
                err=True,
            )
    click.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@local.command()
@_NAME
@click.option("--all", "every", is_flag=True, help="All local clusters.")
def down(name: str, every: bool) -> None:
    """Stop the cluster and remove all it has written."""
    from gpufair import local as clusters

    source = click.get_current_context().get_parameter_source("name")
    if every and source is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--all takes every local cluster, --name one: write one of them.")
    for each in clusters.names() if every else [name]:
        if clusters.down(each):
            click.echo(f"Local cluster {each!r} is down.", err=True)
        else:
            click.echo(f"There is no local cluster {each!r}.", err=True)


@local.command()
@_NAME
def reset(name: str) -> None:
    """Make the cluster empty again, with the options it was made with."""
    from gpufair import local as clusters
    from gpufair.local.progress import shown

    _end_like_ctrl_c()
    with shown() as progress:
        cluster = clusters.reset(name, progress=progress)
    click.echo(f"Local cluster {name!r} is ready.", err=True)
    click.echo(f"export KUBECONFIG={cluster.kubeconfig}")


@local.command()
@_NAME
@_OUTPUT
def status(name: str, output: Output | None) -> None:
    """Show the cluster's components; exit 1 when one of them is down."""
    from gpufair import local as clusters

    cluster = clusters.get(name)
    rows = cluster.status()
    if (output or _default_output()) == "json":
        import json

        described = [_described(row) for row in rows]
        click.echo(
            json.dumps(
                {
                    "name": name,
                    "phase": cluster.state.phase,
                    "server": cluster.state.ports.get("kube-apiserver") and cluster.server,
                    "kubeconfig": str(cluster.kubeconfig),
                    "components": described,
                },
                indent=2,
            )
        )
    else:
        _table(rows)
    if not all(row.up for row in rows):
        sys.exit(1)


@local.command()
@_NAME
def kubeconfig(name: str) -> None:
    """Print the path of the kubeconfig."""
    from gpufair import local as clusters

    click.echo(clusters.get(name).kubeconfig)


@local.command()
def build() -> None:
    """Build the binaries into the cache, and start nothing."""
    from gpufair.local.build import toolbox
    from gpufair.local.progress import shown

    _end_like_ctrl_c()
    with shown() as progress:
        box = toolbox(progress)
    click.echo(box.root / "bin")


@local.command()
@click.argument("component")
@_NAME
@click.option("-n", "--lines", type=click.IntRange(1), help="Only the last lines.")
def logs(component: str, name: str, lines: int | None) -> None:
    """Print the log of a component, such as kueue or kube-apiserver."""
    from gpufair import local as clusters
    from gpufair.errors import GpufairError
    from gpufair.local.logs import tail

    cluster = clusters.get(name)
    if component not in cluster.expected():
        raise GpufairError(
            f"Local cluster {name!r} has no component {component!r}; "
            f"it has {', '.join(cluster.expected())}."
        )
    log = cluster.log(component)
    if lines:
        click.echo(tail(log, lines=lines, width=1_000_000))
    elif log.exists():
        with log.open(errors="replace") as text:
            for line in text:
                click.echo(line, nl=False)


@local.command(context_settings={"ignore_unknown_options": True})
@_NAME
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(name: str, arguments: tuple[str, ...]) -> None:
    """Run the kubectl that was built with the cluster, against it."""
    import os

    from gpufair import local as clusters

    cluster = clusters.get(name)
    command = [
        str(cluster.kubectl),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--cache-dir={cluster.directory / 'kubectl-cache'}",
        *arguments,
    ]
    os.execv(command[0], command)  # noqa: S606


def _end_like_ctrl_c() -> None:
    """Let SIGTERM end a start the way Ctrl-C does, which cleans up."""
    import signal

    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _default_output() -> Output:
    return "table" if sys.stdout.isatty() else "json"


def _described(row: Any) -> dict[str, Any]:
    return {
        "component": row.component,
        "pid": row.pid,
        "up": row.up,
        "rss_bytes": row.rss,
        "log": str(row.log),
    }


def _table(rows: list[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("COMPONENT", "STATE", "PID", "RSS", "LOG"):
        table.add_column(heading, justify="right" if heading in ("PID", "RSS") else "left")
    for row in rows:
        state = "[green]up[/green]" if row.up else "[red]down[/red]"
        memory = f"{row.rss / 2**20:.0f} MiB" if row.rss is not None else "-"
        table.add_row(row.component, state, str(row.pid or "-"), memory, str(row.log))
    total = sum(row.rss or 0 for row in rows)
    table.add_row("", "", "", f"{total / 2**20:.0f} MiB", "")
    Console(soft_wrap=not sys.stdout.isatty()).print(table)
