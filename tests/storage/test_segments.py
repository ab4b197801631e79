"""Segments: every type and every kind of hidden values comes back; files are plain Arrow."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import from_arrow
from headway.errors import InputError, RunError
from headway.network.schema import Schema
from headway.storage.filesystems import Place, is_uri, locate
from headway.storage.segments import (
    NUMBER,
    STAMP,
    LogSlice,
    encode,
    exact_sum,
    quote_name,
    read_slice,
    regular_step,
    regular_values,
)
from headway.trains import Train, constant
from tests.connectors.helpers import EVERY_TYPE, same, tables

INT64 = st.integers(-(2**63), 2**63 - 1)
ONE = Schema.parse("a bigint")


def store(path: Path, train: Train, schema: Schema) -> LogSlice:
    segment, data = encode("s", train, schema, path.name)
    path.write_bytes(data)
    assert segment.bytes == path.stat().st_size
    assert segment.stamp_sum == sum(train.stamps.tolist())
    return LogSlice("s", str(path), segment.first, segment.last, 0, segment.rows, segment.crc)


def small(numbers: list[int], stamps: list[int]) -> Train:
    at = np.array(numbers, np.int64)
    return Train((from_arrow(pa.array(numbers, pa.int64())),), np.array(stamps, np.int64), at, numbers[-1])


@given(tables().filter(len), st.data())
def test_every_type_comes_back(tmp_path_factory: pytest.TempPathFactory, table: pa.Table, data: st.DataObject) -> None:
    batch = table.combine_chunks().to_batches()[0]
    rows = batch.num_rows
    steps = data.draw(st.lists(st.integers(1, 3), min_size=rows, max_size=rows))
    numbers = np.cumsum(np.array(steps, np.int64)) + data.draw(st.integers(0, 2**62))
    stamps = np.array(data.draw(st.lists(INT64, min_size=rows, max_size=rows)), np.int64)
    path = tmp_path_factory.mktemp("segment") / "x.arrow"
    whole = store(path, Train.from_batch(batch, stamps, numbers), EVERY_TYPE)
    start = data.draw(st.integers(0, rows - 1))
    stop = data.draw(st.integers(start + 1, rows))
    part = LogSlice("s", whole.path, int(numbers[start]), int(numbers[stop - 1]), start, stop, whole.crc)
    read = read_slice(part, EVERY_TYPE)
    assert read.numbers.tolist() == numbers[start:stop].tolist()
    assert read.stamps.tolist() == stamps[start:stop].tolist()
    assert read.progress == numbers[stop - 1]
    found = pa.Table.from_batches([read.to_batch(EVERY_TYPE.to_arrow())])
    assert same(found, table.slice(start, stop - start))


@given(
    st.lists(INT64, min_size=1, max_size=6)
    | st.builds(lambda a, d: [a, a + d, a + 2 * d], st.integers(-9, 9), st.integers(-9, 9))
)
def test_regular_values_are_exactly_those(values: list[int]) -> None:
    array = np.array(values, np.int64)
    step = regular_step(array)
    gaps = {later - earlier for earlier, later in pairwise(values)}
    if step is not None:
        assert regular_values(values[0], step, 0, len(values)).tolist() == values
    else:
        assert len(gaps) > 1 or max(map(abs, gaps)) > 2**62
    assert exact_sum(array) == sum(values)


def test_regular_values_take_no_column(tmp_path: Path) -> None:
    numbers = np.arange(5, 25, 4)
    columns = (from_arrow(pa.array([1, 2, 3, 4, 5])),)
    whole = store(tmp_path / "x.arrow", Train(columns, constant(7, 5), numbers, 30), ONE)
    file = pa.ipc.open_file(pa.memory_map(whole.path))
    assert file.schema.names == ["a"]
    hidden = json.loads(file.schema.metadata[b"headway"])
    assert hidden == {"source": "s", "rows": 5, "number": [5, 4], "stamp": [7, 0]}
    assert read_slice(whole, ONE).numbers.tolist() == numbers.tolist()
    irregular = store(tmp_path / "y.arrow", small([1, 2, 9], [4, 4, 5]), ONE)
    table = pa.ipc.open_file(pa.memory_map(irregular.path)).read_all()
    assert table.to_pydict() == {"a": [1, 2, 9], NUMBER: [1, 2, 9], STAMP: [4, 4, 5]}


def test_a_field_may_be_called_like_a_hidden_column(tmp_path: Path) -> None:
    schema = Schema.parse({NUMBER: "bigint"})
    train = small([1, 2, 9], [4, 4, 5])
    read = read_slice(store(tmp_path / "x.arrow", train, schema), schema)
    assert read.columns[0].values.tolist() == [1, 2, 9]
    assert read.numbers.tolist() == [1, 2, 9]


def test_columns_of_local_files_are_mapped(tmp_path: Path) -> None:
    whole = store(tmp_path / "x.arrow", small(list(range(1000)), [0] * 1000), ONE)
    before = pa.total_allocated_bytes()
    read = read_slice(whole, ONE)
    assert not read.columns[0].values.flags.owndata
    assert pa.total_allocated_bytes() - before < 4000


def test_another_file_of_the_same_name_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    assert read_slice(store(path, small([1, 2], [0, 0]), ONE), ONE).numbers.tolist() == [1, 2]
    path.unlink()
    assert read_slice(store(path, small([3, 4], [0, 0]), ONE), ONE).numbers.tolist() == [3, 4]


def test_errors_name_the_file_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    whole = store(path, small([1, 2], [0, 0]), ONE)
    with pytest.raises(RunError, match=r"source 's'.*x\.arrow.*\(a int64\).*\(b int\).*--state"):
        read_slice(whole, Schema.parse("b int"))
    with pytest.raises(RunError, match=r"x\.arrow' has 2 rows, not rows 1 to 5"):
        read_slice(LogSlice("s", str(path), 1, 5, 1, 5, whole.crc), ONE)
    path.write_bytes(b"no arrow")
    with pytest.raises(RunError, match=r"x\.arrow' is damaged: its checksum is wrong; .*--state"):
        read_slice(whole, ONE)
    path.unlink()
    with pytest.raises(RunError, match=r"x\.arrow' is missing; restore"):
        read_slice(whole, ONE)


@given(st.lists(st.text(max_size=6), unique=True, max_size=6))
def test_quoted_names_are_plain_and_differ(names: list[str]) -> None:
    quoted = [quote_name(name) for name in names]
    assert len(set(quoted)) == len(names)
    assert all(set(name) <= set("~_-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") for name in quoted)


def test_places(tmp_path: Path) -> None:
    assert locate(str(tmp_path)).name("a/b") == f"{tmp_path}/a/b"
    spaced = locate(f"file://{tmp_path}/with%20space/")
    assert spaced.name("x") == f"{tmp_path}/with space/x"
    assert spaced.local
    assert locate("relative").base == str(Path("relative").absolute())
    assert not is_uri("C:/x")
    remote = Place("s3://bucket/dir?region=eu", None, "bucket/dir", False, False)
    assert remote.name("a b/c~2e") == "s3://bucket/dir/a%20b/c~2e?region=eu"
    with pytest.raises(InputError, match="nonsense://x"):
        locate("nonsense://x")
