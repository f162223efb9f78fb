"""The command `status`: policies, tenants and tiers as they are now."""

import asyncio
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gpufair.cli import options
from gpufair.errors import GpufairError

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

Json = dict[str, Any]


@click.command()
@click.argument("name", required=False)
@options.kubeconfig
@options.output("table", "json")
@click.option("-w", "--watch", is_flag=True, help="Refresh until interrupted.")
def status(
    name: str | None, kubeconfig: str | None, context: str | None, output: str | None, watch: bool
) -> None:
    """Show one policy, or all: conditions, tenants and tiers.

    On a terminal a table, in a pipe JSON.
    """
    from gpufair.cli.connect import with_client
    from gpufair.cluster.client import Client

    async def work(client: Client) -> None:
        if watch:
            await _watch(client, name, output)
        else:
            show(await read(client, name), output)

    with_client(kubeconfig, context, work)


async def read(client: Any, name: str | None) -> list[Json]:
    """Return the policy of that name, or all of them, by name.

    Raises GpufairError when there is none of that name, or the CRD is not installed.
    """
    from gpufair.api.kinds import GPU_SCHEDULING_POLICY
    from gpufair.cli.connect import kind_unknown
    from gpufair.cluster.errors import ApiError

    try:
        found = await client.list_all(GPU_SCHEDULING_POLICY)
    except ApiError as error:
        if not error.is_not_found:
            raise
        raise kind_unknown() from error
    chosen = [raw for raw in found if name in (None, raw["metadata"]["name"])]
    if name is not None and not chosen:
        known = ", ".join(raw["metadata"]["name"] for raw in found) or "none"
        raise GpufairError(f"there is no policy {name!r} on the cluster; there is: {known}.")
    return sorted(chosen, key=lambda raw: str(raw["metadata"]["name"]))


def show(policies: Sequence[Json], output: str | None) -> None:
    """Print policies, for people or for programs."""
    if output == "json" or (output is None and not options.for_people()):
        click.echo(json.dumps(_shown(policies), indent=2))
        return
    from rich.console import Console

    console = Console()
    if not policies:
        console.print("There is no policy on the cluster.")
    for policy in policies:
        console.print(view(policy))


def _shown(policies: Sequence[Json]) -> list[Json]:
    return [{"name": p["metadata"]["name"], **(p.get("status") or {})} for p in policies]


async def _watch(client: Any, name: str | None, output: str | None) -> None:
    if output == "json" or (output is None and not options.for_people()):
        await _stream(client, name)
    from rich.console import Group
    from rich.live import Live

    with Live(refresh_per_second=4) as live:
        while True:
            live.update(Group(*map(view, await read(client, name))))
            await asyncio.sleep(1.0)


async def _stream(client: Any, name: str | None) -> None:
    """A JSON document a line, whenever something has changed."""
    last = ""
    while True:
        found = await read(client, name)
        line = json.dumps(_shown(found))
        if line != last:
            click.echo(line)
            last = line
        await asyncio.sleep(1.0)


def view(policy: Json) -> "Group":
    """One policy as tables: a line on its state, tenants, tiers."""
    from rich.console import Group
    from rich.text import Text

    found = policy.get("status") or {}
    header = Text.assemble(
        (policy["metadata"]["name"], "bold"),
        f"  utilization {found.get('utilization', '-')}"
        f"  worst share error {found.get('worstShareError', '-')}",
    )
    windows = found.get("activeWindows")
    lines = [Text(f"active windows: {', '.join(windows)}")] if windows else []
    if found.get("nextTransitionTime"):
        lines.append(Text(f"next transition: {found['nextTransitionTime']}"))
    return Group(
        header, *map(_condition, _notable(found)), *lines, tenant_table(found), tier_table(found)
    )


_WANTED = {"Conflict": "False", "Suspended": "False"}


def _notable(found: Json) -> list[Json]:
    """Ready, and whatever is not as it should be."""
    return [
        c
        for c in found.get("conditions") or ()
        if c["type"] == "Ready" or c["status"] != _WANTED.get(c["type"], "True")
    ]


def _condition(condition: Json) -> Any:
    from rich.text import Text

    good = condition["status"] == _WANTED.get(condition["type"], "True")
    colour = "green" if good else "yellow"
    head = f"{condition['type']}={condition['status']} ({condition['reason']})"
    return Text.assemble((head, colour), f" {condition.get('message', '')}")


def tenant_table(found: Json) -> "Table":
    """Who has what: a row per tenant, and per resource where there are several."""
    tenants = found.get("tenants") or ()
    resources = {resource for tenant in tenants for resource in tenant.get("nominal") or ()}
    several = len(resources) > 1
    table = _table("tenant", *(["resource"] if several else []))
    for column in ("weight", *_AMOUNTS, "share", "entitled", "error"):
        table.add_column(column, justify="right", no_wrap=True)
    for tenant in tenants:
        for resource in tenant.get("nominal") or {"": ""}:
            table.add_row(
                tenant["name"],
                *([resource.rpartition("/")[2]] if several else []),
                f"{tenant.get('weight', 1):g}",
                *(_amount(tenant, key, resource) for key in _AMOUNTS),
                *(tenant.get(key, "-") for key in ("share", "entitledShare", "shareError")),
            )
    return table


_AMOUNTS = ("nominal", "used", "borrowed", "pending")


def _amount(tenant: Json, key: str, resource: str) -> str:
    return str((tenant.get(key) or {}).get(resource, "0"))


def tier_table(found: Json) -> "Table":
    """What runs and waits in each tier."""
    table = _table("tier")
    for column in ("running", "pending", "longest wait"):
        table.add_column(column, justify="right", no_wrap=True)
    for tier in found.get("tiers") or ():
        row = (str(tier.get(key, "-")) for key in ("running", "pending", "longestWait"))
        table.add_row(tier["name"], *row)
    return table


def _table(*columns: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True, min_width=8)
    return table
