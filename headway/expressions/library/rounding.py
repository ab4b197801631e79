"""round (half up) and bround (half even), by the decimal digits that a double prints as, like Spark."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Mask, Values
from headway.errors import ExpressionError
from headway.expressions.casts import cast
from headway.expressions.library.base import integer
from headway.expressions.nodes import EvaluationError, Node, null, over_values, unary
from headway.expressions.texts import CONTEXT
from headway.expressions.types import DOUBLE, STRING, VOID, is_decimal, is_float, is_integer
from headway.schema import type_name


def rounded(name: str) -> Callable[..., Node]:
    """Return a builder of ``round(x, digits)`` or ``bround(x, digits)``; the digits must be a literal."""
    mode = ROUND_HALF_UP if name == "round" else ROUND_HALF_EVEN

    def made(node: Node, digits: Node | None = None) -> Node:
        if node.type in (STRING, VOID):
            node = cast(node, DOUBLE)
        places = 0
        if digits is not None:
            digits = integer(digits, name)
            if digits.constant is None:
                raise ExpressionError(f"{name}: the number of digits must be a literal")
            if digits.is_null:
                return null(node.type)
            places = int(digits.value)
        if is_float(node.type):
            return unary(node.type, node, _floats(places, mode), warns=True)
        if is_decimal(node.type):
            type_ = _decimal_type(node.type, places)
            return over_values(type_, (node,), lambda value: _cut(value, min(places, node.type.scale), mode))
        if not is_integer(node.type):
            raise ExpressionError(f"{name} takes a number, not {type_name(node.type)}")
        return node if places >= 0 else over_values(node.type, (node,), _integers(node.type, places, mode))

    return made


def _decimal_type(type_: pa.DataType, places: int) -> pa.DataType:
    whole = type_.precision - type_.scale + 1
    if places < 0:
        return pa.decimal128(min(38, max(whole, 1 - places)), 0)
    scale = min(type_.scale, places)
    return pa.decimal128(min(38, whole + scale), scale)


def _cut(value: Decimal, places: int, mode: str) -> Decimal:
    result = value.quantize(Decimal((0, (1,), -places)), rounding=mode, context=CONTEXT)
    return result if places >= 0 else result.quantize(Decimal(1), context=CONTEXT)


def _integers(type_: pa.DataType, places: int, mode: str) -> Callable[[Any], object]:
    limits = np.iinfo(type_.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)

    def kernel(value: int) -> int:
        result = int(_cut(Decimal(value), max(places, -40), mode))
        if not low <= result <= high:
            raise EvaluationError(f"{type_name(type_)} overflow in a rounding")
        return result

    return kernel


def _floats(places: int, mode: str) -> Callable[[Values, Mask | None], Values]:
    """Round with numpy, and exactly in Python what lies near a tie or is out of numpy's exact reach.

    Floats are rounded as the doubles of the same value, as in Spark: 1.15 is a little less there.
    """
    scale = 10.0**places if 0 <= places <= 22 else 0.0

    def exact(value: float) -> float:
        if not np.isfinite(value) or places > 400:
            return value
        number = Decimal(repr(value))
        last = number.as_tuple().exponent
        if (number.adjusted() > 40 and places >= 0) or (isinstance(last, int) and -last <= places):
            return value  # a double this large has no digits to cut, and one so short neither
        return float(_cut(number, max(places, -400), mode))

    def kernel(values: Values, valid: Mask | None) -> Values:
        dtype, values = values.dtype, values.astype(np.float64)
        if scale == 0.0:
            return np.array([exact(value) for value in values.tolist()], np.float64).astype(dtype) + 0.0
        scaled = values * scale
        result: Values = np.rint(scaled) / scale
        distance = np.abs(scaled - np.floor(scaled) - 0.5)
        doubtful = ~(np.abs(scaled) < 2.0**31) | (distance < 1e-5)
        if np.count_nonzero(doubtful):
            result[doubtful] = [exact(value) for value in values[doubtful].tolist()]
        return result.astype(dtype) + 0.0  # decimals, by which Spark rounds, have no -0

    return kernel
