"""Calls of users' Python functions: counts and types are checked once, what they raise concerns the tuple."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headway.columns import Column, from_arrow, to_arrow
from headway.errors import ExpressionError, choices
from headway.expressions.casts import cast
from headway.expressions.nodes import Columns, EvaluationError, Node, first_line
from headway.expressions.registry import ScalarFunction, UserAggregate
from headway.expressions.returned import returned
from headway.expressions.types import VOID, common
from headway.schema import type_name


def coerce_arguments(function: ScalarFunction | UserAggregate, arguments: Sequence[Node]) -> list[Node]:
    """Return the arguments as the declared types, or raise; numbers widen, nothing narrows."""
    expected = function.arguments
    call = f"{function.name}({choices(type_name(type_) for type_ in expected) if expected else ''})"
    if len(arguments) != len(expected):
        raise ExpressionError(f"{call} takes {len(expected)} arguments, not {len(arguments)}")
    coerced = []
    for position, (argument, type_) in enumerate(zip(arguments, expected, strict=True), 1):
        # a literal such as 1.5 is a decimal and may become a double, but no value is cut without a cast
        if argument.type not in (type_, VOID) and common(argument.type, type_) != type_:
            names = f"{type_name(type_)}, not {type_name(argument.type)}"
            raise ExpressionError(f"argument {position} of {call} must be {names}; use cast")
        coerced.append(cast(argument, type_))
    return coerced


def blame(name: str, error: BaseException) -> EvaluationError:
    """Return what a function's call fails with when it raised; what a signal raises meanwhile is not its own."""
    if isinstance(error, SystemExit) and type(error) is not SystemExit:
        raise error
    return EvaluationError(f"{name} raised {type(error).__name__}: {first_line(error)}")


def call_user(function: ScalarFunction, arguments: Sequence[Node]) -> Node:
    """Return the node of a call of a user's function; never folded, since it may do anything."""
    coerced = coerce_arguments(function, arguments)
    slots = frozenset[int]().union(*(argument.slots for argument in coerced))
    steps = [(argument.run, argument.type) for argument in coerced]
    name, body, type_ = function.name, function.function, function.returns

    def per_tuple(columns: Columns, count: int) -> Column:
        try:
            lists = [to_arrow(step(columns, count), t).to_pylist() for step, t in steps]
        except (OverflowError, ValueError) as error:  # a time that Python cannot hold
            raise EvaluationError(f"{name}: {first_line(error)}") from None
        rows = list(zip(*lists, strict=True)) if lists else [()] * count
        strict = function.null_on_null
        try:
            results = [None if strict and None in row else body(*row) for row in rows]
        except (Exception, SystemExit) as error:  # whatever a user's function raises concerns the tuple
            raise blame(name, error) from None
        return from_arrow(returned(name, results, type_))

    def over_arrays(columns: Columns, count: int) -> Column:
        if not count:  # no tuple could answer for what it raises
            return from_arrow(pa.array([], type_))
        arrays = [to_arrow(step(columns, count), t) for step, t in steps]
        try:
            result = body(*arrays)
        except (Exception, SystemExit) as error:
            raise blame(name, error) from None
        if isinstance(result, pa.ChunkedArray):
            result = pa.concat_arrays(result.chunks) if result.num_chunks else pa.array([], result.type)
        if not isinstance(result, pa.Array | np.ndarray | list):
            raise EvaluationError(f"{name} must return an Arrow array, not {type(result).__name__}")
        result = returned(name, result, type_)
        if len(result) != count:
            raise EvaluationError(f"{name} returned {len(result)} values for {count} tuples")
        return from_arrow(result)

    return Node(type_, over_arrays if function.vectorised else per_tuple, slots)
