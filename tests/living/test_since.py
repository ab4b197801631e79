"""How much history a fragment gets."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.durations import Duration
from headway.errors import NetworkError
from headway.living.since import ALL, NOW, Since
from tests.searching import examples

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("written", "since"),
    [
        ("all", ALL),
        (" NOW ", NOW),
        ("30 minutes", Since(Duration.parse("30m"))),
        (Duration.parse("30m"), Since(Duration.parse("30m"))),
        (12, Since(moment=12)),
        ("12", Since(moment=12)),
        (0.5, Since(moment=0.5)),
        ("-1.5", Since(moment=-1.5)),
        ("2026-03-01 12:00:00", Since(moment=NOON)),
        ("2026-03-01T14:00:00+02:00", Since(moment=NOON)),
        (datetime(2026, 3, 1, 12), Since(moment=NOON)),
        (datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1))), Since(moment=NOON)),
        (date(2026, 3, 1), Since(moment=datetime(2026, 3, 1, tzinfo=UTC))),
        ("2026-03-01", Since(moment=datetime(2026, 3, 1, tzinfo=UTC))),
        (NOW, NOW),
    ],
)
def test_reading(written: object, since: Since) -> None:
    assert Since.parse(written) == since
    assert Since.parse(since.to_mapping()) == since


@pytest.mark.parametrize(
    "written", ["", "yesterday", "0s", "-1 hour", True, None, [], math.nan, math.inf, "nan", "1e999"]
)
def test_what_is_none(written: object) -> None:
    with pytest.raises(NetworkError, match="a duration such as '30 minutes', 'all', 'now', or a moment"):
        Since.parse(written)


@pytest.mark.parametrize(
    ("since", "latest", "type_", "bound"),
    [
        ("all", 100, pa.int64(), None),
        ("now", 100, pa.int64(), math.inf),
        ("30s", 100, pa.int64(), 70),
        ("500ms", 100.0, pa.float64(), 99.5),
        ("30s", MICROS, pa.timestamp("us"), MICROS - 30_000_000),
        ("1 day", 100, pa.date32(), 99),
        (40, 100, pa.int64(), 40),
        (40, 100, pa.decimal128(9, 2), 40),
        ("2026-03-01 12:00", 0, pa.timestamp("us", "UTC"), MICROS),
        ("2026-03-01", 0, pa.date32(), 20513),
        ("2026-03-01 12:00", 0, pa.date32(), 20514),
        ("1960-01-01 00:00:00.000001", 0, pa.timestamp("us"), -315619199999999),
    ],
)
def test_bounds(since: object, latest: float, type_: pa.DataType, bound: float | None) -> None:
    assert Since.parse(since).bound(latest, type_) == bound


@pytest.mark.parametrize(("since", "type_"), [("2026-03-01", pa.int64()), (12, pa.timestamp("us")), (1, pa.date32())])
def test_moments_must_be_comparable(since: object, type_: pa.DataType) -> None:
    with pytest.raises(
        NetworkError, match=r"since: '.*' cannot be compared with a (bigint|timestamp|date|timestamp_ntz); write"
    ):
        Since.parse(since).bound(0, type_)


@examples(60)
@given(
    st.builds(Since, st.integers(1, 2**62).map(Duration))
    | st.builds(Since, st.none(), st.integers() | st.floats(allow_nan=False, allow_infinity=False))
    | st.builds(Since, st.none(), st.datetimes(timezones=st.just(UTC)))
)
def test_it_is_read_as_it_is_written(since: Since) -> None:
    assert Since.parse(since.to_mapping()) == since
