"""Histories that tasks copy to logs for queries: any cut into files, killed at any moment, gives the same tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

import headway as hw
from headway.checking import check
from headway.columns import Column
from headway.engines.spark.driver import points
from headway.engines.spark.driver.points import Past, Points
from headway.engines.spark.driver.tasks import Tasks
from headway.network.schema import Schema
from headway.storage.log import Log, read_slice
from headway.trains import Train, constant
from tests.searching import examples

SCHEMA = Schema.parse("k int, v bigint")
CHECKED = check(
    hw.load(
        {
            "network": "n",
            "sources": {"s": {"schema": {"k": "int", "v": "bigint"}}},
            "points": {"p": {"on": "s", "keep": "all", "key": "k"}},
            "outputs": {"out": {"from": "s"}},
        }
    )
)


class Here:
    """Runs tasks in this process; may answer only the first ones."""

    def __init__(self, most: int = 1000) -> None:
        self.most, self.done = most, 0

    def each(self, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = []
        for item in items:
            sent = cloudpickle.loads(cloudpickle.dumps((work, item)))  # type: ignore[no-untyped-call]
            found.append(cloudpickle.loads(cloudpickle.dumps(sent[0](sent[1]))))  # type: ignore[no-untyped-call]
        self.done += len(found)
        return found[: self.most]

    def give_up(self, why: str) -> None:
        raise AssertionError(why)

    def close(self) -> None:
        pass


def make(numbers: list[int], values: list[int]) -> Train:
    at = np.array(values, np.int64)
    columns = (Column((at % 3).astype(np.int32)), Column(at))
    return Train(columns, constant(0, len(at)), np.array(numbers, np.int64))


def no_log(arc: str) -> tuple[Log, str]:
    raise LookupError(arc)


@given(
    st.lists(st.integers(0, 1), min_size=8, max_size=16),
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from([True, True, False])), min_size=5, max_size=5),
    st.integers(-1, 3),
    st.integers(0, 16),
    st.sampled_from([0, 1, 2, 1000]),
    st.sampled_from([None, 1]),
)
@examples(60)
def test_what_is_copied_is_what_is_read(
    steps: list[int], cuts: list[tuple[int, bool]], begin: int, seam: int, most: int, key: int | None
) -> None:
    numbers = np.cumsum(steps).tolist()
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(points, "LEAST", 1)
        tasks = Here(most)
        kept = Points(f"{folder}/history", no_log, cast(Tasks, tasks))
        kept.follow(CHECKED)
        history, start = kept.of("p"), 0
        for count, flush in cuts:
            part = numbers[start : start + count]
            if part:
                history.append(make(part, list(range(start, start + len(part)))))
                start += len(part)
            if flush:
                history.flush()
        past = Past("past", begin, seam, False, {"s": ("p", key)})
        path = str(Path(folder, "log"))
        log = Log(path, {"s": SCHEMA}, sync=False, repeats=True)
        kept._copy(past, "s", log, "s", 7)  # killed when the first tasks are listed
        tasks.most = 1000
        log = Log(path, {"s": SCHEMA}, sync=False, repeats=True)
        if log.issued < seam:
            kept.fill(past, "s", log, "s", 7)
        expected = [
            (number, at)
            for at, number in enumerate(numbers[:start])
            if begin < number <= seam and (key is None or at % 3 == key)
        ]
        trains = [read_slice(one, SCHEMA) for one in log.slices(["s"], -1, seam)]
        found = [
            pair for one in trains for pair in zip(one.numbers.tolist(), one.columns[1].values.tolist(), strict=True)
        ]
        assert found == expected
        assert all((one.stamps == 7).all() for one in trains)
        assert (log.issued, log.positions.get("s", 0)) == (max(log.issued, seam), len(expected))
        kept.close()


def test_little_is_read_by_the_driver(tmp_path: Path) -> None:
    tasks = Here()
    kept = Points(str(tmp_path / "history"), no_log, cast(Tasks, tasks))
    kept.follow(CHECKED)
    for rows, expected in ((points.LEAST - 1, 0), (1, 2)):
        first = kept.of("p").edge.number + 1 if kept.of("p").edge.number > 0 else 0
        kept.of("p").append(make(list(range(first, first + rows)), list(range(rows))))
        kept.of("p").flush()
        log = Log(str(tmp_path / f"log-{first}"), {"s": SCHEMA}, sync=False, repeats=True)
        kept.fill(Past("past", -1, 1 << 20, False, {"s": ("p", None)}), "s", log, "s", 7)
        assert (log.count(["s"], -1, 1 << 20), tasks.done) == (first + rows, expected)
    kept.close()
