"""SQL types as Headway's, and values that a driver returns as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headway.network.schema import TIMESTAMP, TIMESTAMP_NTZ, type_name

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

TYPES = "integers, numeric(p,s), real and double, booleans, text, bytes, dates, and timestamps with and without zone"
"""What a column of a database may be, for messages."""
_NONE = type(None)


def arrow_type(type_: TypeEngine[Any], kind: str) -> pa.DataType | None:
    """Return the Headway type with the same values as an SQL type in a kind of database, or None if there is none.

    SQLite stores integers in 64 bits and floats as double, whatever a column is declared as.
    """
    from sqlalchemy import types

    if isinstance(type_, types.Enum | types.Interval):
        return None
    if isinstance(type_, types.Boolean):
        return pa.bool_()
    if isinstance(type_, types.Integer):
        if kind == "sqlite" or isinstance(type_, types.BigInteger):
            return pa.int64()
        return pa.int16() if isinstance(type_, types.SmallInteger) else pa.int32()
    if isinstance(type_, types.Float):
        return pa.float32() if isinstance(type_, types.REAL) and kind != "sqlite" else pa.float64()
    if isinstance(type_, types.Numeric):
        precision, scale = type_.precision, type_.scale or 0
        fits = precision is not None and 1 <= precision <= 38 and 0 <= scale <= precision
        return pa.decimal128(precision, scale) if fits else None
    if isinstance(type_, types.DateTime):
        return TIMESTAMP if type_.timezone else TIMESTAMP_NTZ
    if isinstance(type_, types.Date):
        return pa.date32()
    if isinstance(type_, types.String):
        return pa.string()
    return pa.binary() if isinstance(type_, types.LargeBinary | types.BINARY | types.VARBINARY) else None


def pushable(type_: pa.DataType, kind: str) -> bool:
    """Whether a database compares values of a type as Headway does, so that it may look them up.

    SQLite has no dates and decimals: how such values are stored is up to who wrote them.
    """
    if kind != "sqlite":
        return True
    return type_ in (pa.int64(), pa.float64(), pa.string(), pa.binary())


def to_column(values: Sequence[Any], type_: pa.DataType, kind: str) -> pa.Array:
    """Return a column of values as the driver gave them; raises ValueError for one that is none of its type."""
    found = set(map(type, values))
    if kind == "sqlite" and not found <= {_NONE, *_PYTHON[_group(type_)]}:
        return _from_sqlite(values, type_, found)
    _check_kinds(values, type_, found, _PYTHON[_group(type_)])
    return _array(values, type_)


_PYTHON: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "float": (float, int),
    "decimal": (Decimal,),
    "string": (str,),
    "binary": (bytes, memoryview),
    "date": (date,),
    "timestamp": (datetime,),
}
"""By group of types: the Python types of its values."""


def _group(type_: pa.DataType) -> str:
    tests = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "float": pa.types.is_floating,
        "decimal": pa.types.is_decimal,
        "string": pa.types.is_string,
        "binary": pa.types.is_binary,
        "date": pa.types.is_date,
    }
    return next((name for name, test in tests.items() if test(type_)), "timestamp")


def _check_kinds(values: Sequence[Any], type_: pa.DataType, found: set[type], allowed: tuple[type, ...]) -> None:
    if not found <= {_NONE, *allowed}:
        wrong = next(value for value in values if value is not None and type(value) not in allowed)
        raise ValueError(f"{str(wrong)[:40]!r} is not a {type_name(type_)}")


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None


def _from_sqlite(values: Sequence[Any], type_: pa.DataType, found: set[type]) -> pa.Array:
    """Return values of types that SQLite does not have: it stores them as numbers or text."""
    group = _group(type_)
    if group == "boolean":
        _check_kinds(values, type_, found, (int,))
        wrong = next((value for value in values if value not in (None, 0, 1)), None)
        if wrong is not None:
            raise ValueError(f"{wrong} is not a boolean, which is 0 or 1")
        return _array([None if value is None else bool(value) for value in values], type_)
    if group == "decimal":
        _check_kinds(values, type_, found, (int, float, str))
        try:
            return _array([None if value is None else Decimal(str(value)) for value in values], type_)
        except ArithmeticError:
            raise ValueError(f"a text is not a {type_name(type_)}") from None
    if group in ("date", "timestamp"):
        _check_kinds(values, type_, found, (str,))
        texts = pa.array(values, pa.string())
        try:
            return texts.cast(type_)
        except pa.ArrowException as error:
            raise ValueError(str(error).partition("\n")[0]) from None
    _check_kinds(values, type_, found, _PYTHON[group])
    raise AssertionError(group)
