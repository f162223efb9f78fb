"""manifests/base as the server takes it."""

import subprocess
from pathlib import Path

import pytest
import yaml

from gpufair import local
from gpufair.api.kinds import NAMESPACE, POD

from .kit.kube import Kube
from .kit.process import NAMESPACE as HOME
from .kit.rights import BASE, ROOT
from .kit.space import condition
from .kit.wait import until

pytestmark = pytest.mark.usefixtures("account")


def test_it_builds_and_holds_the_crd(cluster: local.Instance) -> None:
    """With kubectl alone, and without switching off what keeps a kustomization in its root."""
    built = subprocess.run(
        [cluster.kubectl, "kustomize", BASE], capture_output=True, text=True, check=True
    )
    objects = list(yaml.safe_load_all(built.stdout))
    crd = next(item for item in objects if item["kind"] == "CustomResourceDefinition")
    [file] = (ROOT / "crds").glob("*.yaml")
    assert crd == yaml.safe_load(file.read_text())
    assert {item["kind"] for item in objects} >= {"Namespace", "ServiceAccount", "Deployment"}


def test_an_overlay_names_another_image(cluster: local.Instance, tmp_path: Path) -> None:
    """As the page about the manifests says."""
    page = (ROOT / "manifests" / "README.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    overlay = ROOT / "manifests" / f"overlay-{tmp_path.name}"
    overlay.mkdir()
    try:
        (overlay / "kustomization.yaml").write_text(example)
        built = subprocess.run(
            [cluster.kubectl, "kustomize", overlay], capture_output=True, text=True, check=True
        )
    finally:
        (overlay / "kustomization.yaml").unlink()
        overlay.rmdir()
    assert "image: registry.example.com/platform/gpufair:0.1.0" in built.stdout


def test_its_pod_is_admitted_where_only_restricted_pods_are(kube: Kube) -> None:
    labels = kube.get(NAMESPACE, HOME)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    [pod] = until(
        lambda: [
            pod
            for pod in kube.list(POD, HOME, selector="app.kubernetes.io/name=gpufair")
            if condition(pod, "Ready").get("status") == "True"
        ],
        "the Deployment's pod is there",
    )
    assert pod["spec"]["serviceAccountName"] == "gpufair"
