"""Dates and timestamps outside the years 1 to 9999."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa

from headway.expressions.timestamps import date_texts, timestamp_texts, to_python

LOW, HIGH = -(2**63), 2**63 - 1


def test_timestamps_as_text() -> None:
    numbers = [0, None, -62135596800000001, 253402300800000000, HIGH, LOW]
    texts = [
        "1970-01-01 00:00:00.000000",
        None,
        "0000-12-31 23:59:59.999999",
        "+10000-01-01 00:00:00.000000",
        "+294247-01-10 04:00:54.775807",
        "-290308-12-21 19:59:05.224192",
    ]
    array = pa.array(numbers, pa.int64()).cast(pa.timestamp("us", "UTC"))
    assert timestamp_texts(array).to_pylist() == texts
    assert timestamp_texts(array.slice(1, 2)).to_pylist() == texts[1:3]
    assert timestamp_texts(array.slice(0, 2)).to_pylist() == texts[:2]
    assert timestamp_texts(array.slice(0, 0)).to_pylist() == []


def test_dates_as_text() -> None:
    days = [0, None, -719163, 2932897, 2**31 - 1, -(2**31), -800000]
    texts = ["1970-01-01", None, "0000-12-31", "+10000-01-01", "+5881580-07-11", "-5877641-06-23", "-0221-09-04"]
    array = pa.array(days, pa.int32()).cast(pa.date32())
    assert date_texts(array).to_pylist() == texts
    assert date_texts(array.slice(1)).to_pylist() == texts[1:]


def test_python_values_stay_where_python_has_them() -> None:
    moments = pa.array([0, HIGH, None], pa.int64())
    zoned, plain = moments.cast(pa.timestamp("us", "UTC")), moments.cast(pa.timestamp("us"))
    late = "+294247-01-10T04:00:54.775807"
    assert to_python(zoned) == [datetime(1970, 1, 1, tzinfo=UTC), late + "Z", None]
    assert to_python(plain) == [datetime(1970, 1, 1), late, None]
    assert to_python(pa.array([1, 2**30], pa.int32()).cast(pa.date32()))[0] == date(1970, 1, 2)
    nested = pa.StructArray.from_arrays([pa.array([1, 2, 3]), plain], ["n", "t"])
    assert to_python(nested)[1:] == [{"n": 2, "t": late}, {"n": 3, "t": None}]
    assert to_python(pa.ListArray.from_arrays([0, 2, 3], plain)) == [[datetime(1970, 1, 1), late], [None]]
