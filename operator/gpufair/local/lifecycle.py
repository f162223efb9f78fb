"""Bring local clusters up, and take them down without a trace."""

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from gpufair.errors import GpufairError
from gpufair.local import build, certs, health, instance, kubeconfig, kueue, paths, processes
from gpufair.local.components import CLIENTS, COMPONENTS
from gpufair.local.instance import Instance
from gpufair.local.locks import instance_lock
from gpufair.local.logs import tail
from gpufair.local.progress import NoProgress, Progress
from gpufair.local.restapi import UnreachableError
from gpufair.local.state import Options, State

_GRACE = 4.0
_SERVING_DNS = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]


def up(
    name: str = "default",
    *,
    nodes: int = 4,
    gpus_per_node: int = 8,
    node_labels: Mapping[str, str] | None = None,
    kueue: bool = True,
    kueue_feature_gates: Mapping[str, bool] | None = None,
    kueue_config: Mapping[str, Any] | None = None,
    audit: bool | None = None,
    progress: Progress | None = None,
) -> Instance:
    """Start a local cluster and return once all of it is ready.

    Builds the binaries first if the cache has none. One that already runs and is whole is
    returned as it is, with `fresh` False. `audit` (default: whether `GPUFAIR_LOCAL_AUDIT` is set)
    writes an audit log at level Metadata. `kueue_feature_gates` and `kueue_config` (top-level
    fields of its Configuration) go over the defaults.

    Raises `GpufairError` when a component does not start (nothing is left running then), when
    one of a running cluster has died, or when the build fails.
    """
    if audit is None:
        audit = bool(os.environ.get("GPUFAIR_LOCAL_AUDIT"))
    options = Options(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        node_labels=dict(node_labels or {}),
        kueue=kueue,
        kueue_feature_gates=dict(kueue_feature_gates or {}),
        kueue_config=dict(kueue_config or {}),
        audit=audit,
    )
    return _up(name, options, progress or NoProgress())


def down(name: str = "default") -> bool:
    """Stop a local cluster and remove all it has written; return False when there was none."""
    directory = paths.instance_dir(name)
    if not directory.exists():
        return False
    with instance_lock(name):
        shutil.rmtree(_kept_logs(name), ignore_errors=True)
        return _destroy(name)


def reset(name: str = "default", *, progress: Progress | None = None) -> Instance:
    """Make a local cluster empty again: down, and up with the options that it had."""
    options = get(name).options
    down(name)
    return _up(name, options, progress or NoProgress())


def get(name: str = "default") -> Instance:
    """Return a local cluster; raise `GpufairError` when there is none of that name."""
    found = instance.find(name)
    if found is None:
        raise GpufairError(
            f"There is no local cluster {name!r}; start it with: gpufair local up{_flag(name)}"
        )
    return found


def _up(name: str, options: Options, progress: Progress) -> Instance:
    paths.instance_dir(name)
    box = build.toolbox(progress)
    busy = f"Another gpufair starts or stops local cluster {name!r}; waiting for it."
    with instance_lock(name, lambda: progress.note(busy)):
        present = instance.find(name)
        if present and present.state.phase == "running":
            _check_whole(present)
            return present
        # What an interrupted start has left.
        _destroy(name)
        directory = paths.instance_dir(name)
        directory.mkdir(parents=True, mode=0o700)
        state = State(options=options, toolbox=box.root)
        state.save(directory)
        starting = Instance(name, state, fresh=True)
        try:
            _start(starting, progress)
        except GpufairError as error:
            reason = _reason(starting, error)
            starting.close(grace=0.0)
            kept = _keep_logs(starting)
            _destroy(name)
            raise GpufairError(f"{reason}\nAll logs of this start are in {kept}.") from error
        except BaseException:
            _destroy(name)
            raise
        return starting


def _reason(starting: Instance, error: GpufairError) -> str:
    """Return why a start failed: not that somebody had no answer, but who has died."""
    if isinstance(error, UnreachableError):
        procs = starting.state.procs
        for component in ("etcd", "kube-apiserver"):
            if component in procs and not procs[component].alive:
                return f"{component} ended. Its log ends so:\n{tail(starting.log(component))}"
    return str(error)


def _check_whole(present: Instance) -> None:
    dead = present.dead()
    if not dead:
        return
    name, first = present.name, dead[0]
    verb = "has" if len(dead) == 1 else "have"
    log = present.log(first)
    raise GpufairError(
        f"Local cluster {name!r} is not whole: {', '.join(dead)} {verb} ended; "
        f"gpufair local reset{_flag(name)} makes it anew. "
        f"The log of {first} is {log} and ends so:\n{tail(log)}"
    )


def _start(starting: Instance, progress: Progress) -> None:
    _certificates(starting)
    for component in ("etcd", "kube-apiserver"):
        with progress.step(component, "starting"):
            starting.bring_up(component)
    kubeconfig.write(
        starting.kubeconfig,
        name=f"gpufair-{starting.name}",
        server=starting.server,
        ca=starting.pki / "ca.crt",
        client=starting.pki / "admin.crt",
    )
    jobs: list[Callable[[], None]] = [
        lambda component=component: _bring_up(starting, component, progress)  # type: ignore[misc]
        for component in starting.expected()
        if component not in ("etcd", "kube-apiserver")
    ]
    jobs.append(lambda: _populate(starting, progress))
    _all(jobs)
    starting.set_running()


def _all(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs at once; raise the first failure without waiting for the others."""
    pool = ThreadPoolExecutor(len(jobs))
    try:
        futures: list[Future[None]] = [pool.submit(job) for job in jobs]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _bring_up(starting: Instance, component: str, progress: Progress) -> None:
    with progress.step(component, "starting"):
        starting.bring_up(component)


def _populate(starting: Instance, progress: Progress) -> None:
    """Create the nodes, and wait until pods can be created and scheduled."""
    options = starting.options
    with progress.step("nodes", f"creating {options.nodes} with {options.gpus_per_node} GPUs"):
        starting.add_nodes(options.nodes, gpus=options.gpus_per_node, labels=options.node_labels)
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        health.until(
            lambda: starting.api.request("GET", path).ok,
            60.0,
            "kube-controller-manager made no service account after 60 s.",
        )


def _certificates(starting: Instance) -> None:
    authority = certs.Authority(starting.pki, "ca")
    authority.serving("serving", _SERVING_DNS)
    for file, (user, groups) in CLIENTS.items():
        authority.client(file, user, list(groups))
    certs.signing_key(starting.pki / "service-accounts.key")
    # An authority of its own: its key is in a secret, where Kueue's rotation looks for it.
    webhooks = certs.Authority(starting.kueue_pki, kueue.CA_NAME, rsa=True)
    webhooks.serving("tls", [kueue.WEBHOOK_DNS])


def _keep_logs(failed: Instance) -> Path:
    """Keep the logs of a start that failed, and return the directory."""
    kept = _kept_logs(failed.name)
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for component in COMPONENTS:
        if (log := failed.log(component)).exists():
            shutil.copy(log, kept)
    return kept


def _kept_logs(name: str) -> Path:
    return paths.cache_dir() / "logs" / f"up-{name}"


def _destroy(name: str) -> bool:
    """Stop and remove an instance in whatever state it is; the caller holds its lock."""
    directory = paths.instance_dir(name)
    if not directory.exists():
        return False
    found = instance.find(name)
    if found:
        found.close(grace=_GRACE)
    else:
        left = processes.belonging_to(directory, paths.cache_dir() / "bin")
        processes.stop(left, grace=_GRACE)
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        # Threads of a start that failed may have written a last file meanwhile.
        shutil.rmtree(directory)
    return True


def _flag(name: str) -> str:
    return "" if name == "default" else f" --name {name}"
