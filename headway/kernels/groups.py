"""Grouping of tuples by (partition, cell), where a cell is a window, a pane or a step of the frontier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headway.columns import Indices, Int64s

_DENSE_FLOOR = 4096
_BACKWARDS: Int64s = np.arange(65_535, -1, -1, dtype=np.int64)


class Groups(NamedTuple):
    """Tuples by group.

    `ids` are the tuples' groups, as places in arrays of length `size`; `at` are the ids that occur, sorted by
    (partition, cell), with their `partition`, `cell` and the position of their `first` tuple.
    """

    ids: Int64s
    size: int
    at: Indices
    partition: Int64s
    cell: Int64s
    first: Int64s


def group(partition: Int64s, cell: Int64s, partitions: int, ascending: bool = False) -> Groups:
    """Group tuples; where few cells meet few partitions the ids are computed, otherwise found by sorting.

    `ascending` says that the cells ascend.
    """
    count = len(cell)
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


def expand(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s]:
    """Return, for ranges [start, stop), the range that each element belongs to and all elements in order."""
    lengths = stops - starts
    owners = np.repeat(np.arange(len(starts)), lengths)
    offsets = np.cumsum(lengths) - lengths
    elements = np.arange(int(lengths.sum())) - offsets[owners] + starts[owners]
    return owners, elements
