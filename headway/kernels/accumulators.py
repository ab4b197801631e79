"""Aggregate functions that need only a few numbers per group, updated train by train.

Values are added one after the other in arrival order onto what the group holds, never as a sum of partial
sums: results are the same to the last bit however the stream was cut into trains.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from headway.columns import Column, Hashes, Int64s, Mask, Values, numpy_type, splitmix64
from headway.expressions import AggregateCall
from headway.kernels.groups import expand


def hash_values(column: Column) -> Hashes:
    """Return 64-bit hashes that depend on nothing but the values."""
    if column.is_arrow:
        encoded = column.values.dictionary_encode()
        digests = [
            int.from_bytes(hashlib.blake2b(repr(value).encode(), digest_size=8).digest(), "little")
            for value in encoded.dictionary.to_pylist()
        ]
        table = np.array([*digests, 0], np.uint64)
        indices = encoded.indices.fill_null(len(digests)).to_numpy(zero_copy_only=False)
        found: Hashes = table[indices]
        return found
    values = column.values
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    else:
        bits = values.astype(np.int64).view(np.uint64)
    return splitmix64(bits)


Arrays = dict[str, Values]


class Accumulator(ABC):
    """The numbers that a function keeps for each group, as arrays by group; `n` counts the values that are not NULL."""

    fields: Mapping[str, tuple[Any, Any]]
    """Name to (dtype, value of an empty group); a dtype may be a pair (dtype, width) for rows of numbers."""
    merges: Mapping[str, np.ufunc] = MappingProxyType({})
    """How the numbers of neighbouring groups are merged, where that is not their sum."""

    def empty(self, count: int) -> Arrays:
        """Return the arrays of empty groups."""
        return {name: np.full(count, start, dtype) for name, (dtype, start) in self.fields.items()}

    def add(self, arrays: Arrays, ids: Int64s, column: Column | None, counts: Int64s | None = None) -> None:
        """Add tuples, in arrival order, to their groups; `ids` are positions in the arrays.

        `counts`, if known, is the number of ids per group.
        """
        assert column is not None
        ids, values = _present(ids, column)
        self._update(arrays, ids, values)
        _count(arrays, ids, counts)

    def _update(self, arrays: Arrays, ids: Int64s, values: Values) -> None:
        """Add values that are not NULL to all arrays but `n`."""
        raise NotImplementedError

    def merge(self, arrays: Arrays, starts: Int64s, stops: Int64s) -> Arrays:
        """Merge ranges of neighbouring groups, for windows made of panes."""
        return {name: reduce_ranges(self.merges.get(name, np.add), arrays[name], starts, stops) for name in self.fields}

    @abstractmethod
    def result(self, arrays: Arrays) -> Column:
        """Return the function's value for each group."""


def reduce_ranges(ufunc: np.ufunc, values: Values, starts: Int64s, stops: Int64s) -> Values:
    """Reduce values over ranges, which are not empty and may overlap."""
    padded = np.concatenate([values, values[:1]])
    result: Values = ufunc.reduceat(padded, np.stack([starts, stops], axis=1).ravel(), axis=0)[::2]
    return result


def nullable(values: Values, some: Mask) -> Column:
    """Return values that are NULL except where `some` is true."""
    return Column(values, None if some.all() else some)


def _present(ids: Int64s, column: Column) -> tuple[Int64s, Values]:
    """Return ids and values of the tuples whose value is not NULL."""
    if column.is_arrow:
        return ids[column.is_valid()], np.zeros(0)
    if column.valid is None:
        return ids, column.values
    return ids[column.valid], column.values[column.valid]


def _count(arrays: Arrays, ids: Int64s, counts: Int64s | None) -> None:
    """Add the number of ids per group; `counts` is used if no id has been left out since it was made."""
    if counts is None or len(ids) != int(counts.sum()):
        counts = np.bincount(ids, minlength=len(arrays["n"]))
    arrays["n"] += counts


class Count(Accumulator):
    """count(*), count(x), and with `only_true` count_if(x)."""

    fields = MappingProxyType({"n": (np.int64, 0)})

    def __init__(self, only_true: bool = False) -> None:
        self._only_true = only_true

    def add(self, arrays: Arrays, ids: Int64s, column: Column | None, counts: Int64s | None = None) -> None:
        """Count tuples, values that are not NULL, or values that are true."""
        if column is not None:
            ids, values = _present(ids, column)
            ids = ids[values] if self._only_true else ids
        _count(arrays, ids, counts)

    def result(self, arrays: Arrays) -> Column:
        """Return the counts, 0 for none."""
        return Column(arrays["n"])


class _Sum(Accumulator):
    """sum of floating-point numbers, and avg of any numbers."""

    fields = MappingProxyType({"n": (np.int64, 0), "s": (np.float64, 0.0)})

    def __init__(self, average: bool) -> None:
        self._average = average

    def _update(self, arrays: Arrays, ids: Int64s, values: Values) -> None:
        np.add.at(arrays["s"], ids, values.astype(np.float64, copy=False))

    def result(self, arrays: Arrays) -> Column:
        values = arrays["s"] / np.maximum(arrays["n"], 1) if self._average else arrays["s"]
        return nullable(values, arrays["n"] > 0)


class IntegerSum(Accumulator):
    """sum of integers: exact; a sum beyond bigint is an overflow, detected by a floating-point sum beside it."""

    fields = MappingProxyType({"n": (np.int64, 0), "s": (np.int64, 0), "f": (np.float64, 0.0)})

    def _update(self, arrays: Arrays, ids: Int64s, values: Values) -> None:
        values = values.astype(np.int64, copy=False)
        np.add.at(arrays["s"], ids, values)
        np.add.at(arrays["f"], ids, values.astype(np.float64))

    def result(self, arrays: Arrays) -> Column:
        """Return NULL for no values."""
        return nullable(arrays["s"], arrays["n"] > 0)

    def overflowed(self, arrays: Arrays) -> Mask:
        """Return the groups whose sum has wrapped around: it is far from the floating-point sum."""
        shadow, exact = arrays["f"], arrays["s"].astype(np.float64)
        wrapped: Mask = np.abs(shadow - exact) > 1e18
        return wrapped


class _Extreme(Accumulator):
    """min, max, bool_and, bool_or. NaN is larger than every number, as in Spark."""

    def __init__(self, dtype: np.dtype[Any], largest: bool) -> None:
        self._ufunc: np.ufunc
        if dtype.kind == "f":
            start: Any = -np.inf if largest else np.nan
            self._ufunc = np.maximum if largest else np.fmin
        elif dtype.kind == "b":
            start = not largest
            self._ufunc = np.logical_or if largest else np.logical_and
        else:
            info = np.iinfo(dtype)
            start = info.min if largest else info.max
            self._ufunc = np.maximum if largest else np.minimum
        self.fields = {"n": (np.int64, 0), "m": (dtype, start)}
        self.merges = {"m": self._ufunc}

    def _update(self, arrays: Arrays, ids: Int64s, values: Values) -> None:
        self._ufunc.at(arrays["m"], ids, values)

    def result(self, arrays: Arrays) -> Column:
        return nullable(arrays["m"], arrays["n"] > 0)


class _Variance(Accumulator):
    """stddev and variance: sums of differences from the group's first value, to avoid cancellation.

    Divided by n-1 for a sample, by n for a population; the root of it is the standard deviation.
    """

    fields = MappingProxyType({"n": (np.int64, 0), **dict.fromkeys(("k", "s1", "s2"), (np.float64, 0.0))})

    def __init__(self, sample: bool, root: bool) -> None:
        self._sample = sample
        self._root = root

    def _update(self, arrays: Arrays, ids: Int64s, values: Values) -> None:
        values = values.astype(np.float64, copy=False)
        backwards = np.flatnonzero(arrays["n"][ids] == 0)[::-1]
        arrays["k"][ids[backwards]] = values[backwards]  # the last write is the first value
        differences = values - arrays["k"][ids]
        np.add.at(arrays["s1"], ids, differences)
        np.add.at(arrays["s2"], ids, differences * differences)

    def merge(self, arrays: Arrays, starts: Int64s, stops: Int64s) -> Arrays:
        """Move the panes' sums to the first pane's origin, then add them up."""
        owners, at = expand(starts, stops)
        n, k = arrays["n"][at].astype(np.float64), arrays["k"][at]
        filled = n > 0
        origin = np.zeros(len(starts))
        backwards = np.flatnonzero(filled)[::-1]
        origin[owners[backwards]] = k[backwards]
        shift = np.where(filled, k - origin[owners], 0.0)
        s1 = arrays["s1"][at] + n * shift
        s2 = arrays["s2"][at] + 2 * shift * arrays["s1"][at] + n * shift * shift
        merged = {**self.empty(len(starts)), "k": origin}
        np.add.at(merged["n"], owners, arrays["n"][at])
        np.add.at(merged["s1"], owners, s1)
        np.add.at(merged["s2"], owners, s2)
        return merged

    def result(self, arrays: Arrays) -> Column:
        n = arrays["n"]
        some = n > (1 if self._sample else 0)
        s1, s2, count = arrays["s1"], arrays["s2"], np.maximum(n, 1)
        square = s1**2 / count
        square = np.where(np.isinf(square), s1 * (s1 / count), square)
        squares = np.maximum(s2 - square, 0.0)
        squares = np.where(np.isfinite(s1) & ~np.isfinite(s2), np.inf, squares)  # only the squares overflowed
        values = squares / np.maximum(n - 1 if self._sample else n, 1)
        return nullable(np.sqrt(values) if self._root else values, some)


def variance(name: str) -> Accumulator:
    """Return the accumulator of a standard deviation or a variance."""
    return _Variance(sample=not name.endswith("_pop"), root=name.startswith("stddev"))


class _First(Accumulator):
    """first or last value of a group, NULLs included; only where tuples come in order and windows are whole.

    Windows made of panes hold their tuples instead, so nothing is ever merged.
    """

    def __init__(self, dtype: np.dtype[Any], last: bool) -> None:
        self._last = last
        self.fields = {"n": (np.int64, 0), "v": (dtype, dtype.type(0)), "ok": (np.bool_, False)}

    def add(self, arrays: Arrays, ids: Int64s, column: Column | None, counts: Int64s | None = None) -> None:
        assert column is not None
        if self._last:
            rows = np.arange(len(ids))
        else:
            rows = np.flatnonzero(arrays["n"][ids] == 0)[::-1]  # the last write is the first value
        arrays["v"][ids[rows]] = column.values[rows]
        arrays["ok"][ids[rows]] = True if column.valid is None else column.valid[rows]
        _count(arrays, ids, counts)

    def result(self, arrays: Arrays) -> Column:
        return nullable(arrays["v"], arrays["ok"])


class HyperLogLog(Accumulator):
    """approx_count_distinct: Flajolet's sketch with 1,024 registers of one byte per group.

    Its standard error is 3.3 per cent (Spark's default is 5).
    """

    BITS = 10
    WIDTH = 1 << BITS
    fields = MappingProxyType({"registers": ((np.uint8, WIDTH), 0)})
    merges = MappingProxyType({"registers": np.maximum})

    def add(self, arrays: Arrays, ids: Int64s, column: Column | None, counts: Int64s | None = None) -> None:
        """Add values to their groups' sketches; NULLs do not count."""
        assert column is not None
        valid = column.is_valid()
        hashes = hash_values(column)[valid]
        register = (hashes >> np.uint64(64 - self.BITS)).astype(np.int64)
        rest = hashes << np.uint64(self.BITS)
        # The rank is the number of leading zeros plus one; a float's exponent counts them for all at once.
        exponent = np.frexp((rest >> np.uint64(11)).astype(np.float64))[1]
        rank = np.where(rest == 0, 64 - self.BITS + 1, 53 - exponent + 1).astype(np.uint8)
        np.maximum.at(arrays["registers"].reshape(-1), ids[valid] * self.WIDTH + register, rank)

    def result(self, arrays: Arrays) -> Column:
        """Return the estimated number of distinct values per group, with the correction for small numbers."""
        registers, m = arrays["registers"], self.WIDTH
        raw = 0.7213 / (1 + 1.079 / m) * m * m / np.exp2(-registers.astype(np.float64)).sum(axis=1)
        empty = (registers == 0).sum(axis=1)
        small = m * np.log(m / np.maximum(empty, 1))
        return Column(np.rint(np.where((raw <= 2.5 * m) & (empty > 0), small, raw)).astype(np.int64))


def accumulator(call: AggregateCall, in_order: bool, whole: bool) -> Accumulator | None:
    """Return the accumulator for a call, or None where the tuples themselves must be held.

    `in_order`: tuples come ascending in the order field. `whole`: windows are not made of panes.
    """
    name = call.function
    if name == "count":
        return Count()
    if name == "approx_count_distinct":
        return HyperLogLog()
    dtype = numpy_type(call.arguments[0].type) if call.arguments else None
    if dtype is None:
        return None
    if name == "count_if":
        return Count(only_true=True)
    if name in ("min", "max", "bool_and", "bool_or"):
        return _Extreme(dtype, largest=name in ("max", "bool_or"))
    if name in ("first", "last", "any_value"):
        return _First(dtype, last=name == "last") if in_order and whole else None
    if name in ("sum", "avg"):
        return IntegerSum() if name == "sum" and dtype.kind == "i" else _Sum(average=name == "avg")
    return variance(name) if name.startswith(("stddev", "var")) else None
