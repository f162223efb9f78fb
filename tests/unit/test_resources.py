"""Where the package's files are: inside an installed wheel, else in the checkout."""

from pathlib import Path

import pytest

from gpufair import resources
from gpufair.plan.objects import APPLY_ORDER
from gpufair.resources import crds_dir, examples_dir, templates_dir


def test_a_checkout_has_them_at_its_top() -> None:
    assert (crds_dir() / "gpufair.io_gpuschedulingpolicies.yaml").is_file()
    assert (examples_dir() / "quickstart.yaml").is_file()


def test_every_kind_that_is_applied_has_a_template() -> None:
    found = {path.name for path in (templates_dir() / "kueue").glob("*.yaml.j2")}
    assert found == {f"{kind.kind.lower()}.yaml.j2" for kind in APPLY_ORDER}


def test_an_installed_package_has_them_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path)
    inside = tmp_path / "_data"
    for name in ("templates", "crds", "examples"):
        (inside / name).mkdir(parents=True)
    assert (templates_dir(), crds_dir(), examples_dir()) == (
        inside / "templates",
        inside / "crds",
        inside / "examples",
    )
