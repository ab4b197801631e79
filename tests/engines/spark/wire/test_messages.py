"""Trains as bytes. Large trains travel as files."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import UNREAD, from_pylist, to_arrow
from headway.engines.spark.wire.messages import (
    LARGE,
    Packed,
    Row,
    clear,
    merge,
    pack,
    pack_counts,
    receive,
    send,
    unpack,
    unpack_counts,
)
from headway.network.schema import Schema
from headway.trains import Train, constant

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-128, 127),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(st.characters(codec="utf-8"), max_size=5),
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=st.just(dt.UTC)),
    "timestamp_ntz": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1)),
    "decimal(10,2)": st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents).scaleb(-2)),
    "array<int>": st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=3),
    "struct<a:int,b:string>": st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.text(max_size=2)}),
}
Drawn = tuple[Schema, Train]


@st.composite
def trains(draw: st.DrawFn, least: int = 0) -> Drawn:
    """A train of any types, with NULLs; numbers ascend evenly or not, stamps are all the same or not."""
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    schema = Schema.parse({f"f{at}": type_ for at, type_ in enumerate(types)})
    count = draw(st.integers(least, 12))
    columns = tuple(
        from_pylist(draw(st.lists(st.none() | VALUES[name], min_size=count, max_size=count)), type_)
        for name, type_ in zip(types, schema.types, strict=True)
    )
    if draw(st.booleans()):
        numbers = np.arange(count, dtype=np.int64) * draw(st.integers(1, 5)) + draw(st.integers(0, 99))
    else:
        numbers = np.array(sorted(draw(st.lists(st.integers(0, 99), min_size=count, max_size=count))), np.int64)
    stamp = draw(st.integers(0, 2**62))
    stamps = constant(stamp, count) if draw(st.booleans()) else np.arange(count, dtype=np.int64) + stamp
    return schema, Train(columns, stamps, numbers)


def shown(train: Train, schema: Schema) -> list[Any]:
    columns = [
        None if column is UNREAD else to_arrow(column, type_).to_pylist()
        for column, type_ in zip(train.columns, schema.types, strict=True)
    ]
    return [columns, train.numbers.tolist(), train.stamps.tolist()]


@settings(deadline=None)
@given(drawn=trains())
def test_a_train_comes_back_as_it_was(drawn: Drawn) -> None:
    schema, train = drawn
    again, ranks = unpack(pack(train, schema), schema)
    assert shown(again, schema) == shown(train, schema)
    assert ranks is None


@settings(deadline=None)
@given(drawn=trains(), data=st.data())
def test_only_some_columns_travel(drawn: Drawn, data: st.DataObject) -> None:
    schema, train = drawn
    sent = sorted(data.draw(st.sets(st.sampled_from(range(len(schema))))))
    again, _ = unpack(pack(train, schema, sent), schema)
    columns, *hidden = shown(train, schema)
    assert shown(again, schema) == [[one if at in sent else None for at, one in enumerate(columns)], *hidden]


@settings(deadline=None)
@given(drawn=trains(), doubles=st.booleans())
def test_ranks_travel_along(drawn: Drawn, doubles: bool) -> None:
    schema, train = drawn
    values: Any = np.arange(len(train)) * 0.5 if doubles else np.arange(len(train), dtype=np.int64)
    born = np.arange(len(train), dtype=np.int64)[::-1].copy()
    again, ranks = unpack(pack(train, schema, None, (values, born)), schema)
    assert shown(again, schema) == shown(train, schema)
    assert ranks is not None
    assert (ranks[0].dtype, ranks[0].tolist(), ranks[1].tolist()) == (values.dtype, values.tolist(), born.tolist())


def test_even_numbers_and_equal_stamps_take_no_space() -> None:
    schema = Schema.parse({"v": "int"})
    column = from_pylist(list(range(10_000)), schema.types[0])
    even = Train((column,), constant(7, 10_000), np.arange(10_000, dtype=np.int64) * 3)
    uneven = Train((column,), np.arange(10_000, dtype=np.int64), np.arange(10_000, dtype=np.int64) ** 2)
    assert len(pack(even, schema)) < 45_000
    assert len(pack(uneven, schema)) > 200_000


@settings(deadline=None)
@given(stamps=st.lists(st.integers(0, 5 * 10**9), min_size=1, max_size=20), alike=st.booleans())
def test_counts_to_the_millisecond(stamps: list[int], alike: bool) -> None:
    schema = Schema.parse({"v": "int"})
    made = constant(stamps[0], len(stamps)) if alike else np.array(stamps, np.int64)
    train = Train((from_pylist([0] * len(stamps), schema.types[0]),), made, np.arange(len(stamps), dtype=np.int64))
    moments, counts = unpack_counts(pack_counts(train))
    found = np.repeat(moments, counts)
    assert len(found) == len(stamps)
    width = max(10**6, int(np.ptp(made)) // 1000)
    assert (abs(found - np.sort(made)) <= width).all()


def numbered(schema: Schema, numbers: list[int], labels: list[int], ranks: Any = None, sent: Any = None) -> Packed:
    columns = (from_pylist(labels, schema.types[0]), from_pylist([str(one) for one in labels], schema.types[1]))
    train = Train(columns, np.array(labels, np.int64), np.array(numbers, np.int64))
    return unpack(pack(train, schema, sent, ranks), schema)


TWO = Schema.parse({"n": "bigint", "s": "string"})


@pytest.mark.parametrize("sent", [None, [0], [1], []])
@settings(deadline=None)
@given(numbers=st.lists(st.integers(0, 200), min_size=1, max_size=30, unique=True), data=st.data())
def test_parts_come_together_in_the_order_of_numbers(
    sent: list[int] | None, numbers: list[int], data: st.DataObject
) -> None:
    owners = data.draw(st.lists(st.integers(0, 2), min_size=len(numbers), max_size=len(numbers)))
    shares = [sorted(one for one, owner in zip(numbers, owners, strict=True) if owner == at) for at in range(3)]
    merged = merge([numbered(TWO, share, share, sent=sent) for share in shares])
    assert merged.numbers.tolist() == merged.stamps.tolist() == sorted(numbers)
    for at, column in enumerate(merged.columns):
        if sent is not None and at not in sent:
            assert column is UNREAD
        else:
            values = to_arrow(column, TWO.types[at]).to_pylist()
            assert values == [str(one) if at else one for one in sorted(numbers)]


def test_equal_numbers_come_by_rank() -> None:
    def part(labels: list[int], values: list[int], born: list[int]) -> Packed:
        return numbered(TWO, [9] * len(labels), labels, (np.array(values), np.array(born)))

    merged = merge([part([3, 1], [20, 10], [0, 4]), part([2, 4], [10, 20], [5, 6])])
    assert merged.stamps.tolist() == [1, 2, 3, 4]


def test_equal_numbers_of_one_part_keep_their_order() -> None:
    merged = merge([numbered(TWO, [4, 4, 9], [1, 2, 4]), numbered(TWO, [5, 5], [3, 3])])
    assert merged.stamps.tolist() == [1, 2, 3, 3, 4]


def test_nothing_is_merged_to_nothing() -> None:
    assert len(merge([numbered(TWO, [], []), numbered(TWO, [], [])])) == 0


@pytest.mark.parametrize("size", [0, 10, LARGE - 1, LARGE, 3 * LARGE])
def test_what_is_received_is_what_was_sent(size: int, tmp_path: Path) -> None:
    row = Row(3, 1, 7, bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    travelling = send(row, str(tmp_path))
    assert len(travelling.train) < LARGE
    assert len(list(tmp_path.iterdir())) == (size >= LARGE)
    arrived = receive(travelling, str(tmp_path))
    assert arrived[:3] == row[:3]
    assert bytes(arrived.train) == row.train


def test_without_a_folder_rows_travel_as_they_are() -> None:
    row = Row(0, 0, 0, b"x" * (2 * LARGE))
    assert send(row, None) is row
    assert receive(row, None) is row


def test_a_task_that_is_tried_again_writes_another_file(tmp_path: Path) -> None:
    row = Row(0, 0, 0, b"y" * LARGE)
    first, second = send(row, str(tmp_path)), send(row, str(tmp_path))
    assert first.train != second.train
    assert bytes(receive(first, str(tmp_path)).train) == bytes(receive(second, str(tmp_path)).train) == row.train


def test_what_was_mapped_outlives_the_file(tmp_path: Path) -> None:
    row = Row(0, 0, 0, b"z" * LARGE)
    arrived = receive(send(row, str(tmp_path)), str(tmp_path))
    clear(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert bytes(arrived.train) == row.train
    clear(str(tmp_path / "nowhere"))
    clear(None)
