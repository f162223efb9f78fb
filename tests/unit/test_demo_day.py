from collections import Counter
from datetime import UTC, datetime

import pytest

from gpufair.api.policy import PolicySpec
from gpufair.demo import jobs, site
from gpufair.demo.clock import DayClock, span, time_of_day
from gpufair.demo.day import DAY, GPUS_PER_POD, DayJob, the_day, until
from gpufair.demo.run import read_policy
from gpufair.policies import windows


@pytest.fixture(scope="module")
def spec() -> PolicySpec:
    return read_policy().spec


def test_one_seed_gives_one_day() -> None:
    assert the_day(3) == the_day(3)
    assert the_day(3) != the_day(4)


def test_jobs_come_in_the_order_of_their_time() -> None:
    times = [job.at for job in the_day()]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < DAY


@pytest.mark.parametrize("seed", range(5))
def test_the_day_is_of_a_size_that_two_cores_can_play(seed: int) -> None:
    day = the_day(seed)
    assert 150 <= len(day) <= 250
    assert sum(job.pods for job in day) <= 700
    assert len({(job.namespace, job.name) for job in day}) == len(day)


@pytest.mark.parametrize("seed", range(5))
def test_every_job_fits_the_policy(spec: PolicySpec, seed: int) -> None:
    tenants = {tenant.name: tenant for tenant in spec.tenants}
    for job in the_day(seed):
        tenant = tenants[job.tenant]
        assert job.tier in tenant.tiers
        if tenant.namespaces:
            assert job.namespace in tenant.namespaces
        # Kueue gives all pods of a Job one flavor: a gang must fit into the largest share of one.
        most = max(q.nominal.value + (q.borrowing_limit or q.nominal).value for q in tenant.quota)
        assert job.gpus <= most


def test_at_night_research_asks_for_more_than_it_owns_and_in_the_morning_fraud_wants_it_back() -> (
    None
):
    day = the_day()
    night, noon = _demand(day, 6.5), _demand(day, 10.0)
    assert night["nlp"] + night["recsys"] > 512 + 300
    assert night["fraud"] < 128
    assert noon["fraud"] > 448
    assert sum(noon.values()) > 1024


def _demand(day: list[DayJob], hour: float) -> Counter[str]:
    demand: Counter[str] = Counter()
    for job in day:
        if job.at <= hour < job.at + job.runs:
            demand[job.tenant] += job.gpus
    return demand


def test_until_leaves_out_what_comes_later() -> None:
    day = until(the_day(), 9.0)
    assert day
    assert all(job.at < 9.0 for job in day)


def test_a_clock_that_has_not_begun_stands_at_midnight() -> None:
    clock = DayClock(minutes=3)
    assert clock.hour(1e6) == 0.0
    assert clock.moment(1e6) == datetime(2026, 11, 17, 5, tzinfo=UTC)
    with pytest.raises(ValueError, match="not begun"):
        clock.due(1.0)


def test_a_clock_passes_a_day_in_its_minutes() -> None:
    clock = DayClock(minutes=3, began=100.0)
    assert clock.speed == 480
    assert clock.hour(100.0 + 180.0) == pytest.approx(24.0)
    assert clock.due(12.0) == pytest.approx(190.0)
    assert clock.real(8.0) == pytest.approx(60.0)
    assert clock.hour(99.0) == 0.0


def test_a_clock_survives_the_way_to_another_process() -> None:
    clock = DayClock(minutes=2.5, began=12.25)
    assert DayClock.from_json(clock.to_json()) == clock
    assert "\n" not in clock.to_json()


@pytest.mark.parametrize(
    ("hour", "expected"),
    [(8.99, []), (9.01, ["trading-hours"]), (17.49, ["trading-hours"]), (18, [])],
)
def test_the_window_follows_the_clock(spec: PolicySpec, hour: float, expected: list[str]) -> None:
    clock = DayClock(minutes=24, began=0.0)
    moment = clock.moment(clock.due(hour))
    assert [window.name for window in windows.active(spec.windows, moment)] == expected


@pytest.mark.parametrize(("hour", "text"), [(0, "00:00"), (9.5, "09:30"), (24, "24:00")])
def test_time_of_day(hour: float, text: str) -> None:
    assert time_of_day(hour) == text


@pytest.mark.parametrize(("hours", "text"), [(0, "0m"), (0.75, "45m"), (3.08, "3h05m")])
def test_span(hours: float, text: str) -> None:
    assert span(hours) == text


def test_a_job_waits_for_kueue_and_runs_in_compressed_time() -> None:
    job = DayJob("gang", "nlp", "nlp", "training-prod", at=1.0, runs=4.0, pods=16)
    made = jobs.manifest(job, "gpu", DayClock(minutes=3))
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gpu"
    assert made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "training-prod"
    spec = made["spec"]
    assert (spec["suspend"], spec["parallelism"], spec["completions"]) == (True, 16, 16)
    annotations = spec["template"]["metadata"]["annotations"]
    assert annotations == {"gpufair.io/run-for": "30.00s"}
    requests = spec["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert set(requests) == {"nvidia.com/gpu", "cpu", "memory"}
    assert int(requests["nvidia.com/gpu"]) == GPUS_PER_POD


def test_the_nodes_are_those_of_the_flavors(spec: PolicySpec) -> None:
    nodes = site.nodes(spec)
    assert len({node.name for node in nodes}) == len(nodes) == 128
    for flavor in spec.flavors:
        mine = [n for n in nodes if flavor.node_labels.items() <= n.labels.items()]
        assert len(mine) == 64
        for level in flavor.topology_levels:
            assert all(level in node.labels for node in mine)
        racks = Counter(node.labels["topology.kubernetes.io/rack"] for node in mine)
        assert set(racks.values()) == {8}
        assert all(node.labels["kubernetes.io/hostname"] == node.name for node in mine)


def test_namespaces_carry_the_labels_that_tenants_select_by(spec: PolicySpec) -> None:
    made = {
        item["metadata"]["name"]: item["metadata"]["labels"]
        for item in site.namespaces(spec, the_day())
    }
    assert made == {
        "fraud": {},
        "nlp": {},
        "nlp-sandbox": {},
        "recsys-ads": {"team": "recsys"},
        "recsys-ranking": {"team": "recsys"},
    }
