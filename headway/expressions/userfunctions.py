"""Users' Python functions: declaration, calls per tuple or train, and validation of results.

Arrow silently truncates in places: Python floats to integers, datetimes to dates, large doubles to an infinite float.
Here a 2.0 is accepted as an integer, and rounding to the nearest float is not a loss; everything else is an error.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, from_arrow, to_arrow
from headway.errors import ExpressionError, choices, shorten
from headway.expressions.casts import cast
from headway.expressions.nodes import Columns, EvaluationError, Node, first_line
from headway.expressions.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGERS,
    STRING,
    TIMESTAMPS,
    VOID,
    common,
    is_decimal,
    is_float,
)
from headway.network.schema import type_name


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A Python function of the values of one tuple or, if vectorised, of Arrow arrays."""

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    function: Callable[..., Any]
    vectorised: bool = False
    null_on_null: bool = True


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """A Python aggregate: ``init() -> state``, ``incr(state, *args) -> state``, ``final(state) -> value``.

    If vectorised, `function` takes one Arrow array per argument, with all tuples of a window in order, and
    returns the value; the other three are None.
    """

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    init: Callable[[], Any] | None = None
    incr: Callable[..., Any] | None = None
    final: Callable[[Any], Any] | None = None
    function: Callable[..., Any] | None = None

    @property
    def vectorised(self) -> bool:
        """Whether it takes whole windows as Arrow arrays."""
        return self.function is not None


@dataclass(frozen=True)
class Functions:
    """The user functions that expressions may call. Immutable: adding returns a new registry."""

    scalars: Mapping[str, ScalarFunction] = field(default_factory=lambda: MappingProxyType({}))
    aggregates: Mapping[str, UserAggregate] = field(default_factory=lambda: MappingProxyType({}))

    def with_function(self, function: ScalarFunction | UserAggregate) -> Functions:
        """Return a registry with this function added; it replaces one of the same name."""
        key = function.name.lower()
        scalars = {name: known for name, known in self.scalars.items() if name != key}
        aggregates = {name: known for name, known in self.aggregates.items() if name != key}
        if isinstance(function, ScalarFunction):
            scalars[key] = function
        else:
            aggregates[key] = function
        return Functions(MappingProxyType(scalars), MappingProxyType(aggregates))


BUILTIN = Functions()
"""The registry without user functions."""


_FLOAT_LIMIT = (2 - 2**-24) * 2.0**127
"""Doubles of at least this magnitude overflow to an infinite float."""
_MOST_SHOWN = 100
_EXACT: dict[pa.DataType, frozenset[type]] = {
    **dict.fromkeys(INTEGERS, frozenset({int, type(None)})),
    **dict.fromkeys(TIMESTAMPS, frozenset({dt.datetime, type(None)})),
    DATE: frozenset({dt.date, type(None)}),
}
"""Python types that Arrow converts exactly, so that their values need no check."""


def returned(name: str, result: Any, type_: pa.DataType) -> pa.Array:
    """Convert a function's result (a list, a numpy or Arrow array) to an Arrow array of the declared type.

    Raises an EvaluationError that names the function and the value if a value does not fit.
    """
    if isinstance(result, np.ndarray) and result.dtype == np.object_ and result.ndim == 1:
        result = result.tolist()
    try:
        if isinstance(result, pa.Array):
            made = result if result.type == type_ else result.cast(type_)
            lost = _lost(result, made)
        else:
            made = pa.array(result, type_)
            if isinstance(result, np.ndarray):
                lost = _lost(pa.array(result), made)
            elif type_ == FLOAT and not pc.any(pc.is_inf(made), min_count=0).as_py():
                lost = None
            else:
                lost = _cut(result, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise EvaluationError(f"{name} did not return {type_name(type_)}: {first_line(error)}") from None
    if lost is not None:
        raise EvaluationError(f"{name} did not return {type_name(type_)}: {lost}")
    return made


def _said(value: object) -> str:
    return f"it returned {shorten(str(value), _MOST_SHOWN)}"


def _cut(values: Iterable[Any], type_: pa.DataType) -> str | None:
    """Return a message for the first Python value that Arrow would truncate, or None."""
    exact = _EXACT.get(type_)
    nested = pa.types.is_nested(type_)
    if not nested and type_ != FLOAT and (exact is None or exact.issuperset(map(type, values))):
        return None
    plain = (value.as_py() if isinstance(value, pa.Scalar) else value for value in values)
    some = (value for value in plain if value is not None)
    if pa.types.is_list(type_):
        return _first(_cut(value, type_.value_type) for value in some)
    if nested:
        return _first(_cut_parts(value, type_) for value in some)
    if type_ == FLOAT:
        return _first(_said(value) for value in some if _too_large(value))
    return _first(_said(value) for value in some if not _whole(value, type_))


def _first(found: Iterable[str | None]) -> str | None:
    return next((one for one in found if one is not None), None)


def _cut_parts(value: Any, type_: pa.DataType) -> str | None:
    """Check a struct, given as a mapping or a tuple of its parts."""
    names = [field.name for field in type_]
    if isinstance(value, Mapping):
        strange = [part for part in value if part not in names]
        if strange:
            return f"{_said(value)}, with a part '{strange[0]}'; parts: {choices(names)}"
        value = [value.get(part) for part in names]
    return _first(_cut([part], field.type) for part, field in zip(value, type_, strict=True))


def _too_large(value: Any) -> bool:
    number = float(value)
    return abs(number) >= _FLOAT_LIMIT and not math.isinf(number)


def _whole(value: Any, type_: pa.DataType) -> bool:
    """Whether Arrow converts a value to an integer, a date or a timestamp without truncation."""
    if isinstance(value, dt.datetime):
        return not getattr(value, "nanosecond", 0) and (type_ != DATE or value.time() == dt.time())
    if isinstance(value, int | dt.date | np.datetime64):
        return True
    try:
        return bool(value == int(value))
    except TypeError:  # pandas' NA, which Arrow converts to NULL
        return True


def _lost(given: pa.Array, made: pa.Array) -> str | None:
    """Return a message for the first value that a cast changed, or None; Arrow itself rejects most of them."""
    type_ = made.type
    if given.type == type_ or given.type == STRING or type_ == STRING:
        return None
    if pa.types.is_list(type_):
        return _lost(given.flatten(), made.flatten())
    if pa.types.is_struct(type_):
        found = ((given.field(field.name), made.field(field.name)) for field in type_ if field.name in given.type.names)
        return _first(_lost(one, other) for one, other in found)
    if type_ == FLOAT:
        bad = pc.and_not(pc.is_inf(made), pc.is_inf(given.cast(pa.float64())))
    elif type_ in (BOOLEAN, DATE) or (is_decimal(type_) and is_float(given.type)):
        bad = pc.not_equal(made.cast(given.type), given)
    else:
        return None
    at = pc.index(bad, True).as_py()
    return None if at < 0 else _said(given[at])


def coerce_arguments(function: ScalarFunction | UserAggregate, arguments: Sequence[Node]) -> list[Node]:
    """Cast arguments to the declared types, or raise; numbers may widen, never narrow."""
    expected = function.arguments
    call = f"{function.name}({choices(type_name(type_) for type_ in expected) if expected else ''})"
    if len(arguments) != len(expected):
        raise ExpressionError(f"{call} takes {len(expected)} arguments, not {len(arguments)}")
    coerced = []
    for position, (argument, type_) in enumerate(zip(arguments, expected, strict=True), 1):
        # a literal such as 1.5 is a decimal and may become a double, but nothing is truncated without an explicit cast
        if argument.type not in (type_, VOID) and common(argument.type, type_) != type_:
            names = f"{type_name(type_)}, not {type_name(argument.type)}"
            raise ExpressionError(f"argument {position} of {call} must be {names}; use cast")
        coerced.append(cast(argument, type_))
    return coerced


def blame(name: str, error: BaseException) -> EvaluationError:
    """Turn an exception from a user's function into an EvaluationError; re-raise one that a signal handler caused."""
    if isinstance(error, SystemExit) and type(error) is not SystemExit:
        raise error
    return EvaluationError(f"{name} raised {type(error).__name__}: {first_line(error)}")


def call_user(function: ScalarFunction, arguments: Sequence[Node]) -> Node:
    """Return the node of a call of a user's function; never folded, because it may have side effects."""
    coerced = coerce_arguments(function, arguments)
    slots = frozenset[int]().union(*(argument.slots for argument in coerced))
    steps = [(argument.run, argument.type) for argument in coerced]
    name, body, type_ = function.name, function.function, function.returns

    def per_tuple(columns: Columns, count: int) -> Column:
        try:
            lists = [to_arrow(step(columns, count), t).to_pylist() for step, t in steps]
        except (OverflowError, ValueError) as error:  # a date or time out of Python's range
            raise EvaluationError(f"{name}: {first_line(error)}") from None
        rows = list(zip(*lists, strict=True)) if lists else [()] * count
        strict = function.null_on_null
        try:
            results = [None if strict and None in row else body(*row) for row in rows]
        except (Exception, SystemExit) as error:  # whatever a user's function raises only affects the tuple
            raise blame(name, error) from None
        return from_arrow(returned(name, results, type_))

    def over_arrays(columns: Columns, count: int) -> Column:
        if not count:  # an exception would have no tuple to be attributed to
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
