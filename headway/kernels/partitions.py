"""Partitions: the distinct values of a box's `by` fields, numbered in the order of their first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headway.columns import Column, Int64s, Values, from_pylist
from headway.kernels.codec import pack_columns, unpack_columns

_TABLE_LIMIT = 1 << 20
_UNKNOWN = -1
_LEAST = np.iinfo(np.int64).min
_NAN = float("nan")
"""Stands for every NaN in a key: NaN does not equal itself, but a dictionary finds the same object."""


def grown(array: Values, count: int, filling: Any) -> Values:
    """Return an array with room for `count` partitions, at least twice as long if it must grow."""
    missing = count - len(array)
    if missing <= 0:
        return array
    return np.concatenate([array, np.full((max(missing, len(array)), *array.shape[1:]), filling, array.dtype)])


class Partitions:
    """Numbers the partitions that tuples belong to. NULL is a value like any other; so is NaN; -0.0 is 0.0."""

    __slots__ = ("_base", "_codes", "_known", "_table", "_types", "count")

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        """Start with no partition known; without `by` fields there is exactly one."""
        self._types = tuple(types)
        self._codes: dict[Any, int] = {}  # in the order of the codes
        self._known: tuple[Column, ...] | None = None
        self._table: Int64s | None = None  # integer keys in a small range: code by key - base
        self._base = 0
        self.count = 0 if types else 1

    def codes(self, columns: Sequence[Column], count: int) -> Int64s:
        """Return each tuple's partition; new ones are numbered as they appear."""
        if not self._types:
            return np.zeros(count, np.int64)
        if count == 0:
            return np.zeros(0, np.int64)
        column = columns[0]
        if len(self._types) == 1 and not column.is_arrow and column.valid is None and column.values.dtype.kind in "iu":
            return self._integer_codes(column)
        return self._codes_by_dictionary(columns, count)

    def find(self, keys: Int64s) -> Int64s | None:
        """Return the partitions of integer keys if all of them are known and near each other, else None."""
        if self._table is None:
            return None
        codes = self._look_up(keys)
        return None if codes.min() < 0 else codes

    def columns(self, codes: Int64s) -> tuple[Column, ...]:
        """Return the `by` values of these partitions."""
        if not self._types:
            return ()
        if self._known is None:
            self._known = tuple(
                from_pylist([key[at] for key in self._codes], type_) for at, type_ in enumerate(self._types)
            )
        return tuple(column.take(codes) for column in self._known)

    def _integer_codes(self, column: Column) -> Int64s:
        keys = column.values
        if self._table is None and not self._codes:
            self._retable(int(keys.min()), int(keys.max()))
        if self._table is not None:
            codes = self._look_up(keys)
            if codes.min() < 0:
                unknown = keys[codes < 0]
                self._retable(int(unknown.min()), int(unknown.max()))
                self._add([(key,) for key in dict.fromkeys(unknown.tolist())])
                if self._table is not None:
                    codes = self._look_up(keys)
            if self._table is not None:
                return codes
        return self._codes_by_dictionary([column], len(keys))

    def _look_up(self, keys: Values) -> Int64s:
        """Return codes from the table, _UNKNOWN for unknown keys: those outside hit the guards at its ends."""
        assert self._table is not None
        places = keys.astype(np.int64)
        places -= self._base
        return self._table.take(places, mode="clip")

    def _retable(self, low: int, high: int) -> None:
        """Make the table cover the known keys and those from low to high, or drop it if they are too far apart."""
        table = self._table
        if table is not None and low > self._base and high < self._base + len(table) - 1:
            return
        known = [key[0] for key in self._codes]
        if None in known or (table is None and known):
            self._table = None
            return
        low, high = min([low, *known]), max([high, *known])
        margin = (high - low) // 2 + 16
        if high - low >= _TABLE_LIMIT or low - margin < _LEAST:
            self._table = None
            return
        self._base = low - margin
        self._table = np.full(high - low + 1 + 2 * margin, _UNKNOWN, np.int64)
        self._table[np.array(known, np.int64) - self._base] = np.arange(self.count)

    def _codes_by_dictionary(self, columns: Sequence[Column], count: int) -> Int64s:
        combined, span = np.zeros(count, np.int64), 1
        parts: list[tuple[list[Any], Int64s]] = []
        for column in columns:
            array = _raw(column).dictionary_encode(null_encoding="encode")
            values, indices = array.dictionary.to_pylist(), array.indices.to_numpy(zero_copy_only=False)
            if span * len(values) >= 1 << 62:  # renumber the combinations so far
                combined, span = np.unique(combined, return_inverse=True)[1], count
            combined, span = combined * len(values) + indices, span * len(values)
            parts.append((values, indices))
        local = pa.array(combined).dictionary_encode()
        places = local.indices.to_numpy(zero_copy_only=False)
        first = np.empty(len(local.dictionary), np.int64)
        first[places[::-1]] = np.arange(count - 1, -1, -1)  # the last write is the first place
        keys = list(zip(*([_hashable(values[at]) for at in indices[first]] for values, indices in parts), strict=True))
        self._add(keys)
        mapping = np.fromiter((self._codes[key] for key in keys), np.int64, len(keys))
        codes: Int64s = mapping.take(places)
        return codes

    def _add(self, keys: Sequence[Any]) -> None:
        for key in keys:
            if key in self._codes:
                continue
            self._codes[key] = self.count
            if self._table is not None:
                if key[0] is None or not 0 <= key[0] - self._base < len(self._table):
                    self._table = None
                else:
                    self._table[key[0] - self._base] = self.count
            self.count += 1
            self._known = None

    def dump(self) -> dict[str, Any]:
        """Return the known partitions as named Arrow arrays."""
        columns = self.columns(np.arange(self.count)) if self._types else ()
        return pack_columns("by", columns, self._types)

    def restore(self, arrays: dict[str, Any]) -> None:
        """Restore what `dump` returned."""
        columns = unpack_columns("by", arrays, len(self._types))
        if columns:
            lists = [_raw(column).to_pylist() for column in columns]
            self._add([tuple(_hashable(value) for value in key) for key in zip(*lists, strict=True)])


def _raw(column: Column) -> pa.Array:
    """Return the values as Arrow holds them: days and microseconds are plain numbers here."""
    if column.is_arrow:
        return column.values
    values = column.values + column.values.dtype.type(0) if column.values.dtype.kind == "f" else column.values
    return pa.array(values, mask=None if column.valid is None else ~column.valid)


def _hashable(value: Any) -> Any:
    return _NAN if isinstance(value, float) and value != value else value
