"""The day's Jobs as manifests of batch/v1. Pure."""

from typing import Any

from gpufair.demo.clock import DayClock
from gpufair.demo.day import GPUS_PER_POD, DayJob

LABEL = "gpufair.io/demo"
"""On every Job of the day."""
_CPU, _MEMORY = "96", "768Gi"


def manifest(job: DayJob, queue: str, clock: DayClock) -> dict[str, Any]:
    """Return the Job, suspended, for the LocalQueue `queue`; its pods run in compressed time."""
    resources = {"nvidia.com/gpu": str(GPUS_PER_POD), "cpu": _CPU, "memory": _MEMORY}
    container = {
        "name": "main",
        "image": f"registry.example/{job.tenant}/{job.tier}:1",
        "resources": {"requests": resources, "limits": {"nvidia.com/gpu": str(GPUS_PER_POD)}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job.name,
            "namespace": job.namespace,
            "labels": {
                LABEL: "true",
                "kueue.x-k8s.io/queue-name": queue,
                "kueue.x-k8s.io/priority-class": job.tier,
            },
        },
        "spec": {
            "suspend": True,
            "parallelism": job.pods,
            "completions": job.pods,
            "template": {
                "metadata": {"annotations": {"gpufair.io/run-for": f"{clock.real(job.runs):.2f}s"}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }
