"""What a point keeps: units of times."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from headway.durations import Duration
from headway.history import Kept
from headway.network.schema import Schema

SCHEMA = Schema.parse("i int, d double, day date, t timestamp, n timestamp_ntz")


@pytest.mark.parametrize(
    ("time", "duration", "reach"),
    [
        (None, "1s", 1_000_000_000),
        ("i", "1m", 60),
        ("i", "1999ms", 1),
        ("d", "1500ms", 1.5),
        ("day", "47h", 1),
        ("day", "2d", 2),
        ("t", "1ms", 1000),
        ("n", "1ms", 1000),
    ],
)
def test_durations_count_in_the_unit_of_the_time(time: str | None, duration: str, reach: float) -> None:
    assert Kept(SCHEMA, None, time).reach(Duration.parse(duration)) == reach


@pytest.mark.parametrize(
    ("time", "value", "moment", "shown"),
    [
        (None, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000_000, "1970-01-01 00:00:01+00:00"),
        (None, 5_000, 5_000, "1970-01-01 00:00:00.000005+00:00"),
        ("i", 7, 7, "7"),
        ("d", 1.5, 1.5, "1.5"),
        ("day", date(1970, 1, 3), 2, "1970-01-03"),
        ("t", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000_000, "1970-01-01 00:00:01+00:00"),
        ("n", datetime(1970, 1, 1, 0, 0, 1), 1_000_000, "1970-01-01 00:00:01"),
    ],
)
def test_moments_are_values_of_the_time(time: str | None, value: object, moment: float, shown: str) -> None:
    kept = Kept(SCHEMA, None, time)
    assert kept.moment(value) == moment
    assert kept.shown(moment) == shown
