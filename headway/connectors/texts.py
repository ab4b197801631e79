"""Convert columns of text to values and back, as CSV and JSON lines write them.

Timestamps and dates are ISO 8601, binary is base64, arrays and structs are JSON, and numbers that are not
finite are NaN, Infinity and -Infinity.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.values import NO_ZONE, Bad, convert, kind_of, show
from headway.expressions.timestamps import date_texts, in_python, timestamp_texts, to_python
from headway.network.schema import type_name

_SMALL = 512
"""Up to this many values are parsed one by one, which bounds the cost of bisection if nearly all of them fail."""

_TRUE, _FALSE = ("true", "1"), ("false", "0")


def parse_texts(texts: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bad]:
    """Parse a column of text; NULL where a value does not convert, with the reasons by position.

    Empty text is NULL for every type but string and binary. Only the parts that fail are parsed value by value. The
    result of a text does not depend on its neighbours: whatever Arrow accepts, `parse_text` reads as the same value.
    """
    if pa.types.is_string(type_):
        return texts, {}
    texts = pc.utf8_trim_whitespace(texts)
    if not pa.types.is_binary(type_):
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    bad: Bad = {}
    parts = _parse(texts, type_, 0, bad)
    return pa.concat_arrays(parts) if len(parts) != 1 else parts[0], bad


def _parse(texts: pa.Array, type_: pa.DataType, offset: int, bad: Bad) -> list[pa.Array]:
    vectorised = _VECTORISED.get(kind_of(type_))
    if vectorised is not None:
        try:
            return [vectorised(texts, type_)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if len(texts) > _SMALL:
                half = len(texts) // 2
                left = _parse(texts.slice(0, half), type_, offset, bad)
                return left + _parse(texts.slice(half), type_, offset + half, bad)
    values = []
    for position, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else parse_text(text, type_))
        except ValueError as error:
            bad[offset + position] = str(error)
            values.append(None)
    return [pa.array(values, type_)]


def parse_text(text: str, type_: pa.DataType) -> Any:
    """Parse one text, or raise ValueError with the reason."""
    kind = kind_of(type_)
    if kind == "boolean":
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
    elif kind == "integer":
        if text.lstrip("+-").isdecimal() and text.isascii():
            return convert(int(text), type_)
    elif kind == "float":
        with suppress(ValueError):
            if "_" not in text and text.isascii():
                return convert(_nearest(text, type_), type_)
    elif kind in ("list", "struct"):
        with suppress(json.JSONDecodeError, RecursionError):
            return convert(json.loads(text), type_)
    else:
        return convert(text, type_)
    raise ValueError(f"expected {type_name(type_)}, not {show(text)}")


def _nearest(text: str, type_: pa.DataType) -> float:
    """Return the nearest number; a 32-bit float is parsed directly, since going through a double would round twice."""
    number = float(text)
    if type_.bit_width < 64 and math.isfinite(number):
        try:
            return float(pa.scalar(text).cast(type_).as_py())
        except pa.ArrowInvalid:
            pass
    return number


def _parse_timestamps(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    plain, zoned = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
    if pc.any(pc.match_substring_regex(texts, NO_ZONE.pattern)).as_py():
        raise pa.ArrowInvalid("no such zone")
    try:
        moments = texts.cast(zoned)
    except pa.ArrowInvalid:
        moments = texts.cast(plain)
    return _readable(moments.cast(type_))


def _readable(moments: pa.Array) -> pa.Array:
    if not in_python(moments):  # such as year 0, or a zone that moves year 9999 to the next
        raise pa.ArrowInvalid("outside the years 1 to 9999")
    return moments


def _parse_decimals(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Cast plain decimals; for longer ones, and for exponents, Arrow silently drops the first digits."""
    plain = rf"^[+-]?\d{{0,{type_.precision - type_.scale}}}(\.\d{{0,{type_.scale}}})?$"
    if pc.all(pc.match_substring_regex(texts, plain)).as_py() is False:
        raise pa.ArrowInvalid("not a plain decimal")
    return texts.cast(type_)


def _cast_without(texts: pa.Array, type_: pa.DataType, mark: str) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, mark)).as_py():
        raise pa.ArrowInvalid("written in a way that only Arrow knows")
    return texts.cast(type_)


def _parse_booleans(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    lower = pc.utf8_lower(texts)
    true = pc.is_in(lower, value_set=pa.array(_TRUE))
    false = pc.is_in(lower, value_set=pa.array(_FALSE))
    if not pc.all(pc.or_(pc.or_(true, false), texts.is_null())).as_py():
        raise pa.ArrowInvalid("not a boolean")
    return pc.if_else(texts.is_valid(), true, pa.scalar(None, pa.bool_()))


_VECTORISED: dict[str, Callable[[pa.Array, pa.DataType], pa.Array]] = {
    "integer": lambda texts, type_: _cast_without(texts, type_, r"[xX]"),  # Arrow reads 0xFFFFFFFF as -1
    "float": lambda texts, type_: _cast_without(texts, type_, r"\("),  # nan(abc)
    "boolean": _parse_booleans,
    "timestamp": _parse_timestamps,
    "date": lambda texts, type_: _readable(texts.cast(type_)),
    "decimal": _parse_decimals,
}
"""Each raises ArrowInvalid for whatever `parse_text` rejects or reads as another value."""


def render_texts(array: pa.Array) -> pa.Array:
    """Render a column as text; NULL stays NULL."""
    type_ = array.type
    if pa.types.is_string(type_):
        return array
    if pa.types.is_floating(type_):
        return _render_floats(array)
    if pa.types.is_timestamp(type_):
        text = pc.replace_substring(timestamp_texts(array), " ", "T")
        text = pc.replace_substring_regex(text, r"\.000000$", "")
        return pc.binary_join_element_wise(text, "Z", "") if type_.tz else text
    if pa.types.is_date(type_):
        return date_texts(array)
    if pa.types.is_decimal(type_):
        return pa.array([None if value is None else format(value, "f") for value in array.to_pylist()], pa.string())
    if pa.types.is_binary(type_) or pa.types.is_nested(type_):
        values = [None if value is None else plain(value) for value in to_python(array)]
        texts = [text if text is None or isinstance(text, str) else to_json(text) for text in values]
        return pa.array(texts, pa.string())
    return array.cast(pa.string())


def plain(value: Any) -> Any:
    """Convert a Python value for JSON: text for times, decimals, binary and numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def to_json(value: Any) -> str:
    """Return compact JSON, in UTF-8 without escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _render_floats(array: pa.Array) -> pa.Array:
    text = pc.replace_substring_regex(array.cast(pa.string()), r"^(-?\d+)$", r"\1.0")
    if pc.all(pc.is_finite(array)).as_py() is not False:
        return text
    text = pc.if_else(pc.is_nan(array), "NaN", text)
    return pc.replace_substring(text, "inf", "Infinity")
