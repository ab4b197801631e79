"""Corners in which Spark's rules are not what one expects: Headway has them, and Spark is asked whether they are so."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession, functions

import headway as hw
from tests.expressions.helpers import fails, value

CORNERS: dict[str, object] = {
    # a float is the double of the same value
    "round(CAST(1.15 AS float), 1)": 1.100000023841858,
    "bround(CAST(1.15 AS float), 1)": 1.100000023841858,
    "round(CAST(2.675 AS float), 2)": 2.6700000762939453,
    "bround(CAST(1.45 AS float), 1)": 1.5,
    "bround(CAST(-0.05 AS float), 1)": -0.10000000149011612,
    "round(CAST(0.5 AS float))": 1.0,
    "bround(CAST(2.5 AS float), 0)": 2.0,
    "round(CAST(123456.789 AS float), -1)": 123460.0,
    "CAST(CAST(0.1 AS float) AS decimal(20, 15))": Decimal("0.100000001490116"),
    "CAST(CAST(2.675 AS float) AS decimal(10, 2))": Decimal("2.67"),
    "CAST(0.1D AS decimal(20, 15))": Decimal("0.100000000000000"),
    # seconds before 1970
    "unix_timestamp(TIMESTAMP '1969-12-31 23:59:59.5')": 0,
    "unix_timestamp(TIMESTAMP '1969-12-31 23:59:58.5')": -1,
    "unix_timestamp(TIMESTAMP '1969-12-31 23:59:58')": -2,
    "unix_timestamp(DATE '1969-12-31')": -86400,
    "unix_seconds(TIMESTAMP '1969-12-31 23:59:59.5')": -1,
    # numbers that are no timestamps
    "timestamp_seconds(CAST('NaN' AS double))": None,
    "timestamp_seconds(CAST('Infinity' AS double))": None,
    "timestamp_seconds(CAST('-Infinity' AS float))": None,
    "unix_micros(timestamp_seconds(1e308D))": 2**63 - 1,
    "unix_micros(timestamp_seconds(-1e308D))": -(2**63),
    "unix_micros(timestamp_seconds(-1.1234567D))": -1123456,
    "unix_micros(timestamp_seconds(CAST(1e12 AS float)))": 999999995904000000,
    "unix_micros(timestamp_seconds(1.5))": 1500000,
    "unix_micros(CAST(CAST(1e12 AS float) AS timestamp))": 999999995904000000,
    "unix_micros(CAST(-1.1234567 AS timestamp))": -1123456,
    "TRY_CAST(CAST('NaN' AS double) AS timestamp)": None,
    # angles know no -0
    "atan2(-0D, -1D)": math.pi,
    "atan2(-0D, -0D)": 0.0,
    "atan2(0D, -0D)": 0.0,
    # only ASCII's spaces and control characters are left out
    **{f"TRY_CAST('\\u00a05' AS {type_})": None for type_ in ("int", "double", "decimal(5,2)", "float", "bigint")},
    **{f"TRY_CAST('5\\u3000' AS {type_})": None for type_ in ("int", "double", "decimal(5,2)", "float", "bigint")},
    "TRY_CAST('\\u2028true' AS boolean)": None,
    "TRY_CAST('2024-01-01\\u00a0' AS date)": None,
    "TRY_CAST('\\u00052024-01-01 10:00:00' AS timestamp) IS NULL": False,
    "TRY_CAST('\\u00055' AS int)": 5,
    "TRY_CAST('5\\u007f' AS int)": 5,
    "TRY_CAST('5\\u007f' AS double)": None,
    "TRY_CAST('\\u001f5\\u0005' AS decimal(5, 2))": Decimal("5.00"),
    # years with signs, and beyond four digits
    **{
        f"CAST(TRY_CAST('{text}' AS date) AS string)": day
        for text, day in {
            "+2024-01-01": "2024-01-01",
            "+2024-1": "2024-01-01",
            "+02024-01-01": "2024-01-01",
            "-0001-12-31": "-0001-12-31",
            "0000-02-29": "0000-02-29",
            "-0000-01-01": "0000-01-01",
            "10000-12-31": "+10000-12-31",
            "5881580-07-11": "+5881580-07-11",
            "5881580-07-12": None,
            "-5877641-06-23": "-5877641-06-23",
            "00002024-01-01": None,
            "++2024-01-01": None,
            "+1-01-01": None,
            "2100-02-29": None,
        }.items()
    },
    **{
        f"CAST(TRY_CAST('{text}' AS timestamp) AS string)": moment
        for text, moment in {
            "+2024-01-01 10:00:00": "2024-01-01 10:00:00",
            "-2024-01-01 10:00:00+01:00": "-2024-01-01 09:00:00",
            "294247-01-10 04:00:54.775807": "+294247-01-10 04:00:54.775807",
            "294247-01-10 04:00:54.775808": None,
            "2024-01-01 24:00:00": None,
            "0002024-01-01": None,
        }.items()
    },
    "CAST(make_date(0, 1, 1) AS string)": "0000-01-01",
    "CAST(make_date(-4, 2, 29) AS string)": "-0004-02-29",
    "CAST(make_date(10000, 1, 1) AS string)": "+10000-01-01",
}
INF, NAN = math.inf, math.nan
SPREADS: list[tuple[list[float], float, float, float]] = [  # var_pop, stddev_pop, median
    ([1e308, 1.0], INF, INF, 5e307),
    ([1e200, -1e200, 5.0], INF, INF, 5.0),
    ([1e154, -1e154], INF, INF, 0.0),
    ([1e308, -1e308], NAN, NAN, INF),
    ([INF, 1.0], NAN, NAN, INF),
    ([-INF, 1.0], NAN, NAN, NAN),
    ([-INF, INF], NAN, NAN, NAN),
    ([-INF, -INF], NAN, NAN, -INF),
    ([NAN, 1.0], NAN, NAN, NAN),
    ([1.0, 2.0, INF], NAN, NAN, 2.0),
]


@pytest.mark.parametrize("text", CORNERS)
def test_corners(text: str) -> None:
    assert repr(value(text)) == repr(CORNERS[text])


def test_spark_says_the_same_of_corners(spark: SparkSession) -> None:
    said = spark.range(1).selectExpr(*[f"({text}) AS c{at}" for at, text in enumerate(CORNERS)]).collect()[0]
    assert dict(zip(CORNERS, map(repr, said), strict=True)) == {text: repr(one) for text, one in CORNERS.items()}


def test_seconds_with_more_digits_than_a_timestamp_has_fail() -> None:
    assert "1.1234567 has more than six digits" in fails("timestamp_seconds(1.1234567)")


@pytest.mark.parametrize("advance", [None, 1])
def test_spreads_of_extremes(advance: int | None) -> None:
    """One window at a time, and from panes of one tuple each."""
    for values, variance, deviation, median in SPREADS:
        net = hw.Network("spreads")
        select = ["var_pop(v) as a", "stddev_pop(v) as b", "median(v) as c"]
        source = net.source("s", {"v": "double"})
        source.aggregate(*select, on="#", size=len(values), advance=advance).output("o")
        result = hw.run(net.build(), {"s": [(one,) for one in values]}, engine="local")
        found = result.outputs["o"].to_pylist()[0]
        assert repr([found[name] for name in "abc"]) == repr([variance, deviation, median]), values


def test_spark_says_the_same_of_spreads(spark: SparkSession) -> None:
    rows = [(at, one) for at, (values, *_) in enumerate(SPREADS) for one in values]
    grouped = spark.createDataFrame(rows, "g int, v double").coalesce(1).groupBy("g")
    for row in grouped.agg(*[functions.expr(text) for text in ("var_pop(v)", "stddev_pop(v)", "median(v)")]).collect():
        assert repr(list(row[1:])) == repr(list(SPREADS[row[0]][1:])), SPREADS[row[0]]


def test_many_large_differences_are_not_lost() -> None:
    values = [0.0, *[1e153] * 100]
    net = hw.Network("spreads")
    net.source("s", {"v": "double"}).aggregate("var_pop(v) as a", on="#", size=len(values)).output("o")
    result = hw.run(net.build(), {"s": [(one,) for one in values]}, engine="local")
    assert result.outputs["o"].to_pylist()[0]["a"] == pytest.approx(1e306 * 100 / 101**2, rel=1e-9)
