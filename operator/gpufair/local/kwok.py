"""KWOK: the nodes of the local cluster, and what they do with pods."""

import json
from pathlib import Path
from typing import Any

STAGES = Path(__file__).with_name("stages.yaml")


def write_config(path: Path, *, port: int) -> None:
    """Write KWOK's configuration: it plays every node, and serves its health on `port`."""
    options: dict[str, Any] = {
        "manageAllNodes": True,
        "serverAddress": f"127.0.0.1:{port}",
        "nodeIP": "127.0.0.1",
        "nodePort": 0,
        # Rare heartbeats: at 128 nodes the usual ones would be most of the cluster's load.
        "nodeLeaseDurationSeconds": 300,
        "nodeLeaseParallelism": 4,
        "cidr": "10.0.0.0/16",
        "podsOnNodeSyncParallelism": 4,
        "podPlayStageParallelism": 8,
        "nodePlayStageParallelism": 4,
        "enableProfilingHandler": False,
        "enablePodsOnNodeSyncListPager": False,
        "enablePodsOnNodeSyncStreamWatch": True,
    }
    config = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": options,
    }
    path.write_text(f"{json.dumps(config, indent=2)}\n---\n{STAGES.read_text()}")
