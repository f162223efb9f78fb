"""The objects that the example policies ask for, at fixed moments, as files to read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufair.cli import gpufair
from gpufair.resources import examples_dir

EXPECTED = Path(__file__).parent / "expected"
CASES = {
    "quickstart": ("quickstart", "2026-12-01T12:00:00Z"),
    "mig-sharing": ("mig-sharing", "2026-12-01T12:00:00Z"),
    "batch-on-volcano": ("batch-on-volcano", "2026-12-01T12:00:00Z"),
    # A Tuesday, 12:00 in New York: trading hours. Then the night, then the bet of the quarter.
    "fraud-and-research-trading": ("fraud-and-research", "2026-12-01T17:00:00Z"),
    "fraud-and-research-night": ("fraud-and-research", "2026-12-02T05:00:00Z"),
    "fraud-and-research-bet": ("fraud-and-research", "2027-02-02T17:00:00Z"),
}


def rendered(policy: str, at: str, *options: str) -> str:
    file = str(examples_dir() / f"{policy}.yaml")
    result = CliRunner().invoke(gpufair, ["render", "-f", file, "--at", at, *options])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("case", CASES)
def test_renders_as_expected(case: str, request: pytest.FixtureRequest) -> None:
    policy, at = CASES[case]
    expected = EXPECTED / f"{case}.yaml"
    found = rendered(policy, at)
    if request.config.getoption("--update-goldens"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")


def test_every_example_has_a_golden() -> None:
    examples = {path.stem for path in examples_dir().glob("*.yaml")}
    assert examples == {policy for policy, _ in CASES.values()}
