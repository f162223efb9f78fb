"""Write kubeconfig files for an instance's people and components."""

import base64
import json
from pathlib import Path


def write(path: Path, *, name: str, server: str, ca: Path, client: Path) -> None:
    """Write a kubeconfig that holds all it needs, readable by its owner only.

    `client` is a certificate with its key beside it as `.key`. Kubeconfigs are YAML, of which
    JSON is a part.
    """
    cluster = {"server": server, "certificate-authority-data": _data(ca)}
    user = {
        "client-certificate-data": _data(client),
        "client-key-data": _data(client.with_suffix(".key")),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2))


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
