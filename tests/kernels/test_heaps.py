"""Large slacks: results as with small ones, and memory for what has come, not for what might."""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import headway as hw
from headway.boxes.bsort import BSort
from headway.boxes.order import Order as OrderKeys
from headway.columns import Column
from headway.kernels import order
from headway.kernels.bsort import BSortKernel
from headway.kernels.order import Frontiers, lowest
from headway.network.schema import Schema
from headway.trains import Train
from tests.behaviour.running import check
from tests.kernels.helpers import few
from tests.reference.kinds import BIGINT, DOUBLE, Kind
from tests.reference.order import Order
from tests.reference.twins import Pair, Twin, aggregates, bsorts, filters, joins, resamples, results, sessions
from tests.streams import CONDITIONS, WHENS, Case, Running, grids, long_stream, one_box, runnings, schema

importlib.import_module("tests.policies")
ORDER = Order("a", 28, ("k",))
SPLIT = filters("split", "s", ("side = 0", lambda row: row["side"] == 0))


@pytest.fixture
def all_deep() -> Iterator[None]:
    """Let every slack but 0 have heaps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "DEEP", 0)
        yield


@pytest.mark.usefixtures("all_deep")
@few
@given(case=one_box(grids), how=runnings())
def test_aggregates_with_heaps(case: Case, how: Running) -> None:
    check("local", case, how)


@pytest.mark.parametrize("kind", [BIGINT, DOUBLE], ids=lambda kind: kind.type)
@pytest.mark.parametrize("box", ["bsort", "aggregate", "sessions", "join", "resample"])
def test_slacks_that_are_large_by_themselves(box: str, kind: Kind) -> None:
    some = list(results("v").values())
    boxes: dict[str, tuple[Pair, ...]] = {
        "bsort": (bsorts("box", "s", ORDER),),
        "aggregate": (aggregates("box", "s", some, ORDER, 6, 4, kind),),
        "sessions": (sessions("box", "s", some, ORDER, *WHENS[1], size=6, kind=kind),),
        "join": (SPLIT, joins("box", ("split", "split.else"), CONDITIONS[2], 3, (ORDER, Order("a", 1, ("k",))), kind)),
        "resample": (SPLIT, resamples("box", ("split", "split.else"), some, 3, (Order("a", 26), ORDER), kind)),
    }
    assert ORDER.slack > order.DEEP
    twin = Twin({"s": schema(kind)}, boxes[box], {"out": "box"})
    check("local", Case(twin, {"s": long_stream(5, 300, kind)}), Running("round-robin/superbox", 7))


def test_memory_follows_the_tuples_not_slack_times_partitions() -> None:
    partitions = 20_000
    frontiers = Frontiers.of(1_000_000, np.int64)
    tracemalloc.start()
    try:
        frontiers.grow(partitions)
        frontiers.admit(np.arange(partitions), np.arange(partitions))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500 * partitions


def test_a_bounded_sort_takes_no_more_passes_than_there_are_tuples() -> None:
    count = 5_000
    net = hw.Network("sorted")
    source = net.source("s", "a bigint, g bigint")
    source.bsort("a", slack=1_000_000, by="g").output("out")
    rows = [{"a": count - at, "g": at % 2} for at in range(count)]
    out = hw.run(net, {"s": rows}, engine="local").outputs["out"].to_pylist()
    assert [row["a"] for row in out] == list(range(1, count + 1))


def test_a_state_of_an_earlier_version_is_read() -> None:
    slack = order.DEEP + 4
    table = np.full((2, slack + 1), lowest(np.int64))
    table[0, :3] = [9, 7, 5]
    table[1] = np.arange(slack + 1, 0, -1)
    frontiers = Frontiers.of(slack, np.int64)
    frontiers.restore({"largest": table})
    assert frontiers.frontier().tolist() == [lowest(np.int64), 1]
    written = frontiers.dump(2)
    assert written["lengths"].tolist() == [3, slack + 1]
    assert written["largest"].tolist() == [5, 7, 9, *range(1, slack + 2)]
    mask, after = frontiers.admit(np.array([1, 1, 0]), np.array([0, 50, 1]))
    assert mask is not None
    assert mask.tolist() == [False, True, True]
    assert after.tolist() == [1, 2, lowest(np.int64)]


def _train(values: list[int]) -> Train:
    count = len(values)
    return Train((Column(np.array(values)),), np.zeros(count, np.int64), np.arange(count))


@pytest.mark.parametrize("slack", [1, 3, 7])
def test_both_ways_of_a_bounded_sort_agree(slack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    values = np.random.default_rng(1).integers(0, 9, 200).tolist()
    for deep in (order.DEEP, 0):
        monkeypatch.setattr(order, "DEEP", deep)
        kernel = BSortKernel(BSort(OrderKeys("a", slack)), "box", [Schema.parse("a bigint")], (), None)
        _, result = kernel.run(kernel.initial(), (_train(values),), 0)
        out = result.outputs[0]
        found.append((out.columns[0].values.tolist(), out.numbers.tolist()))
    assert found[0] == found[1]
