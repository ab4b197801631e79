"""The same policies order grants on Spark, and a recorded run tells why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.engines.traces import Trace
from headway.scheduling.fifo import Fifo
from headway.scheduling.policy import Plan
from headway.scheduling.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NETWORK: dict[str, Any] = {
    "network": "classes",
    "sources": {"s": {"schema": "a int"}},
    "boxes": {
        "tight": {"op": "filter", "in": "s", "where": "a % 2 = 0"},
        "loose": {"op": "universal", "in": "s", "selectivity": 0.1, "mode": "even"},
    },
    "outputs": {
        "t": {"from": "tight", "qos": {"latency": [[0, 1], [0.1, 1], [100, 0]]}},
        "l": {"from": "loose", "qos": {"latency": [[0, 1], [300, 1], [600, 0]]}},
    },
}
ROWS = {"s": [(at,) for at in range(3000)]}


def grants(policy: str) -> tuple[hw.RunResult, Trace]:
    """Run with one query at a time and trains that make many grants."""
    result = hw.run(NETWORK, ROWS, engine="spark", policy=policy, workers=1, trace=True)
    assert result.trace is not None
    return result, result.trace


@pytest.mark.parametrize(
    "policy",
    [
        "slope-slack/1000",
        *(pytest.param(f"{one}/1000", marks=pytest.mark.slow) for one in ("most-tuples", "round-robin")),
    ],
)
def test_each_policy_has_its_order(spark: SparkSession, policy: str) -> None:
    result, trace = grants(policy)
    assert result.outputs["t"].num_rows == 1500
    assert result.outputs["l"].num_rows == 300
    order = [trace.units[step.unit] for step in trace.steps if step.tuples]
    if policy.startswith("slope-slack"):
        assert order[:3] == ["t", "t", "t"]  # until it has nothing left
        assert "utility" in trace.steps[0].reason.names
    else:  # what was served has less waiting, or had its turn: the other one is next
        assert order[:4] == ["t", "l", "t", "l"]
    assert all(step.end >= step.begin for step in trace.steps)
    assert sum(step.tuples for step in trace.steps) == 6000


ROUTES: dict[str, Any] = {
    "network": "routes",
    "sources": {
        "s": {
            "schema": "a int",
            "source": {"generate": {"phases": [["3s", 400]], "fields": {"a": {"sequence": [0, 1]}}}},
        }
    },
    "boxes": {
        "r": {"op": "filter", "in": "s", "where": "a % 4 = 0"},
        "x": {"op": "map", "in": "r", "select": "a + 1 as b"},
        "y": {"op": "map", "in": "r.else", "select": "a + 2 as b"},
    },
    "outputs": {"ox": {"from": "x"}, "oy": {"from": "y"}},
}


class Asking(Fifo):
    """Notes what a snapshot says of how a filter divides its tuples over the boxes behind it."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        model = snapshot.measures.model
        made = float(snapshot.boxes.selectivity[0])
        self.seen.append((made * model.share(0, 1), made * model.share(0, 2)))
        return super().plan(snapshot, memory)


@pytest.mark.parametrize("units", ["one", "output"])
def test_the_cost_model_hears_how_routes_divide(spark: SparkSession, units: str) -> None:
    """With a query for each output no query sees both routes, and the first one's reports count for the filter."""
    asking = Asking()
    made = {**ROUTES, "schedule": {"units": units, "front": "kernels"}}
    hw.run(made, engine="spark", policy=asking)
    assert asking.seen[-1] == pytest.approx((0.25, 0.75), abs=0.05)
