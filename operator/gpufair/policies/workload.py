"""What the priority decisions know of one workload. Times are Unix seconds, spans are seconds."""

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """Where it stands: quota reserved and waiting for checks still counts as waiting."""

    PENDING = "Pending"
    RESERVED = "Reserved"
    ADMITTED = "Admitted"


@dataclass(frozen=True, slots=True)
class Workload:
    """One unfinished workload of a tier.

    `waits_from` is its creation, or when its requests last grew. `ran` is what it ran in earlier
    admissions, `admitted_at` when the present one began. `held` is what it spent on hold,
    `held_from` since when it is now. `band_priority` is the priority at which it was reserved.
    `preempted_at` are its evictions from Admitted by preemption, oldest first. `last_checkpoint` is
    what it reported, if that can be trusted.
    """

    uid: str
    tier: str
    own_priority: int
    phase: Phase
    waits_from: float
    ran: float = 0.0
    admitted_at: float | None = None
    held: float = 0.0
    held_from: float | None = None
    band_priority: int | None = None
    preempted_at: tuple[float, ...] = ()
    last_checkpoint: float | None = None

    def waited(self, now: float) -> float:
        """Seconds in which it waited: neither ran nor was on hold. Never below 0."""
        running = now - self.admitted_at if self.admitted_at is not None else 0.0
        holding = now - self.held_from if self.held_from is not None else 0.0
        return max(0.0, now - self.waits_from - self.ran - running - self.held - holding)

    @property
    def accrues(self) -> bool:
        """Whether it is waiting right now, so that time alone changes its priority."""
        return self.phase is not Phase.ADMITTED and self.held_from is None

    def at_risk(self, now: float) -> float:
        """Seconds of work that a preemption now would lose; 0 for what does not run."""
        if self.admitted_at is None:
            return 0.0
        return max(0.0, now - max(self.admitted_at, self.last_checkpoint or self.admitted_at))
