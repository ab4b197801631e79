"""Whatever cannot be opened ends in one clear message."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors import open_sink, open_source, sink_kinds, source_kinds, source_suffixes
from headway.errors import InputError, OutputError
from headway.network.schema import Schema

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


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("kafka://host:9092/topic", "source: {spark: {format: kafka, options: {kafka.bootstrap.servers"),
        ({"kafka": {"topic": "t"}}, "unknown connector 'kafka'.*format: kafka"),
        ("http://host/data.csv", r"HTTP; fetch it: curl URL \| headway run .* --input NAME=-"),
        ("https://host/data.csv", "curl URL"),
        ("s3://bucket/data.parquet", "source: {spark: {format: parquet, path: 's3://bucket/data.parquet'}}"),
        (Path("s3://bucket/data.parquet"), "{spark: {format: parquet"),
        ({"parquet": "s3://bucket/data.parquet"}, "{spark: {format: parquet"),
        (
            "jdbc:postgresql://host/db",
            "the tables of a database are read by {sql: {url: URL, table: TABLE}}, without",
        ),
        ("postgresql://host/db", "the tables of a database are read by {sql: {url: URL, table: TABLE}}"),
        ("mqtt://host/topic", "there is no connector for it; pipe JSON lines in with --input NAME=-"),
        ("amqp://host", "write your own source"),
        ("file:///tmp/a.csv", "write the path without file://"),
        ("gopher://host/a.csv", "it is an address, not a file"),
    ],
)
def test_addresses_point_to_what_there_is(what: object, message: str) -> None:
    with pytest.raises(
        InputError, match=f"source 's': .*{message}.*" + ("" if "file://" in message else "docs/connectors.md")
    ):
        open_source("s", SCHEMA, what)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("kafka://host:9092/topic", "sink: {spark: {format: kafka, options: {kafka.bootstrap.servers.*topic: TOPIC"),
        ("s3://bucket/out/", "sink: {spark: {format: parquet, path: 's3://bucket/out/'}}"),
        ("jdbc:postgresql://host/db", "sink: {spark: {format: jdbc"),
        ({"kafka": "t"}, "unknown connector 'kafka'.*format: kafka"),
    ],
)
def test_addresses_of_sinks_too(what: object, message: str) -> None:
    with pytest.raises(OutputError, match=f"output 'o': .*{message}.*docs/connectors.md"):
        open_sink("o", SCHEMA, what)


def test_what_is_no_address_stays_a_file(tmp_path: Path) -> None:
    for name in ("a:b.csv", "10:30.csv"):
        (tmp_path / name).write_text("a\n1\n")
        with contextlib.closing(open_source("s", SCHEMA, name, base=tmp_path)) as reader:
            assert len(reader.read(10) or ()) == 1
