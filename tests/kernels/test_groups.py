"""Grouping by (partition, cell)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.kernels.groups import composite, composites, expand, group
from tests.kernels.helpers import few

cells = st.integers(-4, 4) | st.integers(-(2**61), 2**61)
pairs = st.lists(st.tuples(st.integers(0, 4), cells), min_size=1, max_size=30)


def _arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    return np.array([p for p, _ in rows], np.int64), np.array([c for _, c in rows], np.int64)


@few
@given(rows=pairs)
def test_group(rows: list[tuple[int, int]]) -> None:
    partition, cell = _arrays(rows)
    groups = group(partition, cell, 5)
    distinct = sorted(set(rows))
    assert list(zip(groups.partition.tolist(), groups.cell.tolist(), strict=True)) == distinct
    assert groups.first.tolist() == [rows.index(one) for one in distinct]
    place = {int(at): one for at, one in zip(groups.at, distinct, strict=True)}
    assert [place[int(one)] for one in groups.ids] == rows
    assert groups.size > int(groups.ids.max())


def test_a_long_train_of_few_groups() -> None:
    count = 200_000
    partition, cell = np.arange(count) % 3, np.arange(count) // 100_000
    groups = group(partition, cell, 3)
    assert groups.cell.tolist() == [0, 1] * 3
    assert groups.first.tolist() == [0, 100_002, 1, 100_000, 2, 100_001]


@few
@given(rows=pairs, more=pairs)
def test_composites_sort_like_the_pairs(rows: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    one, other = composites(_arrays(rows), _arrays(more))  # type: ignore[arg-type]
    keys = [*one.tolist(), *other.tolist()]
    both = rows + more
    assert sorted(range(len(both)), key=keys.__getitem__) == sorted(range(len(both)), key=both.__getitem__)
    assert [keys[a] == keys[0] for a in range(len(both))] == [one == both[0] for one in both]
    none = np.zeros(0, np.int64)
    assert len(composite(none, none)) == 0


@few
@given(ranges=st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 4)), max_size=8))
def test_expand(ranges: list[tuple[int, int]]) -> None:
    starts = np.array([start for start, _ in ranges], np.int64)
    stops = np.array([start + length for start, length in ranges], np.int64)
    owners, elements = expand(starts, stops)
    expected = [(at, one) for at, (start, length) in enumerate(ranges) for one in range(start, start + length)]
    assert list(zip(owners.tolist(), elements.tolist(), strict=True)) == expected
