"""Dates and timestamps outside the range of Python's datetime, the years 1 to 9999.

Columns hold days and microseconds, which reach much further. As text, such values follow Spark and ISO 8601: at least
four digits for the year, a `+` if it has more, a `-` before year 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Values

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400_000_000
_FIRST, _LAST = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1


def timestamp_texts(array: pa.Array) -> pa.Array:
    """Render timestamps as text such as ``2020-01-01 00:00:00.000000``, without a zone; NULL stays NULL."""
    array = array.cast(pa.timestamp("us"))
    numbers = array.view(pa.int64())
    if _within(numbers, _FIRST, _LAST):
        return array.cast(pa.string())
    micros, missing = _numpy(numbers)
    seconds = np.floor_divide(micros, 1_000_000)  # avoids the lowest int64, which numpy treats as NaT
    texts = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
    rest = (micros - seconds * 1_000_000).tolist()
    written = [f"{_signed(text).replace('T', ' ')}.{part:06d}" for text, part in zip(texts, rest, strict=True)]
    return pa.array(written, pa.string(), mask=missing)


def date_texts(array: pa.Array) -> pa.Array:
    """Render dates as text such as ``2020-01-01``; NULL stays NULL."""
    numbers = array.view(pa.int32())
    if _within(numbers, _FIRST_DAY, _LAST_DAY):
        return array.cast(pa.string())
    days, missing = _numpy(numbers)
    texts = np.datetime_as_string(days.astype("datetime64[D]")).tolist()
    return pa.array([_signed(text) for text in texts], pa.string(), mask=missing)


def in_python(array: pa.Array) -> bool:
    """Whether all these dates or timestamps (in microseconds) are in the range of Python's datetime."""
    if pa.types.is_date(array.type):
        return _within(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return _within(array.view(pa.int64()), _FIRST, _LAST)


def to_python(array: pa.Array) -> list[Any]:
    """Convert like `to_pylist`, but to ISO 8601 text for dates and timestamps out of Python's range."""
    try:
        return list(array.to_pylist())
    except (OverflowError, ValueError):
        return [_value(scalar) for scalar in array]


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        type_ = scalar.type
        if pa.types.is_struct(type_):
            return {field.name: _value(scalar[field.name]) for field in type_}
        if pa.types.is_nested(type_):
            return [_value(item) for item in scalar.values]
        one = pa.array([scalar], type_)
        if pa.types.is_date(type_):
            return date_texts(one.cast(pa.date32()))[0].as_py()
        try:
            text = timestamp_texts(one)[0].as_py().replace(" ", "T").removesuffix(".000000")
        except pa.ArrowInvalid:  # e.g. seconds that overflow as microseconds
            return str(scalar.value)
        return text + ("Z" if type_.tz else "")


def _within(numbers: pa.Array, low: int, high: int) -> bool:
    ends = pc.min_max(numbers).as_py()
    return ends["min"] is None or (ends["min"] >= low and ends["max"] <= high)


def _numpy(numbers: pa.Array) -> tuple[Values, Values]:
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    return numbers.fill_null(0).to_numpy(zero_copy_only=False), missing


def _signed(text: str) -> str:
    """Rewrite the year of numpy's text to ISO 8601."""
    minus, text = text.startswith("-"), text.lstrip("-")
    year, _, rest = text.partition("-")
    return f"{'-' if minus else '+' if len(year) > 4 else ''}{year.zfill(4)}-{rest}"
