"""Runs that are watched: series over time, of runs that are the same as without being watched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headway.adaptive.layer import registered_adaptives
from headway.clock import SECOND
from headway.errors import PolicyError
from headway.totals import Totals
from headway_experiments.trees import run_for_summary, source
from headway_experiments.watching import Alone, Watched, intervals, run_watched, watch

OPTIMIZER = {"use": "optimizer", "start": "segment", "interval": 1.0, "queries": {"results": {"latency": "10ms"}}}


def network() -> dict[str, Any]:
    """Return two boxes in a row that are busy for nearly all of 5 s."""
    boxes = {
        "one": {"op": "universal", "in": "s", "cost": "10ms"},
        "two": {"op": "universal", "in": "one", "cost": "8ms"},
    }
    outputs = {"results": {"from": "two"}}
    return {"network": "row", "sources": {"s": source(50, 250, 1)}, "boxes": boxes, "outputs": outputs}


def totals(seconds: float, delivered: int = 0) -> Totals:
    zeros = np.zeros(2)
    return Totals(round(seconds * SECOND), np.array([delivered, delivered]), zeros, zeros, zeros, zeros, zeros)


def test_a_watched_run_is_the_same() -> None:
    plain = run_for_summary(network(), "sim", "segment/box/1")
    summary, seen = run_watched(network(), "fifo/box/1", "segment", every=1.0)
    assert summary["outputs"]["results"]["latency"] == pytest.approx(plain["outputs"]["results"]["latency"])
    assert summary["box_calls"] == plain["box_calls"]
    moments = [round(one.now / SECOND, 1) for one in seen]
    assert moments == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0][: len(moments)]
    assert len(moments) >= 5


def test_the_series_adds_up() -> None:
    summary, seen = run_watched(network(), "fifo/box/1", "fifo", every=0.5)
    found = intervals(seen)
    results = sum(one.throughput() * one.seconds for one in found)
    assert 0 < results <= summary["outputs"]["results"]["tuples"]
    assert results == pytest.approx(float(seen[-1].delivered[-1]))
    mean = sum(one.latency() * one.throughput() * one.seconds for one in found) / results
    assert mean == pytest.approx(summary["outputs"]["results"]["latency"]["mean"], rel=0.1)


def test_a_layer_does_what_it_does_alone() -> None:
    plain = run_for_summary(network(), "sim", "fifo/box/1", adaptive=OPTIMIZER)
    summary, _ = run_watched(network(), "fifo/box/1", OPTIMIZER, every=1.0)
    assert plain["adaptive"]["switches"] == 1
    assert summary["adaptive"]["changes"] == plain["adaptive"]["changes"]
    assert summary["outputs"]["results"]["latency"] == pytest.approx(plain["outputs"]["results"]["latency"])


def test_nothing_is_registered() -> None:
    before = registered_adaptives()
    run_watched(network(), "fifo/box/1", "fifo", every=1.0)
    assert registered_adaptives() == before


def test_an_unknown_layer_is_refused() -> None:
    with pytest.raises(PolicyError, match="nobody"):
        watch({"use": "nobody"}, 1.0)


def test_a_late_look_keeps_the_grid() -> None:
    watched = Watched(Alone("fifo"), 1.0)
    memory: Any = (SECOND, None)
    for seconds in (0.9, 1.0, 3.2, 3.9, 4.0):  # nobody looked between 1.0 and 3.2
        _, memory = watched.look(totals(seconds), memory)
    assert [one.now / SECOND for one in watched.seen] == [1.0, 3.2, 4.0]
    assert watched.next(memory) == 5 * SECOND
