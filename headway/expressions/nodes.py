"""Compiled expressions: a tree of closures over columns, with types and literals resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Column, Int64s, Mask, Values, concat, from_arrow, nulls, quiet, to_arrow
from headway.errors import ExpressionError

Columns = Sequence[Column | None]
Run = Callable[[Columns, int], Column]
Binary = Callable[[Any, Any, Mask | None], Any]
"""(left values, right values, mask of tuples where both are present or None for all) -> result values."""


class EvaluationError(Exception):
    """An expression failed on a tuple: overflow, division by zero, a bad cast, a Python function that raised.

    Not a HeadwayError: it is about tuples, not about the network.
    """


class LimitError(EvaluationError):
    """An expression's result exceeds a size limit. If constants alone cause it, the network is rejected."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One compiled step: its type, the closure that evaluates it and the slots that it reads.

    `constant` is a column of one tuple if the value does not depend on the tuples. `field` is the slot if the node only
    reads a field.
    """

    type: pa.DataType
    run: Run
    slots: frozenset[int] = frozenset()
    constant: Column | None = None
    field: int | None = None

    @property
    def is_null(self) -> bool:
        """Whether this is the constant NULL."""
        return self.constant is not None and not bool(self.constant.is_valid()[0])

    @property
    def literal(self) -> Any:
        """The constant as a zero-dimensional numpy array, which is fastest in ufuncs, or as an Arrow scalar."""
        assert self.constant is not None
        values = self.constant.values
        return np.array(values[0], values.dtype) if isinstance(values, np.ndarray) else values[0]

    @property
    def value(self) -> Any:
        """The constant as a Python value; raises an ExpressionError for a date or time out of Python's range."""
        assert self.constant is not None
        try:
            return to_arrow(self.constant, self.type)[0].as_py()
        except (OverflowError, ValueError):
            raise ExpressionError("a constant here must lie within the years 1 to 9999") from None


def field(slot: int, type_: pa.DataType) -> Node:
    """Return a reference to a slot."""

    def run(columns: Columns, count: int) -> Column:
        column = columns[slot]
        assert column is not None
        return column

    return Node(type_, run, frozenset((slot,)), None, slot)


def constant(column: Column, type_: pa.DataType) -> Node:
    """Return a constant from a column of one tuple."""
    run: Run
    if not column.is_valid()[0]:

        def run(columns: Columns, count: int) -> Column:
            return nulls(count, type_)
    elif isinstance(column.values, np.ndarray):
        dtype, value = column.values.dtype, column.values[0]
        column = Column(column.values)

        def run(columns: Columns, count: int) -> Column:
            return Column(np.full(count, value, dtype))
    else:
        scalar = column.values[0]

        def run(columns: Columns, count: int) -> Column:
            return Column(pa.repeat(scalar, count))

    return Node(type_, run, frozenset(), column)


def literal(value: object, type_: pa.DataType) -> Node:
    """Return a constant from a Python value."""
    return constant(from_arrow(pa.array([value], type_)), type_)


def null(type_: pa.DataType) -> Node:
    """Return the constant NULL of a type."""
    return constant(nulls(1, type_), type_)


def relabel(node: Node, type_: pa.DataType, field: int | None = None) -> Node:
    """Return the same values as another type with the same numpy type (such as days as a date).

    `field` is the slot they are read from, if `binary` may read it directly.
    """
    return Node(type_, node.run, node.slots, node.constant, field)


def build(type_: pa.DataType, arguments: Iterable[Node], run: Run) -> Node:
    """Return a node over arguments; if all are constant it is folded, unless evaluation fails."""
    listed = tuple(arguments)
    slots = frozenset[int]().union(*(argument.slots for argument in listed))
    node = Node(type_, run, slots)
    if listed and all(argument.constant is not None for argument in listed):
        try:
            with quiet():
                return constant(run((), 1), type_)
        except LimitError as error:
            raise ExpressionError(str(error)) from None
        except EvaluationError:  # must fail on tuples instead, not when the network is checked
            return node
    return node


def over_columns(type_: pa.DataType, arguments: Sequence[Node], kernel: Callable[..., Column]) -> Node:
    """Return a node whose kernel takes the arguments as columns."""
    runs = [argument.run for argument in arguments]

    def run(columns: Columns, count: int) -> Column:
        return kernel(*[step(columns, count) for step in runs])

    return build(type_, arguments, run)


def over_arrow(type_: pa.DataType, arguments: Sequence[Node], kernel: Callable[..., Any]) -> Node:
    """Return a node whose kernel takes Arrow arrays (Arrow scalars for constants) and returns an array.

    If all arguments are constant, the first is passed as an array nevertheless, so that the kernel returns one.
    """
    fixed: list[Any] = [to_arrow(a.constant, a.type)[0] if a.constant is not None else None for a in arguments]
    steps = [(argument.run, argument.type, scalar) for argument, scalar in zip(arguments, fixed, strict=True)]
    if all(scalar is not None for scalar in fixed):
        steps[0] = (*steps[0][:2], None)

    def run(columns: Columns, count: int) -> Column:
        inputs = [to_arrow(step(columns, count), t) if scalar is None else scalar for step, t, scalar in steps]
        try:
            array = kernel(*inputs)
        except pa.ArrowException as error:
            raise EvaluationError(first_line(error)) from None
        if isinstance(array, pa.Array | pa.ChunkedArray) and len(array) != count:
            raise AssertionError(f"a kernel gave {len(array)} values for {count} tuples")  # rows would be lost silently
        return from_arrow(array if array.type == type_ else array.cast(type_))

    return build(type_, arguments, run)


def over_values(
    type_: pa.DataType, arguments: Sequence[Node], function: Callable[..., object], strict: bool = True
) -> Node:
    """Return a node that calls a Python function per tuple; if `strict`, NULL in gives NULL out without a call."""
    steps = [(argument.run, argument.type) for argument in arguments]

    def run(columns: Columns, count: int) -> Column:
        try:
            lists = [to_arrow(step(columns, count), t).to_pylist() for step, t in steps]
            rows = zip(*lists, strict=True)
            results = [None if strict and None in row else function(*row) for row in rows]
            return from_arrow(pa.array(results, type_))
        except (pa.ArrowException, ArithmeticError, ValueError) as error:  # e.g. years after 9999, more than 38 digits
            raise EvaluationError(first_line(error)) from None

    return build(type_, arguments, run)


def unary(type_: pa.DataType, argument: Node, kernel: Callable[[Values, Mask | None], Values]) -> Node:
    """Return a node over numpy values; NULL in, NULL out."""
    if argument.is_null:
        return null(type_)
    step = argument.run

    def run(columns: Columns, count: int) -> Column:
        column = step(columns, count)
        return Column(kernel(column.values, column.valid), column.valid)

    return build(type_, (argument,), run)


def binary(type_: pa.DataType, left: Node, right: Node, kernel: Binary) -> Node:
    """Return a node over the numpy values of two sides; NULL in, NULL out. The kernel ignores or checks the mask."""
    if left.is_null or right.is_null:
        return null(type_)
    run: Run
    step, other = left.run, right.run
    if left.constant is None and right.constant is not None and left.field is not None:
        slot, scalar = left.field, right.literal

        def run(columns: Columns, count: int) -> Column:
            column: Any = columns[slot]
            valid = column.valid
            return Column(kernel(column.values, scalar, valid), valid)
    elif left.constant is None and right.constant is not None:
        scalar = right.literal

        def run(columns: Columns, count: int) -> Column:
            column = step(columns, count)
            return Column(kernel(column.values, scalar, column.valid), column.valid)
    elif left.constant is not None and right.constant is None:
        scalar = left.literal

        def run(columns: Columns, count: int) -> Column:
            column = other(columns, count)
            return Column(kernel(scalar, column.values, column.valid), column.valid)
    else:

        def run(columns: Columns, count: int) -> Column:
            one, two = step(columns, count), other(columns, count)
            valid = both(one.valid, two.valid)
            return Column(kernel(one.values, two.values, valid), valid)

    return build(type_, (left, right), run)


def plain(ufunc: Any) -> Binary:
    """Adapt a ufunc of two values to a kernel, which also gets a mask."""
    return lambda one, two, valid: ufunc(one, two)


def both(one: Mask | None, two: Mask | None) -> Mask | None:
    """Return the mask of tuples where both sides are valid; None for all."""
    if one is None:
        return two
    return one if two is None else one & two


def check(bad: Any, valid: Mask | None, reason: str) -> None:
    """Raise an EvaluationError if any tuple is bad; NULL tuples are never bad."""
    if np.count_nonzero(bad) and (valid is None or np.count_nonzero(bad & valid)):
        raise EvaluationError(reason)


def guarded(node: Node, columns: Columns, count: int, taken: Callable[[], Mask]) -> Column:
    """Evaluate a branch on all tuples; if that fails, only on those that take it.

    In that case the result is NULL elsewhere. This is how CASE, AND etc. never fail because of a branch that no tuple
    takes, at no cost if nothing fails.
    """
    try:
        return node.run(columns, count)
    except EvaluationError:
        indices = np.flatnonzero(taken())
        if len(indices) == count:
            raise
        if not len(indices):
            return nulls(count, node.type)
        taking = [one.take(indices) if one is not None and at in node.slots else None for at, one in enumerate(columns)]
        places = np.full(count, len(indices))
        places[indices] = np.arange(len(indices))
        return take_or_null(node.run(taking, len(indices)), places, node.type)


def take_or_null(column: Column, places: Int64s, type_: pa.DataType) -> Column:
    """Return the values at these places; NULL for the place after the last."""
    return concat([column, nulls(1, type_)]).take(places)


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
