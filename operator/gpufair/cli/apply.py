"""The command `apply`: policies onto the cluster, and wait until they are in force."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import click

from gpufair.cli import options
from gpufair.cli.policy import load
from gpufair.errors import GpufairError

Json = dict[str, Any]
_FIELD_MANAGER = "gpufair-cli"


@click.command()
@options.files
@options.kubeconfig
@click.option("--wait/--no-wait", default=True, help="Wait until the policy is Ready (default).")
@click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds to wait for each policy."
)
def apply(
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    wait: bool,
    timeout: float,
) -> None:
    """Apply policies and wait until they are in force.

    Server-side apply: a policy of a thousand tenants does not fit into kubectl's annotation.
    """
    from gpufair.cli.connect import with_client
    from gpufair.cluster.client import Client

    manifests = [policy.manifest() for policy in load(filenames)]

    async def work(client: Client) -> None:
        for manifest in manifests:
            made = await _apply(client, manifest)
            if wait:
                await _wait(client, made, timeout)

    with_client(kubeconfig, context, work)


async def _apply(client: Any, manifest: Json) -> Json:
    from gpufair.api.kinds import GPU_SCHEDULING_POLICY
    from gpufair.cli.connect import kind_unknown
    from gpufair.cluster.errors import ApiError

    name = manifest["metadata"]["name"]
    try:
        status, made = await client.apply(
            GPU_SCHEDULING_POLICY, manifest, force=True, field_manager=_FIELD_MANAGER
        )
    except ApiError as error:
        if error.is_not_found:
            raise kind_unknown() from error
        raise
    click.echo(f"{name}: {'created' if status == 201 else 'applied'}", err=True)
    found: Json = made
    return found


async def _wait(client: Any, made: Json, seconds: float) -> None:
    from gpufair.api.kinds import GPU_SCHEDULING_POLICY

    name, generation = made["metadata"]["name"], made["metadata"]["generation"]
    said = ""
    try:
        async with asyncio.timeout(seconds):
            while True:
                raw = await client.get(GPU_SCHEDULING_POLICY, name)
                state, message = _state(raw, generation)
                if message != said:
                    click.echo(f"{name}: {message}", err=True)
                    said = message
                if state == "True":
                    return
                if state in _FINAL:
                    sys.exit(_FINAL[state])
                await asyncio.sleep(0.3)
    except TimeoutError:
        hint = "" if said != _NO_OPERATOR else ". Is the operator running (gpufair run)?"
        raise GpufairError(
            f"{name} is not Ready after {seconds:g} s: {said}{hint}", exit_code=1
        ) from None


# Reasons of Ready=False that no waiting changes, with the exit code: suspension was asked for.
_FINAL = {"Invalid": 1, "EngineNotBuilt": 1, "SuspendedBySpec": 0}
_NO_OPERATOR = "waiting for the operator"


def _state(raw: Json, generation: int) -> tuple[str, str]:
    """The Ready status for this generation, and what to tell the user."""
    for condition in _conditions(raw):
        if condition["type"] == "Ready" and condition.get("observedGeneration", 0) >= generation:
            final = condition["reason"] in _FINAL
            state = condition["reason"] if final else condition["status"]
            return state, f"{condition['reason']}: {condition['message']}"
    return "", _NO_OPERATOR


def _conditions(raw: Json) -> Sequence[Json]:
    return (raw.get("status") or {}).get("conditions") or ()
