"""What summaries of all engines say in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.catalog import BoxReadings


def summarise_boxes(
    names: Sequence[str], readings: BoxReadings, ignored: Mapping[str, int], dead: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return what a summary says of each box, by name."""
    selectivity = readings.selectivity
    return {
        name: {
            "calls": int(readings.calls[at]),
            "tuples_in": int(readings.tuples_in[at]),
            "tuples_out": int(readings.tuples_out[at]),
            "selectivity": float(selectivity[at]),
            "seconds": float(readings.busy[at]) / 1e9,
            "cost_per_tuple": float(readings.cost[at]),
            "cost_per_call": float(readings.overhead[at]),
            "ignored": ignored.get(name, 0),
            "dead_letters": dead.get(name, 0),
        }
        for at, name in enumerate(names)
    }
