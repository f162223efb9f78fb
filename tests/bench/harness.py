"""What all benchmarks share: figures as JSON objects, and the machine that they were taken on."""

import json
import os
import platform
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path("bench-results")


@dataclass
class Bench:
    """Prints one JSON object per figure and keeps them in `bench-results/NAME.json`."""

    name: str
    figures: list[dict[str, Any]] = field(default_factory=list)

    def figure(
        self,
        figure: str,
        value: float,
        *,
        unit: str,
        bar: float,
        at_most: bool = True,
        raw: dict[str, Any] | None = None,
    ) -> None:
        """Note a figure; `holds` says whether it is within its bar, `raw` what stood beside it."""
        found = {
            "bench": self.name,
            "figure": figure,
            "value": round(value, 4),
            "unit": unit,
            "bar": bar,
            "holds": value <= bar if at_most else value >= bar,
            "raw": raw or {},
            "machine": machine(),
        }
        self.figures.append(found)
        print(json.dumps(found), flush=True)

    def finish(self) -> int:
        """Write the results; return 1 when a figure misses its bar, else 0."""
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{self.name}.json").write_text(json.dumps(self.figures, indent=2) + "\n")
        missed = [found["figure"] for found in self.figures if not found["holds"]]
        if missed:
            print(f"Missed: {', '.join(missed)}.", file=sys.stderr)
        return 1 if missed else 0


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def say(text: str) -> None:
    """Progress, apart from the figures."""
    print(f"# {text}", file=sys.stderr, flush=True)
