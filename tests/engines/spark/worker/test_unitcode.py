"""A unit's kernels: the front and the shards. What they compute is checked by the behaviour suite ('sharded')."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headway as hw
from headway.columns import UNREAD
from headway.engines.spark.driver.cut import cut, make_work
from headway.engines.spark.wire.messages import LETTERS, READINGS, Marks, Row, Work, merge_rows, unpack, unpack_counts
from headway.engines.spark.worker import tasks
from headway.engines.spark.worker.sharding import shard_keys
from headway.engines.spark.worker.source import Pickled
from headway.engines.spark.worker.tasks import UnitCode, unit_code
from headway.errors import RunError
from headway.network.schema import Schema
from headway.program import compile_program
from headway.trains import Tick, Train

SCHEMA = Schema.parse({"a": "int", "k": "int", "v": "int", "text": "string"})
COUNTS = {
    "op": "aggregate",
    "in": "s",
    "select": "count(*) as n",
    "order": {"on": "a", "by": ["k"]},
    "size": 10,
}
SECOND = 10**9


class Unit:
    """The only unit of a network, and its state."""

    def __init__(
        self,
        boxes: dict[str, Any],
        outputs: Sequence[str],
        shards: int = 2,
        discarded: Iterable[str] = (),
        units: str = "one",
    ) -> None:
        mapping = {
            "network": "unit",
            "sources": {"s": {"schema": {field.name: str(field).split(" ", 1)[1] for field in SCHEMA}}},
            "boxes": boxes,
            "outputs": {name.replace(".", "_"): {"from": name} for name in outputs},
        }
        checked = hw.check(hw.load(mapping))
        program = compile_program(checked)
        unit = cut(program, shards, units).units[0]
        self.work: Work = make_work(program, unit, shards, frozenset(discarded), {}, "run")
        self.code = UnitCode(self.work)
        self.keys = shard_keys(shards)
        self.states: dict[int, bytes | None] = dict.fromkeys(self.keys)

    def front(self, rows: Sequence[tuple[Any, ...]], first: int = 0, task: int = 0) -> list[Row]:
        return list(self.code.front({"s": train(rows, first)}, 0, task))

    def step(self, rows: Sequence[tuple[Any, ...]], first: int, marks: Marks) -> list[Row]:
        """Run a whole micro-batch."""
        sent = [*self.front(rows, first), *self.code.marks(marks)]
        found = []
        for key in self.keys:
            out, state = self.code.shard(key, [row for row in sent if row.shard == key], self.states[key])
            self.states[key] = self.states[key] if state is None else state
            found += out
        return found

    def rows_of(self, found: Sequence[Row], arc: str) -> list[dict[str, Any]]:
        (lane,) = [lane for lane in self.work.lanes if lane.out and lane.arc == arc]
        schema = self.code.checked.arcs[arc]
        parts = [row for row in found if row.lane == lane.number]
        return merge_rows(parts, schema).to_batch(schema.to_arrow()).to_pylist() if parts else []


def train(rows: Sequence[tuple[Any, ...]], first: int = 0) -> Train:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * len(SCHEMA)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, SCHEMA.types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.to_arrow())
    return Train.from_batch(batch, numbers=np.arange(first, first + len(rows), dtype=np.int64))


def upto(number: int, *ticks: Tick, end: bool = False) -> Marks:
    return Marks(number, ticks, end, number)


def reports(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [json.loads(row.train) for row in rows if row.lane == READINGS]


def test_marks_travel_as_json() -> None:
    marks = Marks(7, (Tick(3, 2**62), Tick(5, 1)), True, 2**62)
    assert Marks.of(json.loads(json.dumps(marks))) == marks


def test_only_the_columns_that_are_read_travel_to_shards() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"])
    (lane,) = [lane for lane in unit.work.lanes if not lane.out]
    for row in unit.front([(1, 1, 5, "x"), (2, 2, 6, "y")]):
        if row.lane == lane.number:
            sent = unpack(row.train, SCHEMA).train
            assert [column is UNREAD for column in sent.columns] == [False, False, True, True]


def test_every_partition_goes_to_one_shard() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"], shards=3)
    (lane,) = [lane for lane in unit.work.lanes if not lane.out]
    found: dict[int, set[int]] = {}
    for row in unit.front([(1, k % 7, 0, "") for k in range(70)]):
        if row.lane == lane.number:
            found.setdefault(row.shard, set()).update(unpack(row.train, SCHEMA).train.columns[1].values.tolist())
    assert sum(map(len, found.values())) == 7
    assert set(found) <= set(unit.keys)


def test_tasks_send_their_results_to_different_keys() -> None:
    unit = Unit({"some": {"op": "filter", "in": "s", "where": "v > 0"}, "counts": COUNTS}, ["some", "counts"])
    (lane,) = [lane for lane in unit.work.lanes if lane.arc == "some"]
    shards = [
        row.shard for task in range(4) for row in unit.front([(1, 1, 1, "")], task=task) if row.lane == lane.number
    ]
    assert shards == [*unit.keys, *unit.keys]


def test_an_output_that_nobody_reads_is_counted() -> None:
    unit = Unit({"some": {"op": "filter", "in": "s", "where": "v > 0"}}, ["some"], discarded=["some"])
    (packed,) = [row.train for row in unit.front([(1, 1, v, "long text") for v in range(-3, 4)]) if row.lane >= 0]
    assert unpack_counts(packed)[1].sum() == 3


def test_a_micro_batch_needs_its_marks() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"])
    with pytest.raises(RunError, match="unit 'counts': a micro-batch without its marks"):
        unit.code.shard(unit.keys[0], [], None)


def test_a_shard_that_gets_nothing_writes_nothing() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"])
    assert unit.code.shard(unit.keys[1], unit.code.marks(upto(4))[1:], b"") == ([], None)


def test_the_state_goes_from_one_micro_batch_to_the_next_as_bytes() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"])
    first = unit.step([(1, 1, 0, ""), (2, 2, 0, "")], 0, upto(1))
    assert unit.rows_of(first, "counts") == []
    unit.code = UnitCode(unit.work)  # another process
    second = unit.step([(3, 1, 0, ""), (12, 2, 0, "")], 2, upto(3))
    assert unit.rows_of(second, "counts") == [{"a": 0, "k": 2, "n": 1}]
    last = unit.step([], 4, upto(4, end=True))
    assert unit.rows_of(last, "counts") == [{"a": 0, "k": 1, "n": 2}, {"a": 10, "k": 2, "n": 1}]


def test_a_second_try_gives_the_same() -> None:
    unit = Unit({"counts": COUNTS}, ["counts"], shards=1)
    unit.step([(1, 1, 0, "")], 0, upto(0))
    (key,) = unit.keys
    sent = [*unit.front([(2, 1, 0, ""), (30, 1, 0, "")], 1), *unit.code.marks(upto(2))]
    tries = [unit.code.shard(key, sent, unit.states[key]) for _ in range(2)]
    assert tries[0][1] == tries[1][1]
    assert unit.rows_of(tries[0][0], "counts") == unit.rows_of(tries[1][0], "counts") == [{"a": 0, "k": 1, "n": 2}]


def test_what_the_end_lets_out_comes_in_the_order_of_one_shard() -> None:
    rows = [(5, k, 0, "") for k in (4, 1, 3, 0, 2)] + [(15, k, 0, "") for k in (2, 4)]
    found = []
    for shards in (1, 2, 4):
        unit = Unit({"counts": COUNTS, "late": {"op": "map", "in": "counts", "select": "a, k"}}, ["late"], shards)
        done = unit.step(rows[:3], 0, upto(2)) + unit.step(rows[3:], 3, upto(6, end=False))
        done = done + unit.step([], 7, upto(7, end=True))
        found.append([(row["a"], row["k"]) for row in unit.rows_of(done, "late")])
    assert found[0] == found[1] == found[2]
    assert sorted(found[0]) == sorted({(a - a % 10, k) for a, k, _, _ in rows})


def test_reports_count_tuples_and_name_only_boxes_that_are_owned() -> None:
    boxes = {"some": {"op": "filter", "in": "s", "where": "v > 0"}, "counts": {**COUNTS, "in": "some"}}
    unit = Unit(boxes, ["counts"], shards=1)
    found = reports(unit.step([(1, 1, v, "") for v in range(-2, 4)], 0, upto(5)))
    counted = {name: one[1:3] for report in found for name, one in report["boxes"].items()}
    assert counted == {"some": [6, 3], "counts": [3, 0]}


def test_reports_say_how_routes_divide() -> None:
    boxes = {"some": {"op": "filter", "in": "s", "where": "v > 0"}, "rest": {**COUNTS, "in": "some.else"}}
    unit = Unit(boxes, ["some", "rest"], shards=1)
    found = reports(unit.step([(1, 1, v, "") for v in range(-2, 4)], 0, upto(5)))
    assert [report["arcs"] for report in found if "arcs" in report] == [{"some": [6, 3], "some.else": [6, 3]}]
    alone = Unit({**boxes, "rest": {**COUNTS, "in": "some"}}, ["some", "rest"], shards=1)
    assert not any("arcs" in report for report in reports(alone.step([(1, 1, 1, "")], 0, upto(0))))


def test_a_unit_that_reads_one_of_two_routes_counts_both() -> None:
    """Each output has a query of its own here; other engines count the tuples of all ports, too."""
    boxes = {"some": {"op": "filter", "in": "s", "where": "v > 0"}}
    unit = Unit(boxes, ["some", "some.else"], shards=1, units="output")
    (first,) = reports(unit.front([(1, 1, 5, ""), (1, 2, -5, ""), (1, 2, -6, "")]))
    assert (first["arcs"], first["boxes"]["some"][1:3]) == ({"some": [3, 1]}, [3, 3])


def test_dead_letters_travel_with_their_box() -> None:
    unit = Unit({"box": {"op": "map", "in": "s", "select": "10 / v as x"}}, ["box"], shards=1)
    (letters,) = [json.loads(row.train) for row in unit.front([(1, 1, 0, "x"), (1, 1, 5, "y")]) if row.lane == LETTERS]
    ((box, reason, text, where),) = letters
    assert (box, json.loads(text)["text"], where) == ("box", "x", "")
    assert "zero" in reason.lower()


WAITING = {
    "ones": {"op": "filter", "in": "s", "where": "k = 1"},
    "timed": {**COUNTS, "in": "ones", "timeout": "5s", "order": {"on": "a"}},
    "sorted": {"op": "bsort", "in": "s", "order": {"on": "a"}},
}


class TestDeadlines:
    def test_the_front_says_nothing_of_deadlines(self) -> None:
        unit = Unit(WAITING, ["timed", "sorted"])
        assert all("deadline" not in report for report in reports(unit.front([(1, 1, 1, "")])))

    def test_a_window_that_waits_is_remembered_while_others_work(self) -> None:
        unit = Unit(WAITING, ["timed", "sorted"], shards=1)
        (first,) = [one["deadline"] for one in reports(unit.step([(1, 1, 0, "")], 0, upto(0))) if "deadline" in one]
        assert first is not None
        (second,) = [one["deadline"] for one in reports(unit.step([(1, 0, 0, "")], 1, upto(1))) if "deadline" in one]
        assert second == first

    def test_a_tick_lets_it_go(self) -> None:
        unit = Unit(WAITING, ["timed", "sorted"])
        unit.step([(1, 1, 0, "")], 0, upto(0))
        found = unit.step([], 1, upto(1, Tick(1, 60 * SECOND)))
        assert unit.rows_of(found, "timed") == [{"a": 0, "n": 1}]
        assert all(one.get("deadline") is None for one in reports(found))


def test_the_dead_letter_of_a_filter_in_shards_shows_the_whole_tuple() -> None:
    # Two filters of one stream are pulled into the shards, and the counts behind them read neither v nor text.
    boxes = {
        "f": {"op": "filter", "in": "s", "where": "10 / v > 1"},
        "g": {"op": "filter", "in": "s", "where": "v > 3"},
        "c": {**COUNTS, "in": "f"},
        "d": {**COUNTS, "in": "g"},
    }
    unit = Unit(boxes, ["c", "d"])
    assert not unit.work.unit.placements["f"].front
    found = unit.step([(1, 1, 5, "x"), (2, 1, 0, "y")], 0, Marks(1, (), False, 0))
    (letter,) = [one for row in found if row.lane == LETTERS for one in json.loads(bytes(row.train))]
    assert letter[0] == "f"
    assert json.loads(letter[2]) == {"a": 2, "k": 1, "v": 0, "text": "y"}


def test_a_process_compiles_each_unit_once_and_keeps_those_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    monkeypatch.setattr(tasks, "_compiled", {})

    def compile_unit(work: Any) -> object:
        compiled.append(work)
        return object()

    monkeypatch.setattr(tasks, "UnitCode", compile_unit)
    units: list[Any] = [Pickled(f"unit {number}", number) for number in range(200)]
    for _ in range(3):
        for unit in units[:100]:
            unit_code(unit)
    assert compiled == list(range(100))
    for unit in units[100:]:
        unit_code(unit)
        unit_code(units[0])
    assert compiled == list(range(200))
    assert len(tasks._compiled) < 200


def test_boxes_that_end_at_a_seam_are_flushed_and_the_others_go_on() -> None:
    more = {"totals": {**COUNTS, "in": "counts", "select": "sum(n) as n", "order": {"on": "a"}}, "others": COUNTS}
    unit = Unit({"counts": COUNTS, **more}, ["counts", "totals", "others"], shards=2)
    assert not unit.rows_of(unit.step([(1, 1, 5, ""), (2, 2, 5, "")], 0, upto(1)), "counts")
    found = unit.step([], 2, Marks(2, (), False, 2, flush=("counts",)))
    assert [row["n"] for row in unit.rows_of(found, "counts")] == [1, 1]
    assert not unit.rows_of(found, "others")
    assert not unit.rows_of(found, "totals"), "it has got what was flushed, and waits for more"
    found = unit.step([], 3, upto(3, end=True))
    assert [row["n"] for row in unit.rows_of(found, "totals")] == [2]
    assert [row["n"] for row in unit.rows_of(found, "others")] == [1, 1]


def test_marks_of_a_seam_travel_as_json() -> None:
    marks = Marks(7, (), False, 2, ((1, 0.5),), ((3, 4),), ("counts", "totals"))
    assert Marks.of(json.loads(json.dumps(marks))) == marks
    assert [marks.ends(name) for name in ("counts", "others")] == [True, False]
