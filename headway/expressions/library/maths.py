"""Mathematics over numpy; decimals per value where digits are cut."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, Values
from headway.errors import ExpressionError
from headway.expressions.arithmetic import arithmetic, negate
from headway.expressions.casts import cast
from headway.expressions.comparison import compare
from headway.expressions.library.base import Builtin, double
from headway.expressions.library.rounding import rounded
from headway.expressions.logic import choose
from headway.expressions.nodes import (
    Columns,
    Node,
    binary,
    both,
    build,
    check,
    field,
    literal,
    null,
    over_arrow,
    over_columns,
    over_values,
    unary,
)
from headway.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    VOID,
    common_of,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
)
from headway.schema import type_name


def _number(node: Node, name: str) -> Node:
    if node.type in (STRING, VOID):
        return cast(node, DOUBLE)
    if not is_numeric(node.type):
        raise ExpressionError(f"{name} takes a number, not {type_name(node.type)}")
    return node


def _double(name: str, ufunc: Any) -> Callable[[Node], Node]:
    return lambda node: unary(DOUBLE, double(node, name), lambda values, valid: ufunc(values), warns=True)


def _double2(name: str, ufunc: Any) -> Callable[[Node, Node], Node]:
    return lambda one, two: binary(
        DOUBLE, double(one, name), double(two, name), lambda left, right, valid: ufunc(left, right), warns=True
    )


def _logarithm(name: str, ufunc: Any, least: float = 0.0) -> Callable[[Node], Node]:
    """Return a builder of a logarithm, which is NULL where it does not exist."""

    def kernel(column: Column) -> Column:
        missing = column.values <= least
        if not np.count_nonzero(missing):
            return Column(ufunc(column.values), column.valid)
        return Column(ufunc(column.values), both(column.valid, ~missing))

    return lambda node: over_columns(DOUBLE, (double(node, name),), kernel, warns=True)


_ln = _logarithm("log", np.log)


def _log(first: Node, second: Node | None = None) -> Node:
    if second is None:
        return _ln(first)
    return binary(DOUBLE, _ln(second), _ln(first), lambda one, two, valid: np.divide(one, two), warns=True)


def _absolute(node: Node) -> Node:
    node = _number(node, "abs")
    if is_decimal(node.type):
        return over_arrow(node.type, (node,), pc.abs)
    if is_float(node.type):
        return unary(node.type, node, lambda values, valid: np.abs(values))
    lowest = np.iinfo(node.type.to_pandas_dtype()).min
    reason = f"{type_name(node.type)} overflow in abs"

    def kernel(values: Values, valid: Mask | None) -> Values:
        check(values == lowest, valid, reason)
        result: Values = np.abs(values)
        return result

    return unary(node.type, node, kernel)


def _whole(name: str, ufunc: Any, mode: str) -> Callable[[Node], Node]:
    """Return a builder of ceil or floor: bigint from doubles and whole numbers, decimal from decimals."""

    def kernel(values: Values, valid: Mask | None) -> Values:
        cut = ufunc(values)
        cut = np.where(np.isnan(cut), 0.0, cut)  # as in Spark, which refuses only what is too large
        inside = (cut >= -(2.0**63)) & (cut < 2.0**63)
        check(~inside, valid, f"bigint overflow in {name}")
        result: Values = np.where(inside, cut, 0.0).astype(np.int64)
        return result

    def made(node: Node) -> Node:
        node = _number(node, name)
        if is_integer(node.type):
            return cast(node, BIGINT)
        if is_decimal(node.type):
            type_ = pa.decimal128(min(38, node.type.precision - node.type.scale + 1), 0)
            return over_values(type_, (node,), lambda value: value.to_integral_value(mode))
        return unary(BIGINT, cast(node, DOUBLE), kernel, warns=True)

    return made


def _extreme(name: str, operator: str) -> Callable[..., Node]:
    """Return a builder of greatest or least, which skip NULLs."""

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
                mask = (wins.values & wins.is_valid()) | ~result.is_valid()
                result = choose(mask, other, result, type_)
            return result

        return build(type_, nodes, run)

    return made


def _pmod(one: Node, two: Node) -> Node:
    """Return the remainder that is not negative (for a positive divisor)."""
    remainder = arithmetic("%", one, two)
    if is_decimal(remainder.type):
        divisor = cast(two, remainder.type)
        return over_values(
            remainder.type, (remainder, divisor), lambda rest, by: (rest + by) % by if rest < 0 else rest
        )
    divisor = cast(two, remainder.type)

    def kernel(rest: Any, by: Any, valid: Mask | None) -> Values:
        safe = np.where(by == 0, 1, by).astype(rest.dtype)
        result: Values = np.where(rest < 0, np.fmod(rest + safe, safe), rest)
        return result

    return binary(remainder.type, remainder, divisor, kernel, warns=True)


def _is_nan(node: Node) -> Node:
    def kernel(column: Column) -> Column:
        found = np.isnan(column.values)
        return Column(found if column.valid is None else found & column.valid)

    return over_columns(BOOLEAN, (double(node, "isnan"),), kernel)


def _nanvl(one: Node, two: Node) -> Node:
    one, two = double(one, "nanvl"), double(two, "nanvl")

    def kernel(first: Column, second: Column) -> Column:
        return choose(np.isnan(first.values) & first.is_valid(), second, first, DOUBLE)

    return over_columns(DOUBLE, (one, two), kernel)


def _sign(node: Node) -> Node:
    return unary(DOUBLE, double(node, "sign"), lambda values, valid: np.copysign(np.sign(values), values))


def _to_the(base: Values, exponent: Values) -> Values:
    """Return powers by Java's rules: numpy says that 1 to the power of anything is 1, and -1 to that of infinity."""
    result: Values = np.power(base, exponent)
    unknown = np.isnan(exponent) | ((np.abs(base) == 1.0) & np.isinf(exponent))
    return np.where(unknown, np.nan, result) if np.count_nonzero(unknown) else result


def _angle(y: Values, x: Values) -> Values:
    """Return arc tangents as Spark does, which has no -0 here."""
    result: Values = np.arctan2(y + 0.0, x + 0.0)
    return result


_POWER = _double2("pow", _to_the)
_CEIL = _whole("ceil", np.ceil, ROUND_CEILING)
MATHS = (
    Builtin("abs", "abs(x)", _absolute, 1, 1),
    Builtin("sign", "sign(x)", _sign, 1, 1),
    Builtin("signum", "signum(x)", _sign, 1, 1),
    Builtin("negative", "negative(x)", negate, 1, 1),
    Builtin("ceil", "ceil(x)", _CEIL, 1, 1),
    Builtin("ceiling", "ceiling(x)", _CEIL, 1, 1),
    Builtin("floor", "floor(x)", _whole("floor", np.floor, ROUND_FLOOR), 1, 1),
    Builtin("round", "round(x[, digits])", rounded("round"), 1, 2),
    Builtin("bround", "bround(x[, digits])", rounded("bround"), 1, 2),
    Builtin("rint", "rint(x)", _double("rint", np.rint), 1, 1),
    Builtin("sqrt", "sqrt(x)", _double("sqrt", np.sqrt), 1, 1),
    Builtin("cbrt", "cbrt(x)", _double("cbrt", np.cbrt), 1, 1),
    Builtin("exp", "exp(x)", _double("exp", np.exp), 1, 1),
    Builtin("expm1", "expm1(x)", _double("expm1", np.expm1), 1, 1),
    Builtin("ln", "ln(x)", _ln, 1, 1),
    Builtin("log", "log([base, ]x)", _log, 1, 2),
    Builtin("log10", "log10(x)", _logarithm("log10", np.log10), 1, 1),
    Builtin("log2", "log2(x)", _logarithm("log2", np.log2), 1, 1),
    Builtin("log1p", "log1p(x)", _logarithm("log1p", np.log1p, -1.0), 1, 1),
    Builtin("pow", "pow(x, y)", _POWER, 2, 2),
    Builtin("power", "power(x, y)", _POWER, 2, 2),
    Builtin("sin", "sin(x)", _double("sin", np.sin), 1, 1),
    Builtin("cos", "cos(x)", _double("cos", np.cos), 1, 1),
    Builtin("tan", "tan(x)", _double("tan", np.tan), 1, 1),
    Builtin("asin", "asin(x)", _double("asin", np.arcsin), 1, 1),
    Builtin("acos", "acos(x)", _double("acos", np.arccos), 1, 1),
    Builtin("atan", "atan(x)", _double("atan", np.arctan), 1, 1),
    Builtin("atan2", "atan2(y, x)", _double2("atan2", _angle), 2, 2),
    Builtin("sinh", "sinh(x)", _double("sinh", np.sinh), 1, 1),
    Builtin("cosh", "cosh(x)", _double("cosh", np.cosh), 1, 1),
    Builtin("tanh", "tanh(x)", _double("tanh", np.tanh), 1, 1),
    Builtin("degrees", "degrees(x)", _double("degrees", np.degrees), 1, 1),
    Builtin("radians", "radians(x)", _double("radians", np.radians), 1, 1),
    Builtin("hypot", "hypot(x, y)", _double2("hypot", np.hypot), 2, 2),
    Builtin("mod", "mod(x, y)", lambda one, two: arithmetic("%", one, two), 2, 2),
    Builtin("pmod", "pmod(x, y)", _pmod, 2, 2),
    Builtin("greatest", "greatest(x, y, …)", _extreme("greatest", ">"), 2, None),
    Builtin("least", "least(x, y, …)", _extreme("least", "<"), 2, None),
    Builtin("pi", "pi()", lambda: literal(math.pi, DOUBLE), 0, 0),
    Builtin("e", "e()", lambda: literal(math.e, DOUBLE), 0, 0),
    Builtin("isnan", "isnan(x)", _is_nan, 1, 1),
    Builtin("nanvl", "nanvl(x, y)", _nanvl, 2, 2),
)
