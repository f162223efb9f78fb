"""The shared cluster, seen by the operator's tests."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpufair import local

from .kit.audit import Audit
from .kit.kube import Kube
from .kit.process import Operator
from .kit.rights import install, kubeconfig_of_account
from .kit.space import Space


@pytest.fixture(scope="session")
def kube(cluster: local.Instance) -> Kube:
    """The cluster as its administrator."""
    return Kube(cluster.kubeconfig)


@pytest.fixture(scope="session")
def account(
    cluster: local.Instance, session_audit: Audit, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A kubeconfig with the operator's rights, as manifests/base grants them, and no others."""
    install(cluster.kubectl, cluster.kubeconfig)
    target = tmp_path_factory.mktemp("account") / "kubeconfig"
    return kubeconfig_of_account(cluster.kubeconfig, target)


@pytest.fixture
def new_operator(
    cluster: local.Instance, account: Path, tmp_path: Path
) -> Iterator["OperatorFactory"]:
    """Make operators of a test's own; whatever still runs is stopped at the end."""
    factory = OperatorFactory(cluster.kubeconfig, tmp_path)
    yield factory
    factory.close()


@pytest.fixture(scope="module")
def operator(account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One operator for the tests of a module."""
    running = Operator(account, tmp_path_factory.mktemp("operator") / "log").start()
    yield running
    running.close()


@pytest.fixture(scope="session")
def session_audit(cluster: local.Instance) -> Audit:
    """The audit log from the beginning of these tests on."""
    found = Audit(cluster.audit_log)
    found.mark()
    return found


@pytest.fixture
def audit(cluster: local.Instance) -> Audit:
    """The audit log from here on."""
    found = Audit(cluster.audit_log)
    found.mark()
    return found


@pytest.fixture
def space(kube: Kube, request: pytest.FixtureRequest) -> Iterator[Space]:
    """Names of the test's own."""
    words = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:16].strip("-")
    made = Space(kube, words)
    yield made
    made.close()


class OperatorFactory:
    """Operators with logs and tokens of their own."""

    def __init__(self, admin: Path, directory: Path) -> None:
        self._admin = admin
        self._directory = directory
        self._made: list[Operator] = []

    def __call__(self, *, kopf: bool = False) -> Operator:
        name = f"operator-{len(self._made)}"
        kubeconfig = kubeconfig_of_account(self._admin, self._directory / f"{name}.kubeconfig")
        made = Operator(kubeconfig, self._directory / f"{name}.log", kopf=kopf)
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()
