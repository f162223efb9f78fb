"""Windows: what differs from the policy at certain times."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from gpufair.api.base import Model
from gpufair.api.fairness import History, Reclaim
from gpufair.api.lists import atomic_list, named_list, unique_list
from gpufair.api.scalars import MAX_RESOURCE_LENGTH, Name, Percentage, Quantity
from gpufair.api.tenants import Weight

TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
CALENDAR_DATE = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"
TIME_ZONE = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$"
TimeOfDay = Annotated[
    str,
    Field(max_length=5, pattern=TIME_OF_DAY, json_schema_extra={"x-gpufair-format": "timeOfDay"}),
]
CalendarDate = Annotated[
    str,
    Field(max_length=10, pattern=CALENDAR_DATE, json_schema_extra={"x-gpufair-format": "date"}),
]
TimeZone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=TIME_ZONE,
        json_schema_extra={"x-gpufair-format": "timeZone"},
    ),
]


class Day(StrEnum):
    MON = "Mon"
    TUE = "Tue"
    WED = "Wed"
    THU = "Thu"
    FRI = "Fri"
    SAT = "Sat"
    SUN = "Sun"


class Weekly(Model):
    """Each week, from one time of day to another; `to` at or before `from` is the next day."""

    days: Annotated[list[Day], unique_list(7, least=1)]
    """Days on which it starts."""
    from_: Annotated[TimeOfDay, Field(alias="from")]
    to: TimeOfDay
    """Exclusive; the same as from: 24 hours."""


class Dates(Model):
    """Once, from the start of one date to the start of another."""

    from_: Annotated[CalendarDate, Field(alias="from")]
    to: CalendarDate
    """Exclusive."""


class QuotaOverride(Model):
    """Fields that take the place of the tenant's own; those omitted stay."""

    flavor: Name
    resource: Annotated[str, Field(max_length=MAX_RESOURCE_LENGTH)] = ""
    nominal: Quantity | None = None
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class TenantOverride(Model):
    name: Name
    weight: Weight | None = None
    hold: bool | None = None
    quota: Annotated[list[QuotaOverride], atomic_list(64)] = []


class FairnessOverride(Model):
    reclaim: Reclaim | None = None
    utilization_target: Percentage | None = None
    history: History | None = None


class Window(Model):
    """Overrides that hold at certain times; a later window of the list wins field by field."""

    name: Name
    time_zone: TimeZone
    """IANA name, such as America/New_York."""
    weekly: Weekly | None = None
    dates: Dates | None = None
    tenants: Annotated[list[TenantOverride], named_list(1000)] = []
    fairness: FairnessOverride | None = None
