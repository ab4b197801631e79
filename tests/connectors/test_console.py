"""Tuples for people."""

from __future__ import annotations

import pyarrow as pa
import pytest

import headway as hw
from headway.connectors import open_sink
from headway.errors import OutputError
from headway.network.schema import Schema

SCHEMA = Schema.parse("name string, pos int")


def _batch(*rows: tuple[str | None, int | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"name": a, "pos": b} for a, b in rows], schema=SCHEMA.to_arrow())


def test_lines_are_aligned_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("alarms", SCHEMA, {"console": None})
    sink.write(_batch(("a", 1), (None, 20)))
    sink.write(_batch(("b", 3)))
    sink.write(_batch(("longer\n", 40000)))
    sink.close()
    assert capsys.readouterr().out.splitlines() == [
        "alarms  name  pos",
        "alarms  a       1",
        "alarms  NULL   20",
        "alarms  b       3",
        "alarms  name       pos",
        "alarms  longer   40000",
    ]


def test_rows_limits_a_batch_and_long_values_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("o", SCHEMA, {"console": {"rows": 2}})
    sink.write(_batch(("x" * 50, 1), ("b", 2), ("c", 3), ("d", 4)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1] == "o  " + "x" * 39 + "…    1"
    assert lines[3] == "o  ... 2 more"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"row": 1}, "output 'o': console: unknown key 'row'; did you mean 'rows'\\?"),
        ({"rows": 0}, "rows is a whole number above 0"),
        ({"rows": True}, "rows is a whole number above 0"),
        (5, "console expects nothing, or {rows: N}"),
    ],
)
def test_settings(settings: object, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        open_sink("o", SCHEMA, {"console": settings})


def test_in_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    network = {
        "network": "n",
        "sources": {"s": {"schema": {"a": "int"}}},
        "boxes": {"f": {"op": "filter", "in": "s", "where": "a > 1"}},
        "outputs": {"o": {"from": "f", "sink": {"console": {"rows": 5}}}},
    }
    hw.run(network, {"s": [{"a": 1}, {"a": 2}]}, engine="local")
    assert capsys.readouterr().out == "o  a\no  2\n"
