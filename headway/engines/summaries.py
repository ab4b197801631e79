"""What summaries of all engines say in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.catalog import BoxReadings
from headway.engines.ingest import Feed
from headway.engines.outlets import Outlets
from headway.engines.runtime import Runtime


def summarise_boxes(
    names: Sequence[str], readings: BoxReadings, ignored: Mapping[str, int], dead: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return what a summary says of each box, by name; its counts and selectivity are those of the whole run."""
    selectivity = readings.overall
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


def summarise_flow(
    seconds: float, runtime: Runtime, feeds: Sequence[Feed], outlets: Outlets, readings: BoxReadings
) -> dict[str, Any]:
    """Return what a summary of a run in this process says of tuples, sources, boxes and outputs."""
    tuples_in = sum(feed.tuples for feed in feeds)
    ignored = {box.name: box.ignored for box in runtime.boxes}
    counts = outlets.letters.counts
    return {
        "seconds": seconds,
        "tuples_in": tuples_in,
        "tuples_out": outlets.tuples,
        "tuples_per_second": tuples_in / seconds if seconds else 0.0,
        "sources": {feed.name: {"tuples": feed.tuples, "malformed": counts[feed.name]} for feed in feeds},
        "outputs": {name: one.summary() for name, one in outlets.deliveries.items()},
        "boxes": summarise_boxes(runtime.topology.boxes, readings, ignored, counts),
        "dead_letters": outlets.letters.summary(),
        "box_calls": int(readings.calls.sum()),
    }
