"""What the operator is told from outside."""

from pathlib import Path

import pytest

from gpufair import settings as module
from gpufair.errors import GpufairError
from gpufair.settings import Settings


def test_no_health_address_by_default() -> None:
    assert Settings().health_address is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8081", ("127.0.0.1", 8081)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:8081", ("::1", 8081)),
    ],
)
def test_health_is_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert Settings(health=text).health_address == address


@pytest.mark.parametrize(
    "text", ["8081", ":8081", "localhost", "localhost:", "localhost:http", "h:65536", "h:²", "h:-1"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(GpufairError, match="no address: write HOST:PORT") as caught:
        _ = Settings(health=text).health_address
    assert caught.value.exit_code == 2


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file in which a pod finds its namespace."""
    file = tmp_path / "namespace"
    monkeypatch.setattr(module, "_POD_NAMESPACE", file)
    monkeypatch.delenv("GPUFAIR_NAMESPACE", raising=False)
    return file


def test_lease_namespace_is_default_outside_of_a_pod(pod: Path) -> None:
    assert Settings().lease_namespace == "default"


def test_lease_namespace_is_the_pods_own(pod: Path) -> None:
    pod.write_text("gpufair-system\n")
    assert Settings().lease_namespace == "gpufair-system"


def test_the_environment_wins(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod.write_text("gpufair-system\n")
    monkeypatch.setenv("GPUFAIR_NAMESPACE", "ops")
    assert Settings().lease_namespace == "ops"
