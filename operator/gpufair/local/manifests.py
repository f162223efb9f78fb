"""Turn the manifests that come with the Go modules into bundles of objects to create."""

import subprocess
from pathlib import Path
from typing import Any

from gpufair.errors import GpufairError

Manifest = dict[str, Any]

FORMAT = 2
"""Part of the cache key: raise it when a bundle's content changes with the same modules."""

_FOR_A_POD = frozenset({"APIService", "ConfigMap", "Deployment", "Secret", "Service"})
"""What Kueue's manifests hold only because Kueue normally runs in a pod."""

_POD_FIELDS = frozenset({"podSets", "template"})


def kueue_bundle(kubectl: Path, module: Path) -> list[Manifest]:
    """Return Kueue's CRDs, roles and webhook configurations as its release would install them.

    Rendered by the kustomize in kubectl from `module`, the directory of the Go module.
    """
    done = subprocess.run(
        [kubectl, "kustomize", module / "config" / "default"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:]
        raise GpufairError(f"Rendering Kueue's manifests failed: {' '.join(reason)}")
    objects = [object_ for object_ in _parse(done.stdout) if object_["kind"] not in _FOR_A_POD]
    return [_slim(object_) for object_ in objects]


def jobset_bundle(module: Path) -> list[Manifest]:
    """Return the CRDs of JobSet from the directory of its Go module."""
    bases = module / "config" / "components" / "crd" / "bases"
    files = sorted(bases.glob("*.yaml"))
    return [_slim(object_) for file in files for object_ in _parse(file.read_text())]


def _slim(value: Any, *, in_pods: bool = False) -> Any:
    """Return a copy of a CRD without the descriptions of the pod templates in it.

    They repeat what `kubectl explain pod` says, and are two thirds of a megabyte that the API
    server would work through several times before the cluster is ready.
    """
    if isinstance(value, list):
        return [_slim(item, in_pods=in_pods) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _slim(item, in_pods=in_pods or key in _POD_FIELDS)
        for key, item in value.items()
        if not (in_pods and key == "description" and isinstance(item, str))
    }


def _parse(text: str) -> list[Manifest]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, Loader=loader) if document]
