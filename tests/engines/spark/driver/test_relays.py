"""Relays: what one query delivers and another reads, and what a query reads in all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headway.engines.spark.driver.cut import cut
from headway.engines.spark.driver.relays import Inputs, Part, Relays, alias, program_of
from headway.network.schema import Schema
from headway.storage.log import Log
from headway.trains import Train
from tests.engines.spark.driver.test_cut import checked, count, where

SCHEMA = Schema.parse("v int")


def train(numbers: list[int], stamp: int = 0) -> Train:
    batch = pa.RecordBatch.from_pydict({"v": pa.array(numbers, pa.int32())})
    return Train.from_batch(batch, np.full(len(numbers), stamp, np.int64), np.array(numbers, np.int64))


def fill(log: Log, source: str, *batches: list[int]) -> Log:
    for numbers in batches:
        log.append({source: train(numbers, numbers[0])}, numbers[-1], 0, positions={})
    return log


@pytest.fixture
def main(tmp_path: Path) -> Log:
    return fill(Log(str(tmp_path / "main"), {"s": SCHEMA}, sync=False), "s", [0, 1, 2, 3], [4, 5, 6, 7, 8, 9])


@pytest.fixture
def other(tmp_path: Path) -> Log:
    log = Log(str(tmp_path / "other"), {"b": SCHEMA}, sync=False, repeats=True)
    return fill(log, "b", [2, 2, 2], [5, 5, 7])


def numbers(inputs: Inputs, after: int, upto: int) -> list[tuple[str, int, int]]:
    return [(one.source, one.first, one.stop - one.start) for one in inputs.slices(after, upto)]


def test_plain_inputs_are_those_of_the_log(main: Log) -> None:
    inputs = Inputs(main, ["s"])
    assert (inputs.plain, inputs.issued, inputs.from_main) == (True, 9, ("s",))
    assert (inputs.count(1, 5), inputs.cut(1, 3), inputs.stamps(3, 9)) == (4, 4, main.stamps(["s"], 3, 9))
    assert numbers(inputs, 1, 5) == [("s", 2, 2), ("s", 4, 2)]


def test_a_relay_is_read_up_to_where_its_query_has_come(main: Log, other: Log) -> None:
    inputs = Inputs(main, ["s", "b"], {"b": (Part(other),)})
    assert (inputs.issued, inputs.from_main) == (7, ("s",))
    assert inputs.count(-1, 7) == 8 + 6
    assert numbers(inputs, 4, 7) == [("s", 5, 3), ("b", 5, 3)]


def test_cuts_are_at_whole_numbers_and_go_on(main: Log, other: Log) -> None:
    inputs = Inputs(main, ["b"], {"b": (Part(other),)})
    assert [inputs.cut(-1, most) for most in (1, 2, 3, 4, 5, 6)] == [2, 2, 4, 4, 6, 7]
    assert inputs.cut(2, 1) == 5, "a number with more tuples than that is taken as a whole"
    assert inputs.cut(7, 1) == 7


def test_history_comes_before_what_is_live(main: Log, other: Log) -> None:
    inputs = Inputs(main, ["s", "b"], {"b": (Part(other, -1, 5),), "s": (Part(main, 5),)}, since=5)
    assert inputs.issued == 9, "what ends at a seam holds nobody up"
    assert numbers(inputs, -1, 9) == [("b", 2, 3), ("b", 5, 2), ("s", 6, 4)]
    assert inputs.marks(-1, 4) == ((), None)
    assert inputs.stamps(-1, 5) == (2, (3 * 2 + 2 * 5) // 5)


def test_what_was_appended_before_a_crash_is_not_appended_again(tmp_path: Path) -> None:
    program = checked({"b": where("s")}, {"b": "b"}, "s")
    for _ in range(2):
        relays = Relays(str(tmp_path), sync=False)
        relays.follow(program, {"b": "0-b"})
        batch = pa.RecordBatch.from_pydict({name: pa.array([1], pa.int32()) for name in ("a", "k", "v")})
        relays.append("b", Train.from_batch(batch, numbers=np.array([3], np.int64)), 5, 0)
        relays.append("b", None, 9, 0)
        assert (relays["b"].count(["b"], -1, 9), relays["b"].issued) == (1, 9)
    assert relays["b"].positions == {"b": 1}


def test_what_a_query_reads_from_relays_are_sources_in_its_network() -> None:
    boxes = {"b": where("s", "v > 1"), "c": {"op": "filter", "in": "b", "where": ["v > 2", "v > 3"]}, "d": count("c.2")}
    program = checked(boxes, {"d": "d"}, "s")
    (unit,) = cut(program, 2).units
    assert program_of(unit, program) is program
    own = replace(unit, sources=(alias("c.2"),), boxes=("d",), relays=("c.2",))
    found = program_of(own, program).checked
    assert [source.name for source in found.network.sources] == ["c--2"]
    assert found.inputs == {"d": ("c--2",)}
    assert found.arcs["d"] == program.checked.arcs["d"]
