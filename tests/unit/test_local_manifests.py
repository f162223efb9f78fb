"""Bundles of manifests."""

from pathlib import Path

import pytest

from gpufair.errors import GpufairError
from gpufair.local import manifests

RENDERED = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: c}
spec:
  description: kept
  podSets:
    description: dropped
    properties:
      description: {type: string, description: dropped}
---
kind: Deployment
---
kind: ClusterRole
---
"""


def kubectl(directory: Path, body: str) -> Path:
    command = directory / "kubectl"
    command.write_text(f"#!/bin/sh\n{body}\n")
    command.chmod(0o755)
    return command


def test_what_only_a_pod_needs_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "rendered").write_text(RENDERED)
    command = kubectl(tmp_path, f'[ "$1" = kustomize ] && cat {tmp_path / "rendered"}')
    crd, role = manifests.kueue_bundle(command, tmp_path)
    assert role["kind"] == "ClusterRole"
    assert crd["spec"] == {
        "description": "kept",
        "podSets": {"properties": {"description": {"type": "string"}}},
    }


def test_a_failure_to_render_is_told(tmp_path: Path) -> None:
    command = kubectl(tmp_path, "echo first >&2; echo 'no such file' >&2; exit 1")
    with pytest.raises(GpufairError, match=r"Rendering Kueue's manifests failed: no such file"):
        manifests.kueue_bundle(command, tmp_path)
