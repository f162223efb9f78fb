"""A test's own corner of the shared cluster: names, namespaces, policies, work."""

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from gpufair.api.kinds import (
    EVENT,
    GPU_SCHEDULING_POLICY,
    JOB,
    LOCAL_QUEUE,
    NAMESPACE,
    WORKLOAD,
    Resource,
)

from .kube import Json, Kube, RefusedError
from .policies import GPU, KINDS, QUEUE
from .wait import SOON, until

LABEL = "gpufair.io/policy"
_CONDITIONS = "conditions"


class Space:
    """Everything in it carries `prefix` in its name, and goes with `close`."""

    def __init__(self, kube: Kube, name: str) -> None:
        self.kube = kube
        self.prefix = f"{name}-{uuid.uuid4().hex[:5]}"
        self._policies: set[str] = set()
        self._namespaces: set[str] = set()
        self._others: list[tuple[Resource, str, str]] = []

    # -- policies --------------------------------------------------------------------------------

    def apply(self, policy: Json) -> Json:
        """Apply a policy as `kubectl apply --server-side` does."""
        self._policies.add(policy["metadata"]["name"])
        return self.kube.apply(policy)

    def ready(self, policy: Json, seconds: float = SOON) -> Json:
        """Apply a policy and wait until it says that it is Ready; return it as it is then."""
        made = self.apply(policy)
        return self.settled(made, "Ready", "True", seconds)

    def settled(self, made: Json, kind: str, status: str, seconds: float = SOON) -> Json:
        """Wait until a condition has a status for this generation of the policy or a later one."""
        name, generation = made["metadata"]["name"], made["metadata"]["generation"]

        def check() -> Json | None:
            now = self.policy(name)
            found = condition(now, kind)
            there = found.get("observedGeneration", 0) >= generation
            return now if there and found["status"] == status else None

        what = f"{kind}={status} of {name} at generation {generation}"
        return until(check, what, seconds, lambda: self.policy(name).get("status"))

    def said(self, name: str, kind: str, reason: str, seconds: float = SOON) -> Json:
        """Wait until a condition has a reason; return the condition."""

        def check() -> Json | None:
            found = condition(self.policy(name), kind)
            return found if found.get("reason") == reason else None

        what = f"{kind} of {name} has the reason {reason}"
        return until(check, what, seconds, lambda: self.policy(name).get("status"))

    def policy(self, name: str) -> Json:
        return self.kube.get(GPU_SCHEDULING_POLICY, name)

    def delete_policy(self, name: str) -> None:
        self.kube.delete(GPU_SCHEDULING_POLICY, name)

    def policy_gone(self, name: str, seconds: float = SOON) -> None:
        """Wait until a deleted policy has disappeared."""
        find = self.kube.find
        until(
            lambda: find(GPU_SCHEDULING_POLICY, name) is None,
            f"policy {name} is gone",
            seconds,
            lambda: find(GPU_SCHEDULING_POLICY, name),
        )

    def events(self, name: str) -> list[Json]:
        """Events on a policy, oldest first."""
        found = [e for e in self.kube.list(EVENT, "default") if e["regarding"].get("name") == name]
        return sorted(found, key=lambda event: str(event["eventTime"]))

    # -- what policies are made into -------------------------------------------------------------

    def owned(self, policy: str) -> dict[tuple[str, str, str], Json]:
        """Objects that carry the policy's label, by kind, namespace and name."""
        return {
            (kind.kind, item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
            for kind in KINDS
            for item in self.kube.list(kind, selector=f"{LABEL}={policy}")
        }

    def versions(self, policy: str) -> dict[tuple[str, str, str], tuple[str, Any]]:
        """uid and our entry in managedFields, time included: both stay while nothing is written.

        Not the resourceVersion: Kueue counts in the status of its objects.
        """
        return {key: (i["metadata"]["uid"], _ours(i)) for key, i in self.owned(policy).items()}

    # -- namespaces and other objects ------------------------------------------------------------

    def namespace(self, name: str, **labels: str) -> str:
        """Create a namespace; its name must carry the prefix."""
        assert name.startswith(self.prefix)
        self._namespaces.add(name)
        metadata = {"name": name, "labels": labels}
        self.kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return name

    def namespaces_of(self, policy: Json) -> None:
        """Create every namespace that the policy lists."""
        for tenant in policy["spec"]["tenants"]:
            for name in tenant.get("namespaces", ()):
                self.namespace(name)

    def create(self, resource: Resource, manifest: Json) -> Json:
        """Create any object, to be removed at the end."""
        metadata = manifest["metadata"]
        self._others.append((resource, metadata["name"], metadata.get("namespace", "")))
        return self.kube.create(manifest)

    def queue(self, namespace: str, name: str = QUEUE) -> Json | None:
        return self.kube.find(LOCAL_QUEUE, name, namespace)

    # -- work ------------------------------------------------------------------------------------

    def job(
        self,
        namespace: str,
        name: str,
        gpus: int,
        *,
        tier: str = "",
        pods: int = 1,
        run_for: str = "",
        pod_class: str = "",
        queue: str = QUEUE,
    ) -> str:
        """Submit a Job whose pods ask for `gpus` each, and cpu and memory as real ones do."""
        labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
        if tier:
            labels["kueue.x-k8s.io/priority-class"] = tier
        asked = {GPU: str(gpus), "cpu": "2", "memory": "8Gi"}
        container = {
            "name": "train",
            "image": "example/train",
            "resources": {"requests": asked, "limits": asked},
        }
        template: Json = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        if run_for:
            template["metadata"] = {"annotations": {"gpufair.io/run-for": run_for}}
        if pod_class:
            template["spec"]["priorityClassName"] = pod_class
        self.kube.create(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
                "spec": {
                    "parallelism": pods,
                    "completions": pods,
                    "suspend": True,
                    "template": template,
                },
            }
        )
        return name

    def workload(self, namespace: str, job: str) -> Json | None:
        """The Workload of a Job."""
        for item in self.kube.list(WORKLOAD, namespace):
            owners = item["metadata"].get("ownerReferences") or ()
            if any(owner["name"] == job for owner in owners):
                return item
        return None

    def is_admitted(self, namespace: str, job: str) -> bool:
        return condition(self.workload(namespace, job) or {}, "Admitted").get("status") == "True"

    def admitted(self, namespace: str, *jobs: str) -> None:
        """Wait until Jobs are admitted."""
        for job in jobs:
            until(
                lambda job=job: self.is_admitted(namespace, job),  # type: ignore[misc]
                f"{namespace}/{job} is admitted",
                SOON,
                lambda job=job: self.workload(namespace, job),  # type: ignore[misc]
            )

    def refused(self, namespace: str, job: str, why: str) -> str:
        """Wait until Kueue has considered a Job and not admitted it, for a reason; return it."""

        def check() -> str:
            found = condition(self.workload(namespace, job) or {}, "QuotaReserved")
            message = str(found.get("message", ""))
            return message if found.get("status") == "False" and why in message else ""

        what = f"{namespace}/{job} waits because of: {why}"
        return until(check, what, SOON, lambda: self.workload(namespace, job))

    def end_job(self, namespace: str, job: str) -> None:
        """Delete a Job with its pods, as the end of its work."""
        self.kube.delete(JOB, job, namespace)

    # -- end -------------------------------------------------------------------------------------

    def close(self) -> None:
        """Remove it all; objects of policies go as the operator runs, work is evicted."""
        for name in self._policies:
            self._discard(name)
        for name in self._namespaces:
            self.kube.delete(NAMESPACE, name)
        for resource, name, namespace in self._others:
            self.kube.delete(resource, name, namespace)

    def _discard(self, name: str) -> None:
        evict = {"spec": {"deletionPolicy": "Evict"}}
        try:
            self.kube.patch(GPU_SCHEDULING_POLICY, name, evict)
        except RefusedError as error:
            if error.status == 404:
                return
        self.delete_policy(name)


def condition(item: Json, kind: str) -> Json:
    """A condition of an object's status, empty when it has none of that type."""
    found: Iterable[Json] = (item.get("status") or {}).get(_CONDITIONS) or ()
    return next((c for c in found if c["type"] == kind), {})


def all_true(checks: Iterable[Callable[[], object]]) -> bool:
    return all(check() for check in checks)


def _ours(item: Json) -> Any:
    for entry in item["metadata"].get("managedFields") or ():
        if entry.get("manager") == "gpufair" and entry.get("operation") == "Apply":
            return (entry.get("time"), repr(entry.get("fieldsV1")))
    return None
