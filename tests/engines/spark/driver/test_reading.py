"""Micro-batches: their tasks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Int64s
from headway.engines.spark.driver import reading
from headway.engines.spark.driver.reading import split_tasks
from headway.engines.spark.driver.relays import Inputs
from headway.network.schema import Schema
from headway.storage.log import Log
from headway.storage.segments import LogSlice, read_slice
from headway.trains import Train
from tests.searching import examples

SCHEMA = Schema.parse({"n": "bigint"})
SOURCES = ("one", "two", "three")


def numbered(numbers: Int64s) -> Train:
    batch = pa.RecordBatch.from_arrays([pa.array(numbers)], schema=SCHEMA.to_arrow())
    return Train.from_batch(batch, numbers=numbers)


def fill(log: Log, owners: list[int], pieces: int) -> None:
    """Append arrivals, the n-th from the source whose number is owners[n]; -1 is a gap, as marks make them."""
    bounds = [len(owners) * at // pieces for at in range(pieces + 1)]
    for moment, (low, high) in enumerate(pairwise(bounds), 1):
        if high > low:
            every = np.array(owners)[low:high]
            trains = {name: numbered(np.flatnonzero(every == at) + low) for at, name in enumerate(SOURCES)}
            log.append(trains, high - 1, moment, positions={})


def read(task: list[Any]) -> dict[str, list[int]]:
    """Return by source the numbers that a task reads."""
    found: dict[str, list[int]] = {}
    for fields in task[0]:
        train = read_slice(LogSlice(*fields), SCHEMA)
        assert train.columns[0].values.tolist() == train.numbers.tolist()
        found.setdefault(fields[0], []).extend(train.numbers.tolist())
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short ranges be split, too."""
    monkeypatch.setattr(reading, "_SMALL", 4)
    monkeypatch.setattr(reading, "_LARGE", 12)


@pytest.mark.usefixtures("small")
@examples(40)
@given(
    owners=st.lists(st.integers(-1, 2), min_size=1, max_size=80),
    pieces=st.integers(1, 4),
    chosen=st.sets(st.sampled_from(SOURCES), min_size=1),
    parallelism=st.integers(1, 4),
    data=st.data(),
)
def test_tasks_divide_the_range(
    owners: list[int], pieces: int, chosen: set[str], parallelism: int, data: st.DataObject
) -> None:
    after = data.draw(st.integers(-1, len(owners) - 1))
    upto = data.draw(st.integers(after, len(owners) - 1))
    with TemporaryDirectory() as folder:
        log = Log(folder, dict.fromkeys(SOURCES, SCHEMA), sync=False)
        fill(log, owners, pieces)
        tasks = split_tasks(Inputs(log, sorted(chosen)), after, upto, parallelism, ["marks"])
        parts = [read(task) for task in tasks]
    expected = {
        name: [number for number in range(after + 1, upto + 1) if owners[number] == at]
        for at, name in enumerate(SOURCES)
        if name in chosen
    }
    together = {name: [number for part in parts for number in part.get(name, [])] for name in expected}
    assert together == expected, "every tuple once, in order"
    spans = [(min(map(min, part.values())), max(map(max, part.values()))) for part in parts if part]
    assert all(one[1] < other[0] for one, other in pairwise(spans)), "all cut at the same numbers"
    assert all(len(task) == 4 for task in tasks)
    assert [task[2] for task in tasks] == [["marks"]] + [None] * (len(tasks) - 1)
    assert all(task[3] is None for task in tasks), "nothing is dropped"
    assert len({task[1] for task in tasks}) == 1, "one clock"
    total = sum(map(len, expected.values()))
    assert len(tasks) <= max(1, parallelism, -(-total // 12))
    if total >= 4:
        assert max(sum(map(len, part.values())) for part in parts) <= -(-total // min(parallelism, total)) + 1


def test_short_ranges_are_one_task_and_long_ones_as_many_as_there_are_cores(tmp_path: Path) -> None:
    log = Log(str(tmp_path), dict.fromkeys(SOURCES, SCHEMA), sync=False)
    fill(log, [0, 1] * 4000, 2)
    assert len(split_tasks(Inputs(log, SOURCES), -1, 4000, 2, [])) == 1
    assert [sum(map(len, read(task).values())) for task in split_tasks(Inputs(log, SOURCES), -1, 7999, 2, [])] == [
        4000,
        4000,
    ]
    assert len(split_tasks(Inputs(log, ["three"]), -1, 7999, 2, ["marks"])) == 1, "nothing to read, but marks to bring"


def test_the_clock_is_that_of_the_log(tmp_path: Path) -> None:
    log = Log(str(tmp_path), dict.fromkeys(SOURCES, SCHEMA), sync=False)
    fill(log, [0] * 20, 2)
    assert [split_tasks(Inputs(log, SOURCES), -1, upto, 2, [])[0][1] for upto in (5, 9, 10, 19)] == [1, 1, 2, 2]


@pytest.mark.usefixtures("small")
def test_all_tasks_know_what_is_dropped(tmp_path: Path) -> None:
    log = Log(str(tmp_path), dict.fromkeys(SOURCES, SCHEMA), sync=False)
    fill(log, [0, 1, 2] * 10, 1)
    sieves = {"one": {"keep": 0.5, "seed": 3}}
    tasks = split_tasks(Inputs(log, SOURCES), -1, 29, 3, ["marks"], sieves)
    assert [task[3] for task in tasks] == [sieves] * 3
    assert [task[3] for task in split_tasks(Inputs(log, SOURCES), -1, 29, 3, ["marks"], {})] == [None] * 3
