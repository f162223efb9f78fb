"""Kueue's configuration and objects for the local cluster."""

import base64
from pathlib import Path
from typing import Any

import pytest

from gpufair.local import certs, kueue


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pki")
    certs.Authority(directory, kueue.CA_NAME, rsa=True).serving("tls", [kueue.WEBHOOK_DNS])
    return directory


def webhook(path: str) -> dict[str, Any]:
    return {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": path}}}


def test_webhooks_are_called_on_loopback(pki: Path) -> None:
    configuration = {
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "m"},
        "webhooks": [webhook("/a") | {"name": "x"}, webhook("/b")],
    }
    crd = {"metadata": {"name": "c"}, "spec": {"conversion": {"webhook": webhook("/convert")}}}
    first, second, _ = kueue.objects([configuration, crd], webhook_port=1234, certs=pki)
    ca = base64.b64encode((pki / "kueue-ca.crt").read_bytes()).decode()
    assert [hook["clientConfig"] for hook in first["webhooks"]] == [
        {"url": "https://127.0.0.1:1234/a", "caBundle": ca},
        {"url": "https://127.0.0.1:1234/b", "caBundle": ca},
    ]
    assert first["webhooks"][0]["name"] == "x"
    assert second["spec"]["conversion"]["webhook"]["clientConfig"] == {
        "url": "https://127.0.0.1:1234/convert",
        "caBundle": ca,
    }
    assert "service" in configuration["webhooks"][0]["clientConfig"]  # type: ignore[index]


def test_the_rotation_finds_its_certificates(pki: Path) -> None:
    (secret,) = kueue.objects([], webhook_port=1, certs=pki)
    assert secret["metadata"] == {"name": "kueue-webhook-server-cert", "namespace": "kueue-system"}
    decoded = {key: base64.b64decode(value) for key, value in secret["data"].items()}
    assert decoded["tls.crt"] == (pki / "tls.crt").read_bytes()
    assert decoded["ca.key"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert sorted(decoded) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]


def settings(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "webhook_port": 1,
        "metrics_port": 2,
        "health_port": 3,
        "certs": Path("/pki"),
        "feature_gates": {},
        "overrides": {},
    }
    return kueue.config(**(given | changes))


def test_boosts_and_fair_sharing_are_on() -> None:
    config = settings()
    assert config["featureGates"]["PriorityBoost"] is True
    assert config["fairSharing"]["preemptionStrategies"] == [
        "LessThanOrEqualToFinalShare",
        "LessThanInitialShare",
    ]
    assert config["manageJobsWithoutQueueName"] is False


def test_everything_listens_on_loopback() -> None:
    config = settings()
    assert config["health"]["healthProbeBindAddress"] == "127.0.0.1:3"
    assert config["metrics"]["bindAddress"] == "127.0.0.1:2"
    assert config["webhook"] == {"host": "127.0.0.1", "port": 1, "certDir": "/pki"}


def test_gates_and_fields_can_be_changed() -> None:
    config = settings(
        feature_gates={"PriorityBoost": False}, overrides={"fairSharing": None, "x": 1}
    )
    assert config["featureGates"] == {"PriorityBoost": False, "VisibilityOnDemand": False}
    assert config["fairSharing"] is None
    assert config["x"] == 1
