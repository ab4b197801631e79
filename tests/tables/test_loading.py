"""Static tables from files that are none; what joins make of good ones is in tests/behaviour."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import headway as hw
from headway.errors import NetworkError
from headway.network.schema import Schema
from headway.tables import load_table


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", b"null\n", 'line 1 is not an object such as {"a": 1}'),  # Arrow ends the process over this
        ("t.jsonl", b'{"a":1}\n[1]\n', "line 2 is not an object"),
        ("t.jsonl", b'{"a":1}\n{"a":"\xff"}\n', "line 2 is not valid UTF-8"),
        ("t.jsonl", b'{"a":%s}\n' % (b"[" * 31 + b"]" * 31), "line 1: arrays and objects lie more than 30 deep"),
        (
            "t.jsonl",
            b'{"a":%s}\n' % (b"[" * 100_000 + b"]" * 100_000),
            "line 1: arrays and objects lie more than 30 deep",
        ),  # and this
        ("t.csv", b"\xff,b\n1,2\n", "line 1 is not valid UTF-8"),
        ("t.csv", b"a,b\n1,2\n3,\xff\n", "line 3 is not valid UTF-8"),
        ("t.csv", b"", "Empty CSV file"),
        ("t.parquet", b"PAR1", "t.parquet: "),
        ("x" * 300 + ".csv", None, "is not a valid path: file name too long"),
        ("a\0.csv", None, "is not a valid path: it has a character"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(NetworkError) as raised:
        load_table(name, folder=tmp_path)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_byte_order_mark_is_skipped(tmp_path: Path, name: str) -> None:
    text = "a\n1\n2\n" if name == "t.csv" else '{"a":1}\n{"a":2}\n'
    (tmp_path / name).write_text("\ufeff" + text)
    assert load_table(name, folder=tmp_path).to_pylist() == [{"a": 1}, {"a": 2}]


def test_tables_given_in_python(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,y\n")
    wanted = pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"]})
    forms = {
        "table": wanted,
        "batch": wanted.to_batches()[0],
        "frame": pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}),
        "columns": {"a": [1, 2], "b": ["x", "y"]},
        "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}],
        "filtered": pd.DataFrame({"a": [0, 1, 2], "b": ["w", "x", "y"]}).query("a > 0"),
        "path": tmp_path / "t.csv",
        "text": str(tmp_path / "t.csv"),
    }
    for name in forms:
        assert load_table(name, forms).to_pylist() == wanted.to_pylist(), name


def test_rows_of_several_kinds_have_all_columns() -> None:
    rows = [{"a": 1}, {"b": 2}]
    assert load_table("t", {"t": rows}).to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "a list of rows such as {'a': 1}, not list without columns"),
        ({}, "not dict without columns"),
        (np.arange(3), "not ndarray"),
        (pa.table({"a": [1]}).to_reader(), "not RecordBatchReader, which can be read only once"),
        ([(1, 2)], "not list"),
        (7, "a table is a path, a pyarrow.Table"),
        ({"a": [1, 2], "b": [1]}, "table 't': "),
        ([{"a": 1}, {"a": "x"}], "table 't': "),
        ("none.csv", "table 'none.csv': no such file"),
    ],
)
def test_what_is_no_table(given: object, message: str) -> None:
    with pytest.raises(NetworkError) as raised:
        load_table("t", {"t": given})
    assert message in str(raised.value)


def test_keys_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("code,zip\nNA,01234\nnull,99999\n,10115\n")
    assert load_table("t.csv", folder=tmp_path).to_pylist() == [
        {"code": "NA", "zip": "01234"},
        {"code": "null", "zip": "99999"},
        {"code": None, "zip": "10115"},
    ]
    (tmp_path / "t.jsonl").write_text('{"day":"2024-01-01","id":12345678901234567890}\n')
    assert load_table("t.jsonl", folder=tmp_path).to_pylist() == [{"day": "2024-01-01", "id": "12345678901234567890"}]


def test_junk_behind_an_object_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a":1}\n{"a":2} junk\n')
    with pytest.raises(NetworkError, match=r"table 't\.jsonl': cannot read .*t\.jsonl: line 2 is not valid JSON"):
        load_table("t.jsonl", folder=tmp_path)


def test_brackets_in_texts_and_side_by_side_are_not_deep(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    row = {"a": "\\" + '"' + "[" * 100, "b": [[1]] * 40}
    path.write_text(json.dumps(row) + "\n")
    assert load_table(str(path)).to_pylist() == [row]
    deep = "[" * 30 + "1" + "]" * 30
    path.write_text(f'{{"a":{deep}}}\n')
    assert load_table(str(path)).num_rows == 1


def join_with(table: object) -> dict[str, object]:
    """A network that joins a stream with a table."""
    join = {"op": "join", "in": ["s", {"table": table}], "on": "left.sid = right.sid", "select": "right.name as name"}
    return {
        "network": "n",
        "sources": {"s": {"schema": {"sid": "bigint"}}},
        "boxes": {"j": join},
        "outputs": {"o": {"from": "j"}},
    }


def test_a_network_file_describes_a_data_set(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE people (sid int, name text)")
        connection.execute("INSERT INTO people VALUES (1, 'Ann'), (2, 'Bob')")
        connection.commit()
    (tmp_path / "people").write_text("sid,name\n1,Ann\n2,Bob\n")
    file = tmp_path / "n.yaml"
    for table in ({"sql": "sqlite:///x.db", "table": "people"}, {"csv": "people"}):
        file.write_text(json.dumps(join_with(table)))
        loaded = hw.load(file)
        assert loaded.to_mapping()["boxes"]["j"]["in"][1] == {"table": table}
        found = hw.run(loaded, {"s": [{"sid": 2}, {"sid": 1}]}, engine="local")
        assert found.outputs["o"].to_pydict() == {"name": ["Bob", "Ann"]}
        with pytest.raises(NetworkError, match=r"box 'j': in: table '.*people': .*a file from a stranger may not read"):
            hw.check(hw.load(file, trust="stranger"))


def test_the_builder_describes_a_data_set() -> None:
    data = {"sql": "sqlite:///x.db", "table": "people"}
    net = hw.Network("n")
    s = net.source("s", "sid bigint")
    s.join(net.table(data), on="left.sid = right.sid", select="right.name as name", name="j").output("o")
    assert net.build() == hw.load(join_with(data))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sqll": "x", "table": "t"}, "box 'j': in: table: data: unknown kind of data 'sqll'; did you mean 'sql'?"),
        ({"sql": "postgresql://u:secret@h/d"}, "box 'j': in: table: data: sql needs the name of a table"),
        ({}, "box 'j': in: table: data: a data set is a path"),
    ],
)
def test_descriptions_that_are_wrong(table: object, message: str) -> None:
    with pytest.raises(NetworkError) as raised:
        hw.load(join_with(table))
    assert str(raised.value).startswith(message)


def test_a_check_contacts_no_database_and_shows_no_password() -> None:
    loaded = hw.load(join_with({"sql": "postgresql://u:secret@db.invalid/d", "table": "t"}))
    assert "secret" not in repr(loaded)
    with pytest.raises(NetworkError, match=r"a check contacts nobody, and this is on 'db\.invalid'") as raised:
        hw.check(loaded)
    assert "secret" not in str(raised.value)
    schema = Schema.parse("sid bigint, name string")
    ref = "sql postgresql://u:***@db.invalid/d t"
    assert hw.check(loaded, tables={ref: schema}).tables == {ref: schema}
