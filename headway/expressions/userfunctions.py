"""Users' Python functions: declared, called per tuple or train, and what they return, checked.

Arrow cuts without a word in some places: Python floats to whole numbers, datetimes to dates, doubles to an infinite
float. A whole 2.0 is taken for a whole number, and rounding to the nearest float is not a loss; all else is refused.
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
    """A Python function of one tuple, or of Arrow arrays if vectorised."""

    name: str
    arguments: tuple[pa.DataType, ...]
    returns: pa.DataType
    function: Callable[..., Any]
    vectorised: bool = False
    null_on_null: bool = True


@dataclass(frozen=True, slots=True)
class UserAggregate:
    """A Python aggregate: ``init() -> state``, ``incr(state, *args) -> state``, ``final(state) -> value``.

    If vectorised, `function` takes one Arrow array per argument with all tuples of a window in order and
    returns the value, and the three others are None.
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
        """Return a registry that also has this function; a later one of the same name replaces it."""
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
"""From here on a double is infinite as a float."""
_MOST_SHOWN = 100
_EXACT: dict[pa.DataType, frozenset[type]] = {
    **dict.fromkeys(INTEGERS, frozenset({int, type(None)})),
    **dict.fromkeys(TIMESTAMPS, frozenset({dt.datetime, type(None)})),
    DATE: frozenset({dt.date, type(None)}),
}
"""The Python types that Arrow takes as they are, so that their values need no look."""


def returned(name: str, result: Any, type_: pa.DataType) -> pa.Array:
    """Return the values that a function returned (a list, a numpy or Arrow array) as an Arrow array of a type.

    Raises an EvaluationError, which names the function and the value, for what the type does not hold.
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
    """Return the message for the first Python value that Arrow would truncate, or None."""
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
    """Look at a struct, which is a mapping or a tuple of its parts."""
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
    """Whether nothing is cut off a value that Arrow takes for a whole number, a date or a timestamp."""
    if isinstance(value, dt.datetime):
        return not getattr(value, "nanosecond", 0) and (type_ != DATE or value.time() == dt.time())
    if isinstance(value, int | dt.date | np.datetime64):
        return True
    try:
        return bool(value == int(value))
    except TypeError:  # pandas' NA, which Arrow takes for NULL
        return True


def _lost(given: pa.Array, made: pa.Array) -> str | None:
    """Return the message for the first value that Arrow's cast changed, or None; Arrow refuses most of them itself."""
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
