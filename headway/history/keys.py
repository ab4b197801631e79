"""Storage keys: ranges of them, their statistics, and sorting by them.

Bounds are compared as plain numbers or bytes, which is how Parquet's statistics have them: booleans and integers, days
and microseconds, floats, unscaled decimals, UTF-8. In a file NaN comes after all numbers, and NULL last.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.columns import Column, Hashes, Indices, Mask, to_arrow
from headway.errors import InputError, first_line
from headway.network.schema import type_name

_EXACT = decimal.Context(prec=80)

Bound = int | float | bytes


class _Null:
    """The type of `NULL`."""

    def __repr__(self) -> str:
        return "NULL"


NULL: Final = _Null()
"""As a key: the tuples whose key is NULL."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Which storage keys are wanted: those from `low` to `high` (None: no bound), NaN, or NULL."""

    low: pa.Scalar | None = None
    high: pa.Scalar | None = None
    special: str = ""

    @classmethod
    def parse(cls, key: object, type_: pa.DataType) -> Keys | None:
        """Read a value, `NULL`, or a pair of inclusive bounds; None means all and stays None.

        Raises an InputError for a value that a key of this type cannot have.
        """
        if key is None:
            return None
        if key is NULL:
            return cls(special="null")
        if isinstance(key, tuple):
            if len(key) != 2:
                raise InputError(f"a range of keys is a pair (low, high), not {key!r}")
            low, high = (None if one is None else _scalar(one, type_) for one in key)
            return cls(low, high)
        if isinstance(key, float) and math.isnan(key) and pa.types.is_floating(type_):
            return cls(special="nan")
        one = _scalar(key, type_)
        return cls(one, one)

    @property
    def bounds(self) -> tuple[Bound | None, Bound | None]:
        """The bounds, to be compared with those of statistics."""
        return (None if self.low is None else to_bound(self.low), None if self.high is None else to_bound(self.high))

    def mask(self, column: Column, type_: pa.DataType) -> Mask:
        """Return where a column of keys has one that is wanted."""
        if self.special == "null":
            return ~column.is_valid()
        if self.special == "nan":
            return np.isnan(column.values) & column.is_valid()  # type: ignore[no-any-return]
        keys = to_arrow(column, type_)
        found: Mask = np.ones(len(keys), np.bool_)
        for bound, compare in ((self.low, pc.greater_equal), (self.high, pc.less_equal)):
            if bound is not None:
                found &= pc.fill_null(compare(keys, bound), False).to_numpy(zero_copy_only=False)
        if self.low is None or self.high is None:
            found &= column.is_valid()
            if pa.types.is_floating(type_):
                found &= ~np.isnan(column.values)
        return found

    def overlaps(self, low: Bound | None, high: Bound | None, nulls: int | None, nans: bool) -> bool:
        """Return whether a part of a file may have a wanted key, from its statistics; None: not known."""
        if self.special == "null":
            return nulls is None or nulls > 0
        if self.special == "nan":
            return nans
        if low is None or high is None:
            return True
        least, most = self.bounds
        return (most is None or low <= most) and (least is None or high >= least)  # type: ignore[operator]


def _scalar(value: object, type_: pa.DataType) -> pa.Scalar:
    try:
        scalar = pa.scalar(value, type_)
        if pa.types.is_integer(type_) and scalar.as_py() != value:  # it truncates
            raise ValueError("it is not a whole number")
        if scalar.is_valid and not _is_nan(scalar):
            return scalar
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{value!r} is not a {type_name(type_)}, as the storage key is: {first_line(error)}") from None
    raise InputError(f"{value!r} cannot be a bound of a range of keys")


def _is_nan(scalar: pa.Scalar) -> bool:
    return pa.types.is_floating(scalar.type) and math.isnan(scalar.as_py())


def to_bound(scalar: pa.Scalar) -> Bound:
    """Return a value that is not NULL as a bound."""
    type_ = scalar.type
    if pa.types.is_decimal(type_):
        return int(scalar.as_py().scaleb(type_.scale, _EXACT))
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return bytes(scalar.as_buffer())
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return scalar.value  # type: ignore[no-any-return]
    value = scalar.as_py()
    return int(value) if isinstance(value, bool) else value


def from_statistic(raw: Any, type_: pa.DataType) -> Bound:
    """Return a minimum or maximum of Parquet's statistics as a bound."""
    if pa.types.is_decimal(type_):
        return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return int(raw) if isinstance(raw, bool) else raw


def sorting(column: Column) -> Indices | None:
    """Return the stable order of keys: numbers, NaN, NULL; None if they are in that order."""
    ranks = _ranks(column)
    valid = column.is_valid()
    if valid.all():
        return _radix(ranks)
    present = np.flatnonzero(valid)
    order = _radix(ranks[present])
    return np.concatenate([present if order is None else present[order], np.flatnonzero(~valid)])


_DIGIT: Final = 16
"""Bits that are sorted in one pass: numpy sorts numbers of 16 bits by radix, ten times faster than longer ones."""


def _radix(ranks: Hashes) -> Indices | None:
    if len(ranks) < 2 or bool((ranks[1:] >= ranks[:-1]).all()):
        return None
    ranks = ranks - ranks.min()
    order: Indices | None = None
    for shift in range(0, int(ranks.max()).bit_length(), _DIGIT):
        digits = (ranks if order is None else ranks.take(order)) >> np.uint64(shift)
        step = np.argsort(digits.astype(np.uint16), kind="stable")
        order = step if order is None else order.take(step)
    return order


_SIGN = np.int64(-(2**63))


def _ranks(column: Column) -> Hashes:
    """Return numbers in the order of the keys; undefined for NULL."""
    if column.is_arrow:
        coded = column.values.dictionary_encode()
        rank = np.empty(len(coded.dictionary) + 1, np.uint64)
        rank[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
        rank[-1] = 0
        codes = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
        ranks: Hashes = rank.take(codes)
        return ranks
    values = column.values
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0.0 becomes 0.0
        ordered: Hashes = np.where(bits < 0, ~bits, bits ^ _SIGN).view(np.uint64)
        ordered[np.isnan(values)] = np.uint64(2**64 - 1)
        return ordered
    return (values.astype(np.int64) ^ _SIGN).view(np.uint64)  # type: ignore[no-any-return]
