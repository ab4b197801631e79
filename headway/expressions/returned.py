"""What users' Python functions return, as Arrow arrays of the declared type, and never less than they returned.

Arrow cuts without a word in some places: Python floats to whole numbers, datetimes to dates, doubles to an infinite
float. A whole 2.0 is taken for a whole number, and rounding to the nearest float is not a loss; all else is.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.errors import choices, shorten
from headway.expressions.nodes import EvaluationError, first_line
from headway.expressions.types import BOOLEAN, DATE, FLOAT, INTEGERS, STRING, TIMESTAMPS, is_decimal, is_float
from headway.schema import type_name

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
    """Return what is said of the first Python value of which Arrow keeps only a part, or None."""
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
    """Return what is said of the first value that Arrow's cast changed, or None; Arrow refuses most of them itself."""
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
