"""CAST and TRY_CAST with ANSI rules: a value that does not fit is an error, or NULL for TRY_CAST."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, Values, concat, nulls, numpy_type
from headway.errors import ExpressionError
from headway.expressions import texts
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
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
    is_timestamp,
)
from headway.schema import TIMESTAMP, TIMESTAMP_NTZ, type_name

DAY = 86_400_000_000
"""Microseconds of a day."""
_MOST_DAYS = (2**63 - 1) // DAY
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def cast(node: Node, type_: pa.DataType, lenient: bool = False) -> Node:
    """Return the node as another type; with `lenient`, what does not fit becomes NULL (TRY_CAST)."""
    source = node.type
    if source == type_:
        return node
    if source == VOID:
        return null(type_)
    if node.is_null:
        _checked(source, type_)
        return null(type_)
    _checked(source, type_)
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
    """Raise unless the cast exists."""
    if _exists(source, target):
        return
    names = f"{type_name(source)} to {type_name(target)}"
    hints = {
        (True, True): "",
        (True, False): "; use unix_seconds, unix_millis or unix_micros",
        (False, True): "; use timestamp_seconds, timestamp_millis or timestamp_micros",
    }
    time_source = is_timestamp(source) or source == DATE
    time_target = is_timestamp(target) or target == DATE
    hint = hints.get((time_source, time_target), "") if is_numeric(source) or is_numeric(target) else ""
    raise ExpressionError(f"cannot cast {names}{hint}")


def _exists(source: pa.DataType, target: pa.DataType) -> bool:
    if is_nested(source) or is_nested(target):
        return False
    if pa.types.is_binary(source) or pa.types.is_binary(target):
        return STRING in (source, target)
    if STRING in (source, target):
        return True
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    if source in times and target in times:
        return True
    if source in times or target in times:  # of these only the instant can be seconds
        other = target if source in times else source
        return TIMESTAMP in (source, target) and is_numeric(other)
    return True


def _always_fits(source: pa.DataType, target: pa.DataType) -> bool:
    if target in (STRING, BOOLEAN) and source != STRING:
        return True
    if is_float(target):
        return bool(source != STRING)
    if is_integer(source) and is_integer(target):
        return bool(source.bit_width <= target.bit_width)
    return False


def _lenient(node: Node, type_: pa.DataType) -> Node:
    """Return the cast that gives NULL where the strict one fails; value by value only if one does."""
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

    return build(type_, (node,), run, warns=True)


def _from_python(source: pa.DataType, target: pa.DataType) -> Callable[[Any], object]:
    """Return the cast of one Python value from text or decimal."""
    if source == STRING:
        return texts.reader(target)
    if target == STRING:
        return lambda value: format(value, "f")
    if target == BOOLEAN:
        return lambda value: bool(value)
    if target == DOUBLE:
        return float
    if target == FLOAT:
        return lambda value: float(np.float32(float(value)))
    if is_decimal(target):
        return lambda value: texts.fit(value, target)
    if is_timestamp(target):
        return lambda value: texts.moment(int((value * 1_000_000).to_integral_value("ROUND_DOWN")), target)
    limits = np.iinfo(target.to_pandas_dtype())
    low, high, name = int(limits.min), int(limits.max), type_name(target)

    def whole(value: Decimal) -> int:
        number = int(value)
        if not low <= number <= high:
            raise EvaluationError(f"{value} does not fit {name}")
        return number

    return whole


def _to_text(node: Node) -> Node:
    if is_float(node.type):
        return over_values(STRING, (node,), texts.float_text if node.type == DOUBLE else texts.float32_text)
    if is_timestamp(node.type):
        return over_arrow(STRING, (node,), _timestamp_texts)
    if node.type == DATE:
        return over_arrow(STRING, (node,), date_texts)
    if pa.types.is_binary(node.type):
        return over_arrow(STRING, (node,), lambda array: array.cast(STRING))
    return over_arrow(STRING, (node,), lambda array: pc.cast(array, STRING))


def _timestamp_texts(array: pa.Array) -> pa.Array:
    """Return timestamps as Spark prints them: no trailing zeros in the fraction."""
    return pc.replace_substring_regex(timestamp_texts(array), r"\.?0{1,6}$", "")


def _to_decimal(node: Node, type_: pa.DataType) -> Node:
    if is_integer(node.type):
        if type_.precision - type_.scale >= _DIGITS[node.type.bit_width]:  # every value fits
            return over_arrow(type_, (node,), lambda array: array.cast(pa.decimal128(19, 0)).cast(type_))
        return over_values(type_, (node,), lambda value: texts.fit(Decimal(value), type_))
    if is_timestamp(node.type):
        micros = Node(pa.int64(), node.run, node.slots, node.constant, node.field, node.warns)
        return over_values(type_, (micros,), lambda value: texts.fit(Decimal(value).scaleb(-6), type_))
    if node.type == BOOLEAN:
        return over_values(type_, (node,), lambda value: texts.fit(Decimal(int(value)), type_))
    return over_values(type_, (node,), lambda value: texts.fit(texts.finite(value), type_))


def _fixed(node: Node, target: pa.DataType) -> Node:
    """Cast between types of a fixed width, with numpy."""
    source = node.type
    dtype: Any = numpy_type(target)
    if is_timestamp(source) and is_timestamp(target):
        return unary(target, node, lambda values, valid: values)
    if source == DATE:
        return unary(target, node, _midnight)
    if target == DATE:
        return unary(target, node, lambda values, valid: np.floor_divide(values, DAY).astype(np.int32))
    if is_timestamp(source):
        return _seconds(node, target)
    if is_timestamp(target):
        return _instant(node, target)
    if target == BOOLEAN:
        return unary(target, node, lambda values, valid: values != 0)
    if is_float(target):
        return unary(target, node, lambda values, valid: values.astype(dtype), warns=True)
    if source == BOOLEAN or (is_integer(source) and source.bit_width <= target.bit_width):
        return unary(target, node, lambda values, valid: values.astype(dtype))
    if is_integer(source):
        return unary(target, node, _narrowing(dtype, target))
    return unary(target, node, truncating(target), warns=True)


def _midnight(values: Values, valid: Mask | None) -> Values:
    """Return the microseconds at which days begin."""
    check((values > _MOST_DAYS) | (values < -_MOST_DAYS), valid, "a date does not fit timestamp")
    result: Values = values.astype(np.int64) * DAY
    return result


def _narrowing(dtype: Any, target: pa.DataType) -> Callable[[Values, Mask | None], Values]:
    reason = f"a value does not fit {type_name(target)}"

    def kernel(values: Values, valid: Mask | None) -> Values:
        result: Values = values.astype(dtype)
        check(result != values, valid, reason)
        return result

    return kernel


def truncating(target: pa.DataType) -> Callable[[Values, Mask | None], Values]:
    """Return the kernel that cuts floats to whole numbers, and refuses NaN and what does not fit."""
    bits = target.bit_width - 1
    low, high = -(2.0**bits), 2.0**bits
    reason = f"a value does not fit {type_name(target)}"
    dtype = target.to_pandas_dtype()

    def kernel(values: Values, valid: Mask | None) -> Values:
        cut = np.trunc(values)
        good = (cut >= low) & (cut < high)
        most = (cut == high) & (bits == 63)  # as in Java: no double tells the largest bigint from the number after it
        check(~(good | most), valid, reason)
        result: Values = np.where(good, cut, 0).astype(dtype)
        result[most] = np.iinfo(dtype).max
        return result

    return kernel


def _seconds(node: Node, target: pa.DataType) -> Node:
    """Cast an instant to seconds since 1970."""
    if is_float(target):
        return unary(target, node, lambda values, valid: (values / 1e6).astype(target.to_pandas_dtype()))
    whole = unary(pa.int64(), node, lambda values, valid: np.floor_divide(values, 1_000_000))
    return cast(whole, target)


def _instant(node: Node, target: pa.DataType) -> Node:
    """Cast seconds since 1970 to an instant."""
    limit = (2**63 - 1) // 1_000_000
    if is_float(node.type):
        micros = unary(DOUBLE, cast(node, DOUBLE), lambda values, valid: values * 1e6, warns=True)
        whole = unary(pa.int64(), micros, truncating(pa.int64()), warns=True)
        return unary(target, whole, lambda values, valid: values)

    def kernel(values: Values, valid: Mask | None) -> Values:
        wide = values.astype(np.int64)
        check((wide > limit) | (wide < -limit), valid, "a value does not fit timestamp")
        return wide * 1_000_000

    return unary(target, node, kernel)
