"""Timeouts on Spark: clock ticks travel through the log, and reach boxes that get nothing else.

On real time. A micro-batch takes a good part of a second, so these streams pause for longer than those in
test_timeout; what the pause is for happens within it, however slow the machine is: the stream goes on when it has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from tests.reference.tuples import Row

PATIENCE = 120.0
pytestmark = pytest.mark.usefixtures("spark")


class Emitted:
    """Takes an output's rows, and lets others wait for them."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._came = threading.Event()

    def __call__(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.to_pylist()
        self._came.set()

    def wait(self) -> None:
        assert self._came.wait(PATIENCE), "nothing came"


def _counts(arc: str, by: list[str]) -> dict[str, Any]:
    order = {"on": "a", "by": by}
    return {"op": "aggregate", "in": arc, "select": "count(*) as n", "order": order, "size": 10, "timeout": "300ms"}


def _run(
    boxes: dict[str, Any], inputs: dict[str, Any], outputs: dict[str, Callable[..., object]], shards: int = 2
) -> hw.RunResult:
    network = {
        "network": "patience",
        "sources": {name: {"schema": {"a": "int", "k": "int"}} for name in inputs},
        "boxes": boxes,
        "outputs": {name: {"from": name} for name in outputs},
    }
    return hw.run(network, inputs, outputs=outputs, engine="spark", cut={"units": "one", "shards": shards})


@pytest.mark.parametrize("by", [pytest.param([], marks=pytest.mark.slow), ["k"]], ids=["in one shard", "spread"])
def test_a_late_tuple_of_a_window_that_timed_out_is_ignored(by: list[str]) -> None:
    emitted = Emitted()

    def rows() -> Iterator[Row]:
        yield {"a": 1, "k": 1}
        yield {"a": 2, "k": 1}
        emitted.wait()
        yield {"a": 3, "k": 1}
        yield {"a": 11, "k": 1}

    result = _run({"box": _counts("s", by)}, {"s": rows()}, {"box": emitted})
    assert [(row["a"], row["n"]) for row in emitted.rows] == [(0, 2), (10, 1)]
    assert result.summary["boxes"]["box"]["ignored"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2])
def test_other_tuples_do_not_make_a_deadline_forgotten(shards: int) -> None:
    """A window waits while tuples keep coming that its filter, in front, sends away, or that go to another box."""
    emitted, others = Emitted(), Emitted()

    def rows() -> Iterator[Row]:
        yield {"a": 1, "k": 1}
        for _ in range(30):
            yield {"a": 1, "k": 0}
        emitted.wait()
        yield {"a": 12, "k": 1}

    boxes = {
        "ones": {"op": "filter", "in": "s", "where": "k = 1"},
        "box": _counts("ones", []),
        "sorted": {"op": "bsort", "in": "s", "order": {"on": "a"}},
    }
    _run(boxes, {"s": rows()}, {"box": emitted, "sorted": others}, shards)
    assert [(row["a"], row["n"]) for row in emitted.rows] == [(0, 1), (10, 1)]
    assert len(others.rows) == 32
