"""Spark's streaming sources as sources, with a real session."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.connectors import Malformed, Reader, open_source
from headway.connectors import spark as spark_connector
from headway.connectors.protocol import Resumable
from headway.connectors.spark import SparkReader
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse("a int, b string")


def _open(settings: object, schema: Schema = SCHEMA, **more: Any) -> SparkReader:
    reader = open_source("s", schema, settings, **more)
    assert isinstance(reader, SparkReader)
    return reader


def _files(path: Path, **more: Any) -> dict[str, Any]:
    return {"spark": {"format": "json", "path": str(path), "available_now": True, **more}}


def _put(folder: Path, name: str, values: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    hidden = folder / f".{name}"
    hidden.write_text("".join(json.dumps({"a": value, "b": str(value)}) + "\n" for value in values))
    hidden.rename(folder / f"{name}.json")


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_streams_of_files(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    frame = spark.createDataFrame([(1, "x"), (2, None)], "a int, b string")
    frame.coalesce(1).write.format(format_).save(str(tmp_path / "in"))
    reader = _open({"spark": {"format": format_, "path": "in", "available_now": True}}, base=tmp_path)
    assert reader.live
    assert reader.finite
    assert rows(reader, [1]) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_rows_that_do_not_parse(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"a": 1, "b": "x"}\n{"a": "no"}\nnonsense\n{"a": 2}\n')
    table, _, malformed = drain(_open(_files(tmp_path)))
    assert table is not None
    assert table.to_pydict() == {"a": [1, 2], "b": ["x", None]}
    assert [row.text for row in malformed] == ['{"a": "no"}', "nonsense"]
    assert malformed[0].where == "Spark's 'json' stream, batch 0"
    assert "a int, b string" in malformed[0].reason
    with pytest.raises(InputError, match="source 's': Spark's 'json' stream, batch 0: not a JSON row"):
        drain(_open(_files(tmp_path), strict=True))


def test_a_value_that_does_not_fit_is_a_malformed_row(spark: SparkSession, tmp_path: Path) -> None:
    _put(tmp_path, "1", [1, 5_000_000_000, 3])
    frame = spark.readStream.schema("a bigint, b string").json(str(tmp_path))
    reader = _open(frame)
    chunk = reader.read(10)
    malformed = reader.malformed()
    reader.close()
    assert chunk is not None
    assert chunk.batch.column("a").to_pylist() == [1, 3]
    assert [row.text for row in malformed] == ["5000000000"]
    assert malformed[0].reason.startswith("column 'a': does not fit int")


def test_rate_is_mapped_and_does_not_end(spark: SparkSession) -> None:
    settings = {"format": "rate", "options": {"rowsPerSecond": 1000}, "select": ["cast(value as int) as a", "'x' as b"]}
    reader = _open({"spark": settings})
    assert not reader.finite
    taken: list[dict[str, Any]] = []
    while len(taken) < 1000:
        chunk = reader.read(300)
        assert chunk is not None
        taken += chunk.batch.to_pylist()
    reader.close()
    assert sorted(row["a"] for row in taken) == list(range(len(taken)))
    assert reader.read(10) is None


def test_a_streaming_frame(spark: SparkSession, tmp_path: Path) -> None:
    _put(tmp_path, "1", [1, 2, 3])
    frame = spark.readStream.schema("b string, a bigint, c int").json(str(tmp_path)).where("a > 1")
    reader = _open(frame, rate=10.0)
    assert reader.timed
    chunk = reader.read(10)
    reader.close()
    assert chunk is not None
    assert chunk.batch.to_pylist() == [{"a": 2, "b": "2"}, {"a": 3, "b": "3"}]
    assert chunk.due is not None
    assert chunk.due.tolist() == [0, 100_000_000]
    ending = _open({"spark": {"frame": frame, "select": ["a", "upper('q') as b"], "available_now": True}})
    assert rows(ending) == [{"a": 2, "b": "Q"}, {"a": 3, "b": "Q"}]
    assert rows(open_source("s", SCHEMA, spark.createDataFrame([(1, "x")], "a int, b string"))) == [{"a": 1, "b": "x"}]


@pytest.fixture
def server() -> Iterator[int]:
    done = threading.Event()

    class Lines(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"one\ntwo\n")
            done.wait(20)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines) as listening:
        listening.daemon_threads = True
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield int(listening.server_address[1])
        done.set()
        listening.shutdown()
        thread.join()


def test_a_socket(spark: SparkSession, server: int) -> None:
    options = {"host": "127.0.0.1", "port": server}
    reader = _open({"spark": {"format": "socket", "options": options}}, Schema.parse("value string"))
    taken: list[str] = []
    while len(taken) < 2:
        chunk = reader.read(10)
        assert chunk is not None
        taken += chunk.batch.column("value").to_pylist()
    reader.close()
    assert taken == ["one", "two"]


def test_the_query_waits_while_nobody_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_connector, "AHEAD", 2)
    for at in range(5):
        _put(tmp_path, str(at), [2 * at, 2 * at + 1])
    reader = _open(_files(tmp_path, options={"maxFilesPerTrigger": 1}))
    first = reader.read(2)
    assert first is not None
    for _ in range(20):  # it would be through by now
        threading.Event().wait(0.1)
        assert reader._ready.held <= 2
    assert reader._query.isActive
    rest = rows(reader)
    assert sorted(row["a"] for row in [*first.batch.to_pylist(), *rest]) == list(range(10))


# Going on


def _read_all(reader: Reader) -> list[int]:
    found = []
    while (chunk := reader.read(100)) is not None:
        found += chunk.batch.column("a").to_pylist()
    return found


def _resumed(folder: Path, state: Path, tuples: int, refused: int = 0) -> SparkReader:
    reader = _open(_files(folder, options={"maxFilesPerTrigger": 1}))
    assert isinstance(reader, Resumable)
    reader.resume(str(state), tuples, refused)
    return reader


def test_going_on_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    _put(folder, "1", [0, 1, 2, 3])
    reader = _resumed(folder, state, 0)
    assert _read_all(reader) == [0, 1, 2, 3]
    reader.close()
    _put(folder, "2", [4, 5])
    assert not isinstance(open_source("s", SCHEMA, []), Resumable)
    again = _resumed(folder, state, 3)  # of four tuples that were read, three had reached the log
    assert _read_all(again) == [3, 4, 5]
    again.acknowledge(6, 0)
    again.close()
    last = _resumed(folder, state, 6)
    assert _read_all(last) == []
    last.close()


def test_moments_go_on_where_they_were(spark: SparkSession, tmp_path: Path) -> None:
    _put(tmp_path / "in", "1", [0, 1, 2, 3])
    reader = _open(_files(tmp_path / "in"), rate=10.0)
    reader.resume(str(tmp_path / "state"), 2, 0)
    chunk = reader.read(10)
    reader.close()
    assert chunk is not None
    assert chunk.due is not None
    assert chunk.due[0] == 200_000_000


def test_a_batch_that_spark_did_not_commit_is_not_read_twice(spark: SparkSession, tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    _put(folder, "1", [0, 1])
    reader = _resumed(folder, state, 0)
    assert _read_all(reader) == [0, 1]
    reader.close()
    commits = state / "checkpoint" / "commits"  # as if the process had died right before the commit
    for path in [*commits.glob("0"), *commits.glob(".0.crc")]:
        path.unlink()
    _put(folder, "2", [2])
    for logged, expected in ((1, [1, 2]), (3, [])):
        again = _resumed(folder, state, logged)
        assert _read_all(again) == expected
        again.close()


def test_what_is_durable_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    for at in range(4):
        _put(folder, str(at), [at])
    reader = _resumed(folder, state, 0)
    taken: list[int] = []
    while (chunk := reader.read(1)) is not None:
        taken += chunk.batch.column("a").to_pylist()
        reader.acknowledge(len(taken), 0)
    reader.close()
    left = len(list((state / "batches").iterdir()))
    _put(folder, "5", [5])
    again = _resumed(folder, state, 4)
    assert _read_all(again) == [5]
    again.close()
    assert 1 <= len(list((state / "batches").iterdir())) <= min(left + 1, 2)


def test_malformed_rows_are_reported_once(spark: SparkSession, tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    folder.mkdir()
    (folder / "1.json").write_text('x\n{"a": 1}\ny\n')
    found: list[list[Malformed]] = []
    for tuples, refused in ((0, 0), (0, 1), (1, 2)):
        reader = _resumed(folder, state, tuples, refused)
        assert _read_all(reader) == [1][tuples:]
        found.append(reader.malformed())
        reader.close()
    assert [[row.text for row in one] for one in found] == [["x", "y"], ["y"], []]


def test_a_changed_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    folder, state = tmp_path / "in", tmp_path / "state"
    for at in range(2):
        _put(folder, str(at), [at])
    reader = _resumed(folder, state, 0)
    _read_all(reader)
    reader.close()
    (state / "checkpoint").rename(state / "lost")
    again = _resumed(folder, state, 2)
    with pytest.raises(InputError, match="source 's': Spark is at batch 0, but batch 1 was read before"):
        _read_all(again)
    again.close()


# What cannot be


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "source 's': spark: give a format, such as kafka"),
        ({"formats": "x"}, "spark: unknown key 'formats'; did you mean 'format'"),
        ({"format": 5}, "format is text"),
        ({"format": "nonesuch"}, "unknown format 'nonesuch'; choices: .*--allow-format nonesuch lets it be used"),
        (
            {"format": "rate", "select": ["reflect('java.lang.System', 'load', '/x.so') as a"]},
            "spark: select: function 'reflect' is not known to be safe in Spark",
        ),
        ({"format": "json", "path": 5}, "path is text"),
        ({"format": "rate", "select": "value"}, "select is a list of SQL expressions"),
        ({"format": "rate", "options": [1]}, "options is a mapping"),
        ({"format": "rate", "options": {"x": [1]}}, "option 'x' is text, a number, true or false"),
        ({"format": "rate", "available_now": 1}, "available_now is true or false"),
        ({"frame": [1]}, "frame is a streaming DataFrame, not list"),
        ("kafka", "spark expects a mapping with the keys format, path"),
    ],
)
def test_settings(settings: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source("s", SCHEMA, {"spark": settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"format": "kafka", "options": {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}},
            r"Spark has no format 'kafka'; .*spark\.jars\.packages \(for kafka: .*spark-sql-kafka-0-10_2\.13",
        ),
        ({"format": "kinesis"}, r"source 's': Spark has no format 'kinesis'.*spark\.jars\.packages \(for kinesis"),
        ({"format": "rate"}, "source 's': Spark's 'rate' stream has no column 'a'; columns: timestamp, value"),
        ({"format": "rate", "select": ["valu as a"]}, "source 's': select: .*valu.*; columns: timestamp, value"),
        ({"format": "rate", "select": ["'x' as a", "'y' as b"]}, "column 'a' is string and cannot become int"),
        ({"format": "rate", "options": {"rowsPerSecond": "x"}}, "Spark's 'rate' stream cannot be opened"),
        (
            {"format": "rate", "options": {"rowsPerSecond": 100}, "select": ["int(1 / (value - 5)) as a", "'y' as b"]},
            "source 's': Spark's 'rate' stream cannot be read: .*",
        ),
    ],
)
def test_what_spark_cannot_read(spark: SparkSession, settings: object, message: str) -> None:
    reader = open_source("s", SCHEMA, {"spark": settings})
    with pytest.raises(InputError, match=message) as caught:
        _read_all(reader)
    reader.close()
    assert "\n" not in str(caught.value)


def test_in_a_network(spark: SparkSession, tmp_path: Path) -> None:
    _put(tmp_path, "1", [1, 2, 3])
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}, "source": _files(tmp_path)}},
        "boxes": {"f": {"op": "filter", "in": "s", "where": "a > 1"}},
        "outputs": {"o": {"from": "f"}},
    }
    for engine in ("local", "spark"):
        assert hw.run(network, engine=engine).outputs["o"].to_pydict() == {"a": [2, 3]}
