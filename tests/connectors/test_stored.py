"""Stored data sets that are streamed once: the tuples are the rows of the table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.connectors.stored import open_data
from headway.errors import HeadwayError, NetworkError
from headway.network.trust import Trust
from headway.tables import data_schema, data_table, read_data
from tests.connectors.helpers import drain


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pa.table({"sid": [1, 2, 2], "name": ["a", None, "b"]})
    (tmp_path / "t.csv").write_text("sid,name\n1,a\n2,\n2,b\n")
    (tmp_path / "t.jsonl").write_text('{"sid":1,"name":"a"}\n{"sid":2}\n{"sid":2,"name":"b"}\n')
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    (tmp_path / "many").mkdir()
    pq.write_table(table, tmp_path / "many" / "1.parquet")
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
        connection.execute("CREATE TABLE t (sid int, name text)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", table.to_pandas().astype(object).values.tolist())
        connection.commit()
    return tmp_path


FORMS: list[object] = ["t.csv", "t.jsonl", "t.parquet", "many", {"csv": "t.csv"}]
FORMS += [{"sql": "sqlite:///x.db", "table": "t"}]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_pushed_is_pulled(folder: Path, form: object) -> None:
    data = read_data(form, "point 'p': data", folder)
    for limits in ((1,), (2, 1), (1000,)):
        found, _, malformed = drain(open_data("p", data), limits)
        assert found is not None
        assert not malformed
        assert found.equals(data_table(data))
    timed, due, _ = drain(open_data("p", data, schema=data_schema(data), rate=10))
    assert timed is not None
    assert due == [0, 100_000_000, 200_000_000]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_strangers_need_leave(folder: Path, form: object) -> None:
    data = read_data(form, "p", folder, Trust())
    with pytest.raises(NetworkError, match="may not"):
        open_data("p", data)
    schema = data_schema(read_data(form, "p", folder))
    with pytest.raises(HeadwayError, match="may not"):
        open_data("p", data, schema=schema)


NUMBERS = ["1", "-2", "+3", "007", "1.5", "1e3", "0x1F", "nan", "inf", " 4", "12345678901234567890"]
TEXTS = ["", '""', "true", "false", "True", "NA", "a b", '"x,y"', '"q""q"']
TIMES = ["2024-01-01", "2024-01-01 10:00:00", "2024-01-01T10:00:00Z", "10:00:00"]
CELLS = st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.sampled_from(TIMES)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=4))
def test_any_csv_is_pushed_as_it_is_pulled(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
    check(tmp_path, "t.csv")


JSON = st.sampled_from(["null", "1", "1.5", '"x"', '""', '"1"', "true", "[1]", '{"b":1}', "9" * 20, '"2024-01-01"'])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(JSON, JSON), min_size=1, max_size=3))
def test_any_json_is_pushed_as_it_is_pulled(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    (tmp_path / "t.jsonl").write_text("".join(f'{{"a":{one},"c":{other}}}\n' for one, other in rows))
    check(tmp_path, "t.jsonl")


def check(folder: Path, name: str) -> None:
    data = read_data(name, "p", folder)
    try:
        pulled = data_table(data)
    except HeadwayError:
        return  # nothing to compare
    found, _, malformed = drain(open_data("p", data))
    assert not malformed
    assert str(pulled.to_pylist()) == str([] if found is None else found.to_pylist())
