"""The rights in manifests/base, against what the code asks of the API server."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gpufair import __version__
from gpufair.api import kinds
from gpufair.api.kinds import CUSTOM_RESOURCE_DEFINITION, Resource
from gpufair.cluster.events import EventRecorder
from gpufair.cluster.lease import LeaderElection
from gpufair.plan.objects import APPLY_ORDER

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
PACKAGE = ROOT / "operator" / "gpufair"
RUNNING = ("handlers", "loops", "cluster")
"""The parts that make up the operator; commands run with the rights of their users."""

VERBS = {
    "get": ("get",),
    "list_pages": ("list",),
    "list_all": ("list",),
    "watch": ("watch",),
    "create": ("create",),
    "patch_merge": ("patch",),
    "patch_json": ("patch",),
    "apply": ("create", "patch"),
    "apply_status": ("patch",),
    "delete": ("delete",),
}
"""Verbs that a method of the client needs; a server-side apply may make the object."""

GENERAL = {
    ("cluster/applier.py", "get"): APPLY_ORDER,
    ("cluster/applier.py", "apply"): APPLY_ORDER,
    ("cluster/applier.py", "delete"): APPLY_ORDER,
}
"""Calls that are made for whatever resource they are given, and for which they are made."""
NOT_OPERATOR = ("cluster/snapshot.py",)
"""Lists that commands take where the operator watches."""

Right = tuple[str, str, str]
"""Group, resource, verb."""


def test_rights_are_those_that_the_code_uses() -> None:
    assert granted() == set(used())


def test_watched_kinds_are_found() -> None:
    """So that the search below cannot come up with nothing."""
    assert ("kueue.x-k8s.io", "workloads", "watch") in set(used())
    assert ("coordination.k8s.io", "leases", "create") in set(used())


def test_no_right_goes_further_than_its_name() -> None:
    for role in _objects("cluster-role.yaml", "roles.yaml"):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_roles_are_bound_to_the_account_of_the_deployment() -> None:
    roles = {
        (r["kind"], r["metadata"]["name"]) for r in _objects("cluster-role.yaml", "roles.yaml")
    }
    bindings = _objects("bindings.yaml")
    assert {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings} == roles
    [account] = _objects("service-account.yaml")
    [deployment] = _objects("deployment.yaml")
    name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
    for binding in bindings:
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        ]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == name
    assert deployment["metadata"]["namespace"] == namespace


def test_names_that_the_rights_are_limited_to() -> None:
    """The Lease by its name, and the namespace in which events about policies are written."""
    lease, events = _objects("roles.yaml")
    names = [rule["resourceNames"] for rule in lease["rules"] if "resourceNames" in rule]
    assert names == [["gpufair"]]
    assert inspect.signature(LeaderElection).parameters["name"].default == "gpufair"
    recorder = EventRecorder(None)  # type: ignore[arg-type]
    recorder.record(kinds.GPU_SCHEDULING_POLICY, {"name": "p"}, "Applied", "x")
    assert recorder._queue.get_nowait().body["metadata"]["namespace"] == "default"
    assert events["metadata"]["namespace"] == "default"


def test_everything_is_part_of_the_base() -> None:
    [kustomization] = _objects("kustomization.yaml")
    files = {file.name for file in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert {r for r in kustomization["resources"] if r != "../../crds"} == files
    crds = yaml.safe_load((ROOT / "crds" / "Kustomization").read_text())["resources"]
    assert set(crds) == {file.name for file in (ROOT / "crds").glob("*.yaml")}


def test_image_is_of_this_version() -> None:
    [kustomization] = _objects("kustomization.yaml")
    [image] = kustomization["images"]
    assert image["newTag"] == __version__
    [deployment] = _objects("deployment.yaml")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == image["name"]


def test_deployment_is_harmless() -> None:
    [deployment] = _objects("deployment.yaml")
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def granted() -> set[Right]:
    """What the roles allow, wherever."""
    return {
        (group, resource, verb)
        for role in _objects("cluster-role.yaml", "roles.yaml")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used() -> Iterator[Right]:
    """What the code asks for: calls of the client, informers, and what Kopf does by itself."""
    for part in RUNNING:
        for file in sorted((PACKAGE / part).rglob("*.py")):
            name = str(file.relative_to(PACKAGE))
            if name not in NOT_OPERATOR:
                tree = ast.parse(file.read_text())
                yield from _calls(tree, name)
                yield from _informers(tree)
    yield from _rights(kinds.GPU_SCHEDULING_POLICY, "list", "watch")
    yield from _rights(CUSTOM_RESOURCE_DEFINITION, "list", "watch")


def _calls(tree: ast.AST, file: str) -> Iterator[Right]:
    for call in _of_client(tree):
        assert isinstance(call.func, ast.Attribute)
        method = call.func.attr
        resource = _constant(call.args[0]) if call.args else None
        if resource is None:
            if (file, method) in GENERAL:
                for kind in GENERAL[file, method]:
                    yield from _rights(kind, *VERBS[method])
            else:
                # An informer's own calls; it is its resource that counts.
                assert file == "cluster/informer.py" or file == "cluster/client.py", (file, method)
            continue
        sub = "/status" if method == "apply_status" else ""
        yield from _rights(resource, *VERBS[method], sub=sub)


def _informers(tree: ast.AST) -> Iterator[Right]:
    """The kinds that informers are made for; `kind` stands for all that is applied."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Informer":
            resource = _constant(node.args[1])
            for kind in APPLY_ORDER if resource is None else (resource,):
                yield from _rights(kind, "list", "watch")


def _of_client(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        owner = node.func.value
        name = getattr(owner, "attr", getattr(owner, "id", ""))
        if node.func.attr in VERBS and name in ("client", "_client"):
            yield node


def _constant(node: ast.expr) -> Resource | None:
    found = getattr(kinds, node.id, None) if isinstance(node, ast.Name) else None
    return found if isinstance(found, Resource) else None


def _rights(resource: Resource, *verbs: str, sub: str = "") -> Iterator[Right]:
    for verb in verbs:
        yield resource.group, resource.plural + sub, verb


def _objects(*files: str) -> list[dict[str, Any]]:
    return [item for file in files for item in yaml.safe_load_all((BASE / file).read_text())]
