"""Columns: Arrow arrays seen through numpy."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column, concat, from_arrow, from_pylist, nulls, numpy_type, to_arrow
from headway.network.schema import TIMESTAMP, TIMESTAMP_NTZ

EXAMPLES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 0],
    pa.int32(): [1, 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.float32(): [0.5, float("inf")],
    pa.float64(): [0.1, -0.0],
    pa.date32(): [date(1960, 1, 1), date(2100, 2, 3)],
    TIMESTAMP: [datetime(2020, 1, 1, tzinfo=UTC), datetime(1950, 1, 1, 1, 2, 3, 4, UTC)],
    TIMESTAMP_NTZ: [datetime(2020, 1, 1), datetime(1950, 1, 1, 1, 2, 3, 4)],
    pa.string(): ["", "é"],
    pa.binary(): [b"", b"\0"],
    pa.decimal128(10, 2): [Decimal("1.25"), Decimal("-3.00")],
    pa.list_(pa.int32()): [[], [1, None]],
    pa.struct([("a", pa.int32())]): [{"a": 1}, {"a": None}],
}


@st.composite
def arrays(draw: st.DrawFn) -> pa.Array:
    type_ = draw(st.sampled_from(list(EXAMPLES)))
    array = pa.array(draw(st.lists(st.sampled_from([*EXAMPLES[type_], None]), max_size=12)), type_)
    start = draw(st.integers(0, len(array)))
    return array.slice(start, draw(st.integers(0, len(array) - start)))


@given(array=arrays())
def test_there_and_back(array: pa.Array) -> None:
    column = from_arrow(array)
    assert len(column) == len(array)
    assert column.is_arrow == (numpy_type(array.type) is None)
    assert column.is_valid().tolist() == array.is_valid().to_pylist()
    back = to_arrow(column, array.type)
    back.validate(full=True)
    assert back.type == array.type
    assert back.equals(array)
    assert column.nbytes >= 0


@given(array=arrays(), data=st.data())
def test_take_slice_concat(array: pa.Array, data: st.DataObject) -> None:
    column = from_arrow(array)
    if len(array):
        at = data.draw(st.lists(st.integers(0, len(array) - 1), max_size=8))
        taken = column.take(np.array(at, np.intp))
        assert to_arrow(taken, array.type).equals(array.take(pa.array(at, pa.int64())))
    cut = data.draw(st.integers(0, len(array)))
    parts = [column.slice(0, cut), column.slice(cut, len(array))]
    assert to_arrow(parts[1], array.type).equals(array.slice(cut))
    assert to_arrow(concat(parts), array.type).equals(array)


@pytest.mark.parametrize("type_", EXAMPLES, ids=str)
def test_nulls_and_chunks(type_: pa.DataType) -> None:
    none = nulls(3, type_)
    assert to_arrow(none, type_).to_pylist() == [None] * 3
    assert to_arrow(from_pylist([None, None], type_), type_).to_pylist() == [None] * 2
    chunked = pa.chunked_array([pa.array(EXAMPLES[type_], type_), pa.array([None], type_)])
    assert to_arrow(from_arrow(chunked), type_).to_pylist() == [*EXAMPLES[type_], None]
    assert len(from_arrow(pa.chunked_array([], type_))) == 0


def test_numbers_are_not_copied() -> None:
    array = pa.array([1, 2, 3], pa.int64())
    column = from_arrow(array)
    assert column.values.ctypes.data == array.buffers()[1].address
    assert to_arrow(column, pa.int64()).buffers()[1].address == array.buffers()[1].address


def test_a_column_is_cast_to_the_type_asked_for() -> None:
    assert to_arrow(Column(np.array([1, 2], np.int64)), pa.int32()).type == pa.int32()
    assert to_arrow(Column(pa.array(["x"], pa.large_string())), pa.string()).type == pa.string()
