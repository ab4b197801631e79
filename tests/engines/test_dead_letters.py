"""Dead letters."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.clock import SECOND, ManualClock
from headway.columns import Column
from headway.connectors.protocol import Malformed
from headway.engines.dead_letters import KEPT, DeadLetters
from headway.errors import RunError
from headway.kernels.kernel import DeadLetter
from headway.network.keep import Keep
from headway.network.schema import Schema
from headway.trains import Train
from tests.engines.local.networks import network

INVERSE = {"op": "map", "in": "s", "select": "a, 1 / v as w"}
SCHEMA = Schema.parse("a bigint")


def test_reasons_are_counted_without_the_values_in_them() -> None:
    letters = DeadLetters(False, None)
    letters.refuse([Malformed("s", f"line {at}", "", f"column 't': expected a time, not '{at}'") for at in range(2000)])
    letters.refuse([Malformed("s", "line 1", "", "column 'u': expected int, not 'x'")] * 3)
    assert letters.summary()["reasons"] == [
        {"box": "s", "reason": "column 't': expected a time; got '0', for example", "tuples": 2000},
        {"box": "s", "reason": "column 'u': expected int, not 'x'", "tuples": 3},
    ]


def test_what_is_counted_is_counted_to_the_end() -> None:
    letters = DeadLetters(False, None)
    for at in range(1500):
        letters.refuse([Malformed("s", "", "", f"reason {at}"), Malformed("s", "", "", "reason 0")])
    assert letters.summary()["reasons"][0]["tuples"] == 1501


def _letter(count: int, reason: str = "bad") -> DeadLetter:
    at = np.arange(count)
    return DeadLetter("b", reason, Train((Column(at),), at, at), SCHEMA)


def test_the_first_are_kept_and_all_are_counted_and_written() -> None:
    written: list[pa.RecordBatch] = []
    letters = DeadLetters(False, written.append)
    letters.bury([_letter(KEPT - 5)])
    letters.bury([_letter(20, "worse"), _letter(3)])
    letters.refuse([Malformed("s", "line 3", "x,y", "too short")])
    letters.refuse([])
    assert letters.total == KEPT + 19
    assert letters.table().num_rows == KEPT
    assert sum(batch.num_rows for batch in written) == letters.total
    summary = letters.summary()
    assert summary["by"] == {"b": KEPT + 18, "s": 1}
    assert summary["reasons"][0] == {"box": "b", "reason": "bad", "tuples": KEPT - 2}
    assert letters.table().slice(0, 1).to_pylist() == [{"box": "b", "reason": "bad", "tuple": '{"a": 0}', "where": ""}]


def test_the_last_are_kept_if_asked() -> None:
    letters = DeadLetters(False, None, Keep(tuples=4))
    letters.bury([_letter(3), _letter(2, "worse")])
    assert [row["reason"] for row in letters.table().to_pylist()] == ["bad", "bad", "worse", "worse"]
    assert [row["tuple"] for row in letters.table().to_pylist()] == ['{"a": 1}', '{"a": 2}', '{"a": 0}', '{"a": 1}']
    assert letters.total == 5
    letters.refuse([Malformed("s", f"line {at}", "", "short") for at in range(KEPT)])
    assert letters.table()["where"].to_pylist() == [f"line {at}" for at in range(KEPT - 4, KEPT)]


def test_those_of_the_last_duration_are_kept_if_asked() -> None:
    clock = ManualClock(100 * SECOND)
    letters = DeadLetters(False, None, Keep.parse("10s"), clock)
    assert letters.ageing
    for count in (1, 2, 3):
        letters.bury([_letter(count)])
        clock.advance(4 * SECOND)
    assert letters.table().num_rows == 5
    clock.advance(8 * SECOND)
    letters.look()
    assert letters.table().num_rows == 0
    assert letters.total == 6


def test_strict_stops_at_the_first() -> None:
    letters = DeadLetters(True, None)
    with pytest.raises(RunError, match=r"box 'b': bad, on the tuple \{\"a\": 0\}"):
        letters.bury([_letter(2)])
    with pytest.raises(RunError, match="line 3: too short"):
        letters.refuse([Malformed("s", "line 3", "x,y", "too short")])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_counts_keeps_and_writes_them(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "dead.jsonl"
    count = KEPT + 500
    made = network({"b": INVERSE}, {"o": "b"})
    data = [(at, at % 2) for at in range(2 * count)]
    result = hw.run(made, {"s": data}, dead_letters=path, workers=workers, train=1000, engine="local")
    assert result.outputs["o"].num_rows == count
    assert result.dead_letters.num_rows == KEPT
    assert result.summary["dead_letters"]["total"] == count
    assert result.summary["boxes"]["b"]["dead_letters"] == count
    lines = path.read_text().splitlines()
    assert len(lines) == count
    first = json.loads(lines[0])
    assert first["box"] == "b"
    assert json.loads(first["tuple"]) == {"a": 0, "v": 0}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_strict_run_stops(tmp_path: Path, workers: int) -> None:
    made = network({"b": INVERSE, "c": INVERSE}, {"o": "b", "p": "c"})
    with pytest.raises(RunError, match=r"box '[bc]': .*zero.*on the tuple"):
        hw.run(
            made,
            {"s": [(1, 1), (2, 0)]},
            strict=True,
            outputs={"o": tmp_path / "o.csv"},
            workers=workers,
            engine="local",
        )
    assert list(tmp_path.iterdir()) == []


def test_malformed_rows_are_letters_too() -> None:
    result = hw.run(network({}, {"o": "s"}), {"s": [(1, 1), ("x", 2), (3, 4, 5), {"a": 4, "v": 1}]}, engine="local")
    assert result.outputs["o"].column("a").to_pylist() == [1, 4]
    assert result.summary["sources"]["s"] == {"tuples": 2, "malformed": 2}
    assert [row["where"] for row in result.dead_letters.to_pylist()] == ["index 1", "index 2"]


def test_tuples_that_are_no_json_are_shown_as_text() -> None:
    schema = Schema.parse("t timestamp, d decimal(4,2), b binary")
    batch = pa.table({name: pa.nulls(1, type_) for name, type_ in zip(schema.names, schema.types, strict=True)})
    values = pa.table({"t": pa.array([0], schema.types[0]), "d": pa.array(["1.5"]).cast(schema.types[1]), "b": [b"x"]})
    letters = DeadLetters(False, None)
    for table in (batch, values):
        train = Train.from_batch(table.combine_chunks().to_batches()[0])
        letters.bury([DeadLetter("b", "r", train, schema)])
    shown = [json.loads(text) for text in letters.table().column("tuple").to_pylist()]
    assert shown[0] == {"t": None, "d": None, "b": None}
    assert shown[1]["d"] == "1.50"


def test_a_time_that_python_cannot_hold_is_a_letter_like_any_other() -> None:
    source = {"schema": {"ts": "timestamp", "d": "date", "k": "int", "l": "array<timestamp>"}}
    made = {
        "network": "n",
        "sources": {"s": source},
        "boxes": {"b": {"op": "map", "in": "s", "select": "1 / k as r, date_format(ts, 'yyyy') as y"}},
        "outputs": {"o": {"from": "b"}},
    }
    moments = pa.array([0, 2**60, 2**60, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    days = pa.array([0, 2**31 - 1, 0, 0], pa.int32()).cast(pa.date32())
    lists = pa.ListArray.from_arrays([0, 1, 2, 3, 4], moments)
    table = pa.table({"ts": moments, "d": days, "k": pa.array([1, 0, 1, 1], pa.int32()), "l": lists})
    result = hw.run(made, {"s": table}, engine="local")
    assert result.outputs["o"].to_pylist() == [{"r": 1.0, "y": "1970"}] * 2
    letters = result.dead_letters.to_pylist()
    assert [one["reason"] for one in letters] == ["division by zero", "date value out of range"]
    far = "+38504-08-17T21:30:06.846976Z"
    assert json.loads(letters[0]["tuple"]) == {"ts": far, "d": "+5881580-07-11", "k": 0, "l": [far]}


def test_tuples_are_written_as_sinks_write_them(tmp_path: Path) -> None:
    made = hw.load(
        {
            "network": "n",
            "sources": {"s": {"schema": {"i": "int", "t": "timestamp", "d": "date", "x": "double", "b": "binary"}}},
            "boxes": {"bad": {"op": "map", "in": "s", "select": "i / 0 as i, t, d, x, b"}},
            "outputs": {"o": {"from": "bad"}, "raw": {"from": "s"}},
        }
    )
    row = (1, datetime(2026, 3, 1, 9, 9, 29, 494000, UTC), date(2026, 3, 1), float("nan"), b"\xff")
    result = hw.run(made, {"s": [row]}, outputs={"raw": tmp_path / "raw.jsonl"}, engine="local")
    [letter] = result.dead_letters.to_pylist()
    told = json.loads(letter["tuple"])
    assert told["t"] == "2026-03-01T09:09:29.494000Z"
    assert told == json.loads((tmp_path / "raw.jsonl").read_text())
