"""Which shard a tuple belongs to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import from_pylist
from headway.engines.spark.worker.tasks import shard_keys, shards_of, spark_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = (0, 1, 2, 7, 42, 255, 65_536, 2**31 - 1, -1, -42, -(2**31), *range(1000, 1100))
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-3, 3),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.sampled_from((0.0, -0.0, math.nan, 1.5, -1.5, math.inf)),
    pa.float32(): st.sampled_from((0.0, -0.0, math.nan, 1.5)),
    pa.string(): st.sampled_from(("", "a", "b", "é", "NULL")),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(10, 2): st.decimals(-9, 9, places=2),
}


def _same(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(number,) for number in NUMBERS], "n int")
    assert [row[0] for row in frame.selectExpr("hash(n)").collect()] == [spark_hash(number) for number in NUMBERS]


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 64])
def test_every_shard_has_a_key_that_spark_puts_into_its_task(shards: int) -> None:
    keys = shard_keys(shards)
    assert [spark_hash(key) % shards for key in keys] == list(range(shards))
    assert len(set(keys)) == shards


@settings(deadline=None)
@given(type_=st.sampled_from(list(TYPES)), shards=st.integers(1, 5), data=st.data())
def test_equal_values_have_equal_shards(type_: pa.DataType, shards: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | TYPES[type_], min_size=1, max_size=20))
    found = shards_of([from_pylist(values, type_)], len(values), shards).tolist()
    assert all(0 <= shard < shards for shard in found)
    for at, one in enumerate(values):
        for other, shard in zip(values[:at], found[:at], strict=True):
            assert not _same(one, other) or shard == found[at]
    # Nor does it matter which other values come along.
    alone = [int(shards_of([from_pylist([value], type_)], 1, shards)[0]) for value in values]
    assert alone == found


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("ab")), min_size=1),
    shards=st.integers(1, 5),
)
def test_several_fields(pairs: list[tuple[int | None, str | None]], shards: int) -> None:
    columns = [from_pylist([one for one, _ in pairs], pa.int32()), from_pylist([one for _, one in pairs], pa.string())]
    found = shards_of(columns, len(pairs), shards).tolist()
    known: dict[Any, int] = {}
    assert all(known.setdefault(pair, shard) == shard for pair, shard in zip(pairs, found, strict=True))


def test_signs_of_zero_kinds_of_nan_and_nulls() -> None:
    nan = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.int64()).view(pa.float64()).to_pylist()
    zeros = shards_of([from_pylist([0.0, -0.0], pa.float64())], 2, 64).tolist()
    nans = shards_of([from_pylist(nan, pa.float64())], 2, 64).tolist()
    nulls = shards_of([from_pylist([None, None, 0], pa.int32())], 3, 64).tolist()
    assert zeros[0] == zeros[1]
    assert nans[0] == nans[1]
    assert nulls[0] == nulls[1] != nulls[2], "NULL is a value of its own"


def test_partitions_are_spread_evenly() -> None:
    for column in (
        from_pylist(list(range(4000)), pa.int64()),
        from_pylist([f"k{n}" for n in range(4000)], pa.string()),
    ):
        found = shards_of([column], 4000, 4).tolist()
        assert all(800 < found.count(shard) < 1200 for shard in range(4))


def test_a_shard_never_changes() -> None:
    """State on disk depends on it."""
    integers = shards_of([from_pylist([0, 1, 2, 3, None], pa.int64())], 5, 16).tolist()
    strings = shards_of([from_pylist(["a", "b", "", None], pa.string())], 4, 16).tolist()
    assert (integers, strings) == (INTEGERS, STRINGS)


INTEGERS = [15, 1, 14, 13, 4]
STRINGS = [8, 4, 7, 13]
