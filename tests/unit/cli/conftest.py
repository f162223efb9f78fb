"""Running commands in this process, and small policy files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gpufair.cli import gpufair
from tests.unit.builders import raw_policy

Run = Callable[..., Result]
Write = Callable[..., str]


@pytest.fixture
def run() -> Run:
    """`run("validate", "-f", file)`: the result with exit_code, stdout and stderr."""

    def call(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(gpufair, list(arguments), **options)

    return call


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write(name="pool", **spec)`: the path of a file with such a policy; `text` as it is."""

    def file(name: str = "pool", *, text: str = "", path: str = "", **spec: Any) -> str:
        place = tmp_path / (path or f"{name}.yaml")
        place.write_text(text or yaml.safe_dump(raw_policy(name, **spec)), encoding="utf-8")
        return str(place)

    return file
