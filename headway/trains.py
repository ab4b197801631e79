"""Trains: the tuples that one box call processes, with their hidden values."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from headway.columns import UNREAD, Chosen, Column, Indices, Int64s, Mask, concat, empty, from_arrow, to_arrow
from headway.network.schema import Schema

NOTHING = -1
"""The progress of an arc on which nothing is known yet; arrival numbers start at 0."""


_NONE: Int64s = np.zeros(0, np.int64)


def constant(value: int, count: int) -> Int64s:
    """Return one number many times without the memory: tuples that entered together share their timestamp."""
    made: Int64s = np.ndarray((count,), np.int64, np.int64(value).tobytes(), 0, (0,))  # broadcast_to is slow
    return made


def is_constant(numbers: Int64s) -> bool:
    """Return whether the array is one that `constant` made, or part of one."""
    return numbers.strides[0] == 0


def ascends(numbers: Int64s) -> bool:
    """Return whether numbers never decrease."""
    return is_constant(numbers) or len(numbers) < 2 or bool((numbers[1:] >= numbers[:-1]).all())


def take_numbers(numbers: Int64s, indices: Indices) -> Int64s:
    """Return the numbers at these positions; constant ones stay so."""
    if is_constant(numbers) and len(numbers):
        return constant(int(numbers[0]), len(indices))
    return numbers.take(indices)


class Tick(NamedTuple):
    """A clock tick that travels like a tuple, so that a replay sees the same ticks at the same places."""

    number: int
    moment: int


class Train:
    """Tuples of one stream in their order, as columns, with their hidden values.

    `stamps` are the QoS timestamps (nanoseconds), `numbers` the arrival numbers, ascending. `progress` is
    the arrival number up to which nothing more will come after this train. `ticks` lie between the tuples
    by their numbers. `end` says that the stream ends with this train. Immutable by convention, because
    trains share columns: a frozen dataclass would say so, but costs a microsecond more to make, which is
    a tenth of a box call on one tuple.
    """

    __slots__ = ("base", "columns", "end", "memo", "numbers", "progress", "stamps", "ticks")

    def __init__(
        self,
        columns: tuple[Column, ...],
        stamps: Int64s,
        numbers: Int64s,
        progress: int = NOTHING,
        ticks: tuple[Tick, ...] = (),
        end: bool = False,
    ) -> None:
        self.columns = columns
        self.stamps = stamps
        self.numbers = numbers
        self.progress = progress
        self.ticks = ticks
        self.end = end
        self.base: tuple[Train, Indices] | None = None
        """The train from which a filter chose these tuples, and where, if their columns have not been taken yet."""
        self.memo: dict[Any, Any] | None = None
        """What one kernel computed about this train, for other kernels that read it."""

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns, hidden ones included."""
        return 16 * len(self.numbers) + sum([column.nbytes for column in self.columns])

    def slice(self, start: int, stop: int) -> Train:
        """Return the tuples from start to stop, without copying, and without ticks and end.

        It has this train's progress only if it reaches the last tuple, otherwise the last complete arrival number.
        """
        count = len(self.numbers)
        if start == 0 and stop >= count and not self.ticks and not self.end:
            return self
        progress = self.progress if stop >= count else int(self.numbers[stop]) - 1
        return Train(
            tuple([column.slice(start, stop) for column in self.columns]),
            self.stamps[start:stop],
            self.numbers[start:stop],
            progress,
        )

    def take(self, indices: Indices) -> Train:
        """Return the tuples at these positions, with this train's progress, ticks and end."""
        stamps, numbers = take_numbers(self.stamps, indices), self.numbers.take(indices)
        columns = tuple([column.take(indices) for column in self.columns])
        return Train(columns, stamps, numbers, self.progress, self.ticks, self.end)

    def choose(self, indices: Indices, wanted: Container[int]) -> Train:
        """Return the tuples at these positions, with only the columns wanted, taken on first access."""
        stamps, numbers = take_numbers(self.stamps, indices), self.numbers.take(indices)
        columns = [Chosen(column, indices) if at in wanted else UNREAD for at, column in enumerate(self.columns)]
        chosen = Train(tuple(columns), stamps, numbers, self.progress, self.ticks, self.end)
        chosen.base = (self, indices)
        return chosen

    def with_columns(self, columns: Sequence[Column]) -> Train:
        """Return the same tuples with other fields."""
        return Train(tuple(columns), self.stamps, self.numbers, self.progress, self.ticks, self.end)

    def to_batch(self, schema: pa.Schema) -> pa.RecordBatch:
        """Return the user's fields as an Arrow record batch; numbers and times are not copied."""
        arrays = [to_arrow(column, type_) for column, type_ in zip(self.columns, schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    @classmethod
    def from_batch(
        cls,
        batch: pa.RecordBatch,
        stamps: Int64s | None = None,
        numbers: Int64s | None = None,
        progress: int | None = None,
    ) -> Train:
        """View an Arrow record batch as a train; by default, numbers count from 0 and stamps are 0."""
        count = batch.num_rows
        if numbers is None:
            numbers = np.arange(count, dtype=np.int64)
        if stamps is None:
            stamps = np.zeros(count, np.int64)
        if progress is None:
            progress = int(numbers[-1]) if count else NOTHING
        return cls(tuple(from_arrow(column) for column in batch.columns), stamps, numbers, progress)

    @classmethod
    def empty(cls, schema: Schema, progress: int = NOTHING, ticks: tuple[Tick, ...] = (), end: bool = False) -> Train:
        """Return a train without tuples, which can still carry progress."""
        return cls(tuple([empty(field.type) for field in schema.fields]), _NONE, _NONE, progress, ticks, end)


class Aligned:
    """Base of dataclasses of parallel arrays, columns and trains with one entry per tuple."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]

    def __len__(self) -> int:
        return len(getattr(self, self.__match_args__[0]))

    def take(self, at: Indices) -> Self:
        """Return some of the entries."""
        every = [getattr(self, name) for name in self.__match_args__]
        return type(self)(
            *[tuple([column.take(at) for column in one]) if isinstance(one, tuple) else one.take(at) for one in every]
        )

    def keep(self, mask: Mask) -> Self:
        """Return the entries for which the mask is true; self if these are all."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Concatenate several; may return one of them."""
        filled = [part for part in parts if len(part)]
        if len(filled) == 1 and type(filled[0]) is cls:
            return filled[0]
        return cls(*[_join([getattr(part, name) for part in parts]) for name in cls.__match_args__])


def _join(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if isinstance(parts[0], Train):
        return join_trains(parts)
    return tuple([concat(columns) for columns in zip(*parts, strict=True)])


def join_trains(trains: Sequence[Train]) -> Train:
    """Concatenate consecutive trains of one stream."""
    if len(trains) == 1:
        return trains[0]
    width = len(trains[0].columns)
    return Train(
        tuple([concat([train.columns[at] for train in trains]) for at in range(width)]),
        np.concatenate([train.stamps for train in trains]),
        np.concatenate([train.numbers for train in trains]),
        trains[-1].progress,
        tuple([tick for train in trains for tick in train.ticks]),
        trains[-1].end,
    )


def merge(trains: Sequence[Train]) -> Train:
    """Return trains of several streams as one, sorted by arrival number; equal numbers come in the streams' order."""
    marks = common_marks(trains)
    filled = [train for train in trains if len(train)]
    merged = filled[0] if filled else trains[0]
    if len(filled) > 1:
        merged = join_trains(filled)
        merged = merged.take(np.argsort(merged.numbers, kind="stable"))
    return Train(merged.columns, merged.stamps, merged.numbers, marks.progress, marks.ticks, marks.end)


def common_marks(trains: Sequence[Train]) -> Train:
    """Return an empty train with the progress, the ticks and the end common to trains of several streams."""
    # The same tick arrives on every input; it counts once.
    ticks = tuple(sorted({tick for train in trains for tick in train.ticks}))
    return Train((), _NONE, _NONE, min(train.progress for train in trains), ticks, all(train.end for train in trains))


def arrival_places(trains: Sequence[Train]) -> Int64s:
    """Return for each tuple, train after train, its place in the merged order of arrival, from 0."""
    order = np.argsort(np.concatenate([train.numbers for train in trains]), kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
