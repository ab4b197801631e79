"""Grouping of tuples by (partition, cell), where a cell is a window, a pane or a step of the frontier.

The usual train ascends in the order field, so nothing in it is out of order. Then a tuple's group is a sum of its key
and its window, which does not depend on the box: the first box that reads a train computes it, and the train keeps it
for the others, including those that see only the tuples that a filter chose. Each box then only has to count, and to
look up the few groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headway.columns import Column, Indices, Int64s, Values
from headway.kernels.grid import Grid, band, near
from headway.kernels.order import OrderedInput, OrderState, last_places
from headway.trains import Train, ascends

_DENSE_FLOOR = 4096
_FIRST: Int64s = np.zeros(1, np.int64)
_FIRST.flags.writeable = False
"""The index of the only tuple of a train, and of the only group."""
_BACKWARDS: Int64s = np.arange(65_535, -1, -1, dtype=np.int64)


class Groups(NamedTuple):
    """Tuples by group.

    `ids` are the tuples' groups, as indices into arrays of length `size`; `at` are the ids that occur, sorted by
    (partition, cell), with their `partition`, `cell` and the position of their `first` tuple. `counts`, if known, is
    the number of tuples by id.
    """

    ids: Int64s
    size: int
    at: Indices
    partition: Int64s
    cell: Int64s
    first: Int64s
    counts: Int64s | None = None


def group(partition: Int64s, cell: Int64s, partitions: int, ascending: bool = False) -> Groups:
    """Group tuples; the ids are computed if cells and partitions are few, otherwise found by sorting.

    `ascending` says that the cells ascend.
    """
    count = len(cell)
    if count == 1:
        return Groups(_FIRST, 1, _FIRST, partition, cell, _FIRST)
    low, high = (int(cell[0]), int(cell[-1])) if ascending else (int(cell.min()), int(cell.max()))
    span = high - low + 1
    if span * partitions <= max(2 * count, _DENSE_FLOOR):
        if partitions > 1:
            ids = partition * span
            ids += cell
            ids -= low
        else:
            ids = cell - low
        size = span * partitions
        first = np.full(size, -1, np.int64)
        first[ids[::-1]] = backwards(count)  # the last write wins, so write backwards
        at = np.flatnonzero(first >= 0)
        return Groups(ids, size, at, at // span, at % span + low, first[at])
    keys = composite(partition, cell)
    _, first, ids = np.unique(keys, return_index=True, return_inverse=True)
    size = len(first)
    return Groups(ids, size, np.arange(size), partition[first], cell[first], first.astype(np.int64))


def backwards(count: int) -> Int64s:
    """Return count - 1 to 0."""
    if count <= len(_BACKWARDS):
        return _BACKWARDS[len(_BACKWARDS) - count :]
    return np.arange(count - 1, -1, -1)


def composite(partition: Int64s, cell: Int64s) -> Int64s:
    """Return one number for each (partition, cell) that sorts like the pair; only comparable within one call."""
    if len(cell) == 0:
        return np.zeros(0, np.int64)
    low, high = int(cell.min()), int(cell.max())
    if (high - low + 1) * (int(partition.max()) + 1) < 1 << 62:
        return partition * (high - low + 1) + (cell - low)
    distinct, ranks = np.unique(cell, return_inverse=True)
    return partition * len(distinct) + ranks


def composites(*pairs: tuple[Int64s, Int64s]) -> list[Int64s]:
    """Return comparable numbers for several sets of (partition, cell)."""
    keys = composite(np.concatenate([p for p, _ in pairs]), np.concatenate([c for _, c in pairs]))
    parts, at = [], 0
    for partition, _ in pairs:
        parts.append(keys[at : at + len(partition)])
        at += len(partition)
    return parts


def ranges(pairs: tuple[Int64s, Int64s], partition: Int64s, first: Int64s, after: Int64s) -> tuple[Int64s, Int64s]:
    """Return where the cells [first, after) of partitions start and stop among sorted pairs of (partition, cell)."""
    mine, low, high = composites(pairs, (partition, first), (partition, after))
    return np.searchsorted(mine, low), np.searchsorted(mine, high)


def expand(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
    """Return, for ranges [start, stop), the range that each element belongs to and all elements in order."""
    lengths = stops - starts
    owners = np.repeat(np.arange(len(starts)), lengths)
    offsets = np.cumsum(lengths) - lengths
    elements = np.arange(int(lengths.sum())) - offsets[owners] + starts[owners]
    return owners, elements


class KeyIndex(NamedTuple):
    """Tuples sorted by (key, value): the distinct values, and by tuple a number that sorts as (key, value)."""

    distinct: Values
    numbers: Int64s

    @classmethod
    def of(cls, keys: Int64s, values: Values) -> KeyIndex:
        """Return the index of tuples, in their order."""
        distinct, ranks = np.unique(values, return_inverse=True)
        return cls(distinct, keys * (len(distinct) + 1) + ranks)

    def above(self, keys: Int64s, values: Values) -> Int64s:
        """Return numbers above those of a key's tuples up to a value, but not above those of its other tuples."""
        return keys * (len(self.distinct) + 1) + self.distinct.searchsorted(values, "right")

    def within(self, keys: Int64s, values: Values, size: Any) -> tuple[Int64s, Int64s]:
        """Return the ranges of tuples with these keys and within the size of these values, wider for floats."""
        low, high = band(values, size)
        lowest = keys * (len(self.distinct) + 1) + self.distinct.searchsorted(low)
        return self.numbers.searchsorted(lowest), self.numbers.searchsorted(self.above(keys, high))


def close_pairs(starts: Int64s, stops: Int64s, values: Values, others: Values, size: Any) -> tuple[Int64s, Int64s]:
    """Return the pairs of values and others in their ranges, by index, without floats beyond the size."""
    owners, at = expand(starts, stops)
    if size is not None and values.dtype.kind == "f":
        close = near(values[owners], others[at], size)
        owners, at = owners[close], at[close]
    return owners, at


SHORTEST = 256
"""Shorter trains are grouped in the general way, which costs less than preparing for sharing."""

_MOST_KEYS = 4096


class Grouping(NamedTuple):
    """A train's tuples by (key, window): ``ids = (key - least) * span + (window - low)``."""

    ids: Int64s
    values: Values
    least: int
    keys: int
    low: int
    span: int
    edges: Int64s
    """Where each window's tuples begin."""


def group_ascending(train: Train, order: OrderedInput, grid: Grid, state: OrderState) -> Groups | None:
    """Group a train's tuples, and advance the frontiers of its partitions.

    None if the train is short, does not ascend from the frontiers on, or has too many keys or windows for its length;
    then nothing changes.
    """
    base, chosen = train.base or (train, None)
    if len(train) < SHORTEST:
        return None
    memo = base.memo = {} if base.memo is None else base.memo
    name = (order.on, order.by, grid.size, grid.advance)
    if name not in memo:
        memo[name] = _grouping(base, order, grid)
    grouping: Grouping | None = memo[name]
    if grouping is None:
        return None
    values = grouping.values
    if values[0 if chosen is None else chosen[0]] < state.frontiers.highest:
        return None
    ids = grouping.ids if chosen is None else grouping.ids.take(chosen)
    counts = np.bincount(ids, minlength=grouping.keys * grouping.span)
    first = _first_tuples(ids, counts, grouping, chosen)
    at = np.flatnonzero(counts)
    key = at // grouping.span
    partition_of = _partitions(key, first[at], train.numbers, grouping, order, state)
    partition, cell = partition_of[key], at % grouping.span
    by_partition = np.argsort(partition * grouping.span + cell)
    at = at[by_partition]
    _note_last(ids, values, chosen, grouping, partition_of, state)
    cells = cell[by_partition] + grouping.low
    return Groups(ids, len(counts), at, partition[by_partition], cells, first[at], counts)


def _grouping(train: Train, order: OrderedInput, grid: Grid) -> Grouping | None:
    column = train.columns[order.on]
    values = column.values.astype(order.dtype, copy=False)
    if column.valid is not None or not ascends(values) or (order.dtype.kind == "f" and np.isnan(values[-1])):
        return None
    least_value, greatest_value = grid.bounds()
    if values[0] < least_value or values[-1] > greatest_value:
        return None
    ends = grid.index(values[[0, -1]])
    low, span = int(ends[0]), int(ends[1]) - int(ends[0]) + 1
    least, keys = 0, 1
    if order.by:
        by = train.columns[order.by[0]]
        if by.is_arrow or by.valid is not None or by.values.dtype.kind != "i":
            return None
        least = int(by.values.min())
        keys = int(by.values.max()) - least + 1
    if keys > _MOST_KEYS or span * keys > max(len(values), 4096):
        return None
    edges = np.searchsorted(values, grid.start(np.arange(low, low + span)))
    edges[0] = 0
    if order.by:
        ids = train.columns[order.by[0]].values.astype(np.int64)
        ids -= least
        ids *= span
    else:
        ids = np.zeros(len(values), np.int64)
    for window, start in enumerate(edges.tolist()):
        if window:
            ids[start : edges[window + 1] if window + 1 < span else len(ids)] += window
    return Grouping(ids, values, least, keys, low, span, edges)


def _first_tuples(ids: Int64s, counts: Int64s, grouping: Grouping, chosen: Indices | None) -> Int64s:
    """Return the first tuple of every group, searching near the beginning of its window, then everywhere."""
    first = np.full(len(counts), -1, np.int64)
    head = 12 * grouping.keys
    if 2 * head * grouping.span < len(ids):
        starts = grouping.edges if chosen is None else np.searchsorted(chosen, grouping.edges)
        # A head that is longer than its window runs into the next: writing goes backwards, so each group keeps the
        # earliest tuple written.
        rows = np.minimum(starts[:, None] + np.arange(head), len(ids) - 1)[::-1, ::-1].ravel()
        first[ids[rows]] = rows
        if ((first >= 0) == (counts > 0)).all():
            return first
    first[ids[::-1]] = backwards(len(ids))
    return first


def _partitions(
    key: Int64s, first: Int64s, numbers: Int64s, grouping: Grouping, order: OrderedInput, state: OrderState
) -> Int64s:
    """Return the partition of every key that occurs, by key; new ones are numbered as they appear."""
    if not order.by:
        state.grow()
        return np.zeros(1, np.int64)
    partition_of = np.full(grouping.keys, -1, np.int64)
    present = key[np.flatnonzero(np.diff(key, prepend=-1))]
    known = state.partitions.find(present + grouping.least)
    if known is not None:
        partition_of[present] = known
        return partition_of
    earliest = np.full(grouping.keys, len(grouping.ids), np.int64)
    np.minimum.at(earliest, key, first)
    present = present[np.argsort(earliest[present])]
    before = state.partitions.count
    partition_of[present] = state.partitions.codes([Column(present + grouping.least)], len(present))
    state.meet(before, partition_of[present], numbers[earliest[present]])
    return partition_of


def _note_last(
    ids: Int64s,
    values: Values,
    chosen: Indices | None,
    grouping: Grouping,
    partition_of: Int64s,
    state: OrderState,
) -> None:
    """Record the last value of every key as its partition's largest."""
    present = partition_of >= 0
    rows = last_places(ids, grouping.keys, grouping.span, present)[present]
    last = values[rows if chosen is None else chosen[rows]]
    state.frontiers.note(partition_of[present], last)
