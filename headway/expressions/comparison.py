"""Comparison with Spark's order of values: NaN equals NaN and is larger than every number."""

from __future__ import annotations

import math
import operator as operator_
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, Values, numpy_type
from headway.errors import ExpressionError
from headway.expressions.casts import cast
from headway.expressions.nodes import Columns, Node, binary, build, literal, over_arrow, over_values
from headway.expressions.types import (
    BOOLEAN,
    MAX_PRECISION,
    VOID,
    as_decimal,
    common,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
)
from headway.schema import type_name

Kernel = Callable[[Any, Any, Mask | None], Values]
_UFUNCS: dict[str, Any] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW: dict[str, Any] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator_.eq,
    "<>": operator_.ne,
    "<": operator_.lt,
    "<=": operator_.le,
    ">": operator_.gt,
    ">=": operator_.ge,
}
_MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for = <> < <= > >=."""
    if left.constant is not None and right.constant is None:
        return compare(_MIRROR[operator], right, left)
    type_ = common(left.type, right.type)
    if type_ is None or (is_nested(type_) and operator not in ("=", "<>")):
        names = f"{type_name(left.type)} with {type_name(right.type)}"
        raise ExpressionError(f"cannot compare {names} by {operator}; cast one side")
    if type_ == VOID:
        return literal(None, BOOLEAN)
    if is_integer(left.type) and is_decimal(right.type) and right.constant is not None:
        whole = _whole(operator, left, right)
        if whole is not None:
            return whole
    if is_nested(type_):
        raise ExpressionError(f"cannot compare {type_name(left.type)}; compare its parts")
    if is_numeric(left.type) and is_numeric(right.type) and not is_decimal(type_):
        return _numbers(operator, left, right, type_)
    if is_decimal(type_) and VOID not in (left.type, right.type) and not _fits(left.type, right.type):
        sides = [side if is_decimal(side.type) else cast(side, as_decimal(side.type)) for side in (left, right)]
        return over_values(BOOLEAN, sides, _PYTHON[operator])
    left, right = cast(left, type_), cast(right, type_)
    if is_float(type_):
        return _numbers(operator, left, right, type_)
    if numpy_type(type_) is not None:
        ufunc = _UFUNCS[operator]
        return binary(BOOLEAN, left, right, lambda one, two, valid: ufunc(one, two))
    return over_arrow(BOOLEAN, (left, right), _ARROW[operator])


def _fits(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether a decimal type holds all values of both, so that no digit is lost before comparing."""
    left, right = (as_decimal(side) for side in (one, two))
    digits = max(left.precision - left.scale, right.precision - right.scale) + max(left.scale, right.scale)
    return bool(digits <= MAX_PRECISION)


def null_safe_equal(left: Node, right: Node) -> Node:
    """Return ``left <=> right``: never NULL, two NULLs are equal."""
    equal = compare("=", left, right)
    if left.type == VOID or right.type == VOID:
        return is_null(right if left.type == VOID else left)
    first, second, same = left.run, right.run, equal.run

    def run(columns: Columns, count: int) -> Column:
        one, two = first(columns, count).is_valid(), second(columns, count).is_valid()
        return Column(np.where(one & two, same(columns, count).values, ~(one | two)))

    return build(BOOLEAN, (left, right), run, equal.warns)


def is_null(argument: Node) -> Node:
    """Return ``argument IS NULL``."""
    step = argument.run

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        if column.valid is None and isinstance(column.values, np.ndarray):
            return Column(np.zeros(count, np.bool_))
        return Column(~column.is_valid())

    return build(BOOLEAN, (argument,), run)


def _numbers(operator: str, left: Node, right: Node, type_: pa.DataType) -> Node:
    """Compare numbers of any fixed width; numpy widens inside its loop, so nothing is cast beforehand."""
    left, right = (cast(side, type_) if is_decimal(side.type) else side for side in (left, right))
    if right.constant is not None and not right.is_null:
        right = _narrow(left, right)
    if not is_float(type_):
        ufunc = _UFUNCS[operator]
        return binary(BOOLEAN, left, right, lambda one, two, valid: ufunc(one, two))
    if right.constant is not None and (right.is_null or not math.isnan(right.value)):
        return binary(BOOLEAN, left, right, _WITH_NUMBER[operator])
    return binary(BOOLEAN, left, right, _FLOATS[operator])


def _narrow(left: Node, right: Node) -> Node:
    """Give a constant the other side's type if it fits exactly, so that numpy's loop need not convert."""
    value = right.value
    if is_integer(left.type) and (isinstance(value, int) or float(value).is_integer()):
        limits = np.iinfo(left.type.to_pandas_dtype())
        if limits.min <= value <= limits.max and abs(value) < 2**53:
            return literal(int(value), left.type)
    if is_float(left.type) and isinstance(value, int) and abs(value) < 2**24:
        return literal(float(value), left.type)
    return right


def _whole(operator: str, left: Node, right: Node) -> Node | None:
    """Compare a whole number with a decimal constant as whole numbers: ``n > 1.5`` is ``n > 1``."""
    if right.is_null:
        return None
    value: Decimal = right.value
    exact = value == value.to_integral_value()
    if not exact and operator in ("=", "<>"):
        return binary(
            BOOLEAN, left, literal(0, left.type), lambda one, two, valid: np.full(np.shape(one), operator == "<>")
        )
    bound = math.floor(value) if operator in (">", "<=") else math.ceil(value)
    if not -(2**63) <= bound < 2**63:
        return None
    return _numbers(operator, left, literal(bound, pa.int64()), pa.int64())


def _inverted(ufunc: Any) -> Kernel:
    def kernel(one: Any, two: Any, valid: Mask | None) -> Values:
        result: Values = ufunc(one, two)
        return np.logical_not(result, out=result)

    return kernel


def _plain(ufunc: Any) -> Kernel:
    return lambda one, two, valid: ufunc(one, two)


def _equal(one: Any, two: Any, valid: Mask | None) -> Values:
    result: Values = (one == two) | ((one != one) & (two != two))
    return result


def _less(one: Any, two: Any, valid: Mask | None) -> Values:
    result: Values = ~(one >= two) & (one == one)
    return result


# Against a number that is not NaN, only > and >= differ from IEEE's order, and are its opposites.
_WITH_NUMBER: dict[str, Kernel] = {
    "=": _plain(np.equal),
    "<>": _plain(np.not_equal),
    "<": _plain(np.less),
    "<=": _plain(np.less_equal),
    ">": _inverted(np.less_equal),
    ">=": _inverted(np.less),
}
_FLOATS: dict[str, Kernel] = {
    "=": _equal,
    "<>": lambda one, two, valid: ~_equal(one, two, valid),
    "<": _less,
    "<=": lambda one, two, valid: ~_less(two, one, valid),
    ">": lambda one, two, valid: _less(two, one, valid),
    ">=": lambda one, two, valid: ~_less(one, two, valid),
}
