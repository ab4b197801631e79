"""CAST and TRY_CAST with ANSI rules, and conversion of values from and to text.

A value that does not fit is an error, or NULL for TRY_CAST. Where Arrow differs from Spark, values are cast one by one.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, Values, concat, nulls, numpy_type
from headway.errors import ExpressionError
from headway.expressions.nodes import (
    Columns,
    EvaluationError,
    Node,
    build,
    check,
    field,
    null,
    over_arrow,
    over_values,
    relabel,
    unary,
)
from headway.expressions.timestamps import date_texts, timestamp_texts
from headway.expressions.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    VOID,
    as_decimal,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
    is_time,
    is_timestamp,
    limits,
)
from headway.network.schema import TIMESTAMP, type_name

CONTEXT = decimal.Context(prec=80, rounding=ROUND_HALF_UP)
_EPOCH = dt.date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""The period of the calendar, in years and in days."""
DAY = 86_400_000_000
"""One day in microseconds."""
_NUMBER_BLANKS = "".join(map(chr, range(33)))
_BLANKS = _NUMBER_BLANKS + "\x7f"
"""The characters that Spark strips from text before casting: ASCII control characters and spaces, and no others."""
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)
_SUFFIXES = ("d", "D", "f", "F")
"""Suffixes that a floating-point number may have, as in Java."""
_SPECIAL = {"nan": "nan", "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf"}
_SPECIAL |= {"-inf": "-inf", "-infinity": "-inf"}
_TRUE, _FALSE = {"t", "true", "y", "yes", "1"}, {"f", "false", "n", "no", "0"}
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ].*)?", re.ASCII | re.DOTALL)
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d{1,2})(?::?(\d{2}))?)?)?)?)?",
    re.ASCII,
)


def fit(value: Decimal, type_: pa.DataType) -> Decimal:
    """Round half up to a decimal type's scale, or raise if the digits do not fit."""
    if value and value.adjusted() >= 40:  # more digits than the context holds
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    rounded = value.quantize(Decimal((0, (1,), -type_.scale)), context=CONTEXT)
    if rounded and rounded.adjusted() >= type_.precision - type_.scale:
        raise EvaluationError(f"{value} does not fit {type_name(type_)}")
    return rounded


def finite(value: float) -> Decimal:
    """Return a double as the decimal that it prints as; like Spark, treat a float as the double of the same value."""
    text = repr(value)
    number = Decimal(text)
    if not number.is_finite():
        raise EvaluationError(f"{text} does not fit a decimal")
    return number


def moment(microseconds: int, type_: pa.DataType) -> int:
    """Return microseconds since 1970 if they fit a timestamp, or raise."""
    if not -(2**63) <= microseconds < 2**63:
        raise EvaluationError(f"{microseconds} microseconds do not fit {type_name(type_)}")
    return microseconds


def days_of(year: int, month: int, day: int) -> int:
    """Return the days since 1970 of a date in any year; raise a ValueError if it does not exist or fit."""
    cycles = (year - 1) // _CYCLE_YEARS
    found = dt.date(year - cycles * _CYCLE_YEARS, month, day).toordinal() - _EPOCH + cycles * _CYCLE_DAYS
    if not -(2**31) <= found < 2**31:
        raise ValueError("the date does not fit")
    return found


def float_text(value: float, type_: pa.DataType) -> str:
    """Return a double or a float as Spark prints it: 1.0, 1.0E10, NaN."""
    number: Any = np.float64(value) if type_ == DOUBLE else np.float32(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, trim="0")
    return np.format_float_scientific(number, trim="0", exp_digits=1).replace("e", "E").replace("+", "")


def read_date(text: str) -> int:
    """Parse a date to days since 1970, or raise an EvaluationError."""
    match = _DATE.fullmatch(text.strip(_BLANKS))
    if match:
        try:
            return days_of(int(match[1]), int(match[2] or 1), int(match[3] or 1))
        except ValueError:
            pass
    raise EvaluationError(f"'{text}' is not a date")


def read_timestamp(text: str, type_: pa.DataType = TIMESTAMP) -> int:
    """Parse a timestamp to microseconds since 1970, in UTC unless it has an offset; timestamp_ntz ignores offsets."""
    match = _TIMESTAMP.fullmatch(text.strip(_BLANKS))
    if match:
        year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
        fraction = int((match[7] or "0")[:6].ljust(6, "0"))
        try:
            dt.time(hour or 0, minute or 0, second or 0)
            seconds = ((hour or 0) * 60 + (minute or 0)) * 60 + (second or 0)
            if type_ == TIMESTAMP:
                ahead = (int(match[9] or 0) * 60 + int(match[10] or 0)) * 60
                seconds += ahead if match[8] == "-" else -ahead
            return moment(days_of(year or 0, month or 1, day or 1) * DAY + seconds * 1_000_000 + fraction, type_)
        except (ValueError, EvaluationError):
            pass
    raise EvaluationError(f"'{text}' is not a {type_name(type_)}")


def reader(target: pa.DataType) -> Callable[[Any], object]:
    """Return a function that parses text as the type, and raises an EvaluationError if it cannot."""
    if target == BOOLEAN:
        return _read_boolean
    if target in (FLOAT, DOUBLE):
        return lambda text: read_number(text, type_name(target))
    if is_decimal(target):
        return lambda text: fit(_read_decimal(text, target), target)
    if target == DATE:
        return read_date
    if is_timestamp(target):
        return lambda text: read_timestamp(text, target)
    if pa.types.is_binary(target):
        return lambda text: text.encode()
    (low, high), name = limits(target), type_name(target)

    def whole(text: str) -> int:
        stripped = text.strip(_BLANKS)
        if _WHOLE.fullmatch(stripped):
            value = int(stripped)
            if low <= value <= high:
                return value
        raise EvaluationError(f"'{text}' is not {'an' if name == 'int' else 'a'} {name}")

    return whole


def _read_boolean(text: str) -> bool:
    word = text.strip(_BLANKS).lower()
    if word not in _TRUE and word not in _FALSE:
        raise EvaluationError(f"'{text}' is not a boolean")
    return word in _TRUE


def read_number(text: str, name: str) -> float:
    """Parse a double or a float, or raise an EvaluationError."""
    word = text.strip(_NUMBER_BLANKS)
    special = _SPECIAL.get(word.lower())
    if special is not None:
        return float(special)
    if word.endswith(_SUFFIXES):
        word = word[:-1]
    if _NUMBER.fullmatch(word):
        return float(word)
    if _HEXADECIMAL.fullmatch(word):
        try:
            return float.fromhex(word)
        except OverflowError:
            return -math.inf if word.startswith("-") else math.inf
    raise EvaluationError(f"'{text}' is not a {name}")


def _read_decimal(text: str, target: pa.DataType) -> Decimal:
    word = text.strip(_NUMBER_BLANKS)
    if _NUMBER.fullmatch(word):
        return Decimal(word)
    raise EvaluationError(f"'{text}' is not a {type_name(target)}")


def cast(node: Node, type_: pa.DataType, lenient: bool = False) -> Node:
    """Convert a node to another type; with `lenient` (TRY_CAST), values that do not fit become NULL."""
    source = node.type
    if source == type_:
        return node
    if source == VOID:
        return null(type_)
    _checked(source, type_)
    if node.is_null:
        return null(type_)
    if lenient and not _always_fits(source, type_):
        return _lenient(node, type_)
    if source == STRING or is_decimal(source):
        return over_values(type_, (node,), _from_python(source, type_))
    if type_ == STRING:
        return _to_text(node)
    if is_decimal(type_):
        return _to_decimal(node, type_)
    return _fixed(node, type_)


def _checked(source: pa.DataType, target: pa.DataType) -> None:
    """Raise unless a cast between these types exists."""
    if _exists(source, target):
        return
    hint = ""
    if is_time(source) and is_numeric(target):
        hint = "; use unix_seconds, unix_millis or unix_micros"
    elif is_numeric(source) and is_time(target):
        hint = "; use timestamp_seconds, timestamp_millis or timestamp_micros"
    raise ExpressionError(f"cannot cast {type_name(source)} to {type_name(target)}{hint}")


def _exists(source: pa.DataType, target: pa.DataType) -> bool:
    if is_nested(source) or is_nested(target):
        return False
    if pa.types.is_binary(source) or pa.types.is_binary(target):
        return STRING in (source, target)
    if STRING in (source, target):
        return True
    if is_time(source) == is_time(target):
        return True
    other = target if is_time(source) else source
    return TIMESTAMP in (source, target) and is_numeric(other)  # timestamp_ntz is not an instant


def _always_fits(source: pa.DataType, target: pa.DataType) -> bool:
    if target in (STRING, BOOLEAN) or is_float(target):
        return bool(source != STRING)
    return is_integer(source) and is_integer(target) and bool(source.bit_width <= target.bit_width)


def _lenient(node: Node, type_: pa.DataType) -> Node:
    """Return a cast that gives NULL where the strict one fails; casts value by value only after a failure."""
    step, strict = node.run, cast(field(0, node.type), type_).run

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        try:
            return strict((column,), count)
        except EvaluationError:
            return concat([one(column.slice(at, at + 1)) for at in range(count)])

    def one(column: Column) -> Column:
        try:
            return strict((column,), 1)
        except EvaluationError:
            return nulls(1, type_)

    return build(type_, (node,), run)


def _from_python(source: pa.DataType, target: pa.DataType) -> Callable[[Any], object]:
    """Return the cast of a single Python value from text or decimal."""
    if source == STRING:
        return reader(target)
    if target == STRING:
        return lambda value: format(value, "f")
    if target == BOOLEAN:
        return lambda value: bool(value)
    if target == DOUBLE:
        return float
    if target == FLOAT:
        return lambda value: float(np.float32(float(value)))
    if is_decimal(target):
        return lambda value: fit(value, target)
    if is_timestamp(target):
        return lambda value: moment(int((value * 1_000_000).to_integral_value("ROUND_DOWN")), target)
    (low, high), name = limits(target), type_name(target)

    def whole(value: Decimal) -> int:
        number = int(value)
        if not low <= number <= high:
            raise EvaluationError(f"{value} does not fit {name}")
        return number

    return whole


def _to_text(node: Node) -> Node:
    if is_float(node.type):
        return over_values(STRING, (node,), lambda value: float_text(value, node.type))
    if is_timestamp(node.type):
        return over_arrow(STRING, (node,), _timestamp_texts)
    return over_arrow(STRING, (node,), date_texts if node.type == DATE else lambda array: pc.cast(array, STRING))


def _timestamp_texts(array: pa.Array) -> pa.Array:
    """Render timestamps as Spark prints them: without trailing zeros in the fraction."""
    return pc.replace_substring_regex(timestamp_texts(array), r"\.?0{1,6}$", "")


def _to_decimal(node: Node, type_: pa.DataType) -> Node:
    exact: Callable[[Any], Decimal] = finite
    if is_integer(node.type):
        if type_.precision - type_.scale >= min(19, as_decimal(node.type).precision):  # every value fits
            return over_arrow(type_, (node,), lambda array: array.cast(pa.decimal128(19, 0)).cast(type_))
        exact = Decimal
    elif is_timestamp(node.type):
        node, exact = relabel(node, pa.int64()), lambda value: Decimal(value).scaleb(-6)
    elif node.type == BOOLEAN:
        exact = Decimal
    return over_values(type_, (node,), lambda value: fit(exact(value), type_))


def _fixed(node: Node, target: pa.DataType) -> Node:
    """Cast between fixed-width types, with numpy."""
    source, dtype = node.type, numpy_type(target)
    narrows = is_integer(source) and is_integer(target) and source.bit_width > target.bit_width
    if is_timestamp(source) and is_timestamp(target):
        return relabel(node, target)
    if source == DATE:
        return unary(target, node, scaling(DAY, "a date does not fit timestamp"))
    if target == DATE:
        return unary(target, node, lambda values, valid: np.floor_divide(values, DAY).astype(np.int32))
    if is_timestamp(source):
        return _seconds(node, target)
    if is_timestamp(target):
        return _instant(node, target)
    if target == BOOLEAN:
        return unary(target, node, lambda values, valid: values != 0)
    if narrows:
        return unary(target, node, _narrowing(dtype, target))
    if is_float(source) and not is_float(target):
        return unary(target, node, truncating(target))
    return unary(target, node, lambda values, valid: values.astype(dtype))


def scaling(width: int, reason: str) -> Callable[[Values, Mask | None], Values]:
    """Return a kernel that converts a coarser unit to microseconds; it raises for values out of range."""
    limit = (2**63 - 1) // width

    def kernel(values: Values, valid: Mask | None) -> Values:
        wide = values.astype(np.int64, copy=False)
        check((wide > limit) | (wide < -limit), valid, reason)
        return wide * width

    return kernel


def _narrowing(dtype: Any, target: pa.DataType) -> Callable[[Values, Mask | None], Values]:
    reason = f"a value does not fit {type_name(target)}"

    def kernel(values: Values, valid: Mask | None) -> Values:
        result: Values = values.astype(dtype)
        check(result != values, valid, reason)
        return result

    return kernel


def truncating(target: pa.DataType) -> Callable[[Values, Mask | None], Values]:
    """Return a kernel that truncates floats to whole numbers; it raises for NaN and values out of range."""
    bits = target.bit_width - 1
    low, high = -(2.0**bits), 2.0**bits
    reason = f"a value does not fit {type_name(target)}"
    dtype = target.to_pandas_dtype()

    def kernel(values: Values, valid: Mask | None) -> Values:
        cut = np.trunc(values)
        good = (cut >= low) & (cut < high)
        most = (cut == high) & (bits == 63)  # as in Java: as a double, the largest bigint equals 2^63
        check(~(good | most), valid, reason)
        result: Values = np.where(good, cut, 0).astype(dtype)
        result[most] = np.iinfo(dtype).max
        return result

    return kernel


def _seconds(node: Node, target: pa.DataType) -> Node:
    """Cast a timestamp to seconds since 1970."""
    if is_float(target):
        return unary(target, node, lambda values, valid: (values / 1e6).astype(target.to_pandas_dtype()))
    whole = unary(pa.int64(), node, lambda values, valid: np.floor_divide(values, 1_000_000))
    return cast(whole, target)


def _instant(node: Node, target: pa.DataType) -> Node:
    """Cast seconds since 1970 to a timestamp."""
    if is_float(node.type):
        micros = unary(DOUBLE, cast(node, DOUBLE), lambda values, valid: values * 1e6)
        whole = unary(pa.int64(), micros, truncating(pa.int64()))
        return unary(target, whole, lambda values, valid: values)

    return unary(target, node, scaling(1_000_000, "a value does not fit timestamp"))
