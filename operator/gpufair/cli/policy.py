"""Commands that need no cluster: validate, render, crd."""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from gpufair.api.checks import check
from gpufair.api.load import Loaded, load_files
from gpufair.api.policy import Policy
from gpufair.api.problems import Problem, Severity, error, warning
from gpufair.cli import options
from gpufair.errors import GpufairError
from gpufair.plan.objects import Desired
from gpufair.plan.support import sentence, unsupported


def judge(loaded: Loaded) -> list[Problem]:
    """All findings about one document of a file."""
    problems = list(loaded.problems)
    if loaded.policy is not None:
        problems += check(loaded.policy)
        missing = unsupported(loaded.policy.spec)
        if missing:
            problems.append(warning("", sentence(missing)))
    return problems


def judge_all(filenames: Sequence[str]) -> list[tuple[Loaded, list[Problem]]]:
    """All findings about files: of each document, and that no two are of one policy."""
    judged = [(loaded, judge(loaded)) for loaded in load_files(filenames)]
    first: dict[str, Loaded] = {}
    for loaded, problems in judged:
        if loaded.policy is None:
            continue
        other = first.setdefault(loaded.policy.name, loaded)
        if other is not loaded:
            name = loaded.policy.name
            problems.insert(
                0, error("metadata.name", f"is {name!r}, as in {other.where}: keep one of them")
            )
    return judged


def load(filenames: Sequence[str]) -> list[Policy]:
    """Read valid policies from files, warnings to stderr.

    Raises GpufairError (exit code 2 as for diff) that lists what is wrong in them.
    """
    lines: list[str] = []
    policies: list[Policy] = []
    for loaded, problems in judge_all(filenames):
        for problem in problems:
            if not problem.is_error:
                click.echo(f"{problem.severity.value}: {loaded.describe(problem)}", err=True)
        lines += [loaded.describe(p) for p in problems if p.is_error]
        policies += [loaded.policy] if loaded.policy is not None else []
    if lines:
        raise GpufairError("\n".join(["the policy is not valid:", *lines]), exit_code=2)
    return policies


@click.command()
@options.files
@click.option("--cluster", is_flag=True, help="Ask a cluster too: its verdict, names, namespaces.")
@options.kubeconfig
@options.output("text", "json")
def validate(
    filenames: tuple[str, ...],
    cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str | None,
) -> None:
    """Check policy files: exit 0 when they are valid, 1 with a line for each error.

    Warnings keep exit 0. No cluster is needed, unless --cluster asks for one.
    """
    judged = judge_all(filenames)
    if cluster:
        _ask_cluster(judged, kubeconfig, context)
    if output == "json":
        click.echo(json.dumps([_finding(one, p) for one, found in judged for p in found], indent=2))
    else:
        _print_findings(judged)
    if any(problem.is_error for _, found in judged for problem in found):
        sys.exit(1)


def _ask_cluster(
    judged: list[tuple[Loaded, list[Problem]]], kubeconfig: str | None, context: str | None
) -> None:
    from gpufair.cli.against import cluster_problems

    policies = [loaded.policy for loaded, _ in judged if loaded.policy is not None]
    found = cluster_problems(policies, kubeconfig, context)
    for loaded, problems in judged:
        if loaded.policy is not None:
            problems.extend(found[loaded.policy.name])


def _finding(loaded: Loaded, problem: Problem) -> dict[str, Any]:
    finding: dict[str, Any] = {
        "file": loaded.file,
        "severity": problem.severity.value,
        "path": problem.path,
        "message": problem.message,
    }
    return finding | ({"line": problem.line} if problem.line else {})


def _print_findings(judged: list[tuple[Loaded, list[Problem]]]) -> None:
    for loaded, problems in judged:
        for problem in problems:
            line = loaded.describe(problem)
            if problem.is_error:
                click.echo(line)
            else:
                click.echo(f"{problem.severity.value}: {line}", err=True)
        if loaded.policy is not None and not any(p.is_error for p in problems):
            spec = loaded.policy.spec
            counts = f"{len(spec.tenants)} tenants, {len(spec.tiers)} tiers"
            click.echo(f"{loaded.where}: valid ({loaded.policy.name}: {counts})", err=True)


@click.command()
@options.files
@click.option("--at", metavar="TIME", help="The moment to render, RFC 3339; default: now.")
@click.option(
    "--nodes",
    type=click.Path(),
    metavar="FILE",
    help="Nodes to count live capacity from (kubectl get nodes -o json).",
)
@options.output("yaml", "json")
def render(
    filenames: tuple[str, ...], at: str | None, nodes: str | None, output: str | None
) -> None:
    """Print the objects that policies ask for, in the order in which they are applied.

    The same input at the same time gives the same output. No cluster is needed.
    """
    from gpufair.plan.plan import plan
    from gpufair.plan.selectors import Facts

    if nodes is not None:
        click.echo("warning: --nodes has no effect yet: state the flavors' capacity.", err=True)
    now: datetime = options.moment(at)
    objects: list[Desired] = []
    for policy in load(filenames):
        _warn_of_selectors(policy)
        objects += plan(policy, Facts(), now).objects
    if output == "json":
        items = [item.manifest for item in objects]
        click.echo(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))
    else:
        click.echo("---\n".join(item.text for item in objects), nl=False)


def _warn_of_selectors(policy: Policy) -> None:
    for tenant in policy.spec.tenants:
        if tenant.namespace_selector is not None:
            click.echo(
                f"{Severity.NOTE.value}: tenant {tenant.name} selects namespaces by label: its "
                "LocalQueues depend on the cluster and are not shown.",
                err=True,
            )


@click.command()
def crd() -> None:
    """Print the CustomResourceDefinition of GpuSchedulingPolicy.

    Install it with: gpufair crd | kubectl apply --server-side -f -
    """
    from gpufair.resources import crds_dir

    for file in sorted(crds_dir().glob("*.yaml")):
        click.echo(file.read_text(encoding="utf-8"), nl=False)
