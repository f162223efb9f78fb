from pathlib import Path

import pytest

from gpufair.api.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "policy.md"


def test_reference_is_in_step_with_the_models(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference()
