"""Tasks: drop boxes come first, trains go in pieces, shards get their tuples, and helper processes import little."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headway as hw
from headway.columns import from_pylist
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.driver.reading import split_tasks
from headway.engines.spark.driver.relays import Inputs
from headway.engines.spark.wire.messages import MARKS, READINGS, Marks, Row, Work, merge_rows
from headway.engines.spark.worker import tasks
from headway.engines.spark.worker.sharding import shard_keys, shards_of, spark_hash
from headway.engines.spark.worker.source import Pickled, Task
from headway.engines.spark.worker.tasks import pieces, read_task, unit_code
from headway.network.schema import Schema
from headway.program import compile_program
from headway.sieves import Sieve, chances
from headway.storage.log import Log
from headway.trains import Train, join_trains

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        parts = split_tasks(Inputs(self.log, sources), -1, upto, 1, [upto, [], False, kept], sieves)
        found = []
        for at, part in enumerate(parts):
            for batch in read_task(Pickled(self.work.key, self.work), Task(at, *json.loads(json.dumps(part)))):
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


NUMBERS = (0, 1, 2, 7, 42, 255, 65_536, 2**31 - 1, -1, -42, -(2**31), *range(1000, 1100))
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-3, 3),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.sampled_from((0.0, -0.0, math.nan, 1.5, -1.5, math.inf)),
    pa.float32(): st.sampled_from((0.0, -0.0, math.nan, 1.5)),
    pa.string(): st.sampled_from(("", "a", "b", "é", "NULL")),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.decimal128(10, 2): st.decimals(-9, 9, places=2),
}


def _same(one: Any, other: Any) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(number,) for number in NUMBERS], "n int")
    assert [row[0] for row in frame.selectExpr("hash(n)").collect()] == [spark_hash(number) for number in NUMBERS]


@pytest.mark.parametrize("shards", [1, 2, 3, 8, 64])
def test_every_shard_has_a_key_that_spark_puts_into_its_task(shards: int) -> None:
    keys = shard_keys(shards)
    assert [spark_hash(key) % shards for key in keys] == list(range(shards))
    assert len(set(keys)) == shards


@settings(deadline=None)
@given(type_=st.sampled_from(list(TYPES)), shards=st.integers(1, 5), data=st.data())
def test_equal_values_have_equal_shards(type_: pa.DataType, shards: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | TYPES[type_], min_size=1, max_size=20))
    found = shards_of([from_pylist(values, type_)], len(values), shards).tolist()
    assert all(0 <= shard < shards for shard in found)
    for at, one in enumerate(values):
        for other, shard in zip(values[:at], found[:at], strict=True):
            assert not _same(one, other) or shard == found[at]
    # Nor does it matter which other values come along.
    alone = [int(shards_of([from_pylist([value], type_)], 1, shards)[0]) for value in values]
    assert alone == found


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.sampled_from("ab")), min_size=1),
    shards=st.integers(1, 5),
)
def test_several_fields(pairs: list[tuple[int | None, str | None]], shards: int) -> None:
    columns = [from_pylist([one for one, _ in pairs], pa.int32()), from_pylist([one for _, one in pairs], pa.string())]
    found = shards_of(columns, len(pairs), shards).tolist()
    known: dict[Any, int] = {}
    assert all(known.setdefault(pair, shard) == shard for pair, shard in zip(pairs, found, strict=True))


def test_signs_of_zero_kinds_of_nan_and_nulls() -> None:
    nan = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.int64()).view(pa.float64()).to_pylist()
    zeros = shards_of([from_pylist([0.0, -0.0], pa.float64())], 2, 64).tolist()
    nans = shards_of([from_pylist(nan, pa.float64())], 2, 64).tolist()
    nulls = shards_of([from_pylist([None, None, 0], pa.int32())], 3, 64).tolist()
    assert zeros[0] == zeros[1]
    assert nans[0] == nans[1]
    assert nulls[0] == nulls[1] != nulls[2], "NULL is a value of its own"


def test_partitions_are_spread_evenly() -> None:
    for column in (
        from_pylist(list(range(4000)), pa.int64()),
        from_pylist([f"k{n}" for n in range(4000)], pa.string()),
    ):
        found = shards_of([column], 4000, 4).tolist()
        assert all(800 < found.count(shard) < 1200 for shard in range(4))


def test_a_shard_never_changes() -> None:
    """State on disk depends on it."""
    integers = shards_of([from_pylist([0, 1, 2, 3, None], pa.int64())], 5, 16).tolist()
    strings = shards_of([from_pylist(["a", "b", "", None], pa.string())], 4, 16).tolist()
    assert (integers, strings) == (INTEGERS, STRINGS)


INTEGERS = [15, 1, 14, 13, 4]
STRINGS = [8, 4, 7, 13]
