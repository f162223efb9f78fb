"""How owners get their quota back, and over what time shares are judged."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.scalars import Duration, Percentage, PositiveDuration


class Reclaim(StrEnum):
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"
    NEVER = "Never"


class History(Model):
    """Weights lean against past use."""

    strength: Annotated[float, Field(ge=0, le=100)]
    """0 switches it off; 1 moves a weight by the tenant's whole share error."""
    half_life: PositiveDuration
    """Past use counts half after this time."""


class Fairness(Model):
    reclaim: Reclaim = Reclaim.LOWER_PRIORITY
    """From whom an owner gets its quota back at once."""
    utilization_target: Percentage | None = None
    """Below it, with work waiting, borrowing limits are lifted."""
    window: PositiveDuration = Duration("168h")
    """Time over which shares are reported."""
    history: History | None = None
