"""When micro-batches were complete, from Spark's own progress reports, for every system alike.

They are read after the measurement, so that watching costs nothing while it runs. A micro-batch is complete when
its trigger is: results delivered, offsets committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks.streaming.utility import Done
from headway.clock import SECOND

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

KEEP = {"spark.sql.streaming.numRecentProgressUpdates": "100000"}
"""The setting by which a session keeps all reports of a measurement."""


@dataclass(frozen=True)
class Report:
    """One micro-batch of a query: it ended at a moment (nanoseconds since 1970) with so many tuples behind it."""

    query: str
    upto: int
    rows: int
    ended: int
    durations: dict[str, int]
    """Milliseconds by phase, in Spark's names."""


def read_reports(query: StreamingQuery) -> list[Report]:
    """Return the micro-batches of a query so far, also of one that has stopped."""
    java: Any = query._jsq
    return [report for one in java.recentProgress() if (report := parse_report(one.json())) is not None]


def parse_report(text: str) -> Report | None:
    """Read one report; None for one that says that nothing has happened."""
    found = json.loads(text)
    source = found["sources"][0]
    end = source["endOffset"]
    end = json.loads(end) if isinstance(end, str) else end
    durations = found["durationMs"]
    if end is None or "addBatch" not in durations:
        return None
    begun = datetime.fromisoformat(found["timestamp"].replace("Z", "+00:00"))
    ended = round(begun.timestamp() * 1000) + durations["triggerExecution"]
    return Report(found["name"], end["upto"], int(source["numInputRows"]), ended * (SECOND // 1000), durations)


def done_of(reports: Iterable[Report], start: int) -> list[Done]:
    """Return the reports as moments since the stream began at `start`."""
    return [Done(one.upto, (one.ended - start) / SECOND) for one in reports if one.upto > 0]


def phases(reports: Iterable[Report], start: int) -> dict[str, float]:
    """Return the mean milliseconds of each phase over the micro-batches that ended after `start`."""
    counted = [one.durations for one in reports if one.ended >= start]
    names = sorted({name for one in counted for name in one})
    return {name: sum(one.get(name, 0) for one in counted) / len(counted) for name in names}
