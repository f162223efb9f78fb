"""Workloads boiled down: state, classes, and what all their pods ask for."""

from fractions import Fraction
from typing import Any

import pytest

from gpufair.plan.records import State, queue_of, usage, workload_record
from tests.unit.builders import GPU, Json, keyed, local_queue, workload

MIG = "nvidia.com/mig-1g.10gb"


def container(requests: Json | None = None, limits: Json | None = None, **more: Any) -> Json:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def pod_set(*containers: Json, count: int = 1, **spec: Any) -> Json:
    return {"count": count, "template": {"spec": {"containers": list(containers), **spec}}}


def requests(*pod_sets: Json) -> dict[str, Fraction]:
    return dict(workload_record(workload(podSets=list(pod_sets))).requests)


def test_identity_and_queue() -> None:
    found = workload_record(workload("job-1", "nlp", queue="gpu", tier="dev"))
    assert (found.namespace, found.name, found.queue) == ("nlp", "job-1", "gpu")
    assert (found.workload_class, found.created) == ("dev", "2026-12-01T11:00:00Z")
    assert (found.active, found.cluster_queue) == (True, "")


@pytest.mark.parametrize(
    ("conditions", "state", "holds"),
    [
        ([], State.PENDING, False),
        (["QuotaReserved"], State.RESERVED, True),
        (["QuotaReserved", "Admitted"], State.ADMITTED, True),
        (["QuotaReserved", "Admitted", "Finished"], State.FINISHED, False),
        (["Evicted"], State.PENDING, False),
        (["PodsReady"], State.PENDING, False),
    ],
)
def test_state_is_that_of_the_conditions(conditions: list[str], state: State, holds: bool) -> None:
    found = workload_record(workload(conditions=conditions, cluster_queue="nlp"))
    assert (found.state, found.holds_quota) == (state, holds)


def test_a_condition_that_is_false_does_not_count() -> None:
    raw = workload(conditions=["QuotaReserved"])
    raw["status"]["conditions"] = [{"type": "QuotaReserved", "status": "False"}]
    assert workload_record(raw).state is State.PENDING


def test_a_workload_without_status_is_pending() -> None:
    raw = workload()
    del raw["status"]
    assert workload_record(raw).state is State.PENDING


def test_cluster_queue_is_that_of_the_admission() -> None:
    assert workload_record(workload(cluster_queue="cv")).cluster_queue == "cv"


def test_a_deactivated_workload_is_not_active() -> None:
    assert workload_record(workload(active=False)).active is False


def test_requests_leave_out_cpu_memory_and_storage() -> None:
    asked = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi", GPU: "2"}
    assert requests(pod_set(container(asked))) == {GPU: 2}


def test_requests_are_summed_over_pods_containers_and_pod_sets() -> None:
    found = requests(
        pod_set(container({GPU: "2"}), container({GPU: 1, MIG: "1"}), count=4),
        pod_set(container({GPU: "8"})),
    )
    assert found == {GPU: 20, MIG: 4}


def test_a_limit_stands_for_a_request_that_is_not_stated() -> None:
    assert requests(pod_set(container(limits={GPU: "3"}))) == {GPU: 3}
    assert requests(pod_set(container({GPU: "1"}, limits={GPU: "3"}))) == {GPU: 1}


def test_init_containers_run_before_the_others_so_the_larger_counts() -> None:
    small, large = container({GPU: "1"}), container({GPU: "4"})
    assert requests(pod_set(small, small, initContainers=[large, large])) == {GPU: 4}
    assert requests(pod_set(large, large, initContainers=[large])) == {GPU: 8}


def test_init_containers_that_stay_run_beside_the_others() -> None:
    sidecar = container({GPU: "1"}, restartPolicy="Always")
    setup = container({GPU: "4"})
    assert requests(pod_set(container({GPU: "2"}), initContainers=[sidecar])) == {GPU: 3}
    assert requests(pod_set(container({GPU: "2"}), initContainers=[sidecar, setup])) == {GPU: 5}
    assert requests(pod_set(container({GPU: "2"}), initContainers=[setup, sidecar])) == {GPU: 4}


def test_quantities_are_exact() -> None:
    assert requests(pod_set(container({"x.io/share": "100m"}), count=3)) == {
        "x.io/share": Fraction(3, 10)
    }


def test_a_pod_set_that_asks_for_nothing() -> None:
    assert requests({"count": 2, "template": {}}, pod_set(container())) == {}


def test_a_class_of_others_is_no_tier() -> None:
    reference = {"group": "scheduling.k8s.io", "name": "system"}
    found = workload_record(workload(priorityClassRef=reference))
    assert (found.workload_class, found.pod_classes) == ("", ("system",))


def test_pod_classes_are_those_of_the_templates() -> None:
    pods = [pod_set(container(), priorityClassName=name) for name in ("prod", "dev", "prod")]
    assert workload_record(workload(podSets=pods)).pod_classes == ("dev", "prod")


def test_usage_counts_what_holds_quota_by_queue() -> None:
    reserved = {"conditions": ["QuotaReserved"], "cluster_queue": "nlp"}
    done = {"conditions": ["QuotaReserved", "Finished"], "cluster_queue": "nlp"}
    found = usage(
        workload_record(raw)
        for raw in (
            workload("a", "nlp", **reserved),
            workload("b", "sandbox", **reserved),
            workload("c", "nlp", **reserved),
            workload("d", "nlp", **done),
            workload("e", "nlp"),
        )
    )
    assert found.reserving == {("nlp", "gpu"): 2, ("sandbox", "gpu"): 1}
    assert found.reserving_in == {"nlp": 3}


def test_usage_names_the_classes_of_unfinished_work_only() -> None:
    pods = [pod_set(container(), priorityClassName="pods-of-dev")]
    found = usage(
        workload_record(raw)
        for raw in (
            workload("a", tier="prod", conditions=["Finished"]),
            workload("b", tier="dev", podSets=pods),
        )
    )
    assert "dev" in found.workload_classes
    assert "prod" not in found.workload_classes
    assert found.pod_classes == {"pods-of-dev"}


def test_queue_of_is_the_admission_or_else_the_local_queues() -> None:
    there = keyed(local_queue("nlp", "nlp-queue"))
    assert queue_of(workload_record(workload(cluster_queue="cv")), there) == "cv"
    assert queue_of(workload_record(workload()), there) == "nlp-queue"
    assert queue_of(workload_record(workload(queue="none")), there) == ""


def test_queue_of_a_local_queue_without_spec_is_none() -> None:
    bare = local_queue("nlp")
    del bare["spec"]
    assert queue_of(workload_record(workload()), keyed(bare)) == ""


def test_at_the_end_of_a_policy_only_what_runs_counts() -> None:
    """What waits in queues that go can never start: it must not keep the policy for ever."""
    waits = workload_record(workload("a"))
    runs = workload_record(workload("b", conditions=["Admitted"], cluster_queue="nlp"))
    assert usage([waits]).workload_classes
    assert not usage([waits], running_only=True).workload_classes
    assert usage([runs], running_only=True).workload_classes
