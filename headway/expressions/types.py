"""Spark 4's ANSI type rules: to which common type two types convert."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headway.errors import ExpressionError
from headway.network.schema import TIMESTAMP, TIMESTAMP_NTZ, type_name

BOOLEAN = pa.bool_()
TINYINT, SMALLINT, INT, BIGINT = pa.int8(), pa.int16(), pa.int32(), pa.int64()
FLOAT, DOUBLE = pa.float32(), pa.float64()
STRING, BINARY, DATE, VOID = pa.string(), pa.binary(), pa.date32(), pa.null()
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
FLOATS = (FLOAT, DOUBLE)
TIMESTAMPS = (TIMESTAMP, TIMESTAMP_NTZ)
MAX_PRECISION = 38
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}


def is_integer(type_: pa.DataType) -> bool:
    """Whether a type is an integer type."""
    return type_ in INTEGERS


def is_float(type_: pa.DataType) -> bool:
    """Whether a type is float or double."""
    return type_ in FLOATS


def is_decimal(type_: pa.DataType) -> bool:
    """Whether a type is a decimal."""
    return bool(pa.types.is_decimal(type_))


def is_numeric(type_: pa.DataType) -> bool:
    """Whether a type is an integer, floating-point or decimal type."""
    return type_ in INTEGERS or type_ in FLOATS or is_decimal(type_)


def is_timestamp(type_: pa.DataType) -> bool:
    """Whether a type is a timestamp, with or without a zone."""
    return type_ in TIMESTAMPS


def is_time(type_: pa.DataType) -> bool:
    """Whether a type is a date or a timestamp."""
    return type_ == DATE or is_timestamp(type_)


def is_nested(type_: pa.DataType) -> bool:
    """Whether a type is an array or a struct."""
    return bool(pa.types.is_nested(type_))


def limits(type_: pa.DataType) -> tuple[int, int]:
    """Return the lowest and the highest value of an integer type."""
    info = np.iinfo(type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def common(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    """Return the common type of two types (comparison, CASE, COALESCE), or None."""
    if one == two or two == VOID:
        return one
    if one == VOID:
        return two
    if is_numeric(one) and is_numeric(two):
        return common_number(one, two)
    for text, other in ((one, two), (two, one)):
        if text == STRING and not is_nested(other):
            if is_integer(other):
                return BIGINT
            return DOUBLE if is_numeric(other) else other
    if is_timestamp(one) and is_timestamp(two):
        return TIMESTAMP
    for date, other in ((one, two), (two, one)):
        if date == DATE and is_timestamp(other):
            return other
    return None


def common_number(one: pa.DataType, two: pa.DataType) -> pa.DataType:
    """Return the common type of two numeric types; an integer and a float give double."""
    if one == two:
        return one
    if is_float(one) or is_float(two):
        return DOUBLE
    if is_decimal(one) or is_decimal(two):
        return bounded(*_holding_both(as_decimal(one), as_decimal(two)))
    return INTEGERS[max(INTEGERS.index(one), INTEGERS.index(two))]


def common_of(types: list[pa.DataType], what: str) -> pa.DataType:
    """Return the common type of several types, or raise an ExpressionError."""
    result = VOID
    for type_ in types:
        met = common(result, type_)
        if met is None:
            raise ExpressionError(f"{what}: {type_name(result)} and {type_name(type_)} have no type in common")
        result = met
    return result


def as_decimal(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type that holds an integer type; decimals are returned as they are."""
    return type_ if is_decimal(type_) else pa.decimal128(_DIGITS[type_], 0)


def meet_exactly(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether some decimal type holds all values of both, so that comparing loses no digits."""
    return _holding_both(as_decimal(one), as_decimal(two))[0] <= MAX_PRECISION


def _holding_both(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale, scale


def bounded(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type; beyond 38 digits the scale is reduced, down to 6, as in Spark."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, 6)))


def exact_digits(operator: str, left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    """Return the precision and scale of an exact decimal result; see `bounded` for the limit."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in ("+", "-"):
        precision, scale = _holding_both(left, right)
        return precision + 1, scale
    if operator == "*":
        return p1 + p2 + 1, s1 + s2
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return p1 - s1 + s2 + scale, scale
    scale = max(s1, s2)
    return min(p1 - s1, p2 - s2) + scale, scale
