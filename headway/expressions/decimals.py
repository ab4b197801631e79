"""Exact decimal arithmetic: Arrow where the result always fits, Python's decimals where digits must be cut."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.expressions.casts import cast
from headway.expressions.nodes import EvaluationError, Node, over_arrow, over_values
from headway.expressions.texts import CONTEXT, fit
from headway.expressions.types import BIGINT, as_decimal, decimal_result, is_decimal

_ARROW = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def arithmetic(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` where at least one side is a decimal and none a double."""
    left, right = _as_decimal(left), _as_decimal(right)
    if operator == "div":
        return over_values(BIGINT, (left, right), _quotient)
    type_ = decimal_result(operator, left.type, right.type)
    if operator in _ARROW and _digits(operator, left.type, right.type) <= 38:
        return over_arrow(type_, (left, right), _ARROW[operator])
    operation = _OPERATIONS[operator]
    return over_values(type_, (left, right), lambda one, two: fit(operation(one, two), type_))


def negate(argument: Node) -> Node:
    """Return ``-argument``."""
    return over_arrow(argument.type, (argument,), pc.negate)


def _digits(operator: str, left: pa.DataType, right: pa.DataType) -> int:
    """Return the digits of a result that nothing is cut from; Arrow refuses more than 38."""
    if operator == "*":
        return int(left.precision + right.precision + 1)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return int(whole + max(left.scale, right.scale) + 1)


def _as_decimal(node: Node) -> Node:
    if is_decimal(node.type):
        return node
    if node.constant is not None and not node.is_null:  # a literal counts with the digits it has
        return cast(node, pa.decimal128(max(1, len(str(abs(node.value)))), 0))
    return cast(node, as_decimal(node.type))


def _divide(one: Decimal, two: Decimal) -> Decimal:
    if not two:
        raise EvaluationError("division by zero")
    return CONTEXT.divide(one, two)


def _remainder(one: Decimal, two: Decimal) -> Decimal:
    if not two:
        raise EvaluationError("division by zero")
    return CONTEXT.remainder(one, two)


def _quotient(one: Decimal, two: Decimal) -> int:
    if not two:
        raise EvaluationError("division by zero")
    result = int(CONTEXT.divide_int(one, two))
    if not -(2**63) <= result < 2**63:
        raise EvaluationError("bigint overflow in a division")
    return result


_OPERATIONS: dict[str, Callable[[Any, Any], Decimal]] = {
    "+": CONTEXT.add,
    "-": CONTEXT.subtract,
    "*": CONTEXT.multiply,
    "/": _divide,
    "%": _remainder,
}
