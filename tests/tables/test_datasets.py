"""Stored data sets: how they are written, their fields, contents and rows by key."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import HeadwayError, NetworkError
from headway.network.trust import Trust
from headway.tables import data_schema, data_table, is_data, load_table, lookup, read_data
from headway.tables.parquets import groups_with

ROWS = [{"sid": 1, "name": "a"}, {"sid": 2, "name": None}, {"sid": 2, "name": "b"}]
TEXTS = {
    "t.csv": "sid,name\n1,a\n2,\n2,b\n",
    "t.jsonl": '{"sid":1,"name":"a"}\n{"sid":2}\n{"sid":2,"name":"b"}\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    (tmp_path / "many").mkdir()
    pq.write_table(table, tmp_path / "many" / "1.parquet")
    (tmp_path / "values").write_text(TEXTS["t.csv"])
    return tmp_path


FORMS: list[object] = [
    "t.csv",
    "t.jsonl",
    "t.parquet",
    "many",
    {"csv": "t.csv"},
    {"csv": "values"},
    {"jsonl": "t.jsonl"},
    {"parquet": "t.parquet"},
]


@pytest.mark.parametrize("data", FORMS, ids=str)
def test_every_form(folder: Path, data: object) -> None:
    described = read_data(data, "point 'p': data", folder)
    assert str(data_schema(described)) == "sid bigint, name string"
    assert data_table(described).to_pylist() == ROWS
    assert lookup(described, "SID", [2, 2, 3, None]).to_pylist() == ROWS[1:]
    assert lookup(described, "name", ["a"]).to_pylist() == ROWS[:1]
    assert lookup(described, "sid", pa.array([2**40, 1], pa.int64())).to_pylist() == ROWS[:1]
    assert lookup(described, "sid", pa.chunked_array([[1], [2]])).num_rows == 3
    assert lookup(described, "sid", []).schema == data_table(described).schema


def test_a_data_set_is_a_static_table(folder: Path) -> None:
    data = read_data("t.csv", "point 'p': data", folder)
    assert load_table("p", {"p": data}).to_pylist() == ROWS
    assert load_table("p", {"p": {"csv": str(folder / "t.csv")}}).to_pylist() == ROWS
    assert load_table("p", {"p": {"csv": [1, 2]}}).to_pylist() == [{"csv": 1}, {"csv": 2}]  # a column of that name
    assert not is_data({"a": "b"})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "p: a data set is a path, {csv: path}, {jsonl: path}, {parquet: path}, "),
        ("", "p: a data set is a path"),
        ({}, "p: a data set is a path"),
        ({"cvs": "t.csv"}, "p: unknown kind of data 'cvs'; did you mean 'csv'? choices: csv, jsonl, parquet"),
        ({"csv": "a", "parquet": "b"}, "p: a data set is one of csv, jsonl, parquet, "),
        ({"csv": 1}, "p: csv: expected a path, not 1"),
        ({"csv": "t.csv", "table": "x"}, "p: csv has no key 'table'"),
        ({"sql": "sqlite:///x.db"}, "p: sql needs the name of a table: {sql: URL, table: NAME}"),
        ({"sql": "sqlite:///x.db", "table": 1}, "p: sql needs the name of a table"),
        ({"table": "x"}, "p: a data set is one of"),
        ("no.csv", "p: no such file: "),
        ("no.parquet", "p: no such file: "),
        ({"parquet": "t.csv"}, "p: cannot read "),
        ("nobody", "p: no table of this name is given"),
        ("t\0.csv", "p: 't"),
    ],
)
def test_what_is_no_data_set(folder: Path, data: object, message: str) -> None:
    with pytest.raises(NetworkError) as raised:
        data_schema(read_data(data, "p", folder))
    assert message.replace("p: 't", "p: '") in str(raised.value)


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("nobody", [1], "unknown field 'nobody'; fields: sid, name"),
        ("sid", ["x"], "p: field 'sid' is bigint, and a value to look up is not: "),
        ("name", [1.5, "x"], "p: field 'name' is string, and a value to look up is not: "),
    ],
)
def test_what_cannot_be_looked_up(folder: Path, key: str, values: list[Any], message: str) -> None:
    with pytest.raises(HeadwayError) as raised:
        lookup(read_data("t.parquet", "p", folder), key, values)
    assert message in str(raised.value)


@pytest.mark.parametrize("data", ["t.csv", "t.parquet", "many", {"parquet": "t.parquet"}, {"csv": "values"}], ids=str)
def test_strangers_read_only_what_is_allowed(folder: Path, data: object) -> None:
    for read in (data_schema, data_table):
        with pytest.raises(NetworkError, match=r"^p: a file from a stranger may not"):
            read(read_data(data, "p", folder, Trust()))
        read(read_data(data, "p", folder, Trust(read_only=[str(folder)])))


def test_the_fields_of_parquet_come_from_its_footer(folder: Path) -> None:
    path = folder / "t.parquet"
    content = bytearray(path.read_bytes())
    content[4:40] = bytes(36)  # the pages
    path.write_bytes(content)
    data = read_data("t.parquet", "p", folder)
    assert data_schema(data).names == ("sid", "name")
    with pytest.raises(NetworkError, match=r"p: cannot read .*t\.parquet"):
        data_table(data)


def test_row_groups_without_the_key_are_not_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": range(1000), "s": [f"{at:04}" for at in range(1000)]}), tmp_path / "t.parquet", 100)
    with pq.ParquetFile(tmp_path / "t.parquet") as file:
        assert groups_with(file, "k", pa.array([5, 250, 5000])) == [0, 2]
        assert groups_with(file, "s", pa.array(["0999"])) == [9]
        assert groups_with(file, "k", pa.array([], pa.int64())) == []
    pages = bytearray((tmp_path / "t.parquet").read_bytes())
    meta = pq.read_metadata(tmp_path / "t.parquet")
    for at in (0, 1, 3, 9):  # others than the one that has it are destroyed
        column = meta.row_group(at).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        pages[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    (tmp_path / "t.parquet").write_bytes(pages)
    assert lookup(read_data("t.parquet", "p", tmp_path), "k", [250]).to_pylist() == [{"k": 250, "s": "0250"}]


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-3, 3)),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, -1.5, float("inf"), float("nan")])),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "é", "\U0001f600", "\uffff"])),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.sampled_from([date(1969, 1, 1), date(2024, 1, 1)])),
    "decimal": (pa.decimal128(5, 2), st.sampled_from([Decimal("-1.50"), Decimal("1.50"), Decimal("100.00")])),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        st.sampled_from([datetime(1969, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)]),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_a_lookup_in_parquet_is_a_filter(tmp_path: Path, kind: str, draw: st.DataObject) -> None:
    type_, values = KINDS[kind]
    keys = draw.draw(st.lists(st.none() | values, max_size=12))
    wanted = draw.draw(st.lists(st.none() | values, max_size=4))
    table = pa.table({"k": pa.array(keys, type_), "n": pa.array(range(len(keys)), pa.int64())})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=draw.draw(st.integers(1, 5)))
    found = lookup(read_data("t.parquet", "p", tmp_path), "k", pa.array(wanted, type_))

    def same(one: Any, other: Any) -> bool:
        return one is not None and (one == other or (one != one and other is not None and other != other))

    expected = [at for at, key in enumerate(keys) if any(same(key, one) for one in wanted)]
    assert found["n"].to_pylist() == expected
