"""HyperLogLog."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headway.columns import Column, Int64s, from_pylist
from headway.kernels.accumulators import Arrays, HyperLogLog, hash_values


def _estimates(column: Column, ids: Int64s, groups: int = 1) -> list[int]:
    sketch = HyperLogLog()
    arrays: Arrays = {"registers": np.zeros((groups, HyperLogLog.WIDTH), np.uint8)}
    sketch.add(arrays, ids, column)
    estimates: list[int] = sketch.result(arrays).values.tolist()
    return estimates


def _estimate(column: Column) -> int:
    return _estimates(column, np.zeros(len(column), np.int64))[0]


@pytest.mark.parametrize("distinct", [0, 1, 10, 100, 1000, 2500, 10_000, 100_000])
@pytest.mark.parametrize("kind", ["ascending", "spread", "double", "string"])
def test_within_ten_per_cent(distinct: int, kind: str) -> None:
    numbers = np.arange(distinct, dtype=np.int64)
    if kind == "string":
        column = from_pylist([f"key {at}" for at in numbers.tolist()], pa.string())
    elif kind == "double":
        column = Column(numbers / 7)
    elif kind == "spread":
        column = Column(numbers * 1_000_003 - 2**40)
    else:
        column = Column(numbers)
    twice = column.take(np.concatenate([np.arange(distinct), np.arange(distinct)]))
    assert _estimate(twice) == pytest.approx(distinct, rel=0.1)


def test_nulls_do_not_count_and_zeros_are_one() -> None:
    assert _estimate(from_pylist([None, None], pa.int64())) == 0
    assert _estimate(from_pylist([None, "a", None], pa.string())) == 1
    assert _estimate(Column(np.array([0.0, -0.0]))) == 1


def test_groups_are_apart() -> None:
    assert _estimates(Column(np.array([7, 8, 9])), np.array([0, 1, 1]), groups=2) == [1, 2]


def test_hashes_depend_on_values_only() -> None:
    wide, narrow = np.array([1, -5], np.int64), np.array([1, -5], np.int8)
    assert (hash_values(Column(wide)) == hash_values(Column(narrow))).all()
    texts = from_pylist(["b", "a", "b"], pa.string())
    assert hash_values(texts)[0] == hash_values(texts)[2] == hash_values(from_pylist(["b"], pa.string()))[0]
