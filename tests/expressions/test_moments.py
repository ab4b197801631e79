"""Dates and timestamps at the ends of their types: nothing wraps around, and text is right."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from headway.columns import Column, from_arrow, to_arrow
from headway.expressions import EvaluationError, Scope, compile_expression
from headway.network.schema import Schema
from tests.expressions.helpers import evaluate, fails, refused, value

LOW, HIGH = -(2**63), 2**63 - 1
SCHEMA = Schema.parse("ts timestamp, d date, n bigint")
LAST, FIRST = 2**31 - 1, -(2**31)


def _run(text: str, ts: int = 0, d: int = 0) -> object:
    """Evaluate over one tuple; a date or timestamp comes back as a number."""
    expression = compile_expression(text, Scope.of(SCHEMA))
    numbers = [pa.array([ts], pa.int64()), pa.array([d], pa.int32()), pa.array([7], pa.int64())]
    columns: list[Column | None] = [
        from_arrow(one.cast(field.type)) for one, field in zip(numbers, SCHEMA, strict=True)
    ]
    array = to_arrow(expression.evaluate(columns, 1), expression.type)
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date(array.type) else pa.int64())
    return array[0].as_py()


@pytest.mark.parametrize(
    ("text", "ts", "d"),
    [
        ("ts + interval 292275 years", 300_000_000_000 * 10**6, 0),
        ("ts - interval 1 month", LOW, 0),
        ("ts + interval 1 month", HIGH, 0),
        ("ts + interval 1 day", HIGH, 0),
        ("cast(d as timestamp)", 0, LAST),
        ("cast(d as timestamp)", 0, FIRST),
        ("cast(d as timestamp)", 0, 106_751_992),
        ("hour(d)", 0, LAST),
        *[(f"date_trunc('{unit}', ts)", LOW, 0) for unit in ("second", "day", "week", "month", "quarter", "year")],
        *[(f"trunc(d, '{unit}')", 0, FIRST) for unit in ("week", "month", "quarter", "year")],
        ("last_day(d)", 0, LAST),
        ("add_months(d, 1)", 0, LAST),
        ("d + interval 3 days", 0, LAST),
        ("date_format(ts, 'yyyy')", HIGH, 0),
        ("from_unixtime(300000000000)", 0, 0),
    ],
)
def test_what_does_not_fit_fails(text: str, ts: int, d: int) -> None:
    with pytest.raises(EvaluationError):
        _run(text, ts, d)


@pytest.mark.parametrize(
    ("text", "ts", "d", "expected"),
    [
        ("cast(ts as string)", HIGH, 0, "+294247-01-10 04:00:54.775807"),
        ("cast(ts as string)", -62135596800000000 - 3600 * 10**6, 0, "0000-12-31 23:00:00"),
        ("concat('x', ts)", 253402300800500000, 0, "x+10000-01-01 00:00:00.5"),
        ("cast(d as string)", 0, LAST, "+5881580-07-11"),
        ("cast(ts as decimal(38, 6))", HIGH, 0, Decimal("9223372036854.775807")),
        ("try_cast(ts as bigint)", HIGH, 0, HIGH // 10**6),
        ("try_cast(300000000000 as timestamp)", 0, 0, 300_000_000_000 * 10**6),
        ("try_cast(d as timestamp)", 0, LAST, None),
        ("ts - interval 12 months", HIGH, 0, HIGH - 365 * 86_400_000_000),
        ("ts + interval 12 months", LOW, 0, LOW + 365 * 86_400_000_000),
        ("cast(d as timestamp)", 0, 106_751_991, 106_751_991 * 86_400_000_000),
        ("weekofyear(d)", 0, LAST, 28),
        ("ts in (timestamp_seconds(300000000000), ts)", HIGH, 0, True),
    ],
)
def test_what_fits_is_right(text: str, ts: int, d: int, expected: object) -> None:
    assert _run(text, ts, d) == expected


def test_null_never_fails() -> None:
    assert evaluate("ts + interval 1 year", "ts timestamp", [(None,)]) == [None]
    assert evaluate("last_day(d)", "d date", [(None,)]) == [None]


def test_the_week_is_the_calendar_s() -> None:
    days = [date(2015, 12, 20) + timedelta(days=at) for at in range(0, 4000, 3)]
    assert evaluate("weekofyear(d)", "d date", [(day,) for day in days]) == [day.isocalendar()[1] for day in days]


def test_fractions_as_text() -> None:
    for text in (
        "2020-01-01 10:00:00",
        "2020-01-01 10:00:00.1",
        "0020-10-10 00:00:00.00001",
        "2020-01-01 00:00:00.000001",
    ):
        assert value(f"cast(timestamp '{text}' as string)") == text


def test_an_interval_beyond_its_type_is_refused() -> None:
    assert "too long" in refused("ts + interval 999999999999 years", SCHEMA)
    assert "too long" in refused("ts + interval 999999999999999 days", SCHEMA)


def test_try_cast_is_null_only_where_the_cast_fails() -> None:
    assert evaluate("try_cast(s as int)", "s string", [("1",), ("x",), (None,), ("99999999999",)]) == [
        1,
        None,
        None,
        None,
    ]
    assert "zero" in fails("try_cast(1 / n as int)", "n bigint", [(0,)])
