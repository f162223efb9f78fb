"""A running local cluster, seen from Python."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gpufair.errors import GpufairError
from gpufair.local import build, health, kueue, nodes, paths, ports, processes
from gpufair.local.components import COMPONENTS, Component, is_conflict
from gpufair.local.logs import tail
from gpufair.local.restapi import RestApi, UnreachableError
from gpufair.local.state import Options, State, ports_in_use

_ATTEMPTS = 4
_GRACE = 20.0


@dataclass(frozen=True)
class ComponentStatus:
    """One row of `gpufair local status`; `rss` in bytes, None when the process is down."""

    component: str
    pid: int | None
    up: bool
    rss: int | None
    log: Path


class Instance:
    """A local cluster: its addresses, its files, its processes.

    Get one from `gpufair.local.up` or `gpufair.local.get`.
    """

    def __init__(self, name: str, state: State, *, fresh: bool = False) -> None:
        self.name = name
        self.fresh = fresh
        """Whether the `up` that returned this instance has started it."""
        self._state = state
        self._lock = threading.RLock()
        self._closed = False

    @property
    def directory(self) -> Path:
        """The directory with everything that the instance has written."""
        return paths.instance_dir(self.name)

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        return self.directory / "kubeconfig"

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"

    @property
    def kubectl(self) -> Path:
        """A kubectl of the cluster's version."""
        return self.binary("kubectl")

    @property
    def audit_log(self) -> Path:
        """The API server's audit log (JSON lines, level Metadata), if it was asked for."""
        return self.directory / "audit.log"

    @property
    def options(self) -> Options:
        """How the instance was asked for."""
        return self._state.options

    @property
    def ports(self) -> dict[str, int]:
        """The ports on 127.0.0.1, by use."""
        return self._state.ports

    @property
    def pki(self) -> Path:
        """The directory of certificates and keys."""
        return self.directory / "pki"

    @property
    def kueue_pki(self) -> Path:
        """The directory of Kueue's webhook certificate."""
        return self.directory / "kueue-pki"

    @property
    def state(self) -> State:
        """What the instance remembers between commands."""
        return self._state

    @cached_property
    def api(self) -> RestApi:
        """A small client of the API server, as administrator."""
        return RestApi(self.ports["kube-apiserver"], self.pki / "ca.crt", self.pki / "admin.crt")

    def binary(self, name: str) -> Path:
        """Return the path of one of the binaries."""
        return build.Toolbox(self._state.toolbox).binary(name)

    def log(self, component: str) -> Path:
        """Return the path of a component's log."""
        return self.directory / f"{component}.log"

    def expected(self) -> list[str]:
        """Return the names of the components that should run."""
        return [name for name in COMPONENTS if name != "kueue" or self.options.kueue]

    def status(self) -> list[ComponentStatus]:
        """Return the state of each component that should run."""
        rows = []
        for name in self.expected():
            proc = self._state.procs.get(name)
            rss = proc.rss if proc else None
            pid = proc.pid if proc and rss is not None else None
            rows.append(ComponentStatus(name, pid, rss is not None, rss, self.log(name)))
        return rows

    def dead(self) -> list[str]:
        """Return the names of the components that should run and do not."""
        return [row.component for row in self.status() if not row.up]

    def start(self, component: str, *, wait: bool = True) -> None:
        """Start a stopped component and wait until it is ready.

        Raises `GpufairError` with the tail of its log when it ends or does not become ready.
        """
        spec = _spec(component)
        running = self._state.procs.get(component)
        if running and running.alive:
            return
        offset = self._spawn(spec)
        if wait:
            self.wait_ready(component, since=offset)

    def stop(self, component: str, *, kill: bool = False) -> None:
        """Stop a component: SIGTERM first, or with `kill` at once, as a crash would."""
        _spec(component)
        if proc := self._state.procs.get(component):
            processes.stop([proc], grace=0.0 if kill else _GRACE)

    def restart(self, component: str, *, kill: bool = False) -> None:
        """Stop a component, start it on the same ports, and wait until it is ready."""
        self.stop(component, kill=kill)
        self.start(component)

    def configure_kueue(
        self,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Restart Kueue with other feature gates or other top-level fields of its Configuration.

        Both replace what earlier calls have set; None keeps it.
        """
        options = self.options
        if feature_gates is not None:
            options = replace(options, kueue_feature_gates=dict(feature_gates))
        if config is not None:
            options = replace(options, kueue_config=dict(config))
        self._update(options=options)
        self.restart("kueue")

    def install_kueue(self) -> None:
        """Create Kueue's objects and start it, in an instance that was made without."""
        self._update(options=replace(self.options, kueue=True))
        self.bring_up("kueue")

    def add_nodes(
        self,
        count: int,
        *,
        gpus: int = 8,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        resources: Mapping[str, str] | None = None,
        prefix: str = "gpu",
        seconds: float = 60.0,
    ) -> list[str]:
        """Create nodes and return their names once pods can be scheduled there.

        See `gpufair.local.nodes.add`. Raises `GpufairError` when that takes longer than
        `seconds`.
        """
        names = nodes.add(
            self.api,
            count,
            gpus=gpus,
            labels=labels,
            taints=taints,
            resources=resources,
            prefix=prefix,
        )
        health.until(
            lambda: nodes.untainted(self.api, set(names)),
            seconds,
            f"The {count} new nodes were not ready after {seconds:.0f} s.",
        )
        return names

    def bring_up(self, component: str) -> None:
        """Start a component for the first time: choose ports, again if they are in use."""
        spec = _spec(component)
        for attempt in range(1, _ATTEMPTS + 1):
            self._choose_ports(spec)
            if component == "kueue":
                self._install_kueue_objects()
            offset = self._spawn(spec)
            try:
                self.wait_ready(component, since=offset)
            except GpufairError:
                log = tail(self.log(component), since=offset)
                if attempt == _ATTEMPTS or not is_conflict(spec, log):
                    raise
                self.stop(component, kill=True)
            else:
                return

    def wait_ready(self, component: str, *, since: int = 0) -> None:
        """Wait until a component answers; raise `GpufairError` when it ends or takes too long."""
        spec = _spec(component)
        log = self.log(component)

        def check() -> bool:
            proc = self._state.procs[component]
            if not proc.alive:
                raise GpufairError(f"{component} ended while starting.{_ending(log, since)}")
            return self._healthy(spec)

        late = f"{component} was not ready after {spec.seconds:.0f} s."
        try:
            health.until(check, spec.seconds, late)
        except health.TooLateError as error:
            raise GpufairError(f"{error}{_ending(log, since)}") from error

    def close(self, *, grace: float) -> None:
        """Stop every process, and let none be started any more through this object."""
        with self._lock:
            self._closed = True
        procs = dict(self._state.procs)
        etcd = procs.pop("etcd", None)
        processes.stop(procs.values(), grace=grace)
        if etcd:
            # It holds nothing that outlives the instance.
            processes.stop([etcd], grace=0.0)
        binaries = self._state.toolbox / "bin"
        processes.stop(processes.belonging_to(self.directory, binaries), grace=0.0)

    def set_running(self) -> None:
        """Remember that the start is complete."""
        self._update(phase="running")

    def _update(self, **changes: Any) -> None:
        with self._lock:
            for name, value in changes.items():
                setattr(self._state, name, value)
            self._state.save(self.directory)

    def _choose_ports(self, spec: Component) -> None:
        with self._lock:
            taken = ports_in_use(paths.state_dir()) | set(self.ports.values())
            chosen = ports.choose(len(spec.ports), taken)
            self._update(ports=self.ports | dict(zip(spec.ports, chosen, strict=True)))

    def _spawn(self, spec: Component) -> int:
        """Start the process, and return where its output begins in the log."""
        argv = spec.prepare(self)
        log = self.log(spec.name)
        with self._lock:
            if self._closed:
                raise GpufairError(f"Local cluster {self.name!r} is being stopped.")
            offset = log.stat().st_size if log.exists() else 0
            proc = processes.spawn(argv, log, self.directory)
            self._update(procs=self._state.procs | {spec.name: proc})
        return offset

    def _healthy(self, spec: Component) -> bool:
        port = self.ports[spec.port]
        if not health.answers(port, spec.health, self.pki if spec.tls else None):
            return False
        return spec.name != "kueue" or self._webhooks_answer()

    def _webhooks_answer(self) -> bool:
        probe = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ResourceFlavor",
            "metadata": {"name": "gpufair-local-probe"},
        }
        path = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors?dryRun=All"
        with suppress(UnreachableError):
            return self.api.request("POST", path, probe).ok
        return False

    def _install_kueue_objects(self) -> None:
        port = self.ports["kueue-webhook"]
        if self._state.kueue_webhook_port == port:
            return
        box = build.Toolbox(self._state.toolbox)
        bundle = box.manifest("kueue") + box.manifest("jobset")
        kueue.install(self.api, kueue.objects(bundle, webhook_port=port, certs=self.kueue_pki))
        self._update(kueue_webhook_port=port)


def _spec(component: str) -> Component:
    try:
        return COMPONENTS[component]
    except KeyError:
        known = ", ".join(COMPONENTS)
        raise GpufairError(
            f"A local cluster has no component {component!r}; it has {known}."
        ) from None


def _ending(log: Path, since: int) -> str:
    text = tail(log, since=since)
    return f" Its log ends so:\n{text}" if text else " It has written nothing to its log."


def find(name: str) -> Instance | None:
    """Return the instance of that name in whatever state it is; None when there is none."""
    state = State.load(paths.instance_dir(name))
    return Instance(name, state) if state else None


def names() -> list[str]:
    """Return the names of all instances of this user, sorted."""
    return sorted(file.parent.name for file in paths.state_dir().glob("*/instance.json"))
