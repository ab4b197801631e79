"""Arithmetic with ANSI rules: overflow and division by zero are errors, except on NULL tuples.

Integers and doubles use numpy; decimals use Arrow where the result always fits, and Python otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Mask, Values
from headway.errors import ExpressionError
from headway.expressions.casts import CONTEXT, cast, fit
from headway.expressions.nodes import (
    Binary,
    EvaluationError,
    Node,
    binary,
    check,
    null,
    over_arrow,
    over_values,
    plain,
    relabel,
    unary,
)
from headway.expressions.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    VOID,
    as_decimal,
    bounded,
    common_number,
    exact_digits,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    is_time,
    limits,
)
from headway.network.schema import type_name

_VERBS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "take the remainder of", "div": "divide"}
_FLOAT = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}
_ZERO = "division by zero"
_LONG = 64
"""From this length on, comparing the minimum and maximum is cheaper than checking every tuple."""


def arithmetic(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for + - * / % div."""
    if DATE in (left.type, right.type) and operator in ("+", "-"):
        return _date_arithmetic(operator, left, right)
    left, right = _numbers(operator, left, right)
    floats = is_float(left.type) or is_float(right.type)
    if not floats and (is_decimal(left.type) or is_decimal(right.type)):
        return _decimals(operator, left, right)
    if operator == "/":
        return _float(operator, DOUBLE, cast(left, DOUBLE), cast(right, DOUBLE))
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
        return binary(type_, left, right, plain(np.fmod) if harmless else integer_remainder)
    return binary(type_, left, right, _integer(operator, type_, left, right))


def negate(argument: Node) -> Node:
    """Return ``-argument``."""
    if argument.type == VOID:
        return argument
    if argument.type == STRING:
        argument = cast(argument, DOUBLE)
    if not is_numeric(argument.type):
        raise ExpressionError(f"cannot negate a {type_name(argument.type)}")
    return changed_sign(argument, pc.negate, np.negative, "a negation")


def changed_sign(argument: Node, arrow: Any, ufunc: Any, what: str) -> Node:
    """Return -x or abs(x), given as Arrow's function and as numpy's; of whole numbers only the lowest overflows."""
    type_ = argument.type
    if is_decimal(type_):
        return over_arrow(type_, (argument,), arrow)
    if is_float(type_):
        return unary(type_, argument, lambda values, valid: ufunc(values))
    (lowest, _), reason = limits(type_), f"{type_name(type_)} overflow in {what}"

    def kernel(values: Values, valid: Mask | None) -> Any:
        check(values == lowest, valid, reason)
        return ufunc(values)

    return unary(type_, argument, kernel)


def bitwise(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for & | ^."""
    for side in (left, right):
        if not is_integer(side.type) and side.type != VOID:
            raise ExpressionError(f"{operator} takes whole numbers, not {type_name(side.type)}")
    if VOID in (left.type, right.type):
        return null(BIGINT if left.type == right.type else left.type if right.type == VOID else right.type)
    type_ = common_number(left.type, right.type)
    ufunc: Any = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[operator]
    return binary(type_, cast(left, type_), cast(right, type_), plain(ufunc))


def bitwise_not(argument: Node) -> Node:
    """Return ``~argument``."""
    if not is_integer(argument.type):
        raise ExpressionError(f"~ takes whole numbers, not {type_name(argument.type)}")
    return unary(argument.type, argument, lambda values, valid: np.invert(values))


def _numbers(operator: str, left: Node, right: Node) -> tuple[Node, Node]:
    """Make both sides numeric: text becomes bigint or double depending on the other side, NULL takes its type."""
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
    """Return what to write instead where dates and timestamps are used as numbers."""
    times = [is_time(side.type) for side in sides]
    if all(times) and operator == "-":
        return (
            "; for the time between two timestamps write unix_seconds(a) - unix_seconds(b), or unix_millis or "
            "unix_micros for parts of a second; datediff(a, b) for days"
        )
    return "; dates and timestamps take intervals: ts + interval 5 minutes" if any(times) else ""


def _date_arithmetic(operator: str, left: Node, right: Node) -> Node:
    if left.type == right.type:
        verb = "subtract" if operator == "-" else "add"
        raise ExpressionError(f"cannot {verb} two dates; for the days between them write datediff(end, start)")
    if left.type != DATE and operator == "+":
        left, right = right, left
    if left.type != DATE or not (is_integer(right.type) or right.type == VOID):
        names = f"{type_name(left.type)} {operator} {type_name(right.type)}"
        days = is_time(left.type) and is_time(right.type)
        hint = "; for the days between two write datediff(end, start)" if days else ""
        raise ExpressionError(f"cannot compute {names}; a date takes whole days or an interval{hint}")
    return shift_days(left, right, operator)


def shift_days(date: Node, days: Node, operator: str) -> Node:
    """Return a date moved by days."""
    days = cast(days, INT)
    plain = relabel(date, INT, date.field)
    return relabel(binary(INT, plain, days, _integer(operator, INT, plain, days)), DATE)


def _float(operator: str, type_: pa.DataType, left: Node, right: Node) -> Node:
    ufunc = _FLOAT[operator]

    def dividing(one: Any, two: Any, valid: Mask | None) -> Any:
        _check_divisor(one, two, valid)
        return ufunc(one, two)

    divides = operator in ("/", "%") and (right.constant is None or right.is_null or right.value == 0)
    return binary(type_, left, right, dividing if divides else plain(ufunc))


def integer_quotient(type_: pa.DataType) -> Binary:
    """Return the kernel of the quotient truncated towards zero."""
    lowest, _ = limits(type_)

    def kernel(one: Any, two: Any, valid: Mask | None) -> Any:
        _check_divisor(one, two, valid)
        check((one == lowest) & (two == -1), valid, f"{type_name(type_)} overflow in a division")
        safe = np.where((two == 0) | ((one == lowest) & (two == -1)), 1, two)
        quotient = np.floor_divide(one, safe)
        result: Values = quotient + ((quotient * safe != one) & ((one < 0) != (safe < 0)))
        return result.astype(type_.to_pandas_dtype(), copy=False)

    return kernel


def integer_remainder(one: Any, two: Any, valid: Mask | None) -> Any:
    """Return the remainder, with the sign of the dividend."""
    _check_divisor(one, two, valid)
    two = np.where((two == 0) | (two == -1), 1, two).astype(two.dtype)  # x % -1 is 0, but overflows for the lowest x
    return np.fmod(one, two)


def _check_divisor(one: Any, two: Any, valid: Mask | None) -> None:
    """Raise if a tuple is divided by zero; without tuples a constant zero is fine."""
    zero = two == 0
    if np.count_nonzero(zero) and np.size(one):
        check(zero, valid, _ZERO)


def _bounds(values: Any) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _integer(operator: str, type_: pa.DataType, left: Node, right: Node) -> Binary:
    """Return the kernel of whole-number + - *; the overflow check is cheaper if one side is constant."""
    name, (lowest, highest) = type_name(type_), limits(type_)
    if operator == "*":
        return _multiply(type_, f"{name} overflow in a multiplication")
    adds = operator == "+"
    ufunc = np.add if adds else np.subtract
    reason = f"{name} overflow in " + ("an addition" if adds else "a subtraction")
    if adds and left.constant is not None and right.constant is None:
        swapped = _integer(operator, type_, right, left)
        return lambda one, two, valid: swapped(two, one, valid)
    if right.constant is not None and not right.is_null:
        rises = (right.value >= 0) == adds or right.value == 0

        def with_constant(one: Any, two: Any, valid: Mask | None) -> Any:
            result = ufunc(one, two)
            check(result < one if rises else result > one, valid, reason)
            return result

        return with_constant

    def kernel(one: Any, two: Any, valid: Mask | None) -> Any:
        result = ufunc(one, two)
        if result.size > _LONG:
            (low, high), (lower, upper) = _bounds(one), _bounds(two)
            lower, upper = (lower, upper) if adds else (-upper, -lower)
            if lowest <= low + lower and high + upper <= highest:
                return result
        # Overflow gives a sign unlike that of both summands, or that of the subtrahend alone.
        check((one ^ result) & ((two ^ result) if adds else (one ^ two)) < 0, valid, reason)
        return result

    return kernel


def _multiply(type_: pa.DataType, reason: str) -> Binary:
    dtype = type_.to_pandas_dtype()
    lowest, highest = limits(type_)

    def fits(one: Any, two: Any) -> bool:
        corners = [first * second for first in _bounds(one) for second in _bounds(two)]
        return lowest <= min(corners) and max(corners) <= highest

    if type_ != BIGINT:

        def narrow(one: Any, two: Any, valid: Mask | None) -> Any:
            if max(one.size, two.size) > _LONG and fits(one, two):
                return np.multiply(one, two)
            wide = np.multiply(one, two, dtype=np.int64)
            result = wide.astype(dtype)
            check(result != wide, valid, reason)
            return result

        return narrow

    def wide(one: Any, two: Any, valid: Mask | None) -> Any:
        result: Values = np.multiply(one, two)
        if result.size > _LONG and fits(one, two):
            return result
        # A product in doubles shows which tuples are near the limit; only they need exact arithmetic.
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


_ARROW = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def _decimals(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` if at least one side is a decimal and none is a double."""
    left, right = _as_decimal(left), _as_decimal(right)
    if operator == "div":
        return over_values(BIGINT, (left, right), _quotient)
    precision, scale = exact_digits(operator, left.type, right.type)
    type_ = bounded(precision, scale)
    if operator in _ARROW and precision <= MAX_PRECISION:  # Arrow rejects a higher precision
        return over_arrow(type_, (left, right), _ARROW[operator])
    operation = _OPERATIONS[operator]
    return over_values(type_, (left, right), lambda one, two: fit(operation(one, two), type_))


def _as_decimal(node: Node) -> Node:
    if is_decimal(node.type):
        return node
    if node.constant is not None and not node.is_null:  # a literal only needs the digits it has
        return cast(node, pa.decimal128(max(1, len(str(abs(node.value)))), 0))
    return cast(node, as_decimal(node.type))


def _dividing(operation: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Decimal, Decimal], Decimal]:
    def kernel(one: Decimal, two: Decimal) -> Decimal:
        if not two:
            raise EvaluationError(_ZERO)
        return operation(one, two)

    return kernel


def _quotient(one: Decimal, two: Decimal) -> int:
    result = int(_dividing(CONTEXT.divide_int)(one, two))
    if not -(2**63) <= result < 2**63:
        raise EvaluationError("bigint overflow in a division")
    return result


_OPERATIONS: dict[str, Callable[[Any, Any], Decimal]] = {
    "+": CONTEXT.add,
    "-": CONTEXT.subtract,
    "*": CONTEXT.multiply,
    "/": _dividing(CONTEXT.divide),
    "%": _dividing(CONTEXT.remainder),
}
