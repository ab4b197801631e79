"""JSON lines in and out, files and standard streams."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors import PipeClosedError, jsonl, open_sink, open_source
from headway.errors import InputError
from headway.network.schema import Schema
from tests.connectors.helpers import drain, read_text, rows, write

SCHEMA = "sid int, x double, name string, t timestamp"


class FakeStream:
    """Stands for standard input or output."""

    def __init__(self, buffer: object) -> None:
        self.buffer = buffer

    def flush(self) -> None:
        """Do nothing."""

    def fileno(self) -> int:
        """Have no descriptor, as under a test runner."""
        raise io.UnsupportedOperation


def test_objects(tmp_path: Path) -> None:
    content = '{"sid":1,"x":2,"other":[1]}\n\n  \n{"x":1.5,"name":"é","t":"2024-01-01T01:00:00+01:00"}\r\n{"sid":2.0}'
    got = rows(read_text(tmp_path / "a.jsonl", content, SCHEMA), [1])
    assert [(row["sid"], row["x"], row["name"]) for row in got] == [(1, 2.0, None), (None, 1.5, "é"), (2, None, None)]
    assert got[1]["t"].isoformat() == "2024-01-01T00:00:00+00:00"


def test_malformed_lines(tmp_path: Path) -> None:
    content = (
        b'{"sid":1}\n{"sid":1.5}\nnull\n{"sid":true}\n{"name":5}\n{bad\n{"name":"\xff"}\n'
        b'{"name":"\\ud800"}\n{"t":5}\n{"t":"soon"}\n{"sid":3000000000}\n[1]\n{"sid":7}\n'
    )
    table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, SCHEMA))
    assert table is not None
    assert table.column("sid").to_pylist() == [1, 7]
    assert [int(row.where.split()[-1]) for row in malformed] == list(range(2, 13))
    assert malformed[0].reason == "field 'sid': expected int, not 1.5"
    assert malformed[0].text == '{"sid":1.5}'
    assert malformed[4].reason.startswith("not valid JSON")
    assert "ISO 8601" in malformed[8].reason


def test_strict_stops_at_the_first(tmp_path: Path) -> None:
    reader = read_text(tmp_path / "a.jsonl", '{"sid":1}\n{"sid":"x"}\nnull\n', SCHEMA, strict=True)
    with pytest.raises(InputError, match=r"a\.jsonl line 2: field 'sid': expected int, not 'x'"):
        reader.read(10)
    reader.close()


def test_decimals_are_exact(tmp_path: Path) -> None:
    content = '{"m":0.1,"x":0.5}\n{"m":"1.25","x":1}\n{"m":1.234}\n{"m":12345678901}\n'
    table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, "m decimal(5,2), x double"))
    assert table is not None
    assert [str(value) for value in table.column("m").to_pylist()] == ["0.10", "1.25"]
    assert table.column("x").to_pylist() == [0.5, 1.0]
    assert all("does not fit decimal(5,2)" in row.reason for row in malformed)
    assert len(malformed) == 2


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "BLOCK", 16)
    monkeypatch.setattr(jsonl, "MAX_LINE", 64)
    content = '{"sid":1}\n{"sid":' + " " * 200 + '2}\n{"sid":3}\n{"sid":x}\n'
    table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, "sid int"))
    assert table is not None
    assert table.column("sid").to_pylist() == [1, 3]
    assert [row.where for row in malformed] == ["a.jsonl line 2", "a.jsonl line 4"]


def test_standard_input_hands_over_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as buffer, os.fdopen(into, "wb", buffering=0) as feed:
        monkeypatch.setattr(sys, "stdin", FakeStream(buffer))
        reader = open_source("s", Schema.parse("a int"), "-")
        assert reader.live
        feed.write(b'{"a":1}\n{"a":2}\n{"a":')
        first = reader.read(100)
        assert first is not None
        assert first.batch.to_pydict() == {"a": [1, 2]}
        later = threading.Timer(0.05, lambda: feed.write(b"3}\nnull\n"))
        later.start()
        second = reader.read(100)
        later.join()
        assert second is not None
        assert second.batch.to_pydict() == {"a": [3]}
        feed.close()
        assert reader.read(100) is None
        assert [row.where for row in reader.malformed()] == ["standard input line 4"]
        reader.close()
        assert not buffer.closed


def test_written_text(tmp_path: Path) -> None:
    table = pa.table(
        {
            'a"b': pa.array([1, None], pa.int32()),
            "x": pa.array([1.0, float("-inf")]),
            "s": pa.array(['say "hi"\n', "é"]),
            "t": pa.array([0, None], pa.timestamp("us", tz="UTC")),
            "y": pa.array([b"\x00\x01", None]),
            "r": pa.array([{"p": 1, "q": None}, None], pa.struct([("p", pa.int32()), ("q", pa.string())])),
        }
    )
    write(tmp_path / "a.jsonl", table)
    assert (tmp_path / "a.jsonl").read_text() == (
        '{"a\\"b":1,"x":1.0,"s":"say \\"hi\\"\\n","t":"1970-01-01T00:00:00Z","y":"AAE=","r":{"p":1,"q":null}}\n'
        '{"a\\"b":null,"x":"-Infinity","s":"é","t":null,"y":null,"r":null}\n'
    )


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    schema = Schema.parse("a int")
    sink = open_sink("o", schema, "-")
    sink.write(pa.RecordBatch.from_pydict({"a": [1, 2]}, schema=schema.to_arrow()))
    assert [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()] == [{"a": 1}, {"a": 2}]
    sink.close()


def test_a_closed_pipe_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, data: bytes) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", FakeStream(Closed()))
    schema = Schema.parse("a int")
    sink = open_sink("o", schema, "-")
    with pytest.raises(PipeClosedError, match="output 'o'"):
        sink.write(pa.RecordBatch.from_pydict({"a": [1]}, schema=schema.to_arrow()))


def test_a_closed_pipe_in_a_real_process() -> None:
    program = (
        "import pyarrow as pa, sys\n"
        "from headway.connectors import PipeClosedError, open_sink\n"
        "from headway.network.schema import Schema\n"
        "schema = Schema.parse('a int')\n"
        "sink = open_sink('o', schema, '-')\n"
        "batch = pa.RecordBatch.from_pydict({'a': [1] * 10000}, schema=schema.to_arrow())\n"
        "try:\n"
        "    while True: sink.write(batch)\n"
        "except PipeClosedError: sys.exit(3)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b'{"a":1}\n'
    process.stdout.close()
    assert process.wait(20) == 3
    assert process.stderr.read() == b""
    process.stderr.close()


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = '\ufeff{"sid":1}\n{"sid":2}\n'
    assert [row["sid"] for row in rows(read_text(tmp_path / "a.jsonl", content, SCHEMA))] == [1, 2]
    monkeypatch.setattr(jsonl, "BLOCK", 1)
    assert [row["sid"] for row in rows(read_text(tmp_path / "a.jsonl", content, SCHEMA))] == [1, 2]
    assert [row["sid"] for row in rows(read_text(tmp_path / "a.jsonl", '\ufeff{"sid":1}', SCHEMA))] == [1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    reader = read_text(tmp_path / "a.jsonl", '{"sid":1}\n'.encode(encoding), SCHEMA)
    with pytest.raises(InputError, match=f"is in {encoding.upper()}, by its byte-order mark; expected UTF-8"):
        reader.read(10)
    reader.close()


def test_a_long_line_does_not_hang_on_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE", 40)
    for length in range(15, 60):
        content = f'{{"sid":1}}\n{{"name":"{"y" * length}"}}\n{{"sid":3}}\n'
        results = []
        for block in (1, 7, 20):
            monkeypatch.setattr(jsonl, "BLOCK", block)
            table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, SCHEMA))
            assert table is not None
            results.append((table.to_pylist(), [(row.where, row.reason) for row in malformed]))
        assert all(one == results[0] for one in results)
        assert len(results[0][0]) == (3 if length + 11 <= 40 else 2)


@pytest.mark.parametrize("number", ["1e99999999999999999999", "-1e99999999999999999999", "1e-99999999999999999999"])
def test_exponents_that_no_decimal_holds(tmp_path: Path, number: str) -> None:
    content = f'{{"v":1.5}}\n{{"v":2,"other":{number}}}\n{{"v":{number}}}\n{{"x":{number}}}\n{{"i":{number}}}\n'
    table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, "v decimal(6,2), x double, i int"))
    assert table is not None
    assert [str(value) for value in table.column("v").to_pylist()] == ["1.50", "2.00", "None"]
    assert table.column("x").to_pylist() == [None, None, float(number)]
    assert [row.where for row in malformed] == ["a.jsonl line 3", "a.jsonl line 5"]


@pytest.mark.parametrize("other", ["", '{"t":5}\n', '{"t":""}\n', '{"t":"soon"}\n'])
def test_times_are_read_alike_whatever_stands_beside_them(tmp_path: Path, other: str) -> None:
    texts = ["9999-12-31T23:59:59-01:00", "0000-01-01", " ", "2024-01-01T01:00:00+01:00"]
    content = "".join(f'{{"t":"{text}"}}\n' for text in texts) + other
    table, _, malformed = drain(read_text(tmp_path / "a.jsonl", content, "t timestamp"))
    assert table is not None
    assert [value.isoformat() for value in table.column("t").to_pylist()] == ["2024-01-01T00:00:00+00:00"]
    assert [row.where for row in malformed][:3] == ["a.jsonl line 1", "a.jsonl line 2", "a.jsonl line 3"]


def test_a_field_that_no_row_has_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    schema = "amout double, host string"
    drain(read_text(tmp_path / "a.jsonl", '{"amount":1,"host":"a"}\n' * 3, schema))
    assert [record.getMessage() for record in caplog.records] == [
        "source 's': no row has the field 'amout'; did you mean 'amount'?"
    ]
    caplog.clear()
    drain(read_text(tmp_path / "b.jsonl", '{"amount":1,"host":"a"}\n' * 5000, schema))
    assert [record.getMessage() for record in caplog.records] == [
        "source 's': no row so far has the field 'amout'; did you mean 'amount'?"
    ]


@pytest.mark.parametrize(
    "content", ["", "\n", "oops\n", '{"a":1}\n{"b":null}\n', '{"a":1,"b":2}\n' + '{"c":1}\n' * 2000]
)
def test_nobody_is_warned_without_need(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str) -> None:
    drain(read_text(tmp_path / "a.jsonl", content, "a int, b int"))
    assert caplog.records == []
