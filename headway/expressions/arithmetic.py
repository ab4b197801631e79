"""Arithmetic with ANSI rules over numpy: overflow and division by zero are errors, NULL tuples never are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Mask, Values
from headway.errors import ExpressionError
from headway.expressions import decimals
from headway.expressions.casts import cast
from headway.expressions.nodes import EvaluationError, Node, binary, check, null, unary
from headway.expressions.types import (
    BIGINT,
    DATE,
    DOUBLE,
    STRING,
    VOID,
    common_number,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
)
from headway.schema import type_name

Kernel = Callable[[Any, Any, Mask | None], Values]
_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "take the remainder of", "div": "divide"}
_ZERO = "division by zero"
_LONG = 64
"""From this length on, the least and the greatest value are cheaper to look at than every tuple."""


def arithmetic(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for + - * / % div."""
    if DATE in (left.type, right.type) and operator in ("+", "-"):
        return _date_arithmetic(operator, left, right)
    left, right = _numbers(operator, left, right)
    floats = is_float(left.type) or is_float(right.type)
    if not floats and (is_decimal(left.type) or is_decimal(right.type)):
        return decimals.arithmetic(operator, left, right)
    if operator == "/":
        return divide(cast(left, DOUBLE), cast(right, DOUBLE))
    if operator == "div":
        if floats:
            raise ExpressionError("div takes whole numbers or decimals; use / for doubles")
        type_ = BIGINT
    else:
        type_ = common_number(left.type, right.type)
    left, right = cast(left, type_), cast(right, type_)
    if is_float(type_):
        return _float(operator, type_, left, right)
    if operator == "div":
        return binary(type_, left, right, integer_quotient(type_))
    if operator == "%":
        harmless = right.constant is not None and not right.is_null and right.value not in (0, -1)
        return binary(type_, left, right, _plain_remainder if harmless else integer_remainder)
    return binary(type_, left, right, _integer(operator, type_, left, right))


def divide(left: Node, right: Node) -> Node:
    """Return a quotient of doubles (or floats)."""

    def kernel(one: Any, two: Any, valid: Mask | None) -> Values:
        _check_divisor(one, two, valid)
        result: Values = np.divide(one, two)
        return result

    if right.constant is not None and not right.is_null and right.value != 0:
        return binary(left.type, left, right, lambda one, two, valid: np.divide(one, two), warns=True)
    return binary(left.type, left, right, kernel, warns=True)


def negate(argument: Node) -> Node:
    """Return ``-argument``."""
    if argument.type == VOID:
        return argument
    if argument.type == STRING:
        argument = cast(argument, DOUBLE)
    if is_decimal(argument.type):
        return decimals.negate(argument)
    if is_float(argument.type):
        return unary(argument.type, argument, lambda values, valid: np.negative(values))
    if not is_integer(argument.type):
        raise ExpressionError(f"cannot negate a {type_name(argument.type)}")
    lowest = np.iinfo(argument.type.to_pandas_dtype()).min
    reason = f"{type_name(argument.type)} overflow in a negation"

    def kernel(values: Values, valid: Mask | None) -> Values:
        check(values == lowest, valid, reason)
        result: Values = np.negative(values)
        return result

    return unary(argument.type, argument, kernel)


def bitwise(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for & | ^."""
    for side in (left, right):
        if not is_integer(side.type) and side.type != VOID:
            raise ExpressionError(f"{operator} takes whole numbers, not {type_name(side.type)}")
    if VOID in (left.type, right.type):
        return null(BIGINT if left.type == right.type else left.type if right.type == VOID else right.type)
    type_ = common_number(left.type, right.type)
    ufunc: Any = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[operator]
    return binary(type_, cast(left, type_), cast(right, type_), lambda one, two, valid: ufunc(one, two))


def bitwise_not(argument: Node) -> Node:
    """Return ``~argument``."""
    if not is_integer(argument.type):
        raise ExpressionError(f"~ takes whole numbers, not {type_name(argument.type)}")
    return unary(argument.type, argument, lambda values, valid: np.invert(values))


def _numbers(operator: str, left: Node, right: Node) -> tuple[Node, Node]:
    """Make numbers of both sides: text becomes bigint or double by the other side, NULL takes its type."""
    sides = [left, right]
    for index in (0, 1):
        other = sides[1 - index].type
        if sides[index].type == VOID:
            sides[index] = null(other if is_numeric(other) else DOUBLE)
        elif sides[index].type == STRING:
            sides[index] = cast(sides[index], BIGINT if is_integer(other) else DOUBLE)
    for side in sides:
        if not is_numeric(side.type):
            names = f"{type_name(left.type)} and {type_name(right.type)}"
            raise ExpressionError(
                f"cannot {_VERBS[operator]} {names}; numbers are expected{_time_hint(operator, sides)}"
            )
    return sides[0], sides[1]


def _time_hint(operator: str, sides: list[Node]) -> str:
    """Return what to write where dates and timestamps are taken for numbers."""
    times = [_is_time(side.type) for side in sides]
    if all(times) and operator == "-":
        return (
            "; for the time between two timestamps write unix_seconds(a) - unix_seconds(b), or unix_millis or "
            "unix_micros for parts of a second; datediff(a, b) for days"
        )
    return "; dates and timestamps take intervals: ts + interval 5 minutes" if any(times) else ""


def _is_time(type_: pa.DataType) -> bool:
    return type_ == DATE or bool(pa.types.is_timestamp(type_))


def _date_arithmetic(operator: str, left: Node, right: Node) -> Node:
    if left.type == right.type:
        verb = "subtract" if operator == "-" else "add"
        raise ExpressionError(f"cannot {verb} two dates; for the days between them write datediff(end, start)")
    if left.type != DATE and operator == "+":
        left, right = right, left
    if left.type != DATE or not (is_integer(right.type) or right.type == VOID):
        names = f"{type_name(left.type)} {operator} {type_name(right.type)}"
        days = _is_time(left.type) and _is_time(right.type)
        hint = "; for the days between two write datediff(end, start)" if days else ""
        raise ExpressionError(f"cannot compute {names}; a date takes whole days or an interval{hint}")
    return shift_days(left, right, operator)


def shift_days(date: Node, days: Node, operator: str) -> Node:
    """Return a date moved by days."""
    days = cast(days, pa.int32())
    plain = Node(pa.int32(), date.run, date.slots, date.constant, date.field)
    moved = binary(pa.int32(), plain, days, _integer(operator, pa.int32(), plain, days))
    return Node(DATE, moved.run, moved.slots, moved.constant, None, moved.warns)


def _float(operator: str, type_: pa.DataType, left: Node, right: Node) -> Node:
    if operator == "%":

        def kernel(one: Any, two: Any, valid: Mask | None) -> Values:
            _check_divisor(one, two, valid)
            result: Values = np.fmod(one, two)
            return result

        return binary(type_, left, right, kernel, warns=True)
    ufunc: Any = {"+": np.add, "-": np.subtract, "*": np.multiply}[operator]
    return binary(type_, left, right, lambda one, two, valid: ufunc(one, two), warns=True)


def integer_quotient(type_: pa.DataType) -> Kernel:
    """Return the kernel of the quotient cut towards zero."""
    lowest = np.iinfo(type_.to_pandas_dtype()).min

    def kernel(one: Any, two: Any, valid: Mask | None) -> Values:
        _check_divisor(one, two, valid)
        check((one == lowest) & (two == -1), valid, f"{type_name(type_)} overflow in a division")
        safe = np.where((two == 0) | ((one == lowest) & (two == -1)), 1, two)
        quotient = np.floor_divide(one, safe)
        result: Values = quotient + ((quotient * safe != one) & ((one < 0) != (safe < 0)))
        return result.astype(type_.to_pandas_dtype(), copy=False)

    return kernel


def integer_remainder(one: Any, two: Any, valid: Mask | None) -> Values:
    """Return the remainder, which has the sign of the dividend."""
    _check_divisor(one, two, valid)
    two = np.where((two == 0) | (two == -1), 1, two).astype(two.dtype)  # x % -1 is 0 but overflows at the lowest x
    result: Values = np.fmod(one, two)
    return result


def _check_divisor(one: Any, two: Any, valid: Mask | None) -> None:
    """Raise if a tuple is divided by zero; a constant zero divides nothing where there are no tuples."""
    zero = two == 0
    if np.count_nonzero(zero) and np.size(one):
        check(zero, valid, _ZERO)


def _plain_remainder(one: Any, two: Any, valid: Mask | None) -> Values:
    result: Values = np.fmod(one, two)
    return result


def _bounds(values: Any) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _integer(operator: str, type_: pa.DataType, left: Node, right: Node) -> Kernel:
    """Return the kernel of whole-number + - *, with the cheapest overflow check for a constant side."""
    name = type_name(type_)
    lowest, highest = _limits(type_)
    if operator == "*":
        return _multiply(type_, f"{name} overflow in a multiplication")
    reason = f"{name} overflow in " + ("an addition" if operator == "+" else "a subtraction")
    if operator == "+":
        if left.constant is not None and right.constant is None:
            swapped = _integer(operator, type_, right, left)
            return lambda one, two, valid: swapped(two, one, valid)
        if right.constant is not None and not right.is_null:
            return _add_constant(right.value >= 0, reason)

        def add(one: Any, two: Any, valid: Mask | None) -> Values:
            result: Values = np.add(one, two)
            if result.size > _LONG:
                (low, high), (lower, upper) = _bounds(one), _bounds(two)
                if lowest <= low + lower and high + upper <= highest:
                    return result
            check((one ^ result) & (two ^ result) < 0, valid, reason)
            return result

        return add
    if right.constant is not None and not right.is_null:
        falls = right.value >= 0

        def subtract_constant(one: Any, two: Any, valid: Mask | None) -> Values:
            result: Values = np.subtract(one, two)
            check(result > one if falls else result < one, valid, reason)
            return result

        return subtract_constant

    def subtract(one: Any, two: Any, valid: Mask | None) -> Values:
        result: Values = np.subtract(one, two)
        if result.size > _LONG:
            (low, high), (lower, upper) = _bounds(one), _bounds(two)
            if lowest <= low - upper and high - lower <= highest:
                return result
        check((one ^ two) & (one ^ result) < 0, valid, reason)
        return result

    return subtract


def _add_constant(rises: bool, reason: str) -> Kernel:
    def kernel(one: Any, two: Any, valid: Mask | None) -> Values:
        result: Values = np.add(one, two)
        check(result < one if rises else result > one, valid, reason)
        return result

    return kernel


def _limits(type_: pa.DataType) -> tuple[int, int]:
    limits = np.iinfo(type_.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _multiply(type_: pa.DataType, reason: str) -> Kernel:
    dtype = type_.to_pandas_dtype()
    lowest, highest = _limits(type_)

    def fits(one: Any, two: Any) -> bool:
        corners = [first * second for first in _bounds(one) for second in _bounds(two)]
        return lowest <= min(corners) and max(corners) <= highest

    if type_ != BIGINT:

        def narrow(one: Any, two: Any, valid: Mask | None) -> Values:
            if max(one.size, two.size) > _LONG and fits(one, two):
                product: Values = np.multiply(one, two)
                return product
            wide = np.multiply(one, two, dtype=np.int64)
            result: Values = wide.astype(dtype)
            check(result != wide, valid, reason)
            return result

        return narrow

    def wide(one: Any, two: Any, valid: Mask | None) -> Values:
        result: Values = np.multiply(one, two)
        if result.size > _LONG and fits(one, two):
            return result
        # The product of the doubles tells which tuples are near the limit; only they need exact arithmetic.
        near = np.abs(np.multiply(one, two, dtype=np.float64)) > 9.2e18
        if np.count_nonzero(near):
            if valid is not None:
                near = near & valid
            ones, twos = np.broadcast_arrays(one, two)
            for first, second in zip(ones[near].tolist(), twos[near].tolist(), strict=True):
                if not -(2**63) <= first * second < 2**63:
                    raise EvaluationError(reason)
        return result

    return wide
