from typing import Any

import pytest

from gpufair.demo import records
from gpufair.demo.day import DayJob
from gpufair.demo.events import MERGE, EventLog, Party
from gpufair.demo.ledger import Ledger
from gpufair.demo.meter import Meter
from gpufair.demo.records import Preemption, Queue, Work
from gpufair.demo.summary import Measured, run_overheads, summarize
from gpufair.plan.records import State

SCORE = DayJob("score", "fraud", "fraud", "inference", at=1.0, runs=2.0, pods=4)
SWEEP = DayJob("sweep", "nlp", "nlp", "best-effort", at=0.0, runs=4.0, pods=4)
GANG = DayJob("gang", "nlp", "nlp", "training-prod", at=0.0, runs=4.0, pods=8)
FRAUD = Queue("fraud", (("dc1", 64),), None, 48)
NLP = Queue("nlp", (("dc1", 16), ("dc2", 0)), 48, None)


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger(
        ["fraud", "nlp"], ["inference", "training-prod", "best-effort"], 80, [SCORE, SWEEP, GANG]
    )
    made.queue_changed(FRAUD, 0.0)
    made.queue_changed(NLP, 0.0)
    return made


def work(
    job: DayJob,
    state: State,
    flavor: str = "dc1",
    preemption: Preemption | None = None,
) -> Work:
    holds = state in (State.RESERVED, State.ADMITTED)
    return Work(
        namespace=job.namespace,
        job=job.name,
        uid=f"uid-{job.name}",
        tier=job.tier,
        queue=job.tenant if holds else "",
        gpus=job.gpus,
        flavors=((flavor, job.gpus),) if holds else (),
        state=state,
        preemption=preemption,
    )


def submit(ledger: Ledger, job: DayJob, hour: float) -> None:
    ledger.submitted(job, f"uid-{job.name}", hour)
    ledger.work_changed(work(job, State.PENDING), None, hour)


def test_what_is_held_and_borrowed_by_flavor(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    ledger.work_changed(work(SWEEP, State.ADMITTED), work(SWEEP, State.PENDING), 0.5)
    fraud, nlp = ledger.tenants_now()
    assert (nlp.nominal, nlp.limit, nlp.used, nlp.borrowed) == (16, 48, 32, 16)
    assert (nlp.running_jobs, nlp.waiting_jobs, nlp.pending) == (1, 0, 0)
    assert (fraud.used, fraud.borrowed) == (0, 0)


def test_quota_of_one_flavor_is_no_quota_of_another(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    ledger.work_changed(work(SWEEP, State.ADMITTED, "dc2"), None, 0.5)
    assert ledger.tenants_now()[1].borrowed == 32


def test_what_waits_is_pending_by_tenant_and_tier(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    submit(ledger, GANG, 0.0)
    ledger.work_changed(work(GANG, State.ADMITTED), None, 0.25)
    assert ledger.tenants_now()[1].pending == 32
    tiers = {tier.name: tier for tier in ledger.tiers_now()}
    assert (tiers["training-prod"].running, tiers["training-prod"].running_gpus) == (1, 64)
    assert (tiers["best-effort"].pending, tiers["best-effort"].pending_gpus) == (1, 32)


def test_a_preempted_job_waits_again_and_loses_its_work(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    ledger.work_changed(work(SWEEP, State.ADMITTED), None, 0.5)
    submit(ledger, SCORE, 1.0)
    preempted = Preemption(1, "InCohortReclamation", "uid-score")
    # Kueue says so while the Workload still holds its quota, and once more when it is released.
    ledger.work_changed(work(SWEEP, State.ADMITTED, preemption=preempted), None, 1.5)
    ledger.work_changed(work(SWEEP, State.PENDING, preemption=preempted), None, 1.5)
    ledger.work_changed(work(SCORE, State.ADMITTED), None, 1.5)

    log = ledger.jobs["nlp", "sweep"]
    assert log.preempted == 1
    assert log.lost == pytest.approx(32.0)
    assert log.wait(2.0) == pytest.approx(0.5 + 0.5)
    assert ledger.accounts["fraud"].caused == 1
    assert [event.text for event in ledger.log.events] == [
        "fraud's inference takes back 32 GPUs: 1 best-effort job of nlp is requeued"
    ]


def test_a_finished_job_stays_finished(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    ledger.work_changed(work(SWEEP, State.ADMITTED), None, 0.5)
    ledger.work_changed(work(SWEEP, State.FINISHED), None, 5.0)
    ledger.work_changed(None, work(SWEEP, State.FINISHED), 6.0)
    log = ledger.jobs["nlp", "sweep"]
    assert (log.done, log.wait(9.0), log.runs, log.waits) == (5.0, 0.5, False, False)
    assert run_overheads([log]) == [pytest.approx(0.5)]
    assert ledger.tenants_now()[1].used == 0


def test_the_watch_may_be_faster_than_the_answer(ledger: Ledger) -> None:
    ledger.work_changed(work(SWEEP, State.ADMITTED), None, 0.1)
    ledger.submitted(SWEEP, "uid-sweep", 0.1)
    assert ledger.jobs["nlp", "sweep"].runs


def test_work_of_others_does_not_count(ledger: Ledger) -> None:
    foreign = DayJob("other", "nlp", "nlp", "best-effort", at=0, runs=1, pods=1)
    ledger.work_changed(work(foreign, State.ADMITTED), None, 0.1)
    assert ledger.tenants_now()[1].used == 0


def test_a_window_shows_in_what_an_owner_lends(ledger: Ledger) -> None:
    ledger.queue_changed(Queue("fraud", FRAUD.nominals, None, 16), 9.0)
    ledger.queue_changed(Queue("fraud", FRAUD.nominals, None, None), 17.5)
    assert [event.text for event in ledger.log.events] == [
        "fraud lends at most 16 GPUs now, 48 before",
        "fraud lends at most 64 GPUs now, 16 before",
    ]


def test_borrowing_up_to_the_limit_is_told_once_in_a_while(ledger: Ledger) -> None:
    submit(ledger, GANG, 0.0)
    ledger.work_changed(work(GANG, State.ADMITTED), None, 0.1)
    for hour in (0.2, 0.3, 0.4):
        ledger.tick(hour)
    assert [event.text for event in ledger.log.events] == [
        "a gang of nlp starts: 8 pods, 64 GPUs, after 6m of waiting",
        "nlp borrows up to its limit: 48 GPUs",
    ]


def test_a_used_up_quota_is_told_when_work_waits(ledger: Ledger) -> None:
    small = DayJob("small", "nlp", "nlp", "best-effort", at=0, runs=1, pods=2)
    made = Ledger(["nlp"], ["best-effort"], 16, [small, SWEEP])
    made.queue_changed(NLP, 0.0)
    submit(made, small, 0.0)
    made.work_changed(work(small, State.ADMITTED), None, 0.1)
    made.tick(0.2)
    assert not made.log.events
    submit(made, SWEEP, 0.3)
    made.tick(0.4)
    assert made.log.events[0].text == "nlp has used its quota of 16 GPUs: 1 job waits"


def test_the_summary_adds_up(ledger: Ledger) -> None:
    submit(ledger, SWEEP, 0.0)
    ledger.work_changed(work(SWEEP, State.ADMITTED), None, 0.5)
    ledger.work_changed(work(SWEEP, State.FINISHED), None, 4.5)
    submit(ledger, GANG, 5.0)
    summary = summarize(ledger, 6.0, Measured(45.0, 0.1, 0.2))
    found = summary.to_dict()
    nlp = found["tenants"]["nlp"]
    assert nlp["jobs"] == {"submitted": 2, "done": 1, "running": 0, "waiting": 1}
    assert nlp["gpu_hours"] == pytest.approx(128.0)
    assert nlp["borrowed_gpu_hours"] == pytest.approx(64.0)
    assert (nlp["peak_used"], nlp["peak_borrowed"]) == (32, 16)
    assert nlp["wait_s"] == {"mean": 2700, "max": 3600}
    assert nlp["used_by_half_hour"] == [0] + [32] * 8 + [0] * 3
    assert found["pool"]["gpu_hours"] == pytest.approx(128.0)
    assert found["pool"]["utilization"] == pytest.approx(128 / (80 * 6), abs=1e-4)
    assert found["tiers"]["training-prod"]["jobs"]["waiting"] == 1


def test_a_meter_knows_integral_peak_and_means() -> None:
    meter = Meter()
    meter.set(0.25, 8)
    meter.set(1.0, 2)
    meter.advance(1.25)
    assert meter.total == pytest.approx(6.5)
    assert meter.peak == 8
    assert meter.means() == pytest.approx([4.0, 8.0, 2.0])


def test_preemptions_for_one_cause_are_one_event() -> None:
    log, by = EventLog(), Party("fraud", "inference")
    log.requeued(7.0, by, "InCohortReclamation", Party("nlp", "best-effort"), 32)
    log.requeued(7.1, by, "InClusterQueue", Party("fraud", "training-prod"), 64)
    log.requeued(7.2, by, "InCohortReclamation", Party("nlp", "best-effort"), 32)
    log.requeued(7.2, by, "InCohortReclamation", Party("recsys", "training-dev"), 16)
    log.requeued(7.1 + MERGE + 0.1, by, "InCohortReclamation", Party("nlp", "best-effort"), 32)
    assert [event.text for event in log.events] == [
        "fraud's inference takes back 80 GPUs: 2 best-effort jobs of nlp and 1 training-dev job of "
        "recsys are requeued",
        "fraud's inference goes before less urgent work of its own: 1 training-prod job (64 GPUs) "
        "is requeued",
        "fraud's inference takes back 32 GPUs: 1 best-effort job of nlp is requeued",
    ]


def test_an_event_is_settled_once_when_it_cannot_grow_any_more() -> None:
    log = EventLog()
    log.say(1.0, "a")
    log.say(1.0 + MERGE, "b")
    assert [event.text for event in log.settled(1.0)] == []
    assert [event.text for event in log.settled(1.1 + MERGE)] == ["a"]
    assert [event.text for event in log.settled(9.0)] == ["b"]
    assert [event.text for event in log.settled(9.0)] == []


def test_small_preemptions_of_own_work_are_not_shown() -> None:
    log, by = EventLog(), Party("nlp", "training-dev")
    log.requeued(7.0, by, "InClusterQueue", Party("nlp", "best-effort"), 32)
    assert not log.last(9)
    log.requeued(7.1, by, "InClusterQueue", Party("nlp", "best-effort"), 32)
    log.requeued(8.0, by, "InClusterQueue", Party("nlp", "best-effort"), 16)
    log.requeued(8.0, by, "InCohortReclamation", Party("recsys", "best-effort"), 16)
    assert [event.hour for event in log.last(9)] == [7.0, 8.0]
    assert list(log.settled(9.0)) == log.last(9)
    assert len(log.events) == 3


def workload(**status: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"nvidia.com/gpu": "8", "cpu": "96"}}}
    return {
        "metadata": {
            "namespace": "nlp",
            "name": "job-gang-1a2b3",
            "ownerReferences": [{"kind": "Job", "name": "gang", "uid": "uid-gang"}],
        },
        "spec": {
            "queueName": "gpu",
            "priorityClassRef": {"group": "kueue.x-k8s.io", "name": "training-prod"},
            "podSets": [{"count": 4, "template": {"spec": {"containers": [container]}}}],
        },
        "status": status,
    }


def test_a_pending_workload() -> None:
    found = records.work(workload())
    assert found == Work("nlp", "gang", "uid-gang", "training-prod", "", 32, (), State.PENDING)


def test_an_admitted_workload_that_is_being_preempted() -> None:
    message = (
        "Preempted to accommodate a workload (UID: 6b70, JobUID: 5c04) due to prioritization in "
        "the ClusterQueue; preemptor path: /pool/nlp; preemptee path: /pool/nlp"
    )
    assigned = {"flavors": {"nvidia.com/gpu": "dc1"}, "resourceUsage": {"nvidia.com/gpu": "32"}}
    found = records.work(
        workload(
            admission={"clusterQueue": "nlp", "podSetAssignments": [assigned]},
            conditions=[
                {"type": "Admitted", "status": "True"},
                {
                    "type": "Preempted",
                    "status": "True",
                    "reason": "InClusterQueue",
                    "message": message,
                },
            ],
            schedulingStats={"evictions": [{"reason": "Preempted", "count": 2}]},
        )
    )
    assert found is not None
    assert (found.queue, found.flavors, found.runs) == ("nlp", (("dc1", 32),), True)
    assert found.preemption == Preemption(2, "InClusterQueue", "5c04")


def test_a_workload_without_a_job_is_not_of_the_day() -> None:
    live = workload()
    live["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "u"}]
    assert records.work(live) is None


def test_a_cluster_queue() -> None:
    resources = [
        {"name": "nvidia.com/gpu", "nominalQuota": "128", "borrowingLimit": "64"},
        {"name": "cpu", "nominalQuota": "1G"},
    ]
    flavors = [{"name": "dc1", "resources": resources}, {"name": "dc2", "resources": resources}]
    live = {
        "metadata": {"name": "nlp"},
        "spec": {"resourceGroups": [{"flavors": flavors}]},
    }
    found = records.queue(live)
    assert found == Queue("nlp", (("dc1", 128), ("dc2", 128)), 128, None)
    assert found.nominal == 256
    assert found.borrowed({"dc1": 100, "dc2": 160}) == 32
