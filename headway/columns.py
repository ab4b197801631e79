"""One field of many tuples: an Arrow array seen through numpy where its type has a fixed width.

Measured on this project's workloads (docs/design.md, "Why numpy under Arrow"), numpy kernels over the
buffers of Arrow arrays are two to three times faster than Arrow's own on long trains and five to ten times
on trains of one tuple. So booleans, numbers, dates and timestamps are numpy arrays with an optional
validity mask; strings, decimals and nested types stay Arrow arrays. The views share memory with Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

Items = TypeVar("Items", bound=np.generic)

NEVER = int(np.iinfo(np.int64).max)
"""The moment that does not come, and the timestamp, place or arrival number of no tuple: the largest there is."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of SplitMix64's state."""
_ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))

_NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_TIMESTAMPS = (pa.timestamp("us", tz="UTC"), pa.timestamp("us"))
_NUMPY: dict[pa.DataType, np.dtype[Any]] = {
    **{type_: np.dtype(type_.to_pandas_dtype()) for type_ in (pa.bool_(), *_NUMBERS)},
    pa.date32(): np.dtype(np.int32),
    **dict.fromkeys(_TIMESTAMPS, np.dtype(np.int64)),
}


def frozen(array: npt.NDArray[Items]) -> npt.NDArray[Items]:
    """Return the array, which cannot be written to any more."""
    array.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
    return array


class ReadOnly:
    """A base of dataclasses with slots: the arrays that one is made of cannot be written to any more."""

    __slots__: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for value in map(self.__getattribute__, self.__slots__):
            if isinstance(value, np.ndarray):
                frozen(value)


def numpy_type(type_: pa.DataType) -> np.dtype[Any] | None:
    """Return the numpy type that holds a column's values, or None if they stay an Arrow array.

    Dates are days and timestamps are microseconds since 1970, as in Arrow.
    """
    return _NUMPY.get(type_)


class Column:
    """The values of one field: a numpy array with a mask of the non-null ones, or an Arrow array.

    `valid` is None when a numpy column has no NULLs; it is always None for an Arrow array, which has its own. `values`
    are undefined where `valid` is False: apply the mask first. Immutable by convention, because trains share columns.
    """

    __slots__ = ("valid", "values")

    values: Any
    valid: Mask | None

    def __init__(self, values: Any, valid: Mask | None = None) -> None:
        """Wrap values; `valid` is for numpy values only."""
        self.values = values
        self.valid = valid

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_arrow(self) -> bool:
        """Whether the values are an Arrow array."""
        return not isinstance(self.values, np.ndarray)

    def take(self, indices: Indices) -> Column:
        """Return the values at these positions."""
        if isinstance(self.values, np.ndarray):
            return Column(self.values.take(indices), None if self.valid is None else self.valid.take(indices))
        return Column(self.values.take(pa.array(indices)))

    def slice(self, start: int, stop: int) -> Column:
        """Return the values from start to stop, without copying."""
        if isinstance(self.values, np.ndarray):
            return Column(self.values[start:stop], None if self.valid is None else self.valid[start:stop])
        return Column(self.values.slice(start, stop - start))

    def is_valid(self) -> Mask:
        """Return a mask of the values that are not NULL."""
        if isinstance(self.values, np.ndarray):
            return np.ones(len(self.values), np.bool_) if self.valid is None else self.valid
        if self.values.null_count == 0:
            return np.ones(len(self.values), np.bool_)
        mask: Mask = self.values.is_valid().to_numpy(zero_copy_only=False)
        return mask

    @property
    def nbytes(self) -> int:
        """Bytes of the values that this column refers to."""
        if isinstance(self.values, np.ndarray):
            return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)
        return int(self.values.nbytes)


class Unread(Column):
    """Placeholder for a column that was left out because it will not be read."""

    __slots__ = ()

    def __init__(self) -> None:
        """There are no values."""

    def take(self, indices: Indices) -> Column:
        """Stay unread."""
        return self

    def slice(self, start: int, stop: int) -> Column:
        """Stay unread."""
        return self

    @property
    def nbytes(self) -> int:
        """Always 0."""
        return 0


UNREAD = Unread()


class Chosen(Column):
    """Some values of a column, taken on first access."""

    __slots__ = ("_column", "_indices", "_taken")

    def __init__(self, column: Column, indices: Indices) -> None:
        self._column = column
        self._indices = indices
        self._taken: Column | None = None

    def _take(self) -> Column:
        if self._taken is None:
            self._taken = self._column.take(self._indices)
        return self._taken

    @property
    def values(self) -> Any:
        """The values."""
        return self._take().values

    @property
    def valid(self) -> Mask | None:  # type: ignore[override]
        """Where they are not NULL."""
        return self._take().valid

    def __len__(self) -> int:
        return len(self._indices)

    def take(self, indices: Indices) -> Column:
        """Return some of the values."""
        return self._take().take(indices)

    def slice(self, start: int, stop: int) -> Column:
        """Return a part of the values."""
        return self._take().slice(start, stop)

    @property
    def nbytes(self) -> int:
        """Bytes that the values take, or would take."""
        return self._column.nbytes * len(self._indices) // max(1, len(self._column))


def from_arrow(array: pa.Array | pa.ChunkedArray) -> Column:
    """View an Arrow array as a column; its type must be one that `schema.normalise` returns."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):  # combine_chunks of a long string array may stay chunked
            array = pa.concat_arrays(array.chunks)
    dtype = _NUMPY.get(array.type)
    if dtype is None:
        return Column(array)
    valid = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    if dtype == np.bool_:
        filled = array if valid is None else pc.fill_null(array, False)
        return Column(filled.to_numpy(zero_copy_only=False), valid)
    if array.buffers()[1] is None:  # all NULL, or empty
        return Column(np.zeros(len(array), dtype), valid)
    values = np.frombuffer(array.buffers()[1], dtype, count=array.offset + len(array))[array.offset :]
    return Column(values, valid)


def to_arrow(column: Column, type_: pa.DataType) -> pa.Array:
    """Return the column as an Arrow array of its type; no copy where there are no NULLs or booleans."""
    return exporter(type_)(column)


@lru_cache(maxsize=1024)
def exporter(type_: pa.DataType) -> Callable[[Column], pa.Array]:
    """Return a function that turns columns of a type into Arrow arrays: looking up a type costs more than exporting."""
    dtype = _NUMPY.get(type_)

    def export_arrow(column: Column) -> pa.Array:
        values = column.values
        return values if values.type == type_ else values.cast(type_)

    if dtype is None:
        return export_arrow

    def export(column: Column) -> pa.Array:
        values = column.values
        if values.dtype != dtype:
            values = values.astype(dtype)
        if column.valid is None and dtype != np.bool_:
            return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
        storage = pa.array(values, mask=None if column.valid is None else ~column.valid)
        return storage if storage.type == type_ else storage.view(type_)

    return export


def quiet() -> np.errstate:
    """Return a context in which numpy does not warn of infinities and NaN, which are values like any other.

    Expressions and kernels rely on it: whatever runs them enters it once per thread, because entering it for each
    call would cost more than many a call. It holds for the current thread.
    """
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def as_floats(column: Column) -> npt.NDArray[np.float64]:
    """Return a column of numbers as floats, NaN where it is NULL; copies only if needed."""
    if not isinstance(column.values, np.ndarray):
        decimals: npt.NDArray[np.float64] = column.values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return decimals
    floats = column.values.astype(np.float64, copy=column.valid is not None)
    if column.valid is not None:
        floats[~column.valid] = np.nan
    return floats


def concat(columns: Sequence[Column]) -> Column:
    """Concatenate the columns."""
    if len(columns) == 1:
        return columns[0]
    if not isinstance(columns[0].values, np.ndarray):
        return Column(pa.concat_arrays([column.values for column in columns]))
    values = np.concatenate([column.values for column in columns])
    if all(column.valid is None for column in columns):
        return Column(values)
    return Column(values, np.concatenate([column.is_valid() for column in columns]))


def truth(answer: Column) -> Mask:
    """Return where a predicate is true; NULL is not true."""
    mask: Mask = answer.values if answer.valid is None else answer.values & answer.valid
    return mask


def nulls(count: int, type_: pa.DataType) -> Column:
    """Return a column of NULLs."""
    dtype = _NUMPY.get(type_)
    if dtype is None:
        return Column(pa.nulls(count, type_))
    return Column(np.zeros(count, dtype), np.zeros(count, np.bool_))


@lru_cache(maxsize=1024)
def empty(type_: pa.DataType) -> Column:
    """Return a column without values."""
    return from_arrow(pa.array([], type_))


def from_pylist(values: Sequence[object], type_: pa.DataType) -> Column:
    """Return a column of Python values, for tests and small data."""
    return from_arrow(pa.array(values, type_))


def splitmix64(values: Hashes) -> Hashes:
    """Return the hash of each value: a bijection on 64 bits that scatters neighbouring values."""
    mixed: Hashes = values + GOLDEN
    shifted = np.empty_like(mixed)
    for shift, factor in _ROUNDS:  # in place: a drop box must cost less than it saves
        np.right_shift(mixed, shift, out=shifted)
        mixed ^= shifted
        mixed *= factor
    np.right_shift(mixed, np.uint64(31), out=shifted)
    mixed ^= shifted
    return mixed
