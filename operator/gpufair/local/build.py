"""Build the control plane's binaries from pinned Go modules, once, into a cache."""

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpufair.errors import GpufairError
from gpufair.local import golang, manifests, paths
from gpufair.local.logs import tail
from gpufair.local.progress import NoProgress, Progress, Step

MODULES = Path(__file__).parent / "modules"
FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_STRIP = "-s -w"
KUBERNETES_VERSION = "v1.35.4"
KUEUE_VERSION = "v0.17.0"
KWOK_VERSION = "v0.8.0"


@dataclass(frozen=True)
class Binary:
    """A command of a Go module, and the version that it should report."""

    name: str
    module: str
    package: str
    versions: tuple[tuple[str, str], ...] = ()

    @property
    def ldflags(self) -> str:
        """Linker flags: no debug symbols, and the versions, without which clients fail."""
        return " ".join([_STRIP, *(f"-X {key}={value}" for key, value in self.versions)])


_KUBERNETES = (
    ("k8s.io/component-base/version.gitVersion", KUBERNETES_VERSION),
    ("k8s.io/client-go/pkg/version.gitVersion", KUBERNETES_VERSION),
)

BINARIES = (
    Binary("etcd", "cluster", "go.etcd.io/etcd/server/v3"),
    Binary("kube-apiserver", "cluster", "k8s.io/kubernetes/cmd/kube-apiserver", _KUBERNETES),
    Binary(
        "kube-controller-manager",
        "cluster",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        _KUBERNETES,
    ),
    Binary("kube-scheduler", "cluster", "k8s.io/kubernetes/cmd/kube-scheduler", _KUBERNETES),
    Binary(
        "kueue",
        "cluster",
        "sigs.k8s.io/kueue/cmd/kueue",
        (*_KUBERNETES, ("sigs.k8s.io/kueue/pkg/version.GitVersion", KUEUE_VERSION)),
    ),
    Binary("kubectl", "cluster", "k8s.io/kubernetes/cmd/kubectl", _KUBERNETES),
    Binary(
        "kwok",
        "kwok",
        "sigs.k8s.io/kwok/cmd/kwok",
        (("sigs.k8s.io/kwok/pkg/consts.Version", KWOK_VERSION),),
    ),
)


@dataclass(frozen=True)
class Toolbox:
    """A finished cache entry: `bin/` with the binaries, and the manifests of the modules."""

    root: Path

    def binary(self, name: str) -> Path:
        """Return the path of a binary."""
        return self.root / "bin" / name

    def manifest(self, name: str) -> list[manifests.Manifest]:
        """Return the objects of a bundle: `kueue` or `jobset`."""
        loaded: list[manifests.Manifest] = json.loads(
            (self.root / "manifests" / f"{name}.json").read_text()
        )
        return loaded


def cache_key() -> str:
    """Return the hash of all that decides what the binaries are.

    The Go version is left out on purpose: a warm start must not need Go, and a newer Go is no
    reason to build for ten minutes. The entry's build.json names it.
    """
    digest = hashlib.sha256()
    for module in sorted({binary.module for binary in BINARIES}):
        for name in ("go.mod", "go.sum"):
            digest.update((MODULES / module / name).read_bytes())
    digest.update(repr((FLAGS, BINARIES, manifests.FORMAT)).encode())
    digest.update(f"{sys.platform}/{platform.machine()}".encode())
    return digest.hexdigest()[:16]


def toolbox(progress: Progress | None = None) -> Toolbox:
    """Return the binaries, built first if the cache has none.

    Only one process builds at a time; others wait for it. Raises `GpufairError` with the tail
    of the log when a build fails, or when there is no Go to build with.
    """
    progress = progress or NoProgress()
    ready = _cached()
    if ready:
        return ready
    import filelock

    cache = paths.cache_dir()
    paths.make(cache)
    lock = filelock.FileLock(cache / "build.lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        progress.note("Another gpufair builds the local cluster; waiting for it.")
        lock.acquire()
    try:
        return _cached() or _build(cache, progress)
    finally:
        lock.release()


def _entry() -> Path:
    return paths.cache_dir() / "bin" / cache_key()


def _cached() -> Toolbox | None:
    entry = _entry()
    return Toolbox(entry) if (entry / "build.json").exists() else None


def _build(cache: Path, progress: Progress) -> Toolbox:
    """Build into a temporary directory and rename it, so that an entry is whole or absent."""
    needed = max(
        golang.required_version((MODULES / module / "go.mod").read_text())
        for module in {binary.module for binary in BINARIES}
    )
    go = golang.find_go(needed)
    entry = _entry()
    logs = cache / "logs" / entry.name
    logs.mkdir(parents=True, exist_ok=True)
    entry.parent.mkdir(parents=True, exist_ok=True)
    for stale in entry.parent.glob(".building-*"):
        shutil.rmtree(stale, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=entry.parent) as scratch:
        whole = Path(scratch) / "entry"
        (whole / "bin").mkdir(parents=True)
        builder = _Builder(go, Path(scratch), logs, progress)
        builder.build_all(whole / "bin")
        builder.bundle(whole / "bin" / "kubectl", whole / "manifests")
        described = {"go": ".".join(map(str, go.version)), "binaries": [b.name for b in BINARIES]}
        (whole / "build.json").write_text(json.dumps(described))
        whole.rename(entry)
    return Toolbox(entry)


class _Builder:
    def __init__(self, go: golang.Go, scratch: Path, logs: Path, progress: Progress) -> None:
        self._go = go
        self._logs = logs
        self._progress = progress
        self._seen: set[str] = set()
        self._modules = scratch / "modules"
        shutil.copytree(MODULES, self._modules)

    def build_all(self, target: Path) -> None:
        """Download the modules, then build one binary after the other.

        One after the other, because Go uses all cores for one, and the later ones are made
        mostly of packages that the earlier ones have compiled.
        """
        packages: dict[str, set[str]] = {}
        with self._progress.step("modules", "downloading") as step:
            for done, binary in enumerate(BINARIES):
                step.at(done, len(BINARIES))
                packages[binary.name] = self._packages(binary)
        for number, binary in enumerate(BINARIES, start=1):
            new = packages[binary.name] - self._seen
            self._seen |= new
            what = f"building ({number} of {len(BINARIES)})"
            with self._progress.step(binary.name, what) as step:
                self._build(binary, target / binary.name, new, step)

    def bundle(self, kubectl: Path, target: Path) -> None:
        """Put the manifests that the modules bring into the cache entry."""
        target.mkdir()
        kueue = self._module_dir("sigs.k8s.io/kueue")
        jobset = self._module_dir("sigs.k8s.io/jobset")
        bundles = {
            "kueue": manifests.kueue_bundle(kubectl, kueue),
            "jobset": manifests.jobset_bundle(jobset),
        }
        for name, objects in bundles.items():
            (target / f"{name}.json").write_text(json.dumps(objects))

    def _packages(self, binary: Binary) -> set[str]:
        command = ["list", "-mod=readonly", "-deps", binary.package]
        return set(self._output(command, binary.module, self._logs / "modules.log").split())

    def _module_dir(self, module: str) -> Path:
        command = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
        return Path(self._output(command, "cluster", self._logs / "modules.log").strip())

    def _output(self, arguments: list[str], module: str, log: Path) -> str:
        with log.open("w") as errors:
            done = subprocess.run(
                [self._go.command, *arguments],
                cwd=self._modules / module,
                env=golang.environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
            )
        if done.returncode != 0:
            raise _failed("Getting the Go modules of the local cluster", log)
        return done.stdout

    def _build(self, binary: Binary, target: Path, packages: set[str], step: Step) -> None:
        log = self._logs / f"{binary.name}.log"
        command: list[str | Path] = [self._go.command, "build", "-v", *FLAGS]
        command += ["-ldflags", binary.ldflags, "-o", target, binary.package]
        compiled = 0
        with (
            log.open("w") as written,
            subprocess.Popen(
                command,
                cwd=self._modules / binary.module,
                env=golang.environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            assert process.stderr is not None
            step.at(0, len(packages) + 1)
            try:
                for line in process.stderr:
                    written.write(line)
                    compiled += line.strip() in packages
                    step.at(compiled, len(packages) + 1)
            except BaseException:
                # Who interrupts us does not want to wait until Go is done.
                process.terminate()
                raise
        if process.returncode != 0:
            raise _failed(f"Building {binary.name}", log)


def _failed(what: str, log: Path) -> GpufairError:
    return GpufairError(f"{what} failed; the log is {log} and ends so:\n{tail(log)}")
