"""Partitions against a dictionary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, from_pylist, to_arrow
from headway.kernels.partitions import Partitions
from tests.kernels.helpers import few

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-3, 3) | st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 1, 10**6, -(10**6)]),
    pa.int8(): st.integers(-128, 127),
    pa.string(): st.sampled_from(["", "a", "é", "\0nan", "nan", "0"]),
    pa.float64(): st.sampled_from([0.0, -0.0, float("nan"), 1.5, float("inf")]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="UTC"): st.datetimes(timezones=st.just(__import__("datetime").UTC)),
    pa.decimal128(6, 2): st.decimals(-999, 999, places=2),
}


def _key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        "NaN!" if isinstance(one, float) and math.isnan(one) else one + 0 if isinstance(one, float) else one
        for one in row
    )


def _same(one: Any, other: Any) -> bool:
    return _key((one,)) == _key((other,))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[tuple[Any, ...]]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    nullable = draw(st.booleans())
    fields = [VALUES[type_] | st.none() if nullable else VALUES[type_] for type_ in types]
    rows = st.lists(st.tuples(*fields), max_size=12)
    return types, draw(st.lists(rows, min_size=1, max_size=4))


def _columns(types: Sequence[pa.DataType], rows: Sequence[tuple[Any, ...]]) -> list[Column]:
    return [from_pylist([row[at] for row in rows], type_) for at, type_ in enumerate(types)]


@few
@given(table=tables(), restore=st.booleans())
def test_numbered_by_first_appearance(
    table: tuple[list[pa.DataType], list[list[tuple[Any, ...]]]], restore: bool
) -> None:
    types, trains = table
    partitions = Partitions(types)
    known: dict[tuple[Any, ...], int] = {}
    firsts: list[tuple[Any, ...]] = []
    for rows in trains:
        expected = []
        for row in rows:
            key = _key(row)
            if key not in known:
                known[key] = len(known)
                firsts.append(row)
            expected.append(known[key])
        assert partitions.codes(_columns(types, rows), len(rows)).tolist() == expected
        assert partitions.count == len(known)
        if restore:
            saved = partitions.dump()
            partitions = Partitions(types)
            partitions.restore(saved)
            assert partitions.count == len(known)
    columns = partitions.columns(np.arange(partitions.count))
    for at, (column, type_) in enumerate(zip(columns, types, strict=True)):
        values = to_arrow(column, type_).to_pylist()
        assert all(_same(one, row[at]) for one, row in zip(values, firsts, strict=True))


def test_without_fields_there_is_one_partition() -> None:
    partitions = Partitions([])
    assert partitions.codes([], 3).tolist() == [0, 0, 0]
    assert (partitions.count, partitions.columns(np.zeros(2, np.int64)), partitions.dump()) == (1, (), {})


@pytest.mark.parametrize("type_", [pa.int32(), pa.int64()])
def test_integers_that_drift_far_apart(type_: pa.DataType) -> None:
    partitions = Partitions([type_])
    dtype = np.int32 if type_ == pa.int32() else np.int64
    known: dict[int, int] = {}
    for at in range(0, 60):
        keys = [at * 400_000 - 10, -at, at * at]
        expected = [known.setdefault(key, len(known)) for key in keys]
        assert partitions.codes([Column(np.array(keys, dtype))], 3).tolist() == expected


def test_a_null_after_integers_and_integers_after_a_null() -> None:
    partitions = Partitions([pa.int64()])
    for keys, codes in (([5, 6], [0, 1]), ([None, 5], [2, 0]), ([7, 6], [3, 1]), ([None], [2])):
        assert partitions.codes([from_pylist(keys, pa.int64())], len(keys)).tolist() == codes


def test_very_many_combinations_in_one_train() -> None:
    count = 9_000
    chance = np.random.default_rng(3)
    columns = [Column(chance.permutation(count) * 10**12) for _ in range(6)]
    partitions = Partitions([pa.int64()] * 6)
    doubled = [Column(np.concatenate([one.values, one.values])) for one in columns]
    codes = partitions.codes(doubled, 2 * count)
    assert partitions.count == count
    assert codes.tolist() == [*range(count), *range(count)]
    for column, known in zip(columns, partitions.columns(np.arange(count)), strict=True):
        assert (column.values == known.values).all()
