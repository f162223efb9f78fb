"""The processes of an instance: what each is started with, and when it is ready."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpufair.local import kubeconfig, kueue, kwok

if TYPE_CHECKING:
    from gpufair.local.instance import Instance

Argv = list[str | Path]


@dataclass(frozen=True)
class Component:
    """One process. `prepare` writes its files and returns its command line.

    `health` is the path on `port` (a name of `ports`) that answers 200 once it is ready.
    """

    name: str
    ports: tuple[str, ...]
    port: str
    prepare: Callable[["Instance"], Argv]
    health: str
    tls: bool = True
    seconds: float = 90.0
    conflicts: tuple[str, ...] = field(default=("address already in use",))


def _etcd(instance: "Instance") -> Argv:
    client = f"https://127.0.0.1:{instance.ports['etcd']}"
    peer = f"https://127.0.0.1:{instance.ports['etcd-peer']}"
    pki = instance.pki
    return [
        instance.binary("etcd"),
        f"--name={instance.name}",
        f"--data-dir={instance.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={instance.name}={peer}",
        f"--cert-file={pki / 'serving.crt'}",
        f"--key-file={pki / 'serving.key'}",
        f"--trusted-ca-file={pki / 'ca.crt'}",
        "--client-cert-auth",
        f"--peer-cert-file={pki / 'serving.crt'}",
        f"--peer-key-file={pki / 'serving.key'}",
        f"--peer-trusted-ca-file={pki / 'ca.crt'}",
        "--peer-client-cert-auth",
        # The data live as long as the instance: nothing is lost that a crash of the machine
        # would not end anyway.
        "--unsafe-no-fsync",
        "--auto-compaction-retention=0",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    ]


def _apiserver(instance: "Instance") -> Argv:
    pki = instance.pki
    argv: Argv = [
        instance.binary("kube-apiserver"),
        f"--etcd-servers=https://127.0.0.1:{instance.ports['etcd']}",
        f"--etcd-cafile={pki / 'ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={instance.ports['kube-apiserver']}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--allow-privileged",
        # Else it waits a minute for its watchers when it is restarted.
        "--shutdown-watch-termination-grace-period=1s",
        "--profiling=false",
    ]
    if instance.options.audit:
        policy = instance.directory / "audit-policy.json"
        policy.write_text(json.dumps(_AUDIT_POLICY))
        argv += [f"--audit-policy-file={policy}", f"--audit-log-path={instance.audit_log}"]
    return argv


_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def _controller_manager(instance: "Instance") -> Argv:
    pki = instance.pki
    config = _kubeconfig(instance, "kube-controller-manager")
    return [
        instance.binary("kube-controller-manager"),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={instance.ports['kube-controller-manager']}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-job-syncs=20",
        # KWOK renews leases every few minutes.
        "--node-monitor-grace-period=15m",
        "--profiling=false",
    ]


def _scheduler(instance: "Instance") -> Argv:
    pki = instance.pki
    config = _kubeconfig(instance, "kube-scheduler")
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(config), "qps": 500, "burst": 1000},
        "enableProfiling": False,
    }
    path = instance.directory / "kube-scheduler.json"
    path.write_text(json.dumps(settings, indent=2))
    return [
        instance.binary("kube-scheduler"),
        f"--config={path}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={instance.ports['kube-scheduler']}",
        f"--tls-cert-file={pki / 'serving.crt'}",
        f"--tls-private-key-file={pki / 'serving.key'}",
    ]


def _kwok(instance: "Instance") -> Argv:
    path = instance.directory / "kwok.yaml"
    kwok.write_config(path, port=instance.ports["kwok"])
    return [
        instance.binary("kwok"),
        f"--config={path}",
        f"--kubeconfig={_kubeconfig(instance, 'kwok')}",
    ]


def _kueue(instance: "Instance") -> Argv:
    path = instance.directory / "kueue.json"
    kueue.write_config(
        path,
        webhook_port=instance.ports["kueue-webhook"],
        metrics_port=instance.ports["kueue-metrics"],
        health_port=instance.ports["kueue"],
        certs=instance.kueue_pki,
        feature_gates=instance.options.kueue_feature_gates,
        overrides=instance.options.kueue_config,
    )
    return [
        instance.binary("kueue"),
        f"--config={path}",
        f"--kubeconfig={_kubeconfig(instance, 'kueue')}",
        "--zap-log-level=2",
    ]


def _kubeconfig(instance: "Instance", component: str) -> Path:
    path = instance.directory / f"{component}.kubeconfig"
    kubeconfig.write(
        path,
        name=component,
        server=instance.server,
        ca=instance.pki / "ca.crt",
        client=instance.pki / f"{component}.crt",
    )
    return path


COMPONENTS: dict[str, Component] = {
    component.name: component
    for component in (
        Component("etcd", ("etcd", "etcd-peer"), "etcd", _etcd, "/readyz"),
        Component("kube-apiserver", ("kube-apiserver",), "kube-apiserver", _apiserver, "/readyz"),
        Component(
            "kube-controller-manager",
            ("kube-controller-manager",),
            "kube-controller-manager",
            _controller_manager,
            "/healthz",
        ),
        Component("kube-scheduler", ("kube-scheduler",), "kube-scheduler", _scheduler, "/readyz"),
        Component("kwok", ("kwok",), "kwok", _kwok, "/healthz", tls=False),
        Component(
            "kueue",
            ("kueue", "kueue-webhook", "kueue-metrics"),
            "kueue",
            _kueue,
            "/readyz",
            tls=False,
        ),
    )
}

CLIENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("gpufair-local", ("system:masters",)),
    "etcd-client": ("kube-apiserver", ()),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kwok": ("kwok", ("system:masters",)),
    "kueue": (kueue.USER, kueue.GROUPS),
}
"""The client certificates: file name, user, groups."""


def is_conflict(component: Component, log: str) -> bool:
    """Whether the end of a component's log says that one of its ports was in use."""
    return any(text in log for text in component.conflicts)
