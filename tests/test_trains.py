"""Trains."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headway.columns import Column
from headway.network.schema import Schema
from headway.trains import NOTHING, Tick, Train, join_trains

SCHEMA = Schema.parse("a bigint, s string")


def train(count: int = 4, end: bool = False, ticks: tuple[Tick, ...] = ()) -> Train:
    batch = pa.record_batch([pa.array(range(count), pa.int64()), pa.array(["x"] * count)], names=["a", "s"])
    made = Train.from_batch(batch, np.arange(count) * 10, np.arange(count) * 2, 9)
    return Train(made.columns, made.stamps, made.numbers, made.progress, ticks, end)


def test_from_a_batch_and_back() -> None:
    batch = pa.record_batch([pa.array([1, None]), pa.array(["x", None])], names=["a", "s"])
    made = Train.from_batch(batch)
    assert made.to_batch(SCHEMA.to_arrow()).to_pylist() == batch.to_pylist()
    assert made.numbers.tolist() == [0, 1]
    assert made.progress == 1
    assert Train.from_batch(batch.slice(0, 0)).progress == NOTHING


def test_a_slice_has_its_own_progress_and_no_marks() -> None:
    whole = train(end=True, ticks=(Tick(3, 7),))
    part = whole.slice(1, 3)
    assert part.numbers.tolist() == [2, 4]
    assert part.stamps.tolist() == [10, 20]
    assert part.progress == 5
    assert whole.slice(1, 4).progress == 9
    assert (part.ticks, part.end, whole.slice(0, 4).end) == ((), False, False)
    assert train().slice(0, 4).columns[0].values.tolist() == [0, 1, 2, 3]


def test_take_and_other_columns_keep_the_marks() -> None:
    whole = train(end=True, ticks=(Tick(3, 7),))
    some = whole.take(np.array([0, 3]))
    assert some.numbers.tolist() == [0, 6]
    assert (some.progress, some.ticks, some.end) == (9, (Tick(3, 7),), True)
    other = whole.with_columns([Column(np.zeros(4))])
    assert (len(other.columns), len(other), other.progress, other.end) == (1, 4, 9, True)


def test_an_empty_train_has_the_schema() -> None:
    empty = Train.empty(SCHEMA, 5)
    assert (len(empty), empty.progress, empty.nbytes) == (0, 5, 0)
    assert empty.to_batch(SCHEMA.to_arrow()).num_rows == 0


def test_joined_trains_are_the_whole() -> None:
    whole = train(6)
    parts = [whole.slice(0, 2), whole.slice(2, 2), whole.slice(2, 6)]
    joined = join_trains(parts)
    assert joined.to_batch(SCHEMA.to_arrow()).equals(whole.to_batch(SCHEMA.to_arrow()))
    assert joined.numbers.tolist() == whole.numbers.tolist()
    assert joined.progress == whole.progress
    ticking = join_trains([train(1, ticks=(Tick(1, 1),)), train(1, end=True, ticks=(Tick(2, 2),))])
    assert (ticking.ticks, ticking.end) == ((Tick(1, 1), Tick(2, 2)), True)


def test_bytes_count_the_hidden_values() -> None:
    assert train(4).nbytes == 4 * 16 + 4 * 8 + train(4).columns[1].nbytes
