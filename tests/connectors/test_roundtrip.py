"""What a sink writes, a source reads back: every type, NULLs, odd texts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.connectors import open_source
from headway.network.schema import Schema
from tests.connectors.helpers import EVERY_TYPE, drain, same, tables, write
from tests.searching import examples


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@examples(60)
@given(table=tables(), cuts=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_round_trip(suffix: str, table: pa.Table, cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        write(path, table, size=cuts[0])
        again, _, malformed = drain(open_source("s", EVERY_TYPE, path), cuts)
    assert malformed == []
    if again is None:
        again = EVERY_TYPE.to_arrow().empty_table()
    assert same(again, table)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@examples(60)
@given(texts=st.lists(st.none() | st.text(alphabet='a",\n\r\\ é\x00', max_size=5), max_size=8))
def test_one_column_of_odd_texts(suffix: str, texts: list[str | None]) -> None:
    table = pa.table({"s": pa.array(texts, pa.string())})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data{suffix}"
        write(path, table)
        again, _, malformed = drain(open_source("s", Schema.parse("s string"), path))
    assert malformed == []
    assert ([] if again is None else again.column("s").to_pylist()) == texts


@examples(150)
@given(body=st.text(alphabet='1",\n\ra ', max_size=40), strict=st.booleans())
def test_no_csv_text_breaks_the_reader(body: str, strict: bool) -> None:
    """Whatever stands in a file, each line is a tuple, malformed, blank, or part of a quoted value."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        path.write_bytes(b"a,s\n" + body.encode())
        table, _, malformed = drain(open_source("s", Schema.parse("a int, s string"), path))
    lines = [int(row.where.split()[-1]) for row in malformed]
    assert lines == sorted(set(lines)) or "\r" in body
    if '"' not in body:
        broken = body.replace("\r\n", "\n").replace("\r", "\n")
        filled = [line for line in broken.split("\n") if line]
        assert (0 if table is None else table.num_rows) + len(malformed) == len(filled)


@examples(100)
@given(body=st.text(alphabet='{}[]":,a1 .\nnul', max_size=40))
def test_no_json_text_breaks_the_reader(body: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.jsonl"
        path.write_bytes(body.encode())
        table, _, malformed = drain(open_source("s", Schema.parse("a int"), path))
    filled = [line for line in body.split("\n") if line.strip()]
    assert (0 if table is None else table.num_rows) + len(malformed) == len(filled)
