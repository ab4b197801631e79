"""Arrow tables, batches, readers and Parquet files: columns by name, casts without loss."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.connectors import TableSink, open_sink, open_source, parquet
from headway.errors import InputError, OutputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, rows, write

SCHEMA = Schema.parse("a int, s string")
TABLE = pa.table({"S": ["x", "y", None], "more": [0, 0, 0], "a": [1, 2, 3]})


@pytest.mark.parametrize(
    "what",
    [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])],
    ids=["table", "batch", "reader", "chunks"],
)
def test_objects(what: object) -> None:
    reader = open_source("s", SCHEMA, what)
    assert reader.finite
    assert not reader.live
    table, _, _ = drain(reader, [2])
    assert table is not None
    assert table.schema.equals(SCHEMA.to_arrow())
    assert table.to_pylist() == [{"a": 1, "s": "x"}, {"a": 2, "s": "y"}, {"a": 3, "s": None}]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_text_that_is_no_text_is_a_malformed_row(kind: pa.DataType) -> None:
    binary = pa.large_binary() if kind == pa.large_string() else pa.binary()
    texts = pa.Array.from_buffers(kind, 4, pa.array([b"x", b"\xff\xfe", None, b"z"], binary).buffers())
    table = pa.table({"a": pa.array([1, 2, 3, 4], pa.int32()), "s": texts})
    read, _, malformed = drain(open_source("s", SCHEMA, table))
    assert read is not None
    assert read.to_pylist() == [{"a": 1, "s": "x"}, {"a": 3, "s": None}, {"a": 4, "s": "z"}]
    assert [(row.where, row.reason) for row in malformed] == [("the table row 2", "column 's': not valid UTF-8")]


def _foreign(values: list[bytes | None]) -> pa.Array:
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


TEXTS = _foreign([b"a", b"\xff", b"c", b"d", b"\xfe", b"f"])


@pytest.mark.parametrize(
    ("what", "schema", "good"),
    [
        (pa.DictionaryArray.from_arrays(pa.array([0, 2, 1, 0], pa.int8()), TEXTS), "string", ["a", "c", "a"]),
        (pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), TEXTS), "array<string>", [["a"], ["d"]]),
        (pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), TEXTS).slice(1), "array<string>", [["d"]]),
        (pa.StructArray.from_arrays([TEXTS], ["x"]).slice(2, 3), "struct<x: string>", [{"x": "c"}, {"x": "d"}]),
        (TEXTS.slice(2, 2), "string", ["c", "d"]),
        (TEXTS.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view()), "string", ["a", "c", "d", "f"]),
        (
            pa.StructArray.from_arrays([TEXTS, pa.array(range(6))], ["u", "v"]),
            "struct<v: bigint>",
            [{"v": at} for at in range(6)],
        ),
        (pa.ListArray.from_arrays(pa.array([0, 1, 3, 4], pa.int32()), TEXTS).slice(0, 1), "array<string>", [["a"]]),
    ],
    ids=["dictionary", "list", "slice of lists", "struct", "slice", "view", "a field that nobody reads", "one list"],
)
def test_only_rows_with_such_text_are_malformed(what: pa.Array, schema: str, good: list[Any]) -> None:
    read, _, malformed = drain(open_source("s", Schema.parse(f"s {schema}"), pa.table({"s": what})))
    assert read is not None
    assert read.column("s").to_pylist() == good
    assert len(malformed) == len(what) - len(good)


def test_a_clean_view_beside_such_text() -> None:
    table = pa.table({"s": TEXTS, "v": pa.array(["é"] * 6).cast(pa.string_view())})
    read, _, malformed = drain(open_source("s", Schema.parse("s string, v string"), table))
    assert read is not None
    assert (read.num_rows, len(malformed)) == (4, 2)


def test_a_number_that_is_none_of_its_type_is_a_malformed_row() -> None:
    wide = pa.array([1, 99999, 2], pa.decimal128(7, 2))
    narrow = pa.Array.from_buffers(pa.decimal128(4, 2), 3, wide.buffers())
    read, _, malformed = drain(open_source("s", Schema.parse("d decimal(4,2)"), pa.table({"d": narrow})))
    assert read is not None
    assert [str(one) for one in read.column("d").to_pylist()] == ["1.00", "2.00"]
    assert [row.where for row in malformed] == ["the table row 2"]


def test_what_stands_under_a_null_is_nobody_s_business() -> None:
    texts = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *TEXTS.buffers()[1:]])
    read, _, malformed = drain(open_source("s", Schema.parse("s string"), pa.table({"s": texts})))
    assert read is not None
    assert read.column("s").to_pylist() == ["a", None, "c"]
    assert not malformed


def test_other_libraries_frames() -> None:
    polars = pytest.importorskip("polars")
    assert rows(open_source("s", SCHEMA, polars.DataFrame({"a": [1], "s": ["x"]}))) == [{"a": 1, "s": "x"}]


def test_no_copy_where_the_schema_fits() -> None:
    table = pa.table({"a": pa.array(range(10), pa.int32()), "s": ["x"] * 10})
    chunk = open_source("s", SCHEMA, table).read(4)
    assert chunk is not None
    assert chunk.batch.column(0).buffers()[1].address == table.column(0).chunk(0).buffers()[1].address


@pytest.mark.parametrize(
    ("array", "wanted", "expected"),
    [
        (pa.array([1, 2], pa.uint8()), "tinyint", [1, 2]),
        (pa.array([1, None]), "double", [1.0, None]),
        (pa.array([1.0, 2.0]), "int", [1, 2]),
        (pa.array([0.5, float("nan")]), "float", [0.5, None]),
        (pa.array(["x", "x"]).dictionary_encode(), "string", ["x", "x"]),
        (pa.array(["x"], pa.large_string()), "string", ["x"]),
        (pa.array([None, None]), "timestamp", [None, None]),
        (pa.array([10**9], pa.timestamp("ns")), "timestamp_ntz", [datetime(1970, 1, 1, 0, 0, 1)]),
        (pa.array([date(2024, 1, 1)]), "timestamp_ntz", [datetime(2024, 1, 1)]),
        (pa.array([7]), "decimal(10,2)", [7]),
        (pa.array([[1], None], pa.large_list(pa.int64())), "array<int>", [[1], None]),
    ],
)
def test_casts(array: pa.Array, wanted: str, expected: list[Any]) -> None:
    table, _, _ = drain(open_source("s", Schema.parse({"v": wanted}), pa.table({"v": array})))
    assert table is not None
    got = [None if value != value else value for value in table.column("v").to_pylist()]
    assert got == expected


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array(["1"]), "int"),
        (pa.array([1]), "string"),
        (pa.array([True]), "int"),
        (pa.array([datetime(2024, 1, 1)]), "date"),
        (pa.array([[1]]), "array<string>"),
    ],
)
def test_casts_that_would_lose(array: pa.Array, wanted: str) -> None:
    with pytest.raises(InputError, match=r"source 's': the table: column 'v' is .* cannot become .* without loss"):
        drain(open_source("s", Schema.parse({"v": wanted}), pa.table({"v": array})))


@pytest.mark.parametrize(
    ("array", "wanted", "shown"),
    [
        (pa.array([1, 2**40, None, 3]), "int", "1099511627776"),
        (pa.array([1.0, 1.5, None, 3.0]), "int", "1.5"),
        (pa.array([1.0, 0.1, None, 3.0]), "float", "0.1"),
        (pa.array([1, 2**53 + 1, None, 3]), "double", "9007199254740993"),
        (pa.array([[1], [2, 2**40], None, []]), "array<int>", "[2, 1099511627776]"),
        (pa.array([1, 2**60, None, 3], pa.timestamp("s")), "timestamp_ntz", "'1152921504606846976'"),
    ],
)
def test_a_value_that_does_not_fit_costs_its_row(array: pa.Array, wanted: str, shown: str) -> None:
    schema, table = Schema.parse({"at": "int", "v": wanted}), pa.table({"at": pa.array([0, 1, 2, 3]), "v": array})
    read, _, malformed = drain(open_source("s", schema, table))
    assert read is not None
    assert read.column("at").to_pylist() == [0, 2, 3]
    assert [(row.where, row.text) for row in malformed] == [("the table row 2", shown)]
    assert malformed[0].reason.startswith("column 'v': does not fit ")
    with pytest.raises(InputError, match="the table row 2: column 'v': does not fit"):
        drain(open_source("s", schema, table, strict=True))


def test_of_a_time_digits_after_microseconds_are_cut() -> None:
    array = pa.array([1_999, None, -1], pa.timestamp("ns"))
    read, _, _ = drain(open_source("s", Schema.parse({"v": "timestamp_ntz"}), pa.table({"v": array})))
    assert read is not None
    assert read.column("v").cast(pa.int64()).to_pylist() == [1, None, -1]


def test_missing_column() -> None:
    with pytest.raises(InputError, match=r"the table has no column 'a'; columns: s"):
        open_source("s", SCHEMA, pa.table({"s": ["x"]}))


def test_parquet_is_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 7)
    pq.write_table(pa.table({"s": ["x"] * 50, "a": range(50)}), tmp_path / "a.parquet", row_group_size=20)
    got = rows(open_source("s", SCHEMA, {"parquet": "a.parquet"}, base=tmp_path), [5, 100])
    assert [row["a"] for row in got] == list(range(50))


def test_parquet_that_does_not_fit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": ["x"], "a": ["1"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet': column 'a' is string and cannot become int"):
        open_source("s", SCHEMA, tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        open_source("s", SCHEMA, tmp_path / "b.parquet")


def test_small_batches_make_large_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pa.table({"a": pa.array(range(3000), pa.int32())}), size=10)
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 1


def test_sinks_in_memory() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1], "s": ["x"]}, schema=SCHEMA.to_arrow())
    sink = TableSink(SCHEMA)
    assert open_sink("o", SCHEMA, sink) is sink
    assert sink.table.num_rows == 0
    assert sink.table.schema.equals(SCHEMA.to_arrow())
    sink.write(batch)
    assert sink.table.to_pylist() == [{"a": 1, "s": "x"}]
    seen: list[pa.RecordBatch] = []
    callback = open_sink("o", SCHEMA, seen.append)
    callback.write(batch)
    callback.close()
    assert seen == [batch]
    nowhere = open_sink("o", SCHEMA, None)
    nowhere.write(batch)
    nowhere.close()


def test_a_callback_that_raises() -> None:
    def fail(batch: pa.RecordBatch) -> None:
        raise ZeroDivisionError("oh")

    with pytest.raises(OutputError, match="output 'o': the callback raised ZeroDivisionError: oh"):
        open_sink("o", SCHEMA, fail).write(pa.RecordBatch.from_pydict({"a": [1], "s": [""]}, SCHEMA.to_arrow()))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_stands_outside_a_slice_does_not_count(size: int) -> None:
    table = pa.table({"v": pa.array([[1], [2], [3], [2**33], [5]])})
    schema = Schema.parse("v array<int>")
    assert rows(open_source("s", schema, table.slice(0, size))) == [{"v": [at + 1]} for at in range(size)]
    got, _, malformed = drain(open_source("s", schema, table.to_reader(max_chunksize=size)))
    assert got is not None
    assert got.column("v").to_pylist() == [[1], [2], [3], [5]]
    assert [row.where.split()[-1] for row in malformed] == ["4"]


def test_what_stands_under_null_does_not_count() -> None:
    hidden = pa.StructArray.from_arrays([pa.array([1, 2**33])], ["a"], mask=pa.array([False, True]))
    assert rows(open_source("s", Schema.parse("v struct<a:int>"), pa.table({"v": hidden}))) == [
        {"v": {"a": 1}},
        {"v": None},
    ]


def test_a_reader_whose_iterator_raises() -> None:
    def fail() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"a": [1], "s": [""]}, SCHEMA.to_arrow())
        raise ZeroDivisionError("oh")

    reader = open_source("s", SCHEMA, pa.RecordBatchReader.from_batches(SCHEMA.to_arrow(), fail()))
    assert reader.read(1) is not None
    with pytest.raises(InputError, match="source 's': the Arrow reader cannot be read: oh"):
        reader.read(1)
