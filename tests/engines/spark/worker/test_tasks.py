"""Tasks: drop boxes come first, trains go in pieces, and helper processes import little."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.driver.reading import split_tasks
from headway.engines.spark.wire.messages import MARKS, READINGS, Marks, Row, Work, merge_rows
from headway.engines.spark.wire.protocol import Pickled
from headway.engines.spark.worker import tasks
from headway.engines.spark.worker.source import Task
from headway.engines.spark.worker.tasks import pieces, read_task, unit_code
from headway.network.schema import Schema
from headway.program import compile_program
from headway.sieves import Sieve, chances
from headway.storage.log import Log
from headway.trains import Train, join_trains

SCHEMA = Schema.parse({"n": "bigint"})


def numbered(numbers: list[int]) -> Train:
    values = np.array(numbers, np.int64)
    return Train.from_batch(pa.RecordBatch.from_arrays([pa.array(values)], schema=SCHEMA.to_arrow()), numbers=values)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=60), st.integers(1, 9))
def test_pieces_are_cut_at_the_same_numbers_and_lose_nothing(owners: list[int], size: int) -> None:
    trains = {name: numbered([at for at, one in enumerate(owners) if one == owner]) for owner, name in enumerate("abc")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "_PIECE", size)
        found = list(pieces(trains))
    longest = max(trains, key=lambda name: len(trains[name]))
    last = -1
    for piece in found:
        numbers = [number for train in piece.values() for number in train.numbers.tolist()]
        assert all(number > last for number in numbers)
        assert len(piece[longest]) <= size
        last = max(numbers, default=last)
    for name, train in trains.items():
        both = join_trains([piece[name] for piece in found])
        assert both.numbers.tolist() == train.numbers.tolist()
        assert both.columns[0].values.tolist() == train.numbers.tolist()


def test_a_large_train_goes_through_in_pieces() -> None:
    count = 2 * tasks._PIECE + 1
    lengths = [len(piece["s"]) for piece in pieces({"s": numbered(list(range(count)))})]
    assert lengths == [tasks._PIECE, tasks._PIECE, 1]


def test_helper_processes_import_neither_kernels_nor_expressions() -> None:
    program = (
        "import sys, headway.engines.spark.worker.source; "
        "print([name for name in ('numpy', 'pandas', 'pyarrow', 'sqlglot', 'headway.kernels') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


# Drop boxes

PLUS = {"op": "map", "in": "s", "select": "n, n + 1000 as m"}
OTHER = {"op": "map", "in": "t", "select": "n, n - 1000 as m"}
BOTH = {"op": "union", "in": ["plus", "other"]}
COUNTS = {"op": "aggregate", "in": "s", "select": "count(*) as k", "order": {"on": "n"}, "size": 10}


class Unit:
    """The only unit of a network over the sources s (even arrival numbers) and t (odd ones), 0 to 199."""

    def __init__(self, folder: Path, boxes: dict[str, Any], output: str) -> None:
        names = ("s", "t") if any("t" in box["in"] for box in boxes.values()) else ("s",)
        mapping = {
            "network": "n",
            "sources": {name: {"schema": {"n": "bigint"}} for name in names},
            "boxes": boxes,
            "outputs": {"o": {"from": output}},
        }
        checked = hw.check(hw.load(mapping))
        program = compile_program(checked)
        (unit,) = cut(program, 1, "one").units
        self.work: Work = make_work(program, unit, 1, frozenset(), {}, f"tasks-{folder}")
        self.schema = checked.arcs[output]
        (self.lane,) = [lane.number for lane in self.work.lanes if lane.out]
        self.log = Log(str(folder), dict.fromkeys(names, SCHEMA), sync=False)
        trains = {name: numbered(list(range(at, 200, 2))) for at, name in enumerate(names)}
        self.log.append(trains, 199, 1, positions={})

    def read(self, sieves: dict[str, Any] | None, upto: int = 199, kept: Sequence[Any] = ()) -> list[Row]:
        """Return what the tasks of a micro-batch give, as plain rows."""
        sources = [source.name for source in self.work.network.sources]
        parts = split_tasks(self.log, sources, -1, upto, 1, [upto, [], False, kept], sieves)
        found = []
        for at, part in enumerate(parts):
            for batch in read_task(Pickled(self.work.key, self.work), None, Task(at, *json.loads(json.dumps(part)))):
                columns = [batch.column(name).to_pylist() for name in ("shard", "lane", "first", "train")]
                found += [Row(*fields) for fields in zip(*columns, strict=True)]
        return found

    def results(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        mine = [row for row in rows if row.lane == self.lane]
        return merge_rows(mine, self.schema).to_batch(self.schema.to_arrow()).to_pylist() if mine else []


def reports(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [json.loads(row.train) for row in rows if row.lane == READINGS]


def test_what_a_sieve_drops_reaches_no_box(tmp_path: Path) -> None:
    unit = Unit(tmp_path, {"plus": PLUS}, "plus")
    sieve = Sieve(0.4, 5)
    passing = [n for n in range(0, 200, 2) if chances(np.array([n]), 5)[0] < 0.4]
    assert 20 < len(passing) < 60
    rows = unit.read({"s": sieve.to_mapping()})
    assert unit.results(rows) == [{"n": n, "m": n + 1000} for n in passing]
    (sifted,) = [one["sifted"] for one in reports(rows) if "sifted" in one]
    assert sifted == {"s": [100, 100 - len(passing), "random"]}
    (called,) = [one["boxes"]["plus"] for one in reports(rows) if one["boxes"]]
    assert called[1:3] == [len(passing), len(passing)]


def test_without_sieves_nothing_is_reported_of_them(tmp_path: Path) -> None:
    unit = Unit(tmp_path, {"plus": PLUS}, "plus")
    none: list[dict[str, Any] | None] = [None, {}]
    for sieves in none:
        rows = unit.read(sieves)
        assert len(unit.results(rows)) == 100
        assert not any("sifted" in one for one in reports(rows))


def test_a_sieve_by_value_says_so(tmp_path: Path) -> None:
    unit = Unit(tmp_path, {"plus": PLUS}, "plus")
    rows = unit.read({"s": Sieve(0.5, 0, 0, (150.0,), (0.0, 1.0)).to_mapping()})
    assert [row["n"] for row in unit.results(rows)] == list(range(150, 200, 2))
    assert {"s": [100, 75, "value"]} in [one.get("sifted") for one in reports(rows)]


def test_sources_have_drop_boxes_of_their_own(tmp_path: Path) -> None:
    unit = Unit(tmp_path, {"plus": PLUS, "other": OTHER, "both": {**BOTH, "ordered": True}}, "both")
    rows = unit.read({"t": Sieve(0.0).to_mapping()})
    (sifted,) = [one["sifted"] for one in reports(rows) if "sifted" in one]
    assert sifted == {"t": [100, 100, "random"]}
    called = {name: counts[1] for one in reports(rows) for name, counts in one["boxes"].items()}
    assert called["plus"] == 100
    assert "other" not in called


def test_a_source_without_tuples_is_not_reported(tmp_path: Path) -> None:
    unit = Unit(tmp_path, {"plus": PLUS, "other": OTHER, "both": {**BOTH, "ordered": True}}, "both")
    rows = unit.read({"s": Sieve(0.0).to_mapping(), "t": Sieve(0.0).to_mapping()}, upto=0)
    assert [one["sifted"] for one in reports(rows) if "sifted" in one] == [{"s": [1, 1, "random"]}]


def test_a_task_of_which_nothing_is_left_still_brings_its_marks(tmp_path: Path) -> None:
    """Shards hear how far it went and how much was kept; a micro-batch without marks would be an error."""
    unit = Unit(tmp_path, {"counts": COUNTS}, "counts")
    rows = unit.read({"s": Sieve(0.0).to_mapping()}, kept=[(0, 0.0)])
    (marks,) = [Marks.of(json.loads(row.train)) for row in rows if row.lane == MARKS]
    assert (marks.progress, marks.kept) == (199, ((0, 0.0),))
    out, _ = unit_code(Pickled(unit.work.key, unit.work)).shard(rows[0].shard, rows, None)
    assert {"s": [100, 100, "random"]} in [one.get("sifted") for one in reports(out)], "on its way to the driver"


@pytest.mark.parametrize("keep", [0.2, 0.5, 1.0])
def test_shards_estimate_by_what_was_kept(tmp_path: Path, keep: float) -> None:
    size = {"order": {"on": "n"}, "size": 1000}
    box = {"op": "aggregate", "in": "s", "select": "count(*) as k", "approximate": True, **size}
    unit = Unit(tmp_path, {"counts": box}, "counts")
    rows = unit.read({"s": Sieve(keep, 3).to_mapping()}, kept=[(0, keep)])
    marks = Marks(10_000, (), True, 0, ((0, keep),))
    code = unit_code(Pickled(unit.work.key, unit.work))
    (key,) = {row.shard for row in rows}
    rows = [row for row in rows if row.lane != MARKS] + code.marks(marks)
    (found,) = unit.results(code.shard(key, rows, None)[0])
    passed = int((chances(np.arange(0, 200, 2), 3) < keep).sum())
    assert found["k"] == pytest.approx(passed / keep)
    assert abs(found["k"] - 100) <= 2 * found["k_error"] + 1e-9


def test_marks_travel_with_what_was_kept() -> None:
    marks = Marks(7, (), True, 5, ((0, 0.5), (100, 1.0)))
    assert Marks.of(json.loads(json.dumps(marks))) == marks
