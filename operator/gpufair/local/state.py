"""What an instance remembers between commands: one JSON file, replaced as a whole."""

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpufair.local.processes import Proc

FILE = "instance.json"


@dataclass(frozen=True)
class Options:
    """How an instance was asked for; `reset` makes it anew with the same."""

    nodes: int = 4
    gpus_per_node: int = 8
    node_labels: dict[str, str] = field(default_factory=dict)
    kueue: bool = True
    kueue_feature_gates: dict[str, bool] = field(default_factory=dict)
    kueue_config: dict[str, Any] = field(default_factory=dict)
    audit: bool = False


@dataclass
class State:
    """An instance's options, binaries, ports and processes."""

    options: Options
    toolbox: Path
    phase: Literal["starting", "running"] = "starting"
    ports: dict[str, int] = field(default_factory=dict)
    procs: dict[str, Proc] = field(default_factory=dict)
    kueue_webhook_port: int | None = None
    """The port that the webhooks on the API server point at; None without Kueue's objects."""

    def save(self, directory: Path) -> None:
        """Write the state into an instance's directory."""
        content = dataclasses.asdict(self) | {"toolbox": str(self.toolbox)}
        scratch = directory / f"{FILE}.new"
        scratch.write_text(json.dumps(content, indent=2))
        scratch.replace(directory / FILE)

    @classmethod
    def load(cls, directory: Path) -> "State | None":
        """Read the state from an instance's directory; None when it holds none."""
        try:
            content = json.loads((directory / FILE).read_text())
        except (FileNotFoundError, ValueError):
            return None
        return cls(
            options=Options(**content["options"]),
            toolbox=Path(content["toolbox"]),
            phase=content["phase"],
            ports=content["ports"],
            procs={name: Proc(**proc) for name, proc in content["procs"].items()},
            kueue_webhook_port=content["kueue_webhook_port"],
        )


def ports_in_use(root: Path) -> set[int]:
    """Return the ports that the instances below `root` hold, also of stopped components."""
    states = (State.load(directory) for directory in root.glob("*/"))
    return {port for state in states if state for port in state.ports.values()}
