"""Files that the package carries: templates, the CRD, example policies.

An installed wheel has them under `gpufair/_data`; a checkout at the top of the repository.
"""

from pathlib import Path

_PACKAGE = Path(__file__).parent
_REPOSITORY = _PACKAGE.parent.parent


def _data(packaged: str, checkout: str) -> Path:
    inside = _PACKAGE / "_data" / packaged
    return inside if inside.exists() else _REPOSITORY / checkout


def templates_dir() -> Path:
    return _data("templates", "templates")


def crds_dir() -> Path:
    return _data("crds", "crds")


def examples_dir() -> Path:
    return _data("examples", "docs/examples")
