"""Whatever cannot be opened ends in one clear message."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors import open_sink, open_source, sink_kinds, source_kinds, source_suffixes
from headway.errors import InputError, OutputError
from headway.schema import Schema

SCHEMA = Schema.parse("a int")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("none.csv", r"source 's': there is no file '.*none\.csv'; expected a file \(\.csv, \.jsonl, \.parquet\)"),
        ({"parquet": "none.parquet"}, "there is no file"),
        ("folder.csv", r"'.*folder\.csv' is a directory"),
        ("a.txt", r"'a\.txt' has none of the suffixes \.csv, \.jsonl, \.parquet; '-' is standard input"),
        ("a", "none of the suffixes"),
        ({"cvs": "a.csv"}, "unknown connector 'cvs'; did you mean 'csv'\\? choices: csv, generate, jsonl"),
        ({}, "a connector names one kind"),
        ({"csv": "a.csv", "jsonl": "b"}, "a connector names one kind"),
        ({"csv": 5}, "expected a path, not 5"),
        (5, "cannot read from int"),
        (None, "cannot read from NoneType"),
        (b"a.csv", "cannot read from bytes"),
    ],
)
def test_sources(tmp_path: Path, what: object, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=message):
        open_source("s", SCHEMA, what, base=tmp_path)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), True])
def test_rates(rate: float) -> None:
    with pytest.raises(InputError, match="rate is a number of tuples per second above 0"):
        open_source("s", SCHEMA, [], rate=rate)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no/where.csv", r"output 'o': the folder '.*no' for 'where\.csv' does not exist"),
        ("folder.csv", "is a directory"),
        ("a.txt", "none of the suffixes"),
        ({"cvs": "a.csv"}, "unknown connector 'cvs'"),
        (5, "cannot write to int"),
        ({"callback": 5}, "a callback is a function"),
    ],
)
def test_sinks(tmp_path: Path, what: object, message: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match=message):
        open_sink("o", SCHEMA, what, base=tmp_path)


def test_kinds() -> None:
    assert set(source_kinds()) >= {"csv", "jsonl", "parquet", "generate", "replay"}
    assert set(sink_kinds()) >= {"csv", "jsonl", "parquet"}
    assert source_suffixes() == (".csv", ".jsonl", ".parquet")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_appears_when_it_is_complete(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_text("old")
    batch = pa.RecordBatch.from_pydict({"a": [1]}, SCHEMA.to_arrow())
    given_up = open_sink("o", SCHEMA, path)
    given_up.write(batch)
    given_up.abort()
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "old"
    sink = open_sink("o", SCHEMA, path)
    sink.write(batch)
    assert path.read_text() == "old"
    sink.close()
    sink.close()
    sink.abort()
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() != b"old"
