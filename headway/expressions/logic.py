"""Three-valued logic and the conditionals, none of which fails because of a branch that no tuple takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Mask, numpy_type
from headway.errors import ExpressionError
from headway.expressions.casts import cast
from headway.expressions.comparison import compare
from headway.expressions.nodes import Columns, Node, both, build, guarded, null, over_arrow, unary
from headway.expressions.regexes import check_regex
from headway.expressions.types import BOOLEAN, STRING, VOID, common_of, is_float, is_nested
from headway.schema import type_name


def boolean(node: Node, what: str) -> Node:
    """Return a node as a boolean, or raise."""
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
    left, right = boolean(left, "the left side of AND"), boolean(right, "the right side of AND")
    step = left.run

    def run(columns: Columns, count: int) -> Column:
        one = step(columns, count)
        two = guarded(right, columns, count, lambda: one.values if one.valid is None else one.values | ~one.valid)
        values = np.logical_and(one.values, two.values)
        if one.valid is None and two.valid is None:
            return Column(values)
        valid_one, valid_two = one.is_valid(), two.is_valid()
        known = valid_one & valid_two
        false = (valid_one & ~one.values) | (valid_two & ~two.values)
        return Column(values & known, known | false)

    return build(BOOLEAN, (left, right), run)


def disjunction(left: Node, right: Node) -> Node:
    """Return ``left OR right``: TRUE wins over NULL."""
    left, right = boolean(left, "the left side of OR"), boolean(right, "the right side of OR")
    step = left.run

    def run(columns: Columns, count: int) -> Column:
        one = step(columns, count)
        two = guarded(right, columns, count, lambda: ~one.values if one.valid is None else ~(one.values & one.valid))
        if one.valid is None and two.valid is None:
            return Column(np.logical_or(one.values, two.values))
        valid_one, valid_two = one.is_valid(), two.is_valid()
        true = (valid_one & one.values) | (valid_two & two.values)
        return Column(true, (valid_one & valid_two) | true)

    return build(BOOLEAN, (left, right), run)


def is_boolean(argument: Node, value: bool) -> Node:
    """Return ``argument IS TRUE`` or ``IS FALSE``: never NULL."""
    step = boolean(argument, "the argument of IS TRUE").run

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        values = column.values if value else ~column.values
        return Column(values if column.valid is None else values & column.valid)

    return build(BOOLEAN, (argument,), run)


def between(argument: Node, low: Node, high: Node) -> Node:
    """Return ``argument BETWEEN low AND high``."""
    return conjunction(compare(">=", argument, low), compare("<=", argument, high))


def membership(argument: Node, items: Sequence[Node]) -> Node:
    """Return ``argument IN (items)``: NULL if nothing equals and a side is NULL."""
    type_ = common_of([argument.type, *(item.type for item in items)], "IN")
    if type_ == VOID:
        return null(BOOLEAN)
    if is_nested(type_):
        raise ExpressionError(f"IN cannot compare {type_name(type_)}")
    fixed = all(item.constant is not None for item in items)
    if fixed and len(items) > 3 and not is_float(type_):
        known = [cast(item, type_) for item in items if not item.is_null]
        if all(item.constant is not None for item in known):  # a cast that fails does so on tuples
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
    nan = dtype is not None and values.dtype.kind == "f" and bool(np.isnan(values).any())

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
        if nan:  # equals itself
            found |= np.isnan(column.values)
        return Column(found, both(valid, found) if has_null else valid)

    return build(BOOLEAN, (argument,), run)


def choose(mask: Mask, one: Column, two: Column, type_: pa.DataType) -> Column:
    """Return one's values where the mask is set, two's elsewhere."""
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
            taken = open_ & column.values if column.valid is None else open_ & column.values & column.valid
            chosen.append((taken, guarded(outcome, columns, count, lambda taken=taken: taken)))  # type: ignore[misc]
            remaining = open_ & ~taken
        result = guarded(last, columns, count, lambda: remaining)
        for taken, column in reversed(chosen):
            result = choose(taken, column, result, type_)
        return result

    return build(type_, (*checked, *outcomes, last), run)


def coalesce(arguments: Sequence[Node]) -> Node:
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
    """Return NULL if both sides are equal, else the left one."""
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
        plain, ignore = like_pattern(pattern.value, escape), kind == "ilike"
        return over_arrow(BOOLEAN, (argument,), lambda array: pc.match_like(array, plain, ignore_case=ignore))
    raise ExpressionError(f"the pattern of {kind.upper()} must be a literal")


def like_pattern(pattern: str, escape: str) -> str:
    """Return a LIKE pattern with a backslash as the escape character, which is Arrow's; check it on the way."""
    out, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            position += 1
            if position == len(pattern) or pattern[position] not in ("%", "_", escape):
                raise ExpressionError(f"LIKE pattern '{pattern}': '{escape}' must stand before %, _ or itself")
            character = pattern[position]
            out.append("\\" + character if character in "%_\\" else character)
        else:
            out.append("\\\\" if character == "\\" else character)
        position += 1
    return "".join(out)
