"""What executors do: read a part of the log and run the front over it, or run a shard over what has arrived for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headway.engines.memory import keep_freed_memory
from headway.engines.spark.wire.packing import Marks, Row, TaskReport, receive, send, to_arrow_rows
from headway.engines.spark.wire.protocol import Pickled
from headway.engines.spark.wire.work import Work
from headway.engines.spark.worker.source import Task
from headway.engines.spark.worker.unitcode import unit_code
from headway.sieves import DropBox, Sieve
from headway.storage.segments import LogSlice, read_slice
from headway.trains import Tick, Train, join_trains

if TYPE_CHECKING:
    import pandas as pd

    from headway.engines.spark.wire.native import NativePlan

_PIECE = 1 << 18
"""Tuples that go through the front at a time: a column of them is two megabytes."""
_LARGE = 1 << 20
"""A train of this many bytes travels in a batch of its own."""


def read_task(work: Pickled[Work], native: Pickled[NativePlan] | None, task: Task) -> Iterator[pa.RecordBatch]:
    """Read a task's slices and run the front over them; with a native plan, Spark does that."""
    keep_freed_memory()
    code = unit_code(work)
    parts: dict[str, list[Train]] = {}
    for fields in task.slices:
        one = LogSlice(*fields)
        parts.setdefault(one.source, []).append(read_slice(one, code.checked.arcs[one.source]))
    readings = TaskReport()
    for source, sieve in (task.sieves or {}).items():
        if source in parts:  # before anything else is done with them
            drop = DropBox(Sieve.of(sieve))
            parts[source] = [drop.sift(train) for train in parts[source]]
            readings.sift(source, drop.passed + drop.dropped.total(), drop.dropped.total(), drop.reason)
    if native is not None:
        plan = native.open()
        for source, trains in parts.items():
            for train in trains:
                yield plan.scan_batch(source, train)
        return
    schemas = {name: code.checked.arcs[name] for name in code.work.unit.sources}
    trains_of = {
        name: join_trains(parts[name]) if name in parts else Train.empty(schema) for name, schema in schemas.items()
    }
    rows: list[Row] = []
    if task.marks is not None and code.work.unit.stateful:
        progress, ticks, end, kept, *states = task.marks
        steps = tuple((first, share) for first, share in kept)
        sums = tuple((shard, crc) for shard, crc in states[0]) if states else ()
        rows += code.marks(Marks(progress, tuple(Tick(*tick) for tick in ticks), end, task.now, steps, sums))
    if readings.sifted:
        rows += code.report(readings, task.number)
    for piece in pieces(trains_of):
        for row in code.front(piece, task.now, task.number):
            rows.append(send(row, code.work.exchange))
            if len(rows[-1].train) > _LARGE:
                yield to_arrow_rows(rows)
                rows = []
    if rows:
        yield to_arrow_rows(rows)


def pieces(trains: Mapping[str, Train]) -> Iterator[dict[str, Train]]:
    """Cut trains of several sources at the same arrival numbers, so that what the front makes of them stays small."""
    longest = max(trains.values(), key=len)
    edges = [int(longest.numbers[at]) for at in range(_PIECE, len(longest), _PIECE)]
    cuts = {name: [0, *np.searchsorted(one.numbers, edges).tolist(), len(one)] for name, one in trains.items()}
    for at in range(len(edges) + 1):
        yield {name: one.slice(cuts[name][at], cuts[name][at + 1]) for name, one in trains.items()}


def run_shard(
    work: Pickled[Work], key: int, frames: Iterable[pd.DataFrame], saved: bytes | None
) -> tuple[pd.DataFrame, bytes | None]:
    """Run a shard over the rows of a micro-batch; returns rows for the driver, and the new state if it changed."""
    import pandas as pd  # who only reads the log does not wait for it

    keep_freed_memory()
    code = unit_code(work)
    exchange, lanes = code.work.exchange, code.work.lanes
    arrived = []
    for frame in frames:
        for fields in zip(frame.shard, frame.lane, frame["first"], frame.train, strict=True):
            shard, lane, first, train = fields
            row = Row(int(shard), int(lane), int(first), bytes(train))
            passing = row.lane < 0 or lanes[row.lane].out  # it is on its way to the driver
            arrived.append(row if passing else receive(row, exchange))
    out, state = code.shard(key, arrived, saved)
    out = [send(row, exchange) for row in out]
    columns = {
        "shard": pd.Series([row.shard for row in out], dtype="int32"),
        "lane": pd.Series([row.lane for row in out], dtype="int32"),
        "first": pd.Series([row.first for row in out], dtype="int64"),
        "train": pd.Series([bytes(row.train) for row in out], dtype="object"),
    }
    return pd.DataFrame(columns), state
