"""Every box's state goes to bytes and back after every call; results stay what the reference says."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

import headway as hw
from headway.clock import ManualClock
from headway.engines.process.runtime import Runtime
from headway.kernels.kernel import Kernel, Result
from headway.trains import Train
from tests.behaviour.running import check
from tests.engines.local.networks import network
from tests.kernels.helpers import few
from tests.reference.kinds import BIGINT, DOUBLE, TIMESTAMP, Kind
from tests.reference.order import Order
from tests.reference.twins import Pair, Twin, aggregates, bsorts, filters, joins, resamples, results, sessions
from tests.streams import (
    CONDITIONS,
    WHENS,
    Case,
    Running,
    data_driven,
    grids,
    join_boxes,
    long_stream,
    networks,
    one_box,
    resample_boxes,
    runnings,
    schema,
    two_streams,
)

importlib.import_module("tests.policies")
PLAIN = Runtime.call


@pytest.fixture(scope="module", autouse=True)
def through_bytes() -> Iterator[None]:
    """Let every call of every kernel read its state from bytes, and write it to bytes."""
    calls = 0

    def call(
        self: Runtime,
        boxes: tuple[int, ...],
        kernel: Kernel,
        state: Any,
        trains: Sequence[Train],
        spent: int | None = None,
    ) -> tuple[Any, Result]:
        nonlocal calls
        calls += 1
        written = kernel.dump(state)
        assert isinstance(written, bytes)
        assert kernel.dump(state) == written
        state, result = PLAIN(self, boxes, kernel, kernel.load(written), trains, spent)
        return kernel.load(kernel.dump(state)), result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runtime, "call", call)
        yield
    assert calls


@few
@given(case=one_box(grids), how=runnings())
def test_aggregates(case: Case, how: Running) -> None:
    check("local", case, how)


@few
@given(case=one_box(data_driven), how=runnings())
def test_sessions(case: Case, how: Running) -> None:
    check("local", case, how)


@few
@given(case=two_streams(join_boxes), how=runnings())
def test_joins(case: Case, how: Running) -> None:
    check("local", case, how)


@few
@given(case=two_streams(resample_boxes), how=runnings())
def test_resamples(case: Case, how: Running) -> None:
    check("local", case, how)


@few
@given(case=networks(), how=runnings())
def test_networks(case: Case, how: Running) -> None:
    check("local", case, how)


GROUPED = Order("a", 2, ("k", "g"))
SPLIT = filters("split", "s", ("side = 0", lambda row: row["side"] == 0))


@pytest.mark.parametrize("kind", [BIGINT, TIMESTAMP, DOUBLE], ids=lambda kind: kind.type)
@pytest.mark.parametrize("box", ["bsort", "sliding", "first", "counts", "sessions", "join", "resample"])
def test_longer_streams(box: str, kind: Kind) -> None:
    some = list(results("v").values())
    sides = ("split", "split.else")
    boxes: dict[str, Callable[[], tuple[Pair, ...]]] = {
        "bsort": lambda: (bsorts("box", "s", GROUPED),),
        "sliding": lambda: (aggregates("box", "s", some, GROUPED, 6, 4, kind),),
        "first": lambda: (aggregates("box", "s", some, GROUPED, 6, 4, kind, align_first=True),),
        "counts": lambda: (aggregates("box", "s", some, Order("#", 0, ("g",)), 5, 2),),
        "sessions": lambda: (sessions("box", "s", some, GROUPED, *WHENS[1], size=6, kind=kind),),
        "join": lambda: (SPLIT, joins("box", sides, CONDITIONS[2], 3, (GROUPED, Order("a", 1, ("k",))), kind)),
        "resample": lambda: (SPLIT, resamples("box", sides, some, 3, (Order("a", 1), GROUPED), kind)),
    }
    twin = Twin({"s": schema(kind)}, boxes[box](), {"out": "box"})
    check("local", Case(twin, {"s": long_stream(5, 200, kind)}), Running("round-robin/superbox", 7))


def test_a_static_table() -> None:
    table = pa.table({"k": pa.array([1, 2, 2, None], pa.int32()), "name": ["a", "b", "c", "d"]})
    network = {
        "network": "n",
        "sources": {"s": {"schema": "k int"}},
        "boxes": {"box": {"op": "join", "in": ["s", {"table": "t"}], "on": "left.k = right.k"}},
        "outputs": {"out": {"from": "box"}},
    }
    result = hw.run(network, {"s": [(2,), (None,), (1,), (3,)]}, tables={"t": table}, train=1, engine="local")
    assert result.outputs["out"].column("name").to_pylist() == ["b", "c", "a"]


@pytest.mark.parametrize("slack", [0, 2])
@pytest.mark.parametrize(
    "windows",
    [{"size": 10}, {"size": 10, "advance": 5}, {"size": 4, "advance": 7}, {"advance": {"when": "a - last.a > 3"}}],
    ids=str,
)
def test_timeouts(windows: dict[str, Any], slack: int) -> None:
    box = {
        "op": "aggregate",
        "in": "s",
        "select": "count(*) as n, collect_list(a) as l",
        "order": {"on": "a", "slack": slack, "by": ["v"]},
        "timeout": "3s",
        **windows,
    }
    made = network({"box": box}, {"out": "box"})
    data = [(at * 3 % 7 + at // 2, at % 2) for at in range(60)]

    def run() -> tuple[list[Any], int]:
        result = hw.run(made, {"s": data}, rates={"s": 1}, clock=ManualClock(), train=4, workers=1, engine="local")
        return result.outputs["out"].to_pylist(), result.summary["boxes"]["box"]["ignored"]

    through_bytes = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runtime, "call", PLAIN)
        assert run() == through_bytes
    assert through_bytes[1] > 0
