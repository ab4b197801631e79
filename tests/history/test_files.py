"""Files: every type comes back, any tool reads them, damage is an error that names the file."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column
from headway.errors import InputError, NetworkError, RunError
from headway.history import (
    NULL,
    NUMBER,
    PLACE,
    STAMP,
    START,
    Footers,
    HistoryFile,
    Kept,
    Layout,
    Position,
    read_files,
    through,
    write_file,
)
from headway.history.files import merge_files
from headway.history.keys import Keys
from headway.network.schema import Schema
from headway.storage.filesystems import Place, locate
from headway.trains import Train
from tests.connectors.helpers import EVERY_TYPE, same, tables
from tests.history.helpers import TINY, make_train
from tests.searching import examples

SCALARS = [field.name for field in EVERY_TYPE if not pa.types.is_nested(field.type)]
NAME = "000000000000-0-000000.parquet"


def as_train(table: pa.Table, first: int = 0) -> Train:
    batch = table.combine_chunks().to_batches()[0]
    numbers = np.arange(first, first + len(table), dtype=np.int64)
    return Train.from_batch(batch, numbers * 1000, numbers)


@examples(100)
@given(tables().filter(len), tables().filter(len), st.none() | st.sampled_from(SCALARS))
def test_every_type_comes_back_whatever_the_key(
    tmp_path_factory: pytest.TempPathFactory, one: pa.Table, other: pa.Table, key: str | None
) -> None:
    kept = Kept(EVERY_TYPE, key)
    place = locate(str(tmp_path_factory.mktemp("files")))
    files = [
        write_file(place, "a.parquet", kept, as_train(one), TINY, sync=False),
        write_file(place, "b.parquet", kept, as_train(other, len(one)), TINY, sync=False),
    ]
    merged = merge_files(place, "c.parquet", kept, files, TINY, sync=False)
    expected = pa.concat_tables([one, other])
    for held in (files, [merged]):
        records = [HistoryFile.from_json(file.to_json()) for file in held]
        assert records == held
        found = list(read_files(place, records, kept))
        assert [number for train in found for number in train.numbers.tolist()] == list(range(len(expected)))
        batches = [train.to_batch(EVERY_TYPE.to_arrow()) for train in found]
        assert same(pa.Table.from_batches(batches).combine_chunks(), expected.combine_chunks())
    stored = pq.read_table(Path(place.base) / "c.parquet")
    assert stored.schema.names == [*EVERY_TYPE.names, NUMBER, PLACE, STAMP]
    check_sorted(stored, key or NUMBER)
    for value in {repr(row): row for row in expected.column(key or "i64").to_pylist()}.values() if key else ():
        check_lookup(place, files, merged, kept, expected.column(key), value)


def check_sorted(table: pa.Table, key: str) -> None:
    """Keys ascend, then come NaN and NULL; equal ones are in the order of arrival."""
    column = table.column(key).combine_chunks()
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # -0.0 is 0.0
    order = pc.sort_indices(
        pa.table({"key": column, "number": table.column(NUMBER)}),
        [("key", "ascending"), ("number", "ascending")],
    )
    assert order.to_pylist() == list(range(len(table)))


def check_lookup(
    place: Place, files: list[HistoryFile], merged: HistoryFile, kept: Kept, keys: pa.ChunkedArray, value: object
) -> None:
    listed = keys.to_pylist()
    if value is None:
        expected = [at for at, one in enumerate(listed) if one is None]
    elif isinstance(value, float) and math.isnan(value):
        expected = [at for at, one in enumerate(listed) if isinstance(one, float) and math.isnan(one)]
    else:
        expected = [at for at, one in enumerate(listed) if one == value]
    for held in (files, [merged]):
        found = read_files(place, held, kept, key=NULL if value is None else value)
        assert [number for train in found for number in train.numbers.tolist()] == expected


def example(tmp_path: Path, count: int = 5000, layout: Layout | None = None) -> tuple[Place, HistoryFile, Kept]:
    """Write a file of many row groups."""
    chance = np.random.default_rng(1)
    numbers = np.arange(count)
    columns = (
        Column(chance.integers(0, 100, count).astype(np.int32)),
        Column(numbers // 7),
        Column(chance.random(count)),
    )
    kept = Kept(Schema.parse("sid int, time bigint, v double"), "sid", "time")
    place = locate(str(tmp_path))
    layout = layout or Layout(groups=50, least=64)
    return place, write_file(place, NAME, kept, Train(columns, numbers * 1000, numbers), layout), kept


def test_other_tools_read_them_as_they_are(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    example(tmp_path)
    glob = f"{tmp_path}/*.parquet"
    found = duckdb.sql(f"select count(*), sum(time), max({NUMBER}) from '{glob}' where sid = 17").fetchall()
    frame = pd.read_parquet(tmp_path / NAME)
    assert list(frame.columns) == ["sid", "time", "v", NUMBER, PLACE, STAMP]
    assert frame["sid"].is_monotonic_increasing
    chosen = frame[frame["sid"] == 17]
    assert found == [(len(chosen), chosen["time"].sum(), chosen[NUMBER].max())]
    groups = duckdb.sql(
        f"select count(*) from parquet_metadata('{glob}') where path_in_schema = 'sid' "
        "and stats_min_value::int <= 17 and stats_max_value::int >= 17"
    ).fetchall()
    assert groups[0][0] <= 2


def test_a_lookup_reads_only_what_it_needs(tmp_path: Path) -> None:
    place, file, kept = example(tmp_path)
    hidden = tmp_path / "other"
    hidden.mkdir()
    footer = Footers().get(place, file, kept)
    assert file.groups == footer.metadata.num_row_groups == 50
    assert file.data == footer.page_bytes(range(50), range(3))
    data = bytearray((tmp_path / NAME).read_bytes())
    metadata = pq.read_metadata(tmp_path / NAME)
    for at in range(metadata.num_row_groups):  # destroys the row groups that do not have the key
        group = metadata.row_group(at)
        if not group.column(0).statistics.min <= 17 <= group.column(0).statistics.max:
            start = group.column(0).dictionary_page_offset or group.column(0).data_page_offset
            data[start : start + 50] = bytes(50)
    (tmp_path / NAME).write_bytes(data)
    assert sum(len(train) for train in read_files(place, [file], kept, key=17)) > 10
    with pytest.raises(RunError, match=NAME):
        list(read_files(place, [file], kept))


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    place, file, kept = example(tmp_path, 400)
    path = tmp_path / NAME
    whole = path.read_bytes()
    expected = [train.to_batch(kept.schema.to_arrow()).to_pydict() for train in read_files(place, [file], kept)]
    chance = random.Random(3)
    silent = 0
    messages: set[str] = set()
    for _ in range(400):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            found = [train.to_batch(kept.schema.to_arrow()).to_pydict() for train in read_files(place, [file], kept)]
        except RunError as error:
            messages.add(str(error))
        else:
            assert found == expected
            silent += 1
    assert all(NAME in message for message in messages)
    assert silent < 60  # flips where it does not matter, such as in a page's statistics
    for size in (0, 3, 100, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(RunError, match=f"{NAME}' is damaged"):
            list(read_files(place, [file], kept))
    path.unlink()
    with pytest.raises(RunError, match=f"{NAME}' is missing"):
        list(read_files(place, [file], kept))


def test_nan_is_found_behind_the_numbers(tmp_path: Path) -> None:
    kept = Kept(Schema.parse("k double"), "k")
    for keys, groups in (([1.0, 2.0, 3.0, 4.0, math.nan], [1]), ([1.0, math.nan, math.nan, math.nan, None], [0, 1])):
        place = locate(str(tmp_path))
        rows = make_train(kept.schema, [(key,) for key in keys], list(range(5)), [0] * 5)
        file = write_file(place, NAME, kept, rows, Layout(groups=2, least=1, most=3))
        assert file.groups == 2
        assert file.nans
        footer = Footers().get(place, file, kept)
        found = footer.groups(Keys.parse(math.nan, kept.key_type), START, through(9))
        assert found == groups
        (train,) = read_files(place, [file], kept, key=math.nan)
        assert train.numbers.tolist() == [at for at, key in enumerate(keys) if key is not None and math.isnan(key)]


def test_keys_that_do_not_fit_are_named(tmp_path: Path) -> None:
    place, file, kept = example(tmp_path, 10)
    keys: list[object] = ["x", 2**40, 1.5, (1, 2, 3), (1, "x"), ([],)]
    for key in keys:
        with pytest.raises(InputError):
            list(read_files(place, [file], kept, key=key))
    assert sum(len(train) for train in read_files(place, [file], kept, key=(None, None))) == 10


def test_fields_that_do_not_fit_are_named() -> None:
    schema = Schema.parse("a array<int>, b string, T bigint, d date")
    with pytest.raises(NetworkError, match=r"key: field 'a' is a array<int>; a storage key has values in an order"):
        Kept(schema, key="a")
    with pytest.raises(NetworkError, match=r"time: field 'b' is a string; a time is a tinyint, .*timestamp"):
        Kept(schema, time="b")
    with pytest.raises(NetworkError, match=r"unknown field 'c'.*fields: a, b, T, d"):
        Kept(schema, key="c")
    for keep in (0, -1, True, "1 hour", 1.5):
        with pytest.raises(NetworkError, match="keep: must be"):
            Kept(schema, keep=keep)  # type: ignore[arg-type]
    assert Kept(schema, "B", "t").form() == {
        "fields": [["a", "array<int>"], ["b", "string"], ["T", "bigint"], ["d", "date"]],
        "key": "b",
        "time": "T",
    }


def test_places_of_a_train_count_by_number(tmp_path: Path) -> None:
    kept = Kept(Schema.parse("a int"))
    rows = [(at,) for at in range(6)]
    place = locate(str(tmp_path))
    file = write_file(place, NAME, kept, make_train(kept.schema, rows, [3, 3, 4, 7, 7, 7], [0] * 6))
    assert (file.first, file.last, file.dense) == (Position(3, 0), Position(7, 2), False)
    assert pq.read_table(tmp_path / NAME).column(PLACE).to_pylist() == [0, 1, 0, 0, 1, 2]
    (train,) = read_files(place, [file], kept, after=Position(3, 0), upto=Position(7, 1))
    assert train.columns[0].values.tolist() == [1, 2, 3, 4]
