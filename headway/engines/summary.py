"""Status and summary of a run: the same for all engines, but for what only one of them knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.catalog import BoxReadings
from headway.engines.base import OutputStatus, RunSettings, Status
from headway.engines.reading import Reading
from headway.engines.steering import Steering
from headway.totals import SYSTEM, Totals


def status(reading: Reading, totals: Totals, seconds: float, waiting: int, memory: int, paused: bool) -> Status:
    """Return how far a run is; `waiting` are tuples and `memory` bytes in queues."""
    rows = zip(
        reading.topology.outputs,
        totals.delivered.tolist(),
        totals.latency.tolist(),
        totals.utility.tolist(),
        totals.shed.tolist(),
        strict=False,  # totals go on with the whole run
    )
    return Status(
        seconds,
        int(totals.arrived.sum()),
        int(totals.delivered[SYSTEM]),
        waiting,
        memory,
        reading.letters.total,
        paused,
        {
            name: OutputStatus(
                tuples,
                latency / tuples if tuples else None,
                utility / tuples if tuples else None,
                shed,
            )
            for name, tuples, latency, utility, shed in rows
        },
        tuples_before=reading.ingest.before,
    )


def summarise(
    engine: str,
    settings: RunSettings,
    reading: Reading,
    totals: Totals,
    steering: Steering,
    seconds: float,
    stopped_by: str | None,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Return everything that was measured; `more` is what this engine alone knows."""
    assert totals.boxes is not None
    counts, tuples_in = reading.letters.counts, int(totals.arrived.sum())
    return {
        "network": reading.checked.network.name,
        "engine": engine,
        "policy": settings.policy_text,
        "workers": reading.workers,
        "seconds": seconds,
        "interrupted": stopped_by is not None,
        "stopped_by": stopped_by,
        "tuples_in": tuples_in,
        "tuples_out": int(totals.delivered[SYSTEM]),
        "tuples_per_second": (tuples_in - reading.ingest.before) / seconds if seconds else 0.0,
        "sources": {
            name: {"tuples": tuples, "malformed": counts[name]}
            for name, tuples in zip(reading.topology.sources, totals.arrived.tolist(), strict=True)
        },
        "boxes": summarise_boxes(reading.topology.boxes, totals.boxes, reading.ignored, counts),
        **steering.summary({one.name: one.summary() for one in reading.deliveries}),
        "dead_letters": reading.letters.summary(),
        "time": dict(totals.spent.time),
        "plans": totals.spent.plans,
        "box_calls": int(totals.boxes.calls.sum()),
        "peak_queued_bytes": totals.spent.peak,
        **more,
    }


def summarise_boxes(
    names: tuple[str, ...], readings: BoxReadings, ignored: Mapping[str, int], dead: Mapping[str, int]
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
