"""Convert Python values to Arrow arrays, value by value if a column does not convert as a whole."""

from __future__ import annotations

import base64
import binascii
import math
import numbers
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from headway.network.schema import type_name

Bad = dict[int, str]
"""Positions of values that do not convert, with reasons."""

_NONE = type(None)
_NOT_FINITE = {"nan": math.nan, "infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_NOT_FINITE |= {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
NO_ZONE = re.compile(r"[0-9][+-][0-9]{2}:?[6-9][0-9]\s*$")
"""An invalid offset, with more than 59 minutes, that both Arrow and Python accept."""
_WIDE = Context(prec=100)
_SHOWN = 50


def to_array(values: Sequence[Any], type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Return the values as an array, with NULL for those that do not convert, and their positions."""
    kinds, kind = set(map(type, values)), kind_of(type_)
    whole = kind == "float" and kinds == {int, float}
    if whole or (kind in _EXACT and kinds <= {_EXACT[kind], _NONE}):
        try:
            return pa.array([float(value) for value in values] if whole else values, type_), {}
        except (pa.ArrowException, OverflowError, UnicodeError, ValueError):
            pass  # some value is out of range: find it below
    bad: Bad = {}
    converted: list[object] = []
    convert = _converter(type_)
    for position, value in enumerate(values):
        try:
            converted.append(None if value is None else convert(value, type_))
        except (ValueError, TypeError, OverflowError) as error:
            bad[position] = str(error)
            converted.append(None)
        except Exception as error:  # raised by user code
            bad[position] = f"{_wrong(value, type_)}, which raised {type(error).__name__}"
            converted.append(None)
    return pa.array(converted, type_), bad


def convert(value: Any, type_: pa.DataType) -> Any:
    """Return a value that Arrow converts to the type exactly, or raise ValueError with the reason."""
    return None if value is None else _converter(type_)(value, type_)


def show(value: object) -> str:
    """Return a value for a message, truncated if long."""
    text = show_whole(value)
    return text if len(text) <= 60 else text[:57] + "..."


def show_whole(value: Any) -> str:
    """Return any value as text; one that cannot be rendered, such as 10**5000, is only described."""
    try:
        return repr(value)
    except Exception:
        pass  # too many digits, too deeply nested, or user code raised
    if type(value) is dict:
        return "{" + ", ".join(f"{show(key)}: {show(one)}" for key, one in islice(value.items(), _SHOWN)) + "}"
    if type(value) in (list, tuple):
        return "(" + ", ".join(map(show, islice(value, _SHOWN))) + ")"
    if isinstance(value, int):
        return f"<an integer of {value.bit_length()} bits>"
    return f"<a {type(value).__name__} that cannot be shown>"


def without(batch: pa.RecordBatch, bad: Collection[int]) -> pa.RecordBatch:
    """Return a batch without the rows at these positions."""
    if not bad:
        return batch
    keep = np.ones(len(batch), np.bool_)
    keep[list(bad)] = False
    return batch.filter(pa.array(keep))


def is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _wrong(value: object, type_: pa.DataType) -> ValueError:
    return ValueError(f"expected {type_name(type_)}, not {show(value)}")


def kind_of(type_: pa.DataType) -> str:
    """Return the kind of an Arrow type; types of a kind differ only in range and precision."""
    for accepts, kind in _TESTS:
        if accepts(type_):
            return kind
    return str(type_)


_EXACT = {"integer": int, "float": float, "string": str, "boolean": bool, "date": date, "binary": bytes}
"""The Python type per kind that Arrow converts exactly; others need care: Arrow would silently cut 1.5 to an int."""


def _boolean(value: Any, type_: pa.DataType) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise _wrong(value, type_)


def _integer(value: Any, type_: pa.DataType) -> int:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Number):
        raise _wrong(value, type_)
    if isinstance(value, numbers.Integral):
        number = operator.index(value)
    else:
        real: Any = value
        if not math.isfinite(real) or real != int(real):
            raise _wrong(value, type_)
        number = int(real)
    bound = 1 << (type_.bit_width - 1)
    if not -bound <= number < bound:
        raise ValueError(f"{show(value)} is out of range for {type_name(type_)}")
    return number


def _float(value: Any, type_: pa.DataType) -> float:
    if isinstance(value, str) and value.strip().lower() in _NOT_FINITE:
        return _NOT_FINITE[value.strip().lower()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Number) or isinstance(value, complex):
        raise _wrong(value, type_)
    real: Any = value
    try:
        return float(real)
    except OverflowError:
        raise ValueError(f"{show(value)} is out of range for {type_name(type_)}") from None


def _string(value: Any, type_: pa.DataType) -> str:
    if not isinstance(value, str):
        raise _wrong(value, type_)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text that is not valid Unicode: {error.reason}") from None
    return str(value)


def _binary(value: Any, type_: pa.DataType) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"expected binary as base64, not {show(value)}") from None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise _wrong(value, type_)


def _date(value: Any, type_: pa.DataType) -> date | None:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"expected an ISO 8601 date such as 2024-12-31, not {show(value)}") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if _no_time(value):
        return None
    if isinstance(value, np.datetime64):
        return _date(value.item(), type_)
    raise _wrong(value, type_)


def _no_time(value: Any) -> bool:
    """Whether this is NaT, the NULL of numpy and pandas: the only moment that does not equal itself."""
    return isinstance(value, datetime | np.datetime64) and bool(value != value)


def _timestamp(value: Any, type_: pa.DataType) -> datetime | None:
    if _no_time(value):
        return None
    moment = value
    if isinstance(value, str):
        try:
            if NO_ZONE.search(value):
                raise ValueError
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                f"expected an ISO 8601 timestamp such as 2024-12-31T23:59:59Z, not {show(value)}"
            ) from None
    elif isinstance(value, np.datetime64):
        moment = value.astype("datetime64[us]")
        if moment.astype("datetime64[D]") != value.astype("datetime64[D]"):  # the microseconds overflowed
            raise _wrong(value, type_)
        moment = moment.item()
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not isinstance(moment, datetime):
        raise _wrong(value, type_)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC) if type_.tz else moment
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{show(value)} is outside the years 1 to 9999 in UTC") from None
    return moment if type_.tz else moment.replace(tzinfo=None)


def _decimal(value: Any, type_: pa.DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _wrong(value, type_)
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value)
        fitted = exact.quantize(Decimal(1).scaleb(-type_.scale), context=_WIDE)
    except InvalidOperation:
        raise _wrong(value, type_) from None
    if fitted != exact or fitted.copy_abs() >= Decimal(10) ** (type_.precision - type_.scale):
        raise ValueError(f"{show(value)} does not fit {type_name(type_)}")
    return fitted


def _list(value: Any, type_: pa.DataType) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, type_)
    return [convert(item, type_.value_type) for item in value]


def _struct(value: Any, type_: pa.DataType) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(value, type_)
    return {field.name: convert(value.get(field.name), field.type) for field in type_}


_Converter = Callable[[Any, pa.DataType], Any]
_KINDS: dict[str, tuple[_Converter, *tuple[Callable[[pa.DataType], bool], ...]]] = {
    "integer": (_integer, pa.types.is_integer),
    "float": (_float, pa.types.is_floating),
    "string": (_string, pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "boolean": (_boolean, pa.types.is_boolean),
    "timestamp": (_timestamp, pa.types.is_timestamp),
    "date": (_date, pa.types.is_date),
    "decimal": (_decimal, pa.types.is_decimal),
    "binary": (_binary, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
    "list": (_list, pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    "struct": (_struct, pa.types.is_struct),
}
"""By kind: a converter from Python values, and tests for its types."""
_TESTS = [(test, kind) for kind, (_, *tests) in _KINDS.items() for test in tests]


def _converter(type_: pa.DataType) -> _Converter:
    kind = kind_of(type_)
    if kind not in _KINDS:
        raise ValueError(f"no values of type {type_name(type_)} can be read")
    return _KINDS[kind][0]
