"""The same policies order grants on Spark, and a recorded run tells why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import headway as hw
from headway.engines.traces import Trace

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
