"""The whole demo: a local cluster, the operator on it, the day, and nothing left of it all."""

import asyncio
import logging
import shutil
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, TypeVar

from filelock import FileLock, Timeout

from gpufair import local
from gpufair.api.load import load_files
from gpufair.api.policy import Policy
from gpufair.cluster.client import Client
from gpufair.demo import screen, site, stage
from gpufair.demo.child import Operator, command
from gpufair.demo.clock import DayClock
from gpufair.demo.day import DayJob, the_day, until
from gpufair.demo.player import Player
from gpufair.demo.summary import Summary
from gpufair.errors import GpufairError
from gpufair.local import Instance, paths, progress
from gpufair.local.logs import tail
from gpufair.resources import examples_dir

POLICY = "fraud-and-research.yaml"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """How the day is to be played: see `gpufair demo --help`. `until` is an hour of the day."""

    name: str
    minutes: float
    until: float
    seed: int
    keep: bool


@contextmanager
def played(options: Options, live: TextIO) -> Iterator[Summary]:
    """Play the day and yield what came of it; the cluster goes down after the block.

    `live` shows the day as it goes on, standard error the steps before and after. Raises
    GpufairError that says what did not work and where the logs are.
    """
    # Reconnecting informers are no news for the user; what lasts is raised.
    logging.getLogger("gpufair").addHandler(logging.NullHandler())
    demo = Demo(options, read_policy(), live)
    with _only_one(options.name), demo.cluster() as instance:
        yield demo.play(instance)


def read_policy() -> Policy:
    """The bank's policy, from the examples of the package."""
    loaded = load_files([examples_dir() / POLICY])[0]
    if loaded.policy is None:
        raise GpufairError(f"The example {loaded.file} is not valid: reinstall gpufair.")
    return loaded.policy


def judge(summary: Summary) -> None:
    """Raise GpufairError when the day did not go as a day does."""
    for tenant in summary.tenants:
        jobs = tenant.jobs
        if jobs.submitted and not jobs.started:
            raise GpufairError(f"None of {jobs.submitted} jobs of {tenant.name} was ever admitted.")


class Demo:
    """One demo: its policy, its Jobs, its logs."""

    def __init__(self, options: Options, policy: Policy, live: TextIO) -> None:
        self._options = options
        self._policy = policy
        self._live = live
        self._day: list[DayJob] = until(the_day(options.seed), options.until)
        self._logs = _logs(options.name)

    @contextmanager
    def cluster(self) -> Iterator[Instance]:
        """The local cluster; a new one has no nodes. It goes down unless it is to be kept."""
        with progress.shown() as steps:
            instance = local.up(self._options.name, nodes=0, progress=steps)
        if not instance.fresh:
            self._refuse_foreign(instance)
        failed = False
        try:
            yield instance
        except Exception as error:
            failed = True
            self._keep_logs(instance)
            if not isinstance(error, GpufairError):
                raise
            raise GpufairError(f"{error}\nAll logs of the demo are in {self._logs}.") from error
        finally:
            self._end(instance, failed)

    def _end(self, instance: Instance, failed: bool) -> None:
        if self._options.keep:
            _say(_LOOK_AROUND.format(config=instance.kubeconfig, name=instance.name))
            return
        _say(f"Taking local cluster {instance.name!r} down …")
        local.down(instance.name)
        if not failed:
            shutil.rmtree(self._logs, ignore_errors=True)

    def play(self, instance: Instance) -> Summary:
        """Set the stage and play the day."""
        options = self._options
        clock = DayClock(options.minutes)
        self._logs.mkdir(parents=True, exist_ok=True)
        operator = Operator(command(instance.kubeconfig, clock), self._logs / "operator.log")
        try:
            with progress.shown() as steps:
                _run(self._prepare(instance, operator, steps))
            clock = replace(clock, began=time.monotonic())
            operator.tell(clock)
            with screen.shown(self._live) as shown:
                summary = _run(self._play(instance, operator, clock, shown))
        finally:
            operator.stop()
        judge(summary)
        return summary

    def _refuse_foreign(self, instance: Instance) -> None:
        """Raise GpufairError when somebody uses the cluster for something else."""
        ours = {node.name for node in site.nodes(self._policy.spec)}
        found = {node["metadata"]["name"] for node in instance.api.get("/api/v1/nodes")["items"]}
        if found - ours:
            raise GpufairError(
                f"Local cluster {instance.name!r} runs with nodes that are not of the demo: "
                "choose another --name, or take it down with "
                f"`gpufair local down --name {instance.name}`."
            )

    async def _prepare(
        self, instance: Instance, operator: Operator, steps: progress.Progress
    ) -> None:
        async with Client.from_kubeconfig(instance.kubeconfig) as client:
            await stage.prepare(client, self._policy, self._day, operator, steps)

    async def _play(
        self, instance: Instance, operator: Operator, clock: DayClock, shown: screen.Screen
    ) -> Summary:
        def check() -> None:
            operator.check()
            for component in instance.dead():
                log = tail(instance.log(component))
                raise GpufairError(f"{component} has ended. Its log ends so:\n{log}")

        async with Client.from_kubeconfig(instance.kubeconfig) as client:
            player = Player(
                client=client,
                policy=self._policy,
                day=self._day,
                clock=clock,
                screen=shown,
                check=check,
            )
            return await player.play(self._options.until)

    def _keep_logs(self, instance: Instance) -> None:
        for component in instance.expected():
            if (log := instance.log(component)).exists():
                shutil.copy(log, self._logs)


_LOOK_AROUND = """
The cluster stays up, without the operator. To look around:
  export KUBECONFIG={config}
  gpufair status
  gpufair local kubectl --name {name} get clusterqueues,localqueues,workloads -A
  gpufair run                              # the operator again, by the real clock
  gpufair local down --name {name}"""


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run it; of several failures at once, raise the first that is for the user."""
    try:
        return asyncio.run(work)
    except BaseExceptionGroup as group:
        ours, _ = group.split(GpufairError)
        if ours is None:
            raise
        found: BaseException = ours
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        raise found from None


@contextmanager
def _only_one(name: str) -> Iterator[None]:
    """Two demos at once on one cluster would remove each other's Jobs."""
    path = _logs(name).with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=0):
            try:
                yield
            finally:
                path.unlink()
    except Timeout:
        raise GpufairError(
            f"A demo is going on on local cluster {name!r}: wait for it, or choose another --name."
        ) from None


def _logs(name: str) -> Path:
    return paths.cache_dir() / "logs" / f"demo-{name}"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
