"""Conditional functions (`if` and CASE are syntax) and mathematics; truncating decimals is done per value."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, Values, truth
from headway.errors import ExpressionError
from headway.expressions import logic
from headway.expressions.arithmetic import arithmetic, changed_sign, negate
from headway.expressions.casts import CONTEXT, cast
from headway.expressions.library.builtin import Builtin, double, fixed, integer, numeric, over_numpy
from headway.expressions.logic import choose, compare, is_null
from headway.expressions.nodes import (
    Columns,
    EvaluationError,
    Node,
    binary,
    both,
    build,
    check,
    field,
    literal,
    null,
    over_columns,
    over_values,
    unary,
)
from headway.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    VOID,
    common_of,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    limits,
)
from headway.network.schema import type_name

CONDITIONALS = (
    Builtin("coalesce(x, y, …)", logic.coalesce),
    Builtin("nvl(x, y)", logic.coalesce, synonyms=("ifnull",)),
    Builtin("nvl2(x, if_not_null, if_null)", lambda one, some, none: logic.case([is_null(one)], [none], some)),
    Builtin("nullif(x, y)", logic.null_if),
    Builtin("isnull(x)", is_null),
    Builtin("isnotnull(x)", lambda node: logic.negation(is_null(node))),
)


def rounded(name: str) -> Callable[..., Node]:
    """Return a builder for ``round(x, digits)`` or ``bround(x, digits)``; the digits must be a literal."""
    mode = ROUND_HALF_UP if name == "round" else ROUND_HALF_EVEN

    def made(node: Node, digits: Node | None = None) -> Node:
        places = 0 if digits is None else fixed(digits, name, "the number of digits")
        if places is None:
            return null(node.type)
        if is_float(node.type):
            return unary(node.type, node, _floats(places, mode))
        if is_decimal(node.type):
            type_ = _decimal_type(node.type, places)
            return over_values(type_, (node,), lambda value: _cut(value, min(places, node.type.scale), mode))
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
    low, high = limits(type_)

    def kernel(value: int) -> int:
        result = int(_cut(Decimal(value), max(places, -40), mode))
        if not low <= result <= high:
            raise EvaluationError(f"{type_name(type_)} overflow in a rounding")
        return result

    return kernel


def _floats(places: int, mode: str) -> Callable[[Values, Mask | None], Any]:
    """Round with numpy; values near a tie or beyond numpy's exact range are rounded exactly in Python.

    As in Spark, a float is rounded as the double of the same value: 1.15 as a float is slightly less.
    """
    scale = 10.0**places if 0 <= places <= 22 else 0.0

    def exact(value: float) -> float:
        if not np.isfinite(value) or places > 400:
            return value
        number = Decimal(repr(value))
        last = number.as_tuple().exponent
        if (number.adjusted() > 40 and places >= 0) or (isinstance(last, int) and -last <= places):
            return value  # too large to have digits to round, or has too few
        return float(_cut(number, max(places, -400), mode))

    def kernel(values: Values, valid: Mask | None) -> Any:
        dtype, values = values.dtype, values.astype(np.float64)
        if scale == 0.0:
            return np.array([exact(value) for value in values.tolist()], np.float64).astype(dtype) + 0.0
        scaled = values * scale
        result = np.rint(scaled) / scale
        distance = np.abs(scaled - np.floor(scaled) - 0.5)
        doubtful = ~(np.abs(scaled) < 2.0**31) | (distance < 1e-5)
        if np.count_nonzero(doubtful):
            result[doubtful] = [exact(value) for value in values[doubtful].tolist()]
        return result.astype(dtype) + 0.0  # Spark rounds through decimals, which have no -0

    return kernel


_double = functools.partial(over_numpy, DOUBLE)


def _doubles(*ufuncs: np.ufunc) -> list[Builtin]:
    """Return numpy functions of one double under the names that Spark uses."""
    return [Builtin(f"{one.__name__.replace('arc', 'a')}(x)", _double(one), (double,)) for one in ufuncs]


def _logarithm(ufunc: Any, least: float = 0.0) -> Callable[[Node], Node]:
    """Return a builder for a logarithm that is NULL where it is undefined."""

    def kernel(column: Column) -> Column:
        missing = column.values <= least
        if not np.count_nonzero(missing):
            return Column(ufunc(column.values), column.valid)
        return Column(ufunc(column.values), both(column.valid, ~missing))

    return lambda node: over_columns(DOUBLE, (node,), kernel)


_ln = _logarithm(np.log)


def _log(first: Node, second: Node | None = None) -> Node:
    if second is None:
        return _ln(first)
    return binary(DOUBLE, _ln(second), _ln(first), lambda one, two, valid: np.divide(one, two))


def _whole(name: str, ufunc: Any, mode: str) -> Callable[[Node], Node]:
    """Return a builder for ceil or floor: bigint for doubles and integers, decimal for decimals."""

    def kernel(values: Values, valid: Mask | None) -> Any:
        cut = ufunc(values)
        cut = np.where(np.isnan(cut), 0.0, cut)  # NaN gives 0: Spark only rejects values that are too large
        inside = (cut >= -(2.0**63)) & (cut < 2.0**63)
        check(~inside, valid, f"bigint overflow in {name}")
        return np.where(inside, cut, 0.0).astype(np.int64)

    def made(node: Node) -> Node:
        if is_integer(node.type):
            return cast(node, BIGINT)
        if is_decimal(node.type):
            type_ = pa.decimal128(min(38, node.type.precision - node.type.scale + 1), 0)
            return over_values(type_, (node,), lambda value: value.to_integral_value(mode))
        return unary(BIGINT, cast(node, DOUBLE), kernel)

    return made


def _extreme(name: str, operator: str) -> Callable[..., Node]:
    """Return a builder for greatest or least, which ignore NULLs."""

    def made(*arguments: Node) -> Node:
        type_ = common_of([node.type for node in arguments], name)
        if type_ == VOID:
            return null(VOID)
        if is_nested(type_):
            raise ExpressionError(f"{name} cannot compare {type_name(type_)}")
        nodes = [cast(node, type_) for node in arguments]
        better = compare(operator, field(0, type_), field(1, type_)).run

        def run(columns: Columns, count: int) -> Column:
            result = nodes[0].run(columns, count)
            for node in nodes[1:]:
                other = node.run(columns, count)
                wins = better((other, result), count)
                mask = truth(wins) | ~result.is_valid()
                result = choose(mask, other, result, type_)
            return result

        return build(type_, nodes, run)

    return made


def _pmod(one: Node, two: Node) -> Node:
    """Return the remainder, made non-negative (for a positive divisor)."""
    remainder = arithmetic("%", one, two)
    divisor = cast(two, remainder.type)
    if is_decimal(remainder.type):
        return over_values(
            remainder.type, (remainder, divisor), lambda rest, by: (rest + by) % by if rest < 0 else rest
        )

    def kernel(rest: Any, by: Any) -> Any:
        safe = np.where(by == 0, 1, by).astype(rest.dtype)
        return np.where(rest < 0, np.fmod(rest + safe, safe), rest)

    return over_numpy(remainder.type, kernel)(remainder, divisor)


def _is_nan(node: Node) -> Node:
    return over_columns(BOOLEAN, (node,), lambda column: Column(truth(Column(np.isnan(column.values), column.valid))))


def _nanvl(one: Node, two: Node) -> Node:
    def kernel(first: Column, second: Column) -> Column:
        return choose(np.isnan(first.values) & first.is_valid(), second, first, DOUBLE)

    return over_columns(DOUBLE, (one, two), kernel)


def _to_the(base: Any, exponent: Any) -> Any:
    """Return powers by Java's rules: NaN for a NaN exponent, and for |base| = 1 with an infinite one."""
    result = np.power(base, exponent)
    unknown = np.isnan(exponent) | ((np.abs(base) == 1.0) & np.isinf(exponent))
    return np.where(unknown, np.nan, result) if np.count_nonzero(unknown) else result


def _angle(y: Any, x: Any) -> Any:
    """Return arc tangents as in Spark, which treats -0 as 0 here."""
    return np.arctan2(y + 0.0, x + 0.0)


_NUMBER, _DOUBLE = (numeric,), (double,)
MATHS = (
    Builtin("abs(x)", lambda node: changed_sign(node, pc.abs, np.abs, "abs"), _NUMBER),
    Builtin("sign(x)", over_numpy(DOUBLE, lambda values: np.copysign(np.sign(values), values)), _DOUBLE, ("signum",)),
    Builtin("negative(x)", negate),
    Builtin("ceil(x)", _whole("ceil", np.ceil, ROUND_CEILING), _NUMBER, ("ceiling",)),
    Builtin("floor(x)", _whole("floor", np.floor, ROUND_FLOOR), _NUMBER),
    Builtin("round(x[, digits])", rounded("round"), (numeric, integer)),
    Builtin("bround(x[, digits])", rounded("bround"), (numeric, integer)),
    *_doubles(np.rint, np.sqrt, np.cbrt, np.exp, np.expm1),
    Builtin("ln(x)", _ln, _DOUBLE),
    Builtin("log([base, ]x)", _log, _DOUBLE),
    Builtin("log10(x)", _logarithm(np.log10), _DOUBLE),
    Builtin("log2(x)", _logarithm(np.log2), _DOUBLE),
    Builtin("log1p(x)", _logarithm(np.log1p, -1.0), _DOUBLE),
    Builtin("pow(x, y)", _double(_to_the), _DOUBLE, ("power",)),
    *_doubles(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan),
    Builtin("atan2(y, x)", _double(_angle), _DOUBLE),
    *_doubles(np.sinh, np.cosh, np.tanh, np.degrees, np.radians),
    Builtin("hypot(x, y)", _double(np.hypot), _DOUBLE),
    Builtin("mod(x, y)", lambda one, two: arithmetic("%", one, two)),
    Builtin("pmod(x, y)", _pmod),
    Builtin("greatest(x, y, …)", _extreme("greatest", ">"), least=2),
    Builtin("least(x, y, …)", _extreme("least", "<"), least=2),
    Builtin("pi()", lambda: literal(math.pi, DOUBLE)),
    Builtin("e()", lambda: literal(math.e, DOUBLE)),
    Builtin("isnan(x)", _is_nan, _DOUBLE),
    Builtin("nanvl(x, y)", _nanvl, _DOUBLE),
)
