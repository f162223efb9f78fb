"""Options that several commands share."""

from datetime import UTC, datetime, timedelta

import pytest

from gpufair.cli.options import moment
from gpufair.errors import GpufairError
from tests.unit.builders import utc


@pytest.mark.parametrize(
    "text", ["2026-12-01T09:00:00Z", "2026-12-01T10:00:00+01:00", "2026-12-01 09:00+00:00"]
)
def test_a_moment_is_read_in_any_zone_and_given_in_utc(text: str) -> None:
    found = moment(text)
    assert (found, found.tzinfo) == (utc("2026-12-01T09:00"), UTC)


def test_without_a_text_it_is_now() -> None:
    assert abs(moment(None) - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(GpufairError, match="write it as in 2026-12-01T09:00:00Z"):
        moment("2026-12-01T09:00:00")
