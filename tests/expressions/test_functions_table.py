"""Every built-in function by example, as Spark 4 answers with ANSI rules."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from pathlib import Path

import pytest

from headway.expressions.library.table import AGGREGATES, BUILTINS, GROUPS
from tests.expressions.helpers import evaluate, fails, refused, type_of, value

D = Decimal


def ts(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[misc,arg-type]


EXAMPLES: list[tuple[str, object]] = [
    ("coalesce(NULL, 2, 3)", 2),
    ("nvl(NULL, 'x')", "x"),
    ("ifnull(1, 2)", 1),
    ("nvl2(NULL, 1, 2)", 2),
    ("nvl2(5, 1, 2)", 1),
    ("nullif(1, 1)", None),
    ("nullif(1, 2)", 1),
    ("isnull(NULL)", True),
    ("isnotnull(NULL)", False),
    ("if(1 < 2, 'a', 'b')", "a"),
    ("upper('äbc')", "ÄBC"),
    ("ucase('abc')", "ABC"),
    ("lower('ABC')", "abc"),
    ("lcase('ABC')", "abc"),
    ("initcap('sPark sql')", "Spark Sql"),
    ("initcap('ß straße ŉx ﬁn ǆx İI')", "Ss Straße ʼNx Fin ǅx İi"),
    ("upper('straße')", "STRASSE"),
    ("lower('İ')", "i\u0307"),
    ("locate('a', 'banana', NULL)", 0),
    ("locate(NULL, 'a', NULL)", 0),
    ("locate(NULL, 'a', 1)", None),
    ("locate('', 'abc', 2)", 1),
    ("locate('', '', 5)", 1),
    ("locate('', 'abc', 0)", 0),
    ("isnan(pow(1D, CAST('NaN' AS double)))", True),
    ("isnan(pow(-1D, CAST('Infinity' AS double)))", True),
    ("pow(CAST('NaN' AS double), 0D)", 1.0),
    ("TRY_CAST('1d' AS float)", 1.0),
    ("TRY_CAST(' 1D ' AS double)", 1.0),
    ("TRY_CAST('1e5f' AS double)", 100000.0),
    ("TRY_CAST('0x1p3' AS double)", 8.0),
    ("TRY_CAST('0x1p99999d' AS double)", math.inf),
    ("TRY_CAST('1dd' AS double)", None),
    ("TRY_CAST('d' AS double)", None),
    ("TRY_CAST('NaNd' AS double)", None),
    ("TRY_CAST('1d' AS decimal(5, 1))", None),
    ("CAST(9.223372036854775807E18D AS bigint)", 2**63 - 1),
    ("TRY_CAST(9.3E18D AS bigint)", None),
    ("TRY_CAST(2147483648D AS int)", None),
    ("length('Spark ü')", 7),
    ("char_length('')", 0),
    ("trim('  a b ')", "a b"),
    ("btrim('xxaxx', 'x')", "a"),
    ("ltrim('  a ')", "a "),
    ("ltrim('xy', 'xyabc')", "abc"),
    ("rtrim(' a  ')", " a"),
    ("rtrim('xy', 'abcyx')", "abc"),
    ("substring('Spark SQL', 5)", "k SQL"),
    ("substring('Spark SQL', -3)", "SQL"),
    ("substring('Spark SQL', 5, 1)", "k"),
    ("substring('abc', 0, 2)", "ab"),
    ("substring('abc', -5, 3)", "a"),
    ("substring('abc', -2, 5)", "bc"),
    ("substring('abc', 2, -1)", ""),
    ("substr('ünï', 2, 1)", "n"),
    ("left('Spark', 3)", "Spa"),
    ("left('Spark', -1)", ""),
    ("right('Spark', 3)", "ark"),
    ("right('Spark', 0)", ""),
    ("concat('a', 1, true)", "a1true"),
    ("concat('a', NULL)", None),
    ("'a' || 'b' || 'c'", "abc"),
    ("concat_ws('-', 'a', NULL, 'c')", "a-c"),
    ("concat_ws(NULL, 'a')", None),
    ("replace('ABCabc', 'abc', 'DEF')", "ABCDEF"),
    ("replace('ABCabc', 'abc')", "ABC"),
    ("replace('abc', '', 'x')", "abc"),
    ("translate('AaBbCc', 'abc', '12')", "A1B2C"),
    ("instr('SparkSQL', 'SQL')", 6),
    ("instr('abc', 'x')", 0),
    ("locate('bar', 'foobarbar')", 4),
    ("locate('bar', 'foobarbar', 5)", 7),
    ("locate('bar', 'foobarbar', 0)", 0),
    ("position('bar', 'foobarbar')", 4),
    ("startswith('Spark', 'Sp')", True),
    ("endswith('Spark', 'Sp')", False),
    ("contains('Spark', 'ar')", True),
    ("lpad('hi', 5, '??')", "???hi"),
    ("lpad('hi', 1, '??')", "h"),
    ("lpad('hi', 4)", "  hi"),
    ("rpad('hi', 5, 'ab')", "hiaba"),
    ("reverse('abc')", "cba"),
    ("repeat('12', 2)", "1212"),
    ("repeat('12', -1)", ""),
    ("split_part('11.12.13', '.', 3)", "13"),
    ("split_part('11.12.13', '.', -2)", "12"),
    ("split_part('11.12.13', '.', 5)", ""),
    ("ascii('2')", 50),
    ("ascii('')", 0),
    ("regexp_replace('100-200', '([0-9]+)', 'num')", "num-num"),
    ("regexp_replace('a1', '([a-z])([0-9])', '$2$1')", "1a"),
    ("regexp_extract('100-200', '([0-9]+)-([0-9]+)', 2)", "200"),
    ("regexp_extract('100-200', '([0-9]+)-([0-9]+)')", "100"),
    ("regexp_extract('abc', '([0-9]+)')", ""),
    ("abs(-1)", 1),
    ("abs(-1.5)", D("1.5")),
    ("abs(-1.5D)", 1.5),
    ("sign(-40)", -1.0),
    ("signum(0.5)", 1.0),
    ("negative(1)", -1),
    ("ceil(-0.1)", D(0)),
    ("ceil(1.2D)", 2),
    ("ceiling(5)", 5),
    ("floor(-0.1)", D(-1)),
    ("floor(-0.1D)", -1),
    ("floor(cast('NaN' as double))", 0),
    ("concat_ws(',', null, null)", ""),
    ("concat_ws(',', null, 'a', null)", "a"),
    ("'NaN' > 5D", True),
    ("'NaN' = cast('NaN' as double)", True),
    ("cast('NaN' as double) in (1D, cast('NaN' as double))", True),
    ("round(2.5, 0)", D(3)),
    ("round(2.675D, 2)", 2.68),
    ("round(-2.5D)", -3.0),
    ("round(1e300, 2)", 1e300),
    ("round(155, -1)", 160),
    ("round(1234.5678, -2)", D(1200)),
    ("bround(2.5, 0)", D(2)),
    ("bround(3.5D)", 4.0),
    ("bround(25, -1)", 20),
    ("rint(2.5D)", 2.0),
    ("sqrt(4)", 2.0),
    ("cbrt(27.0)", 3.0),
    ("exp(0)", 1.0),
    ("expm1(0)", 0.0),
    ("ln(1)", 0.0),
    ("ln(0)", None),
    ("log(10, 100)", 2.0),
    ("log(1)", 0.0),
    ("log(10, -1)", None),
    ("log10(10)", 1.0),
    ("log2(8)", 3.0),
    ("log1p(0)", 0.0),
    ("log1p(-1)", None),
    ("pow(2, 3)", 8.0),
    ("power(2, -1)", 0.5),
    ("sin(0)", 0.0),
    ("cos(0)", 1.0),
    ("tan(0)", 0.0),
    ("asin(0)", 0.0),
    ("acos(1)", 0.0),
    ("atan(0)", 0.0),
    ("atan2(0, 1)", 0.0),
    ("sinh(0)", 0.0),
    ("cosh(0)", 1.0),
    ("tanh(0)", 0.0),
    ("degrees(pi())", 180.0),
    ("radians(180)", math.pi),
    ("hypot(3, 4)", 5.0),
    ("mod(7, 3)", 1),
    ("mod(-7, 3)", -1),
    ("pmod(-7, 3)", 2),
    ("pmod(-7.5, 2)", D("0.5")),
    ("pmod(10, 3)", 1),
    ("greatest(10, 9, NULL, 2)", 10),
    ("least(10, 9, NULL, 2)", 2),
    ("greatest('a', 'b')", "b"),
    ("greatest(1, 2.5)", D("2.5")),
    ("pi()", math.pi),
    ("e()", math.e),
    ("isnan(cast('NaN' as double))", True),
    ("isnan(NULL)", False),
    ("nanvl(cast('NaN' as double), 123)", 123.0),
    ("nanvl(1, 2)", 1.0),
    ("year(date '2016-07-30')", 2016),
    ("year('1969-12-31')", 1969),
    ("quarter(date '2016-08-31')", 3),
    ("month(date '2016-07-30')", 7),
    ("weekofyear(date '2008-02-20')", 8),
    ("day(timestamp '2009-07-30 23:59:59')", 30),
    ("dayofmonth(date '2009-07-30')", 30),
    ("dayofweek(date '2009-07-30')", 5),
    ("dayofweek(date '2026-11-15')", 1),
    ("weekday(date '2009-07-30')", 3),
    ("dayofyear(date '2016-04-09')", 100),
    ("hour(timestamp '2009-07-30 12:58:59')", 12),
    ("minute(timestamp '2009-07-30 12:58:59')", 58),
    ("second(timestamp '1960-07-30 12:58:59.9')", 59),
    ("extract(year from date '2020-02-03')", 2020),
    ("extract(week from date '2008-02-20')", 8),
    ("date_trunc('YEAR', timestamp '2015-03-05 09:32:05.359')", ts(2015, 1, 1)),
    ("date_trunc('QUARTER', timestamp '2015-08-05 09:32:05.359')", ts(2015, 7, 1)),
    ("date_trunc('MM', timestamp '2015-03-05 09:32:05.359')", ts(2015, 3, 1)),
    ("date_trunc('week', timestamp '2015-03-05 09:32:05.359')", ts(2015, 3, 2)),
    ("date_trunc('DD', timestamp '1959-03-05 09:32:05.359')", ts(1959, 3, 5)),
    ("date_trunc('HOUR', timestamp '2015-03-05 09:32:05.359')", ts(2015, 3, 5, 9)),
    ("date_trunc('MILLISECOND', timestamp '2015-03-05 09:32:05.123456')", ts(2015, 3, 5, 9, 32, 5, 123000)),
    ("trunc(date '2019-08-04', 'week')", dt.date(2019, 7, 29)),
    ("trunc(date '2019-08-04', 'quarter')", dt.date(2019, 7, 1)),
    ("to_date('2009-07-30 04:17:52')", dt.date(2009, 7, 30)),
    ("to_date('30.07.2009', 'dd.MM.yyyy')", dt.date(2009, 7, 30)),
    ("to_timestamp('2016-12-31 00:12:00')", ts(2016, 12, 31, 0, 12)),
    ("to_timestamp('2016-12-31T00:12:00.25', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SS')", ts(2016, 12, 31, 0, 12, 0, 250000)),
    ("date_format(date '2016-04-08', 'y/M/dd HH')", "2016/4/08 00"),
    ("unix_timestamp('2016-04-08 00:00:01')", 1460073601),
    ("unix_timestamp('2016-04-08', 'yyyy-MM-dd')", 1460073600),
    ("from_unixtime(0)", "1970-01-01 00:00:00"),
    ("from_unixtime(86400, 'yyyy-MM-dd')", "1970-01-02"),
    ("timestamp_seconds(1230219000)", ts(2008, 12, 25, 15, 30)),
    ("timestamp_seconds(1.5)", ts(1970, 1, 1, 0, 0, 1, 500000)),
    ("timestamp_millis(1230219000123)", ts(2008, 12, 25, 15, 30, 0, 123000)),
    ("timestamp_micros(1230219000123123)", ts(2008, 12, 25, 15, 30, 0, 123123)),
    ("unix_seconds(timestamp '1969-12-31 23:59:59.5')", -1),
    ("unix_millis(timestamp '1970-01-01 00:00:01')", 1000),
    ("unix_micros(timestamp '1970-01-01 00:00:01')", 1000000),
    ("unix_date(date '1970-01-02')", 1),
    ("date_add(date '2016-07-30', 1)", dt.date(2016, 7, 31)),
    ("dateadd('2016-07-30', 1)", dt.date(2016, 7, 31)),
    ("date_sub(date '2016-07-30', 1)", dt.date(2016, 7, 29)),
    ("datediff(date '2009-07-31', date '2009-07-30')", 1),
    ("date_diff('2009-07-30', '2009-07-31')", -1),
    ("add_months(date '2016-08-31', 1)", dt.date(2016, 9, 30)),
    ("last_day(date '2009-01-12')", dt.date(2009, 1, 31)),
    ("make_date(2013, 7, 15)", dt.date(2013, 7, 15)),
]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_example(text: str, expected: object) -> None:
    got = value(text)
    if isinstance(expected, float):
        assert got == pytest.approx(expected, abs=1e-15)
    else:
        assert got == expected
        assert type(got) is type(expected)


def test_every_function_has_an_example() -> None:
    used = {name for text, _ in EXAMPLES for name in re.findall(r"([a-z_0-9]+)\(", text)}
    assert sorted(set(BUILTINS) - used) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("length('a')", "int"),
        ("ceil(1.2D)", "bigint"),
        ("ceil(1.25)", "decimal(2,0)"),
        ("floor(5)", "bigint"),
        ("round(2.555, 1)", "decimal(3,1)"),
        ("sign(1)", "double"),
        ("greatest(1, 2L)", "bigint"),
        ("coalesce(NULL, 1, 2.5)", "decimal(11,1)"),
        ("unix_timestamp('2020-01-01 00:00:00')", "bigint"),
        ("datediff('2020-01-01', '2020-01-01')", "int"),
        ("date_trunc('day', date '2020-01-01')", "timestamp"),
    ],
)
def test_types(text: str, expected: str) -> None:
    assert type_of(text) == expected


def test_functions_over_fields_with_nulls() -> None:
    rows = [("ab", 1, 2), (None, 1, 2), ("cd", None, 1), ("ünïcode", 2, 3)]
    schema = "s string, p int, n int"
    assert evaluate("substring(s, p, n)", schema, rows) == ["ab", None, None, "nïc"]
    assert evaluate("upper(s)", schema, rows) == ["AB", None, "CD", "ÜNÏCODE"]
    assert evaluate("left(s, p)", schema, rows) == ["a", None, None, "ün"]
    assert evaluate("startswith(s, left(s, p))", schema, rows) == [True, None, None, True]
    assert evaluate("concat(s, p)", schema, rows) == ["ab1", None, None, "ünïcode2"]
    assert evaluate("concat_ws(',', s, p)", schema, rows) == ["ab,1", "1", "cd", "ünïcode,2"]
    assert evaluate("greatest(p, n)", schema, rows) == [2, 2, 1, 3]
    assert evaluate("repeat(s, p)", schema, rows) == ["ab", None, None, "ünïcodeünïcode"]
    assert evaluate("replace(s, left(s, 1), 'x')", schema, rows) == ["xb", None, "xd", "xnïcode"]


def test_time_functions_over_fields() -> None:
    rows: list[tuple[object]] = [(ts(1969, 12, 31, 23, 59, 59, 999999),), (None,), (ts(2024, 2, 29, 12),)]
    assert evaluate("hour(t)", "t timestamp", rows) == [23, None, 12]
    assert evaluate("year(t)", "t timestamp", rows) == [1969, None, 2024]
    assert evaluate("day(t)", "t timestamp", rows) == [31, None, 29]
    assert evaluate("unix_seconds(t)", "t timestamp", rows) == [-1, None, 1709208000]
    assert evaluate("weekofyear(t)", "t timestamp", rows) == [1, None, 9]
    assert evaluate("t + interval 1 year", "t timestamp", rows)[2] == ts(2025, 2, 28, 12)
    assert evaluate("cast(t as date) - interval 1 month", "t timestamp", rows)[2] == dt.date(2024, 1, 29)
    assert evaluate("date_trunc('minute', t)", "t timestamp", rows)[0] == ts(1969, 12, 31, 23, 59)


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("round(-0.0D)", 1),
        ("round(-0.4D)", 1),
        ("round(-0.001D, 2)", 1),
        ("bround(-3D, -1)", 1),
        ("round(CAST(-0.0D AS float), 1)", 1),
        ("sign(-0.0D)", -1),
    ],
)
def test_signs_of_zero(text: str, sign: int) -> None:
    found = value(text)
    assert isinstance(found, float)
    assert (found, math.copysign(1, found)) == (0, sign)


def test_nan_is_the_greatest() -> None:
    nan = math.nan
    assert repr(evaluate("greatest(a, b)", "a double, b double", [(nan, 1.0), (1.0, nan)])) == "[nan, nan]"
    assert evaluate("least(a, b)", "a double, b double", [(nan, 1.0), (1.0, nan)]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("abs(cast(-128 as tinyint))", "tinyint overflow"),
        ("make_date(2020, 2, 30)", "is not a date"),
        ("to_date('30-07-2009', 'yyyy-MM-dd')", "does not have the format"),
        ("to_timestamp('nonsense')", "is not a timestamp"),
        ("timestamp_seconds(9223372036854775807)", "does not fit timestamp"),
        ("round(2147483647, -1)", "int overflow"),
        ("mod(1, 0)", "division by zero"),
        ("pmod(1.5, 0)", "division by zero"),
        ("year('x')", "is not a date"),
    ],
)
def test_failures(text: str, reason: str) -> None:
    assert reason in fails(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("uper('a')", "did you mean 'upper'?"),
        ("upper()", "upper is called as upper(s); 0 arguments were given"),
        ("upper('a', 'b')", "2 arguments"),
        ("sqrt(true)", "sqrt takes a number, not boolean"),
        ("year(1)", "year takes a date, not int"),
        ("split_part('a', 'b', 0)", "0 is not allowed"),
        ("date_trunc('fortnight', date '2020-01-01')", "unknown unit 'fortnight'"),
        ("to_date('x', 'QQQ')", "'QQQ' is not supported"),
        ("regexp_extract('a', '(', 1)", "not a regular expression"),
        ("regexp_replace('a', '(', '')", "not a regular expression"),
        ("regexp_extract('a', '(a)', 2)", "group 2 does not exist"),
        ("now()", "the clock"),
        ("rand()", "chance"),
        ("current_date", "the clock"),
        ("round(1.5, unused)", "must be a literal"),
        ("extract(century from date '2020-01-01')", "unknown unit 'CENTURY'"),
    ],
)
def test_refusals(text: str, part: str) -> None:
    assert part in refused(text)


def test_docs_list_every_function() -> None:
    page = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text()
    for title, group in GROUPS.items():
        section = page.split(f"### {title}\n")[1].split("\n### ")[0].split("\n## ")[0]
        listed = re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)
        assert listed == [function.signature for function in group], title
    section = page.split("## Aggregate functions\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^|]+)` \| ([^|]*)\|", section, re.MULTILINE)
    names = {name for signature, others in rows for name in re.findall(r"[a-z_]+(?=\()", signature + others)}
    names |= {word for _, others in rows for word in re.findall(r"`([a-z_]+)`", others)}
    assert names == set(AGGREGATES) - {"count_distinct"} | {"count"}
