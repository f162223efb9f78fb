"""Durations, percentages and quantities: strings outside, exact numbers inside.

Each stays the string that the user wrote (so that nothing changes on a round trip) and carries
its value as a property.
"""

import re
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gpufair.api.quantity import parse_quantity

DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s))+$"
PERCENTAGE_PATTERN = r"^[0-9]+(\.[0-9]+)?%$"
QUANTITY_PATTERN = (
    r"^[+]?([0-9]+|[0-9]+\.[0-9]*|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$"
)
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|m|s)")
_SECONDS = {"h": 3600, "m": 60, "s": 1}
LONGEST_HOURS = 87_840  # ten years
_LONGEST = timedelta(hours=LONGEST_HOURS)


@lru_cache(maxsize=4096)
def parse_duration(text: str) -> timedelta:
    """Read a Go-style duration of hours, minutes and seconds, as in `1h30m`.

    Raises ValueError when it is not one, or is longer than ten years.
    Source: https://pkg.go.dev/time#ParseDuration, without days and below-second units.
    """
    if not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError("is not a duration: write hours, minutes and seconds, as in '1h30m'")
    seconds = sum(Decimal(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(text))
    if seconds > _LONGEST.total_seconds():
        raise ValueError("is longer than ten years: write a shorter duration")
    return timedelta(microseconds=int(seconds * 1_000_000))


class _Scalar(str):
    """A string with a checked format; subclasses say which."""

    __slots__ = ()
    _schema: dict[str, Any] = {}

    @classmethod
    def check(cls, text: str) -> Self:
        raise NotImplementedError

    @classmethod
    def _validated(cls, value: Any) -> Self:
        try:
            return cls.check(value)
        except ValueError as error:
            raise PydanticCustomError("scalar", "{reason}", {"reason": str(error)}) from error

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls._validated,
            core_schema.str_schema(strict=True),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(cls._schema)


class Duration(_Scalar):
    """A Go-style duration string of h, m and s."""

    __slots__ = ()
    _schema = {
        "type": "string",
        "pattern": DURATION_PATTERN,
        "maxLength": 32,
        "x-gpufair-format": "duration",
    }

    @classmethod
    def check(cls, text: str) -> Self:
        parse_duration(text)
        return cls(text)

    @property
    def delta(self) -> timedelta:
        return parse_duration(str(self))


def _positive(value: Duration) -> Duration:
    if not value.delta:
        raise PydanticCustomError("scalar", "is not above zero: write a longer duration")
    return value


PositiveDuration = Annotated[
    Duration,
    AfterValidator(_positive),
    Field(json_schema_extra={"x-gpufair-positive": True}),
]


class Percentage(_Scalar):
    """A percentage string as in `10%` or `2.5%`."""

    __slots__ = ()
    _schema = {
        "type": "string",
        "pattern": PERCENTAGE_PATTERN,
        "maxLength": 16,
        "x-gpufair-format": "percentage",
    }

    @classmethod
    def check(cls, text: str) -> Self:
        if not re.fullmatch(PERCENTAGE_PATTERN, text) or len(text) > 16:
            raise ValueError("is not a percentage: write a number and %, as in '10%'")
        return cls(text)

    @property
    def fraction(self) -> Fraction:
        """The value as a fraction of one: `10%` is 1/10."""
        return Fraction(self[:-1]) / 100


class Quantity(_Scalar):
    """A Kubernetes quantity of at least zero; a whole number may be written without quotes."""

    __slots__ = ()
    _schema = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "minimum": 0,
        "maxLength": 32,
    }

    @classmethod
    def check(cls, text: str) -> Self:
        if len(text) > 32:
            raise ValueError("is longer than 32 characters: write a shorter quantity")
        try:
            value = parse_quantity(text)
        except ValueError:
            raise ValueError("is not a quantity: write a number such as 8, 500m or 2Gi") from None
        if value < 0:
            raise ValueError("is negative: write a quantity of at least 0")
        return cls(text)

    @classmethod
    def _validated(cls, value: Any) -> Self:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise PydanticCustomError(
                "scalar", "is not a quantity: write a whole number or a string, as in 8 or '500m'"
            )
        return super()._validated(str(value))

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(cls._written),
            json_schema_input_schema=core_schema.any_schema(),
        )

    @staticmethod
    def _written(value: str) -> int | str:
        return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else str(value)

    @property
    def value(self) -> Fraction:
        return Fraction(parse_quantity(str(self)))


DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

MAX_NAME_LENGTH = 63
MAX_RESOURCE_LENGTH = 128  # of 317; the server's cost estimate grows with it
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=DNS_SUBDOMAIN)]
Label = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=DNS_LABEL)]
ResourceName = Annotated[
    str, Field(min_length=1, max_length=MAX_RESOURCE_LENGTH, pattern=QUALIFIED_NAME)
]
LabelKey = Annotated[str, Field(min_length=1, max_length=317, pattern=QUALIFIED_NAME)]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]
