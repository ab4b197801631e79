"""Operators, casts and conditionals by example."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from headway.network.schema import Schema
from tests.expressions.helpers import evaluate, fails, refused, type_of, value

D = Decimal
NAN = math.nan


@pytest.mark.parametrize(
    ("text", "expected", "type_"),
    [
        ("1 + 2", 3, "int"),
        ("1 + 2L", 3, "bigint"),
        ("2147483647", 2147483647, "int"),
        ("2147483648", 2147483648, "bigint"),
        ("-2147483648", -2147483648, "int"),
        ("-9223372036854775808", -(2**63), "bigint"),
        ("9223372036854775808", D(2**63), "decimal(19,0)"),
        ("1 / 2", 0.5, "double"),
        ("7 div 2", 3, "bigint"),
        ("-7 div 2", -3, "bigint"),
        ("-7 % 3", -1, "int"),
        ("7 % -3", 1, "int"),
        ("1.5", D("1.5"), "decimal(2,1)"),
        ("0.1", D("0.1"), "decimal(1,1)"),
        ("0.001", D("0.001"), "decimal(3,3)"),
        ("1.5D", 1.5, "double"),
        ("1e3", 1000.0, "double"),
        ("1.5 + 1", D("2.5"), "decimal(3,1)"),
        ("1.5 * 2.25", D("3.375"), "decimal(6,3)"),
        ("1.0 / 3.0", D("0.333333"), "decimal(8,6)"),
        ("1.0 / 8", D("0.125000"), "decimal(7,6)"),
        ("2.0 / 3.0", D("0.666667"), "decimal(8,6)"),
        ("7.5 % 2", D("1.5"), "decimal(2,1)"),
        ("7.5 div 2", 3, "bigint"),
        ("1.5 + 1e0", 2.5, "double"),
        ("cast(1 as float) + 1", 2.0, "double"),
        ("cast(1 as float) + cast(1 as float)", 2.0, "float"),
        ("cast(1 as tinyint) + cast(1 as smallint)", 2, "smallint"),
        ("'3' + 1", 4, "bigint"),
        ("'3.5' * 2.0D", 7.0, "double"),
        ("-(-3)", 3, "int"),
        ("NULL + 1", None, "int"),
        ("5 & 3", 1, "int"),
        ("5 | 3", 7, "int"),
        ("5 ^ 3L", 6, "bigint"),
        ("~5", -6, "int"),
        ("date '2020-01-31' + 1", dt.date(2020, 2, 1), "date"),
        ("date '2020-01-31' - 1", dt.date(2020, 1, 30), "date"),
        ("date '2020-01-31' + interval 1 month", dt.date(2020, 2, 29), "date"),
        ("date '2020-01-31' + interval '1 day'", dt.date(2020, 2, 1), "date"),
        ("1 < 2", True, "boolean"),
        ("1 = 1.0", True, "boolean"),
        ("'a' < 'b'", True, "boolean"),
        ("'10' = 10", True, "boolean"),
        ("'2020-01-01' = date '2020-01-01'", True, "boolean"),
        ("date '2020-01-01' = timestamp '2020-01-01 00:00:00'", True, "boolean"),
        ("true = 'yes'", True, "boolean"),
        ("NULL = NULL", None, "boolean"),
        ("NULL <=> NULL", True, "boolean"),
        ("1 <=> NULL", False, "boolean"),
        ("1 is distinct from NULL", True, "boolean"),
        ("not NULL", None, "boolean"),
        ("!true", False, "boolean"),
        ("1 in (2, NULL)", None, "boolean"),
        ("1 in (1, NULL)", True, "boolean"),
        ("1 not in (2, 3)", True, "boolean"),
        ("1 not in (2, NULL)", None, "boolean"),
        ("NULL in (1)", None, "boolean"),
        ("5 between 1 and 5", True, "boolean"),
        ("5 not between 1 and NULL", None, "boolean"),
        ("0 between 1 and NULL", False, "boolean"),
        ("'a.c' like 'a.c'", True, "boolean"),
        ("'abc' like 'a.c'", False, "boolean"),
        ("'a\nc' like 'a_c'", True, "boolean"),
        ("'abc' like 'ab'", False, "boolean"),
        ("'a%c' like 'a/%c' escape '/'", True, "boolean"),
        ("'abc' like 'a/%c' escape '/'", False, "boolean"),
        (r"'a\\\\b' like 'a/_b' escape '/'", False, "boolean"),
        (r"'a\\\\b' like 'a\\\\\\\\b'", True, "boolean"),
        (r"'a\\\\b' like 'a\\\\b' escape '/'", True, "boolean"),
        ("'a//b' like 'a////b' escape '/'", True, "boolean"),
        ("'axxb' like 'a%b' and 'a' like '%a%' and 'ba' like '%a' and '' like ''", True, "boolean"),
        ("'ABC' ilike 'a%'", True, "boolean"),
        ("'abc' not like 'b%'", True, "boolean"),
        ("'a%c' not like 'a/%c' escape '/'", False, "boolean"),
        ("'abc' not ilike 'B%'", True, "boolean"),
        ("'abc' not rlike 'b'", False, "boolean"),
        ("'abc' rlike '^a.c$'", True, "boolean"),
        ("'xabcx' regexp 'b'", True, "boolean"),
        ("NULL like 'a'", None, "boolean"),
        ("true is true", True, "boolean"),
        ("cast(NULL as boolean) is not true", True, "boolean"),
        ("case when false then 1 when NULL then 2 else 3 end", 3, "int"),
        ("case 2 when 1 then 'a' when 2 then 'b' end", "b", "string"),
        ("case when false then 1 end", None, "int"),
        ("case when true then 1 else 2.5 end", D("1.0"), "decimal(11,1)"),
        ("'it' 's'", "its", "string"),
    ],
)
def test_values(text: str, expected: object, type_: str) -> None:
    assert value(text) == expected
    assert type_of(text) == type_


@pytest.mark.parametrize(
    ("text", "expected", "type_"),
    [
        ("cast('12' as int)", 12, "int"),
        ("cast(' 12 ' as bigint)", 12, "bigint"),
        ("cast(3.99D as int)", 3, "int"),
        ("cast(-3.99 as int)", -3, "int"),
        ("cast(true as int)", 1, "int"),
        ("cast(2 as boolean)", True, "boolean"),
        ("cast('no' as boolean)", False, "boolean"),
        ("cast(1 as string)", "1", "string"),
        ("cast(1.50 as string)", "1.50", "string"),
        ("cast(1e10 as string)", "1.0E10", "string"),
        ("cast(0.0001D as string)", "1.0E-4", "string"),
        ("cast(123.25D as string)", "123.25", "string"),
        ("cast(cast(0.1 as float) as string)", "0.1", "string"),
        ("cast(true as string)", "true", "string"),
        ("cast(date '2020-02-03' as string)", "2020-02-03", "string"),
        ("cast(timestamp '2020-02-03 04:05:06.120' as string)", "2020-02-03 04:05:06.12", "string"),
        ("cast(timestamp '2020-02-03 04:05:06' as string)", "2020-02-03 04:05:06", "string"),
        ("cast('1.255' as decimal(5,2))", D("1.26"), "decimal(5,2)"),
        ("cast(1.255D as decimal(5,2))", D("1.26"), "decimal(5,2)"),
        ("cast(12 as decimal(5,2))", D("12.00"), "decimal(5,2)"),
        ("cast(1.5 as double)", 1.5, "double"),
        ("cast('1e2' as double)", 100.0, "double"),
        ("cast('Infinity' as double)", math.inf, "double"),
        ("cast('2020' as date)", dt.date(2020, 1, 1), "date"),
        ("cast(timestamp '1969-12-31 23:00:00' as date)", dt.date(1969, 12, 31), "date"),
        ("cast('2020-01-01T10:00:00+02:00' as timestamp)", dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC), "timestamp"),
        ("cast('2020-01-01 10:00' as timestamp_ntz)", dt.datetime(2020, 1, 1, 10), "timestamp_ntz"),
        ("cast(timestamp '1970-01-01 00:00:01.5' as double)", 1.5, "double"),
        ("cast(timestamp '1969-12-31 23:59:59.5' as bigint)", -1, "bigint"),
        ("cast(60 as timestamp)", dt.datetime(1970, 1, 1, 0, 1, tzinfo=dt.UTC), "timestamp"),
        ("'7'::int", 7, "int"),
        ("try_cast('x' as int)", None, "int"),
        ("try_cast('300' as tinyint)", None, "tinyint"),
        ("try_cast(300 as tinyint)", None, "tinyint"),
        ("try_cast(3 as tinyint)", 3, "tinyint"),
        ("try_cast('2020-13-01' as date)", None, "date"),
        ("try_cast(12345.6 as decimal(3,1))", None, "decimal(3,1)"),
        ("cast(NULL as int)", None, "int"),
    ],
)
def test_casts(text: str, expected: object, type_: str) -> None:
    assert value(text) == expected
    assert type_of(text) == type_


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2147483647 + 1", "int overflow"),
        ("-2147483648 - 1", "int overflow"),
        ("2147483647 * 2", "int overflow"),
        ("9223372036854775807 + 1", "bigint overflow"),
        ("9223372036854775807 * 2", "bigint overflow"),
        ("3037000500L * 3037000500L", "bigint overflow"),
        ("-(-9223372036854775808)", "bigint overflow"),
        ("cast(-9223372036854775808 as bigint) div -1", "bigint overflow"),
        ("1 / 0", "division by zero"),
        ("1.0D / 0", "division by zero"),
        ("1.0 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("1.5D % 0", "division by zero"),
        ("1 div 0", "division by zero"),
        ("cast('x' as int)", "'x' is not an int"),
        ("cast('1.5' as int)", "'1.5' is not an int"),
        ("cast(300 as tinyint)", "does not fit tinyint"),
        ("cast(1e20 as bigint)", "does not fit bigint"),
        ("cast(cast('NaN' as double) as int)", "does not fit int"),
        ("cast('maybe' as boolean)", "not a boolean"),
        ("cast(1000 as decimal(3,1))", "does not fit decimal(3,1)"),
        ("cast('1e50' as decimal(10,2))", "does not fit"),
        ("'x' = 1", "'x' is not a bigint"),
        ("'x' < date '2020-01-01'", "is not a date"),
    ],
)
def test_failures(text: str, reason: str) -> None:
    assert reason in fails(text)


def test_null_tuples_never_fail() -> None:
    rows = [(None, None), (6, 3)]
    for text in ("a / b", "a % b", "a div b", "a + b", "a - b", "a * b", "-a", "cast(a as tinyint) + b"):
        assert evaluate(text, "a bigint, b bigint", rows)[0] is None


def test_overflow_of_fields() -> None:
    big = 2**63 - 1
    schema = "a bigint, b bigint"
    assert "overflow" in fails("a + b", schema, [(big, 1)])
    assert "overflow" in fails("a - b", schema, [(-big, 2)])
    assert "overflow" in fails("a * b", schema, [(big, 2)])
    assert "overflow" in fails("1 - a", schema, [(-big, 0)])
    assert evaluate("a * b", schema, [(big, 1), (big, -1), (2**32, 2**30)]) == [big, -big, 2**62]
    assert evaluate("a + b", schema, [(big, -1), (-big, 1)]) == [big - 1, -big + 1]
    assert "overflow" in fails("a * b", "a int, b int", [(65536, 65536)])
    assert "overflow" in fails("a + b", "a tinyint, b tinyint", [(127, 1)])


def test_division_by_zero_needs_a_tuple() -> None:
    for text in ("n / 0", "n % 0", "n div 0", "cast(n as double) % 0"):
        assert evaluate(text, "n int", []) == []
        assert evaluate(text, "n int", [(None,)]) == [None]
        assert "division by zero" in fails(text, "n int", [(1,)])


def test_arrays_pass_through_conditionals() -> None:
    rows = [(["a"], None), (None, ["b", "c"]), (None, None)]
    schema = "a array<string>, b array<string>"
    assert evaluate("coalesce(a, b)", schema, rows) == [["a"], ["b", "c"], None]
    assert evaluate("case when a is null then b else a end", schema, rows) == [["a"], ["b", "c"], None]
    assert evaluate("if(a is not null, 'yes', cast(NULL as string))", schema, rows) == ["yes", None, None]


def test_nan_order() -> None:
    rows = [(NAN, NAN), (NAN, 1.0), (1.0, NAN), (1.0, 1.0), (1.0, 2.0)]
    expected = {
        "a = b": [True, False, False, True, False],
        "a <> b": [False, True, True, False, True],
        "a < b": [False, False, True, False, True],
        "a <= b": [True, False, True, True, True],
        "a > b": [False, True, False, False, False],
        "a >= b": [True, True, False, True, False],
        "a > 1": [True, True, False, False, False],
        "a >= 1": [True, True, True, True, True],
        "a < 2": [False, False, True, True, True],
        "2 > a": [False, False, True, True, True],
        "a = cast('NaN' as double)": [True, True, False, False, False],
        "a in (1.0D, cast('NaN' as double))": [True, True, True, True, True],
    }
    for text, answers in expected.items():
        assert evaluate(text, "a double, b double", rows) == answers, text


def test_whole_numbers_against_decimal_literals() -> None:
    rows = [(1,), (2,), (None,), (-2,)]
    for operator, answers in {
        ">": [False, True, None, False],
        ">=": [False, True, None, False],
        "<": [True, False, None, True],
        "<=": [True, False, None, True],
        "=": [False, False, None, False],
        "<>": [True, True, None, True],
    }.items():
        assert evaluate(f"n {operator} 1.5", "n int", rows) == answers
    assert evaluate("n > -1.5", "n int", rows) == [True, True, None, False]
    assert evaluate("n < 100000000000000000000.5", "n int", rows) == [True, True, None, True]
    assert evaluate("n = 2.0", "n int", rows) == [False, True, None, False]
    assert evaluate("n > 3000000000", "n int", rows) == [False, False, None, False]


def test_untaken_branches_do_not_fail() -> None:
    rows: list[tuple[object]] = [(0,), (2,), (None,), (5,)]
    half = [None, 0.5, None, 0.2]
    assert evaluate("case when x <> 0 then 1 / x end", "x int", rows) == half
    assert evaluate("if(x = 0, NULL, 1 / x)", "x int", rows) == half
    assert evaluate("x <> 0 and 1 / x > 0.3", "x int", rows) == [False, True, None, False]
    assert evaluate("x = 0 or 1 / x > 0.3", "x int", rows) == [True, True, None, False]
    assert evaluate("coalesce(nullif(x, 0), 100 div x)", "x int", rows[1:]) == [2, None, 5]
    assert evaluate(
        "case when x = 0 then 'none' when 10 div x = 5 then 'two' else cast(1 div x as string) end", "x int", rows
    ) == ["none", "two", None, "0"]
    assert "division by zero" in fails("1 / x > 0.3 and x <> 0", "x int", rows)
    assert "division by zero" in fails("case when x = 0 then 1 / x end", "x int", rows)
    assert evaluate("x < 0 and 1 / 0 > 1", "x int", [(1,), (2,)]) == [False, False]


def test_struct_parts() -> None:
    rows: list[tuple[object]] = [({"a": 1, "b": "x"},), (None,)]
    schema = Schema.parse({"p": "struct<a:int,b:string>"})
    assert evaluate("p.a + 1", schema, rows) == [2, None]
    assert "unknown part 'c'" in refused("p.c", schema)


def test_decimal_fields() -> None:
    rows = [(D("1.25"), 2, 0.5), (None, 2, 0.5), (D("-3.00"), None, NAN)]
    schema = "p decimal(10,2), n int, v double"
    assert evaluate("p + n", schema, rows) == [D("3.25"), None, None]
    assert evaluate("p * p", schema, rows) == [D("1.5625"), None, D("9.0000")]
    assert evaluate("p / n", schema, rows) == [D("0.6250000000000"), None, None]
    assert evaluate("p > 0", schema, rows) == [True, None, False]
    assert evaluate("p < n", schema, rows) == [True, None, None]
    assert evaluate("p > v", schema, rows) == [True, None, False]
    assert evaluate("-p", schema, rows) == [D("-1.25"), None, D("3.00")]
    assert evaluate("p in (1.25, 2, 3, 4)", schema, rows) == [True, None, False]
    wide = [(D("2015366192778466748644890991860688.0"), D("0.000000000000000000001"), 1)]
    assert evaluate("a > b", "a decimal(36,1), b decimal(38,21), n int", wide) == [True]
    assert evaluate("b < n", "a decimal(36,1), b decimal(38,37), n bigint", [(None, D("0.5"), 1)]) == [True]
    assert type_of("p / n", schema) == "decimal(21,13)"
    assert type_of("p * cast(1 as decimal(38,10))", schema) == "decimal(38,6)"


def test_intervals() -> None:
    moment = dt.datetime(2020, 1, 31, 10, tzinfo=dt.UTC)
    rows: list[tuple[object]] = [(moment,), (None,)]

    def at(text: str) -> object:
        results = evaluate(text, "t timestamp", rows)
        assert results[1] is None
        return results[0]

    assert at("t + interval 5 minutes") == moment + dt.timedelta(minutes=5)
    assert at("t - interval '5' second") == moment - dt.timedelta(seconds=5)
    assert at("interval 2 hours + t") == moment + dt.timedelta(hours=2)
    assert at("t + interval 1 month") == dt.datetime(2020, 2, 29, 10, tzinfo=dt.UTC)
    assert at("t - interval 1 day 2 hours") == moment - dt.timedelta(days=1, hours=2)
    assert at("t + interval '1 week 1.5 seconds'") == moment + dt.timedelta(days=7, seconds=1.5)
    assert at("t + -interval 1 day") == moment - dt.timedelta(days=1)
    assert at("cast(t as date) + interval 1 hour") == dt.datetime(2020, 1, 31, 1, tzinfo=dt.UTC)
    assert "only be added" in refused("t * interval 1 day", "t timestamp")
    assert "interval" in refused("interval 1 day")
    assert "unknown interval unit" in refused("t + interval 1 fortnight", "t timestamp")
    assert "not to a int" in refused("n + interval 1 day", "n int")
    assert "unix_seconds(a) - unix_seconds(b)" in refused("t - t", "t timestamp")
    assert "datediff" in refused("d - d", "d date")
