"""Open windows: the store of panes, and held tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, from_pylist, to_arrow
from headway.kernels.accumulators import Count, IntegerSum
from headway.kernels.groups import expand, group
from headway.kernels.windows import HeldTuples, Store
from tests.kernels.helpers import few

Entry = tuple[int, int, int]
trains = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-3, 3) | st.integers(10**15, 10**15 + 2), st.integers(-9, 9)),
        min_size=1,
        max_size=10,
    ),
    max_size=5,
)


def _add(store: Store, rows: list[Entry], now: int) -> None:
    partition, pane, value = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    groups = group(partition, pane, 4)
    store.add(groups, value + 100, [None, Column(value)], [None, value > 0], now)


@few
@given(cut=trains, reload=st.booleans())
def test_the_store_is_a_sorted_dictionary(cut: list[list[Entry]], reload: bool) -> None:
    store = Store([Count(), IntegerSum()])
    model: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for now, rows in enumerate(cut):
        _add(store, rows, now)
        for partition, pane, value in rows:
            model.setdefault((partition, pane), []).append((value, now))
        if reload:
            saved = store.dump()
            store = Store([Count(), IntegerSum()])
            store.restore(saved)
    keys = sorted(model)
    assert list(zip(store.partition.tolist(), store.pane.tolist(), strict=True)) == keys
    assert store.stamps.tolist() == [min(value for value, _ in model[key]) + 100 for key in keys]
    assert store.opened.tolist() == [model[key][0][1] for key in keys]
    assert store.arrays[0]["n"].tolist() == [len(model[key]) for key in keys]
    assert store.arrays[1]["s"].tolist() == [sum(value for value, _ in model[key] if value > 0) for key in keys]
    if keys:
        store.keep(store.partition != 0)
        assert len(store) == sum(key[0] != 0 for key in keys)


@few
@given(cut=trains, low=st.integers(-4, 4), length=st.integers(0, 5), reload=st.booleans())
def test_held_tuples_come_back_by_window_and_order(cut: list[list[Entry]], low: int, length: int, reload: bool) -> None:
    held = HeldTuples([pa.string()], np.int64)
    rows: list[tuple[int, int, int, str]] = []
    for train in cut:
        named = [(*row, f"{len(rows) + at}") for at, row in enumerate(train)]
        rows += named
        arrays: list[Any] = [np.array([row[at] for row in named], np.int64) for at in range(3)]
        held.add(arrays[0], arrays[1], arrays[2], [from_pylist([row[3] for row in named], pa.string())])
        if reload:
            saved = held.dump()
            held = HeldTuples([pa.string()], np.int64)
            held.restore(saved)
    held.keep(lambda partition, pane: partition != 1)
    partitions = np.arange(4)
    owners, at = expand(*held.ranges(partitions, np.full(4, low), np.full(4, low + length)))
    columns = held.columns(at)
    expected = sorted(
        (row for row in rows if row[0] != 1 and low <= row[1] < low + length),
        key=lambda row: (row[0], row[1], row[2], int(row[3])),
    )
    assert owners.tolist() == [row[0] for row in expected]
    assert to_arrow(columns[0], pa.string()).to_pylist() == [row[3] for row in expected]
