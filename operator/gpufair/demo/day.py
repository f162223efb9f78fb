"""What three teams of a bank submit on one day: the same for the same seed. Pure.

Fraud detection follows the trading day and retrains at night; the two research teams train by
day, run production training at night on what fraud detection leaves idle, and fill gaps with
best-effort work.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GPUS_PER_POD = 8
"""Each pod takes a whole node."""
DAY = 24.0
SEED = 1


@dataclass(frozen=True, slots=True)
class DayJob:
    """One Job: `pods` pods of 8 GPUs that start together; times in hours of the day."""

    name: str
    namespace: str
    tenant: str
    tier: str
    at: float
    """When it is submitted."""
    runs: float
    """How long its pods run, once all of them have started."""
    pods: int

    @property
    def gpus(self) -> int:
        return self.pods * GPUS_PER_POD

    @property
    def gpu_hours(self) -> float:
        return self.gpus * self.runs


@dataclass(frozen=True, slots=True)
class Stream:
    """`count` Jobs of one sort, spread over the hours `between`; ranges hold both ends."""

    name: str
    tenant: str
    tier: str
    namespaces: tuple[str, ...]
    count: int
    between: tuple[float, float]
    runs: tuple[float, float]
    pods: tuple[int, ...]


_FRAUD = ("fraud",)
_NLP = ("nlp",)
_SANDBOX = ("nlp", "nlp-sandbox", "nlp-sandbox")
_RECSYS = ("recsys-ranking", "recsys-ads")

INFERENCE, PROD, DEV, FILL = "inference", "training-prod", "training-dev", "best-effort"

STREAMS = (
    # Scoring goes on all day in shifts; its replicas multiply while the exchanges are open.
    Stream("scoring-night", "fraud", INFERENCE, _FRAUD, 2, (0.0, 0.2), (8.5, 9.0), (4,)),
    Stream("scoring-day", "fraud", INFERENCE, _FRAUD, 2, (8.0, 8.5), (8.0, 8.5), (4,)),
    Stream("scoring-late", "fraud", INFERENCE, _FRAUD, 2, (16.0, 16.5), (7.0, 8.0), (4,)),
    Stream("trading", "fraud", INFERENCE, _FRAUD, 12, (6.5, 9.3), (8.3, 9.6), (4,)),
    Stream("opening", "fraud", INFERENCE, _FRAUD, 2, (9.3, 9.7), (1.5, 2.0), (2,)),
    Stream("closing", "fraud", INFERENCE, _FRAUD, 2, (14.8, 15.3), (1.5, 2.0), (2,)),
    Stream("retrain-night", "fraud", PROD, _FRAUD, 2, (0.3, 1.5), (3.0, 4.0), (8,)),
    Stream("retrain-late", "fraud", PROD, _FRAUD, 2, (20.5, 21.5), (2.0, 2.8), (8,)),
    # Language models.
    Stream("pretrain-night", "nlp", PROD, _NLP, 2, (0.0, 0.6), (4.5, 5.5), (16,)),
    Stream("pretrain-late", "nlp", PROD, _NLP, 2, (19.5, 20.5), (3.0, 3.5), (16,)),
    Stream("finetune", "nlp", DEV, _SANDBOX, 30, (7.5, 18.5), (2.0, 5.0), (2, 2, 4)),
    Stream("sweep-night", "nlp", FILL, ("nlp-sandbox",), 24, (0.5, 7.3), (3.0, 5.0), (2, 4, 4)),
    Stream("sweep", "nlp", FILL, ("nlp-sandbox",), 8, (13.0, 22.0), (1.5, 3.0), (2, 4)),
    # Recommendations.
    Stream("ranker-night", "recsys", PROD, _RECSYS, 2, (0.2, 1.0), (4.0, 5.0), (16,)),
    Stream("ranker-late", "recsys", PROD, _RECSYS, 2, (19.0, 20.5), (2.5, 3.5), (16,)),
    Stream("features", "recsys", DEV, _RECSYS, 38, (7.0, 18.5), (2.5, 5.5), (2, 4, 4)),
    Stream("backfill-night", "recsys", FILL, _RECSYS, 26, (0.5, 7.3), (3.0, 5.0), (2, 4, 4)),
    Stream("backfill", "recsys", FILL, _RECSYS, 8, (13.0, 22.0), (1.5, 3.0), (2, 4)),
)


def the_day(seed: int = SEED, streams: Iterable[Stream] = STREAMS) -> list[DayJob]:
    """Return the day's Jobs in the order in which they are submitted."""
    rng = random.Random(seed)  # noqa: S311 (a schedule, no secret)
    jobs = [job for stream in streams for job in _jobs(stream, rng)]
    return sorted(jobs, key=lambda job: (job.at, job.name))


def _jobs(stream: Stream, rng: random.Random) -> Iterator[DayJob]:
    first, last = stream.between
    step = (last - first) / stream.count
    for number in range(stream.count):
        yield DayJob(
            name=f"{stream.name}-{number + 1:02d}",
            namespace=stream.namespaces[number % len(stream.namespaces)],
            tenant=stream.tenant,
            tier=stream.tier,
            at=round(first + step * (number + rng.random()), 3),
            runs=round(rng.uniform(*stream.runs), 3),
            pods=rng.choice(stream.pods),
        )


def until(jobs: Iterable[DayJob], hour: float) -> list[DayJob]:
    """The Jobs that are submitted before `hour`."""
    return [job for job in jobs if job.at < hour]
