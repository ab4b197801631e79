"""Dates and times, all in UTC, over numpy: days and microseconds since 1970."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from headway.columns import Column, Mask, Values
from headway.errors import ExpressionError
from headway.expressions import texts
from headway.expressions.arithmetic import arithmetic, shift_days
from headway.expressions.casts import DAY, cast
from headway.expressions.intervals import add_months
from headway.expressions.library import patterns
from headway.expressions.library.base import Builtin, bigint, date, fixed, integer, one_of, relabel, timestamp
from headway.expressions.nodes import EvaluationError, Node, check, literal, null, over_columns, over_values, unary
from headway.expressions.types import BIGINT, DATE, DOUBLE, INT, STRING, VOID, is_decimal, is_float, is_integer
from headway.schema import TIMESTAMP

_SECOND, _MINUTE, _HOUR = 1_000_000, 60_000_000, 3_600_000_000
_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_UNITS = {
    "year": ("year", "yyyy", "yy"),
    "quarter": ("quarter",),
    "month": ("month", "mon", "mm"),
    "week": ("week",),
    "day": ("day", "dd"),
    "hour": ("hour",),
    "minute": ("minute",),
    "second": ("second",),
    "millisecond": ("millisecond",),
    "microsecond": ("microsecond",),
}
_WIDTHS = {"hour": _HOUR, "minute": _MINUTE, "second": _SECOND, "millisecond": 1_000, "microsecond": 1}


def _calendar(name: str, kernel: Callable[[Any], Any]) -> Callable[[Node], Node]:
    """Return a builder of a part of a date, from dates as numpy's datetime64."""
    return lambda node: unary(
        INT, date(node, name), lambda values, valid: kernel(values.astype("datetime64[D]")).astype(np.int32)
    )


def _clock(name: str, width: int, modulus: int) -> Callable[[Node], Node]:
    return lambda node: unary(
        INT, timestamp(node, name), lambda values, valid: (values // width % modulus).astype(np.int32)
    )


def _months(days: Any) -> Any:
    return days.astype("datetime64[M]").astype(np.int64)


def _year(days: Any) -> Any:
    return days.astype("datetime64[Y]").astype(np.int64) + 1970


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
    known = {alias: unit for unit, aliases in _UNITS.items() for alias in aliases}
    return known[one_of(str(word), tuple(known), name, "unit")]


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
    node = cast(timestamp(node, "date_trunc"), TIMESTAMP)
    if unit is None:
        return null(TIMESTAMP)
    width = DAY if unit == "day" else _WIDTHS.get(unit)
    if width is not None:
        step = width
        return unary(TIMESTAMP, node, lambda values, valid: _earlier(values // step * step, values, valid))
    return unary(TIMESTAMP, node, lambda values, valid: _earlier(_start(values // DAY, unit) * DAY, values, valid))


def _earlier(cut: Any, values: Values, valid: Mask | None) -> Values:
    """Return truncated timestamps; one that comes after the timestamp itself has wrapped around."""
    check(cut > values, valid, "a timestamp does not fit timestamp in date_trunc")
    result: Values = cut
    return result


def _days(values: Any, valid: Mask | None, name: str) -> Values:
    """Return whole numbers as a date's days."""
    check((values >= 2**31) | (values < -(2**31)), valid, f"a date does not fit date in {name}")
    result: Values = values.astype(np.int32)
    return result


def _trunc(node: Node, unit_node: Node) -> Node:
    unit = _unit(unit_node, "trunc")
    node = date(node, "trunc")
    if unit is None:
        return null(DATE)
    if unit not in ("year", "quarter", "month", "week"):
        raise ExpressionError("trunc takes year, quarter, month or week; use date_trunc for smaller units")
    return unary(DATE, node, lambda values, valid: _days(_start(values.astype(np.int64), unit), valid, "trunc"))


def _to_date(node: Node, pattern: Node | None = None) -> Node:
    if pattern is None or node.type != STRING:
        return date(node, "to_date")
    form = fixed(pattern, "to_date", "the format")
    if form is None:
        return null(DATE)
    read = patterns.reader(str(form))
    return over_values(DATE, (node,), lambda value: read(value).date())


def _to_timestamp(node: Node, pattern: Node | None = None) -> Node:
    if pattern is None or node.type != STRING:
        return cast(timestamp(node, "to_timestamp"), TIMESTAMP)
    form = fixed(pattern, "to_timestamp", "the format")
    return null(TIMESTAMP) if form is None else over_values(TIMESTAMP, (node,), patterns.reader(str(form)))


def _unix(name: str, width: int) -> Callable[[Node], Node]:
    return lambda node: unary(BIGINT, timestamp(node, name), lambda values, valid: values // width)


def _unix_timestamp(node: Node, pattern: Node | None = None) -> Node:
    if node.type == STRING:
        node = _to_timestamp(node, pattern if pattern is not None else literal(_DEFAULT, STRING))
    return unary(BIGINT, timestamp(node, "unix_timestamp"), _whole_seconds)


def _whole_seconds(values: Values, valid: Mask | None) -> Values:
    """Return seconds cut towards 1970, as unix_timestamp has it in Spark, and unix_seconds has not."""
    result: Values = values // _SECOND + ((values < 0) & (values % _SECOND != 0))
    return result


def _format(node: Node, pattern: Node | None, name: str) -> Node:
    form = _DEFAULT if pattern is None else fixed(pattern, name, "the format")
    return null(STRING) if form is None else over_values(STRING, (node,), patterns.writer(str(form)))


def _from_unixtime(node: Node, pattern: Node | None = None) -> Node:
    return _format(_instant("from_unixtime", _SECOND)(bigint(node, "from_unixtime")), pattern, "from_unixtime")


def _date_format(node: Node, pattern: Node) -> Node:
    return _format(timestamp(node, "date_format"), pattern, "date_format")


def _instant(name: str, width: int) -> Callable[[Node], Node]:
    """Return a builder of a timestamp from a count since 1970."""
    limit = (2**63 - 1) // width

    def kernel(values: Values, valid: Mask | None) -> Values:
        check((values > limit) | (values < -limit), valid, f"a value does not fit timestamp in {name}")
        result: Values = values * width
        return result

    def made(node: Node) -> Node:
        if node.type == VOID:
            return null(TIMESTAMP)
        if name == "timestamp_seconds" and is_float(node.type):
            return over_columns(TIMESTAMP, (cast(node, DOUBLE),), _from_doubles, warns=True)
        if name == "timestamp_seconds" and is_decimal(node.type):
            return over_values(TIMESTAMP, (node,), _from_decimal)
        if not is_integer(node.type):
            raise ExpressionError(f"{name} takes a whole number")
        node = cast(node, BIGINT)
        return relabel(node, TIMESTAMP) if width == 1 else unary(TIMESTAMP, node, kernel)

    return made


def _from_doubles(seconds: Column) -> Column:
    """Return timestamps of doubles; as in Spark, NaN and infinite ones are NULL, and the others end where time does."""
    micros = seconds.values * 1e6
    known = np.isfinite(seconds.values)
    inside = (micros >= -(2.0**63)) & (micros < 2.0**63)
    ends = np.where(micros < 0, np.iinfo(np.int64).min, np.iinfo(np.int64).max)
    values = np.where(inside, np.where(inside, micros, 0.0).astype(np.int64), ends)
    return Column(values, known if seconds.valid is None else known & seconds.valid)


def _from_decimal(seconds: Decimal) -> int:
    micros = seconds.scaleb(6, texts.CONTEXT)
    if micros != int(micros):
        raise EvaluationError(f"timestamp_seconds: {seconds} has more than six digits after the point")
    return texts.moment(int(micros), TIMESTAMP)


def _date_add(name: str, operator: str) -> Callable[[Node, Node], Node]:
    return lambda node, days: shift_days(date(node, name), integer(days, name), operator)


def _datediff(end: Node, start: Node) -> Node:
    ends, starts = (relabel(date(node, "datediff"), INT) for node in (end, start))
    return arithmetic("-", ends, starts)


def _make_date(*parts: Node) -> Node:
    def made(year: int, month: int, day: int) -> int:
        try:
            return texts.days(year, month, day)
        except ValueError:
            raise EvaluationError(f"{year}-{month}-{day} is not a date") from None

    return over_values(DATE, [integer(part, "make_date") for part in parts], made)


def _add_months(node: Node, months: Node) -> Node:
    node, months = date(node, "add_months"), integer(months, "add_months")
    if months.constant is None:
        raise ExpressionError("add_months: the number of months must be a literal")
    if months.is_null:
        return null(DATE)
    count = int(months.value)
    return unary(DATE, node, lambda values, valid: add_months(values, count, valid))


def _last_day(node: Node) -> Node:
    def kernel(values: Values, valid: Mask | None) -> Values:
        months: Any = values.astype("datetime64[D]").astype("datetime64[M]")
        return _days(((months + 1).astype("datetime64[D]") - 1).astype(np.int64), valid, "last_day")

    return unary(DATE, date(node, "last_day"), kernel)


def _week(days: Any) -> Any:
    """Return the ISO week: that of the year in which the week's Thursday lies. Arrow's own ends with year 32767."""
    return (_day_of_year(days - _weekday(days) + 3) - 1) // 7 + 1


_DATEDIFF, _ADD = _datediff, _date_add("date_add", "+")
TIMES = (
    Builtin("year", "year(d)", _calendar("year", _year), 1, 1),
    Builtin("quarter", "quarter(d)", _calendar("quarter", lambda days: _months(days) % 12 // 3 + 1), 1, 1),
    Builtin("month", "month(d)", _calendar("month", lambda days: _months(days) % 12 + 1), 1, 1),
    Builtin("weekofyear", "weekofyear(d)", _calendar("weekofyear", _week), 1, 1),
    Builtin("day", "day(d)", _calendar("day", _day), 1, 1),
    Builtin("dayofmonth", "dayofmonth(d)", _calendar("dayofmonth", _day), 1, 1),
    Builtin("dayofweek", "dayofweek(d)", _calendar("dayofweek", lambda days: (_weekday(days) + 1) % 7 + 1), 1, 1),
    Builtin("weekday", "weekday(d)", _calendar("weekday", _weekday), 1, 1),
    Builtin("dayofyear", "dayofyear(d)", _calendar("dayofyear", _day_of_year), 1, 1),
    Builtin("hour", "hour(ts)", _clock("hour", _HOUR, 24), 1, 1),
    Builtin("minute", "minute(ts)", _clock("minute", _MINUTE, 60), 1, 1),
    Builtin("second", "second(ts)", _clock("second", _SECOND, 60), 1, 1),
    Builtin("date_trunc", "date_trunc(unit, ts)", _date_trunc, 2, 2),
    Builtin("trunc", "trunc(d, unit)", _trunc, 2, 2),
    Builtin("to_date", "to_date(x[, format])", _to_date, 1, 2),
    Builtin("to_timestamp", "to_timestamp(x[, format])", _to_timestamp, 1, 2),
    Builtin("date_format", "date_format(ts, format)", _date_format, 2, 2),
    Builtin("unix_timestamp", "unix_timestamp(x[, format])", _unix_timestamp, 1, 2),
    Builtin("from_unixtime", "from_unixtime(seconds[, format])", _from_unixtime, 1, 2),
    Builtin("timestamp_seconds", "timestamp_seconds(n)", _instant("timestamp_seconds", _SECOND), 1, 1),
    Builtin("timestamp_millis", "timestamp_millis(n)", _instant("timestamp_millis", 1_000), 1, 1),
    Builtin("timestamp_micros", "timestamp_micros(n)", _instant("timestamp_micros", 1), 1, 1),
    Builtin("unix_seconds", "unix_seconds(ts)", _unix("unix_seconds", _SECOND), 1, 1),
    Builtin("unix_millis", "unix_millis(ts)", _unix("unix_millis", 1_000), 1, 1),
    Builtin("unix_micros", "unix_micros(ts)", _unix("unix_micros", 1), 1, 1),
    Builtin("unix_date", "unix_date(d)", lambda node: relabel(date(node, "unix_date"), INT), 1, 1),
    Builtin("date_add", "date_add(d, days)", _ADD, 2, 2),
    Builtin("dateadd", "dateadd(d, days)", _ADD, 2, 2),
    Builtin("date_sub", "date_sub(d, days)", _date_add("date_sub", "-"), 2, 2),
    Builtin("datediff", "datediff(end, start)", _DATEDIFF, 2, 2),
    Builtin("date_diff", "date_diff(end, start)", _DATEDIFF, 2, 2),
    Builtin("add_months", "add_months(d, months)", _add_months, 2, 2),
    Builtin("last_day", "last_day(d)", _last_day, 1, 1),
    Builtin("make_date", "make_date(year, month, day)", _make_date, 3, 3),
)
