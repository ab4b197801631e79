"""Comparison in Spark's order of values, three-valued logic, and conditionals.

NaN equals NaN and is larger than every number. A branch that no tuple takes never causes an error.
"""

from __future__ import annotations

import math
import operator as operators
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, numpy_type, truth
from headway.errors import ExpressionError
from headway.expressions.casts import cast
from headway.expressions.nodes import (
    Binary,
    Columns,
    Node,
    binary,
    both,
    build,
    guarded,
    literal,
    null,
    over_arrow,
    over_values,
    plain,
    unary,
)
from headway.expressions.texts import check_regex
from headway.expressions.types import (
    BOOLEAN,
    STRING,
    VOID,
    as_decimal,
    common,
    common_of,
    is_decimal,
    is_float,
    is_integer,
    is_nested,
    is_numeric,
    meet_exactly,
)
from headway.network.schema import type_name


class _Comparison(NamedTuple):
    ufunc: Any
    arrow: Any
    python: Callable[[Any, Any], bool]
    mirror: str
    """The operator for swapped sides."""


_OPERATORS = {
    "=": _Comparison(np.equal, pc.equal, operators.eq, "="),
    "<>": _Comparison(np.not_equal, pc.not_equal, operators.ne, "<>"),
    "<": _Comparison(np.less, pc.less, operators.lt, ">"),
    "<=": _Comparison(np.less_equal, pc.less_equal, operators.le, ">="),
    ">": _Comparison(np.greater, pc.greater, operators.gt, "<"),
    ">=": _Comparison(np.greater_equal, pc.greater_equal, operators.ge, "<="),
}


def compare(operator: str, left: Node, right: Node) -> Node:
    """Return ``left operator right`` for = <> < <= > >=."""
    if left.constant is not None and right.constant is None:
        return compare(_OPERATORS[operator].mirror, right, left)
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
    if is_decimal(type_) and VOID not in (left.type, right.type) and not meet_exactly(left.type, right.type):
        sides = [side if is_decimal(side.type) else cast(side, as_decimal(side.type)) for side in (left, right)]
        return over_values(BOOLEAN, sides, _OPERATORS[operator].python)
    left, right = cast(left, type_), cast(right, type_)
    if is_float(type_):
        return _numbers(operator, left, right, type_)
    if numpy_type(type_) is not None:
        return binary(BOOLEAN, left, right, plain(_OPERATORS[operator].ufunc))
    return over_arrow(BOOLEAN, (left, right), _OPERATORS[operator].arrow)


def null_safe_equal(left: Node, right: Node) -> Node:
    """Return ``left <=> right``: never NULL; two NULLs are equal."""
    equal = compare("=", left, right)
    if left.type == VOID or right.type == VOID:
        return is_null(right if left.type == VOID else left)
    first, second, same = left.run, right.run, equal.run

    def run(columns: Columns, count: int) -> Column:
        one, two = first(columns, count).is_valid(), second(columns, count).is_valid()
        return Column(np.where(one & two, same(columns, count).values, ~(one | two)))

    return build(BOOLEAN, (left, right), run)


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
    """Compare numbers of any fixed width; numpy converts within its loop, so no cast is needed."""
    left, right = (cast(side, type_) if is_decimal(side.type) else side for side in (left, right))
    if right.constant is not None and not right.is_null:
        right = _narrow(left, right)
    kernel = plain(_OPERATORS[operator].ufunc)
    if is_float(type_):
        against_number = right.constant is not None and (right.is_null or not math.isnan(right.value))
        kernel = _WITH_NUMBER.get(operator, kernel) if against_number else _FLOATS[operator]
    return binary(BOOLEAN, left, right, kernel)


def _narrow(left: Node, right: Node) -> Node:
    """Give a constant the other side's type if it fits exactly, so that numpy need not convert."""
    value = right.value
    if is_integer(left.type) and (isinstance(value, int) or float(value).is_integer()):
        limits = np.iinfo(left.type.to_pandas_dtype())
        if limits.min <= value <= limits.max and abs(value) < 2**53:
            return literal(int(value), left.type)
    if is_float(left.type) and isinstance(value, int) and abs(value) < 2**24:
        return literal(float(value), left.type)
    return right


def _whole(operator: str, left: Node, right: Node) -> Node | None:
    """Compare integers with a decimal constant as integers: ``n > 1.5`` is ``n > 1``."""
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


def _inverted(ufunc: Any) -> Binary:
    def kernel(one: Any, two: Any, valid: Mask | None) -> Any:
        result = ufunc(one, two)
        return np.logical_not(result, out=result)

    return kernel


def _equal(one: Any, two: Any, valid: Mask | None) -> Any:
    return (one == two) | ((one != one) & (two != two))


def _less(one: Any, two: Any, valid: Mask | None) -> Any:
    return ~(one >= two) & (one == one)


# Against a number other than NaN, only > and >= differ from IEEE's order: they are the negations of <= and <.
_WITH_NUMBER: dict[str, Binary] = {">": _inverted(np.less_equal), ">=": _inverted(np.less)}
_FLOATS: dict[str, Binary] = {
    "=": _equal,
    "<>": lambda one, two, valid: ~_equal(one, two, valid),
    "<": _less,
    "<=": lambda one, two, valid: ~_less(two, one, valid),
    ">": lambda one, two, valid: _less(two, one, valid),
    ">=": lambda one, two, valid: ~_less(one, two, valid),
}


def boolean(node: Node, what: str) -> Node:
    """Return a node as a boolean, or raise an ExpressionError."""
    if node.type == BOOLEAN:
        return node
    if node.type == VOID:
        return null(BOOLEAN)
    raise ExpressionError(f"{what} must be boolean, not {type_name(node.type)}")


def negation(argument: Node) -> Node:
    """Return ``NOT argument``."""
    return unary(BOOLEAN, boolean(argument, "the argument of NOT"), lambda values, valid: np.logical_not(values))


def conjunction(left: Node, right: Node) -> Node:
    """Return ``left AND right``: FALSE wins over NULL."""
    return _combined(left, right, "AND", False)


def disjunction(left: Node, right: Node) -> Node:
    """Return ``left OR right``: TRUE wins over NULL."""
    return _combined(left, right, "OR", True)


def _combined(left: Node, right: Node, name: str, winner: bool) -> Node:
    left, right = boolean(left, f"the left side of {name}"), boolean(right, f"the right side of {name}")
    step, ufunc = left.run, np.logical_or if winner else np.logical_and

    def wins(column: Column) -> Mask:
        return truth(column if winner else Column(~column.values, column.valid))

    def run(columns: Columns, count: int) -> Column:
        one = step(columns, count)
        two = guarded(right, columns, count, lambda: ~wins(one))
        if one.valid is None and two.valid is None:
            return Column(ufunc(one.values, two.values))
        won = wins(one) | wins(two)
        return Column(won if winner else ~won, (one.is_valid() & two.is_valid()) | won)

    return build(BOOLEAN, (left, right), run)


def is_boolean(argument: Node, value: bool) -> Node:
    """Return ``argument IS TRUE`` or ``IS FALSE``: never NULL."""
    step = boolean(argument, "the argument of IS TRUE").run

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        return Column(truth(column if value else Column(~column.values, column.valid)))

    return build(BOOLEAN, (argument,), run)


def between(argument: Node, low: Node, high: Node) -> Node:
    """Return ``argument BETWEEN low AND high``."""
    return conjunction(compare(">=", argument, low), compare("<=", argument, high))


def membership(argument: Node, items: Sequence[Node]) -> Node:
    """Return ``argument IN (items)``: NULL if nothing matches and a side is NULL."""
    type_ = common_of([argument.type, *(item.type for item in items)], "IN")
    if type_ == VOID:
        return null(BOOLEAN)
    if is_nested(type_):
        raise ExpressionError(f"IN cannot compare {type_name(type_)}")
    fixed = all(item.constant is not None for item in items)
    if fixed and len(items) > 3 and not is_float(type_):
        known = [cast(item, type_) for item in items if not item.is_null]
        if all(item.constant is not None for item in known):  # a cast that fails must fail on tuples instead
            return _one_of(cast(argument, type_), known, len(known) < len(items), type_)
    result = compare("=", argument, items[0])
    for item in items[1:]:
        result = disjunction(result, compare("=", argument, item))
    return result


def _one_of(argument: Node, known: Sequence[Node], has_null: bool, type_: pa.DataType) -> Node:
    step = argument.run
    dtype = numpy_type(type_)
    values: Any
    few = [item.literal for item in known] if dtype is not None and 0 < len(known) <= 12 else []
    if dtype is None:
        values = pa.array([item.value for item in known], type_)
    else:
        values = np.unique(np.array([item.literal for item in known], dtype))

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        if dtype is None:
            found = pc.is_in(column.values, value_set=values).to_numpy(zero_copy_only=False)
            valid = None if column.values.null_count == 0 else column.is_valid()
        elif few:
            found, valid = np.equal(column.values, few[0]), column.valid
            for value in few[1:]:
                found |= np.equal(column.values, value)
        else:
            found, valid = np.isin(column.values, values), column.valid
        return Column(found, both(valid, found) if has_null else valid)

    return build(BOOLEAN, (argument,), run)


def choose(mask: Mask, one: Column, two: Column, type_: pa.DataType) -> Column:
    """Take values from `one` where the mask is set, and from `two` elsewhere."""
    if numpy_type(type_) is None:
        return Column(pc.if_else(pa.array(mask), one.values, two.values))
    values = np.where(mask, one.values, two.values)
    if one.valid is None and two.valid is None:
        return Column(values)
    return Column(values, np.where(mask, one.is_valid(), two.is_valid()))


def case(conditions: Sequence[Node], results: Sequence[Node], default: Node | None) -> Node:
    """Return ``CASE WHEN … THEN … ELSE … END``."""
    type_ = common_of([node.type for node in (*results, *([default] if default else []))], "the results of CASE")
    checked = [boolean(condition, "a condition of CASE") for condition in conditions]
    outcomes = [cast(result, type_) for result in results]
    last = null(type_) if default is None else cast(default, type_)
    pairs = list(zip(checked, outcomes, strict=True))

    def run(columns: Columns, count: int) -> Column:
        remaining = np.ones(count, np.bool_)
        chosen: list[tuple[Mask, Column]] = []
        for condition, outcome in pairs:
            open_ = remaining
            column = guarded(condition, columns, count, lambda open_=open_: open_)  # type: ignore[misc]
            taken = open_ & truth(column)
            chosen.append((taken, guarded(outcome, columns, count, lambda taken=taken: taken)))  # type: ignore[misc]
            remaining = open_ & ~taken
        result = guarded(last, columns, count, lambda: remaining)
        for taken, column in reversed(chosen):
            result = choose(taken, column, result, type_)
        return result

    return build(type_, (*checked, *outcomes, last), run)


def coalesce(*arguments: Node) -> Node:
    """Return the first argument that is not NULL."""
    type_ = common_of([argument.type for argument in arguments], "COALESCE")
    steps = [cast(argument, type_) for argument in arguments]

    def run(columns: Columns, count: int) -> Column:
        result = steps[0].run(columns, count)
        for step in steps[1:]:
            missing = ~result.is_valid()
            if not missing.any():
                return result
            other = guarded(step, columns, count, lambda missing=missing: missing)  # type: ignore[misc]
            result = choose(missing, other, result, type_)
        return result

    return build(type_, steps, run)


def null_if(left: Node, right: Node) -> Node:
    """Return NULL if both sides are equal, otherwise the left one."""
    return case([compare("=", left, right)], [null(left.type)], left)


def matches(argument: Node, pattern: Node, kind: str, escape: str = "\\") -> Node:
    """Return ``argument LIKE/ILIKE/RLIKE pattern``."""
    for node in (argument, pattern):
        if node.type not in (STRING, VOID):
            raise ExpressionError(f"{kind.upper()} takes strings, not {type_name(node.type)}")
    argument, pattern = cast(argument, STRING), cast(pattern, STRING)
    if argument.is_null or pattern.is_null:
        return null(BOOLEAN)
    if pattern.constant is not None:
        if kind == "rlike":
            regex = pattern.value
            check_regex(regex)
            return over_arrow(BOOLEAN, (argument,), lambda array: pc.match_substring_regex(array, regex))
        plain, ignore = _like_pattern(pattern.value, escape), kind == "ilike"
        return over_arrow(BOOLEAN, (argument,), lambda array: pc.match_like(array, plain, ignore_case=ignore))
    raise ExpressionError(f"the pattern of {kind.upper()} must be a literal")


def _like_pattern(pattern: str, escape: str) -> str:
    """Check a LIKE pattern, and rewrite it with a backslash as the escape character, as Arrow expects."""

    def written(match: re.Match[str]) -> str:
        character = match[1]
        if character is None:
            return r"\\"
        if character not in ("%", "_", escape):
            raise ExpressionError(f"LIKE pattern '{pattern}': '{escape}' must stand before %, _ or itself")
        return "\\" + character if character in "%_\\" else character

    return re.sub(rf"{re.escape(escape)}(.?)|\\", written, pattern, flags=re.DOTALL)
