"""A network that is too much for a while on two cores, for Spark: one output gives way, the other may lose nothing."""

from __future__ import annotations

from typing import Any

WORK = {"strict": 0.00005, "lax": 0.0008}
"""Seconds that a tuple costs on its way to each output."""
LATENCY = [[0, 1], [6, 1], [30, 0]]


def overloaded(phases: list[list[float]]) -> dict[str, Any]:
    """Return the network, with a source whose tuples know their number."""
    made = {"phases": phases, "seed": 3, "fields": {"n": "i", "time": "t", "v": {"uniform": [0, 99]}}}
    schema = {"n": "bigint", "time": "double", "v": "int"}
    return {
        "network": "overloaded",
        "sources": {"s": {"schema": schema, "source": {"generate": made}}},
        "boxes": {
            "a": {"op": "universal", "in": "s", "cost": WORK["strict"]},
            "b": {"op": "universal", "in": "s", "cost": WORK["lax"]},
            "counts": {
                "op": "aggregate",
                "in": "b",
                "select": "count(*) as n, sum(v) as total",
                "order": {"on": "time"},
                "size": 2,
                "approximate": True,
            },
        },
        "outputs": {
            "strict": {"from": "a", "qos": {"latency": LATENCY, "loss": [[100, 1], [98, 0], [0, 0]]}},
            "lax": {"from": "b", "qos": {"latency": LATENCY, "loss": [[100, 1], [10, 0.9], [0, 0]]}},
            "counts": {"from": "counts", "qos": {"latency": LATENCY, "loss": [[100, 1], [10, 0.9], [0, 0]]}},
        },
        "schedule": {"shed": {"most": 0.9, "outputs": {"strict": 0}}},
    }
