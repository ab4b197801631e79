"""Dates, times and intervals, all in UTC, with numpy: days and microseconds since 1970."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headway.columns import Column, Mask, Values
from headway.errors import ExpressionError, choices, shorten
from headway.expressions.arithmetic import arithmetic, shift_days
from headway.expressions.casts import CONTEXT, DAY, cast, days_of, moment, scaling
from headway.expressions.library.builtin import (
    Builtin,
    Take,
    as_given,
    bigint,
    date,
    fixed,
    integer,
    over_numpy,
    timestamp,
)
from headway.expressions.nodes import (
    EvaluationError,
    Node,
    check,
    literal,
    null,
    over_columns,
    over_values,
    relabel,
    unary,
)
from headway.expressions.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    VOID,
    is_decimal,
    is_float,
    is_integer,
    is_timestamp,
)
from headway.network.schema import TIMESTAMP, type_name

_LETTERS = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second", "S": "fraction"}
_WIDEST = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 9}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def tokens(pattern: str) -> list[tuple[str, str]]:
    """Split a pattern into ('field', 'yyyy') and ('text', 'T') parts, or raise an ExpressionError."""
    parts, position = [], 0
    while position < len(pattern):
        match = _TOKEN.match(pattern, position)
        if match is None or pattern[position] in "[]{}#":
            raise ExpressionError(f"format '{pattern}': '{pattern[position]}' is not supported")
        word = match[0]
        if match[1] is not None:
            parts.append(("text", match[1].replace("''", "'") or "'"))
        elif match[2] is None:
            parts.append(("text", word))
        elif word[0] in _LETTERS and len(word) <= _WIDEST[word[0]] and word != "yyy":
            parts.append(("field", word))
        else:
            known = "yyyy, yy, MM, M, dd, d, HH, H, mm, m, ss, s, S to SSSSSSSSS and 'text'"
            raise ExpressionError(f"format '{pattern}': '{word}' is not supported; choices: {known}")
        position = match.end()
    return parts


def pattern_reader(pattern: str) -> Callable[[str], dt.datetime]:
    """Return a function that parses text by a pattern, as UTC, and raises an EvaluationError if it cannot."""
    regex, names = [], []
    for kind, word in tokens(pattern):
        if kind == "text":
            regex.append(re.escape(word))
            continue
        names.append(word)
        if word[0] == "S" or len(word) > 1:
            regex.append(rf"(\d{{{len(word)}}})")
        else:
            regex.append(r"(\d{4,5})" if word == "y" else r"(\d{1,2})")
    compiled = re.compile("".join(regex), re.ASCII)

    def read(value: str) -> dt.datetime:
        match = compiled.fullmatch(value)
        if match:
            fields = {"year": 1970, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "fraction": 0}
            for word, digits in zip(names, match.groups(), strict=True):
                number = int(digits[:6].ljust(6, "0")) if word[0] == "S" else int(digits)
                fields[_LETTERS[word[0]]] = 2000 + number if word == "yy" else number
            try:
                year, month, day, hour, minute, second, fraction = fields.values()
                return dt.datetime(year, month, day, hour, minute, second, fraction, dt.UTC)
            except ValueError:
                pass
        raise EvaluationError(f"'{value}' does not have the format '{pattern}'")

    return read


def pattern_writer(pattern: str) -> Callable[[dt.datetime], str]:
    """Return a function that formats a timestamp by a pattern."""
    parts = tokens(pattern)

    def one(word: str, value: dt.datetime) -> str:
        letter = word[0]
        if letter == "S":
            return f"{value.microsecond:06d}".ljust(9, "0")[: len(word)]
        if word == "yy":
            return f"{value.year % 100:02d}"
        return str(getattr(value, _LETTERS[letter])).rjust(len(word), "0")

    def write(value: dt.datetime) -> str:
        return "".join(word if kind == "text" else one(word, value) for kind, word in parts)

    return write


_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": DAY,
    "week": 7 * DAY,
}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = (*_MICROS, *_MONTHS)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class IntervalLiteral:
    """Months and microseconds. `whole_days` means that no unit below a day was used, so that a date remains a date."""

    months: int = 0
    microseconds: int = 0
    whole_days: bool = True

    def negated(self) -> IntervalLiteral:
        """Return the negated interval."""
        return IntervalLiteral(-self.months, -self.microseconds, self.whole_days)

    def plus(self, other: IntervalLiteral) -> IntervalLiteral:
        """Return the sum."""
        return IntervalLiteral(
            self.months + other.months, self.microseconds + other.microseconds, self.whole_days and other.whole_days
        )


def read_interval(tree: Any) -> IntervalLiteral:
    """Parse ``interval 5 minutes``, ``interval '5' minute`` or ``interval '1 day 2 hours'``."""
    value, unit = tree.this, tree.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        sign, value = -1, value.this
    if not isinstance(value, exp.Literal):
        raise ExpressionError("an interval takes a literal number, such as interval 5 minutes")
    made = IntervalLiteral()
    if isinstance(unit, exp.Var):
        made = _interval(value.this, unit.name)
    elif unit is None:
        position = 0
        while position < len(value.this):
            match = _PART.match(value.this, position)
            if match is None:
                raise ExpressionError(f"interval '{value.this}' is not understood; write interval '1 day 2 hours'")
            made = made.plus(_interval(match[1], match[2]))
            position = match.end()
    else:
        raise ExpressionError("intervals from one unit to another are not supported; write interval '1 day 2 hours'")
    if abs(made.months) >= 2**31 or abs(made.microseconds) >= 2**63:
        raise ExpressionError(f"interval {shorten(str(value.this), 40)} is too long")
    return made if sign == 1 else made.negated()


def shift(node: Node, interval: IntervalLiteral) -> Node:
    """Return a date or a timestamp shifted by an interval."""
    if node.type == VOID:
        return null(TIMESTAMP)
    if node.type == STRING:
        node = cast(node, TIMESTAMP)
    if node.type != DATE and not is_timestamp(node.type):
        raise ExpressionError(f"an interval is added to a date or a timestamp, not to a {type_name(node.type)}")
    if node.type == DATE:
        if not interval.whole_days:
            return shift(cast(node, TIMESTAMP), interval)
        if interval.months:
            node = unary(DATE, node, lambda values, valid: add_months(values, interval.months, valid))
        days = interval.microseconds // DAY
        return shift_days(node, literal(days, INT), "+") if days else node
    type_ = node.type
    if interval.months:

        def moved(values: Values, valid: Mask | None) -> Any:
            days = np.floor_divide(values, DAY)
            target = add_months(days, interval.months, valid).astype(np.int64)
            result: Values = target * DAY + (values - days * DAY)
            check(result // DAY != target, valid, "a timestamp does not fit timestamp")  # it overflowed
            return result

        node = unary(type_, node, moved)
    if not interval.microseconds:
        return node
    return relabel(arithmetic("+", relabel(node, BIGINT, node.field), literal(interval.microseconds, BIGINT)), type_)


def add_months(days: Values, months: int, valid: Mask | None) -> Any:
    """Return dates (days since 1970) shifted by months; the day is capped at the end of the month."""
    dates = days.astype("datetime64[D]")
    start = dates.astype("datetime64[M]")
    target = start + np.timedelta64(months, "M")
    length = ((target + np.timedelta64(1, "M")).astype("datetime64[D]") - target.astype("datetime64[D]")).astype(
        np.int64
    )
    day = (dates - start.astype("datetime64[D]")).astype(np.int64)
    result = target.astype("datetime64[D]").astype(np.int64) + np.minimum(day, length - 1)
    check((result >= 2**31) | (result < -(2**31)), valid, "a date does not fit date")
    cut: Values = result.astype(np.int32)
    return cut


def _interval(amount: str, unit: str) -> IntervalLiteral:
    name = unit.lower().removesuffix("s")
    if name in _MONTHS and re.fullmatch(r"[+-]?\d+", amount):
        return IntervalLiteral(months=int(amount) * _MONTHS[name])
    if name in _MICROS:
        microseconds = Decimal(amount) * _MICROS[name] if re.fullmatch(r"[+-]?\d+(\.\d+)?", amount) else None
        if microseconds is not None and microseconds == int(microseconds):
            return IntervalLiteral(microseconds=int(microseconds), whole_days=name in ("day", "week"))
    elif name not in _MONTHS:
        raise ExpressionError(f"unknown interval unit '{unit}'; choices: {choices(UNITS)}")
    raise ExpressionError(f"'{amount}' is not an amount of {name}s")


_SECOND = _MICROS["second"]
_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_SYNONYMS = ("year yyyy yy", "quarter", "month mon mm", "week", "day dd", "hour", "minute", "second")
_UNITS = {word: words.split()[0] for words in (*_SYNONYMS, "millisecond", "microsecond") for word in words.split()}


def _calendar(kernel: Callable[[Any], Any]) -> Callable[..., Node]:
    """Return a builder for a part of a date, computed from numpy datetime64."""
    return over_numpy(INT, lambda values: kernel(values.astype("datetime64[D]")).astype(np.int32))


def _clock(unit: str, modulus: int) -> Callable[..., Node]:
    return over_numpy(INT, lambda values: (values // _MICROS[unit] % modulus).astype(np.int32))


def _months(days: Any) -> Any:
    return days.astype("datetime64[M]").astype(np.int64)


def _day(days: Any) -> Any:
    return (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1


def _day_of_year(days: Any) -> Any:
    return (days - days.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1


def _weekday(days: Any) -> Any:
    return (days.astype(np.int64) + 3) % 7


def _unit(node: Node, name: str) -> str | None:
    word = fixed(node, name, "the unit")
    if word is None:
        return None
    if str(word).lower() not in _UNITS:
        raise ExpressionError(f"{name}: unknown unit '{word}'; choices: {choices(_UNITS)}")
    return _UNITS[str(word).lower()]


def _start(days: Any, unit: str) -> Any:
    """Return the first day of a year, quarter, month or week, as days since 1970."""
    dates = days.astype("datetime64[D]")
    if unit == "week":
        return days - _weekday(dates)
    if unit == "quarter":
        months = _months(dates)
        return (months - months % 3).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return dates.astype(f"datetime64[{'Y' if unit == 'year' else 'M'}]").astype("datetime64[D]").astype(np.int64)


def _date_trunc(unit_node: Node, node: Node) -> Node:
    unit = _unit(unit_node, "date_trunc")
    node = cast(node, TIMESTAMP)
    if unit is None:
        return null(TIMESTAMP)
    width = None if unit == "week" else _MICROS.get(unit)

    def kernel(values: Values, valid: Mask | None) -> Any:
        cut = values // width * width if width is not None else _start(values // DAY, unit) * DAY
        check(cut > values, valid, "a timestamp does not fit timestamp in date_trunc")  # it overflowed
        return cut

    return unary(TIMESTAMP, node, kernel)


def _days(values: Any, valid: Mask | None, name: str) -> Any:
    """Check and convert integers to the days of a date."""
    check((values >= 2**31) | (values < -(2**31)), valid, f"a date does not fit date in {name}")
    return values.astype(np.int32)


def _trunc(node: Node, unit_node: Node) -> Node:
    unit = _unit(unit_node, "trunc")
    if unit is None:
        return null(DATE)
    if unit not in ("year", "quarter", "month", "week"):
        raise ExpressionError("trunc takes year, quarter, month or week; use date_trunc for smaller units")
    return unary(DATE, node, lambda values, valid: _days(_start(values.astype(np.int64), unit), valid, "trunc"))


def _reading(name: str, type_: pa.DataType, take: Take) -> Callable[..., Node]:
    """Return a builder for to_date or to_timestamp: a cast, or parsing of text by a pattern."""

    def made(node: Node, pattern: Node | None = None) -> Node:
        if pattern is None or node.type != STRING:
            return cast(take(node, name), type_)
        form = fixed(pattern, name, "the format")
        return null(type_) if form is None else over_values(type_, (node,), pattern_reader(str(form)))

    return made


_to_timestamp = _reading("to_timestamp", TIMESTAMP, timestamp)


def _unix_timestamp(node: Node, pattern: Node | None = None) -> Node:
    if node.type == STRING:
        node = _to_timestamp(node, pattern if pattern is not None else literal(_DEFAULT, STRING))
    return unary(BIGINT, timestamp(node, "unix_timestamp"), _whole_seconds)


def _whole_seconds(values: Values, valid: Mask | None) -> Any:
    """Return seconds truncated towards 1970, like Spark's unix_timestamp but unlike its unix_seconds."""
    return values // _SECOND + ((values < 0) & (values % _SECOND != 0))


def _format(node: Node, pattern: Node | None, name: str = "date_format") -> Node:
    form = _DEFAULT if pattern is None else fixed(pattern, name, "the format")
    return null(STRING) if form is None else over_values(STRING, (node,), pattern_writer(str(form)))


def _from_unixtime(node: Node, pattern: Node | None = None) -> Node:
    return _format(_instant("from_unixtime", _SECOND)(node), pattern, "from_unixtime")


def _instant(name: str, width: int) -> Callable[[Node], Node]:
    """Return a builder for a timestamp from a count of units since 1970."""
    kernel = scaling(width, f"a value does not fit timestamp in {name}")

    def made(node: Node) -> Node:
        if node.type == VOID:
            return null(TIMESTAMP)
        if name == "timestamp_seconds" and is_float(node.type):
            return over_columns(TIMESTAMP, (cast(node, DOUBLE),), _from_doubles)
        if name == "timestamp_seconds" and is_decimal(node.type):
            return over_values(TIMESTAMP, (node,), _from_decimal)
        if not is_integer(node.type):
            raise ExpressionError(f"{name} takes a whole number")
        node = cast(node, BIGINT)
        return relabel(node, TIMESTAMP) if width == 1 else unary(TIMESTAMP, node, kernel)

    return made


def _from_doubles(seconds: Column) -> Column:
    """Convert doubles to timestamps; as in Spark, NaN and infinities become NULL, and others are clipped."""
    micros = seconds.values * 1e6
    known = np.isfinite(seconds.values)
    inside = (micros >= -(2.0**63)) & (micros < 2.0**63)
    ends = np.where(micros < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    values = np.where(inside, np.where(inside, micros, 0.0).astype(np.int64), ends)
    return Column(values, known if seconds.valid is None else known & seconds.valid)


def _from_decimal(seconds: Decimal) -> int:
    micros = seconds.scaleb(6, CONTEXT)
    if micros != int(micros):
        raise EvaluationError(f"timestamp_seconds: {seconds} has more than six digits after the point")
    return moment(int(micros), TIMESTAMP)


def _datediff(end: Node, start: Node) -> Node:
    return arithmetic("-", relabel(end, INT), relabel(start, INT))


def _make_date(*parts: Node) -> Node:
    def made(year: int, month: int, day: int) -> int:
        try:
            return days_of(year, month, day)
        except ValueError:
            raise EvaluationError(f"{year}-{month}-{day} is not a date") from None

    return over_values(DATE, parts, made)


def _add_months(node: Node, months: Node) -> Node:
    count = fixed(months, "add_months", "the number of months")
    if count is None:
        return null(DATE)
    return unary(DATE, node, lambda values, valid: add_months(values, count, valid))


def _last_day(node: Node) -> Node:
    def kernel(values: Values, valid: Mask | None) -> Any:
        months: Any = values.astype("datetime64[D]").astype("datetime64[M]")
        return _days(((months + 1).astype("datetime64[D]") - 1).astype(np.int64), valid, "last_day")

    return unary(DATE, node, kernel)


def _week(days: Any) -> Any:
    """Return the ISO week, which is in the year of its Thursday. Arrow's version ends with year 32767."""
    return (_day_of_year(days - _weekday(days) + 3) - 1) // 7 + 1


_DATE, _TIMESTAMP, _DAYS = (date,), (timestamp,), (date, integer)
TIMES = (
    Builtin("year(d)", _calendar(lambda days: days.astype("datetime64[Y]").astype(np.int64) + 1970), _DATE),
    Builtin("quarter(d)", _calendar(lambda days: _months(days) % 12 // 3 + 1), _DATE),
    Builtin("month(d)", _calendar(lambda days: _months(days) % 12 + 1), _DATE),
    Builtin("weekofyear(d)", _calendar(_week), _DATE),
    Builtin("day(d)", _calendar(_day), _DATE, ("dayofmonth",)),
    Builtin("dayofweek(d)", _calendar(lambda days: (_weekday(days) + 1) % 7 + 1), _DATE),
    Builtin("weekday(d)", _calendar(_weekday), _DATE),
    Builtin("dayofyear(d)", _calendar(_day_of_year), _DATE),
    Builtin("hour(ts)", _clock("hour", 24), _TIMESTAMP),
    Builtin("minute(ts)", _clock("minute", 60), _TIMESTAMP),
    Builtin("second(ts)", _clock("second", 60), _TIMESTAMP),
    Builtin("date_trunc(unit, ts)", _date_trunc, (as_given, timestamp)),
    Builtin("trunc(d, unit)", _trunc, (date, as_given)),
    Builtin("to_date(x[, format])", _reading("to_date", DATE, date)),
    Builtin("to_timestamp(x[, format])", _to_timestamp),
    Builtin("date_format(ts, format)", _format, (timestamp, as_given)),
    Builtin("unix_timestamp(x[, format])", _unix_timestamp),
    Builtin("from_unixtime(seconds[, format])", _from_unixtime, (bigint, as_given)),
    Builtin("timestamp_seconds(n)", _instant("timestamp_seconds", _SECOND)),
    Builtin("timestamp_millis(n)", _instant("timestamp_millis", 1_000)),
    Builtin("timestamp_micros(n)", _instant("timestamp_micros", 1)),
    Builtin("unix_seconds(ts)", over_numpy(BIGINT, lambda values: values // _SECOND), _TIMESTAMP),
    Builtin("unix_millis(ts)", over_numpy(BIGINT, lambda values: values // 1_000), _TIMESTAMP),
    Builtin("unix_micros(ts)", over_numpy(BIGINT, lambda values: values), _TIMESTAMP),
    Builtin("unix_date(d)", lambda node: relabel(node, INT), _DATE),
    Builtin("date_add(d, days)", lambda node, days: shift_days(node, days, "+"), _DAYS, ("dateadd",)),
    Builtin("date_sub(d, days)", lambda node, days: shift_days(node, days, "-"), _DAYS),
    Builtin("datediff(end, start)", _datediff, _DATE, ("date_diff",)),
    Builtin("add_months(d, months)", _add_months, _DAYS),
    Builtin("last_day(d)", _last_day, _DATE),
    Builtin("make_date(year, month, day)", _make_date, (integer,)),
)
