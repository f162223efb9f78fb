"""What happens during the day, in words. Pure.

Preemptions for one cause within a short while are one event: its text grows until it is settled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MERGE = 0.3
"""Hours in which preemptions for the same cause are one event."""
_REST = 3.0
"""Hours until the same thing is worth telling again."""

_OWN = "InClusterQueue"
_MANY = 64
"""GPUs from which on a tenant's preemption of its own work is notable."""
_BECAUSE = {
    "InCohortReclamation": "{by} takes back {gpus} GPUs",
    "InCohortFairSharing": "{by} takes its fair share",
    "InCohortReclaimWhileBorrowing": "{by} goes before less urgent borrowers",
    _OWN: "{by} goes before less urgent work of its own",
}


@dataclass(frozen=True, slots=True)
class Party:
    """Work of one tier of one tenant."""

    tenant: str
    tier: str

    def __str__(self) -> str:
        return f"{self.tenant}'s {self.tier}"


@dataclass(slots=True)
class Event:
    """Something worth telling; `hour` is when it began."""

    hour: float
    said: str = ""

    @property
    def text(self) -> str:
        return self.said

    @property
    def notable(self) -> bool:
        """Whether people who watch should see it."""
        return True


@dataclass(slots=True)
class Requeued(Event):
    """Jobs that were preempted for the same cause."""

    by: Party = Party("", "")
    reason: str = ""
    gpus: int = 0
    victims: dict[Party, int] = field(default_factory=dict)

    def add(self, victim: Party, gpus: int) -> None:
        """One more job that had to go."""
        self.gpus += gpus
        self.victims[victim] = self.victims.get(victim, 0) + 1

    @property
    def text(self) -> str:
        total = sum(self.victims.values())
        because = _BECAUSE.get(self.reason, "{by} preempts").format(by=self.by, gpus=self.gpus)
        whose = _listed([self._jobs(party, count) for party, count in self.victims.items()])
        gpus = "" if "GPUs" in because else f" ({self.gpus} GPUs)"
        return f"{because}: {whose}{gpus} {'is' if total == 1 else 'are'} requeued"

    @property
    def notable(self) -> bool:
        return self.reason != _OWN or self.gpus >= _MANY

    def _jobs(self, party: Party, count: int) -> str:
        whose = "" if party.tenant == self.by.tenant else f" of {party.tenant}"
        return f"{count} {party.tier} job{'' if count == 1 else 's'}{whose}"


class EventLog:
    """The events of the day, oldest first."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._told: dict[str, float] = {}
        self._settled = 0

    def say(self, hour: float, text: str, *, topic: str = "") -> None:
        """Tell something; a `topic` is told about only once in a while."""
        if topic:
            if hour - self._told.get(topic, -_REST) < _REST:
                return
            self._told[topic] = hour
        self.events.append(Event(hour, text))

    def requeued(self, hour: float, by: Party, reason: str, victim: Party, gpus: int) -> None:
        """Tell that a job of `victim` was preempted for one of `by`."""
        for event in reversed(self.events):
            if hour - event.hour > MERGE:
                break
            if isinstance(event, Requeued) and (event.by, event.reason) == (by, reason):
                event.add(victim, gpus)
                return
        event = Requeued(hour, by=by, reason=reason)
        event.add(victim, gpus)
        self.events.append(event)

    def last(self, count: int) -> Sequence[Event]:
        """The latest notable events, oldest of them first."""
        return [event for event in self.events if event.notable][-count:]

    def settled(self, hour: float) -> Iterator[Event]:
        """Yield, once each, the notable events whose text will not change after `hour`."""
        while self._settled < len(self.events):
            event = self.events[self._settled]
            if hour - event.hour <= MERGE:
                return
            self._settled += 1
            if event.notable:
                yield event


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
