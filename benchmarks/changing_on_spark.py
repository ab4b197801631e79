"""How long a change of a running network takes on Spark: the query that changes is back, the other is not disturbed.

``python -m benchmarks.changing_on_spark [changes]`` prints a table: how long until the change is made, until its query
delivers again, and the longest pause between deliveries of the other query, beside that without a change.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import pairwise
from typing import Any

import pyarrow as pa

import headway as hw

RATE = 2_000
QUIET = 12.0
"""Seconds before the first change, and between changes."""
PATIENCE = 60.0


def network(threshold: int) -> dict[str, Any]:
    """Return two queries with windowed counts, one of them behind a filter."""
    fields = {"id": "i", "time": "cast(i as double) / 2000", "k": "i % 16", "v": "i % 12"}
    order, qos = {"on": "time", "by": ["k"]}, {"latency": [[0, 1], [1, 1], [5, 0]]}
    return {
        "network": "changing",
        "sources": {
            "s": {
                "schema": {"id": "bigint", "time": "double", "k": "bigint", "v": "bigint"},
                "source": {"generate": {"rate": RATE, "fields": fields}},
            }
        },
        "boxes": {
            "high": {"op": "filter", "in": "s", "where": [f"v > {threshold}"]},
            "counts": {"op": "aggregate", "in": "high", "select": "count(*) as n", "order": order, "size": 0.1},
            "plain": {"op": "aggregate", "in": "s", "select": "count(*) as n", "order": order, "size": 0.1},
        },
        "outputs": {
            "counts": {"from": "counts", "qos": qos},
            "plain": {"from": "plain", "qos": {"latency": [[0, 1], [1.5, 1], [5, 0]]}},
        },
    }


class Heard:
    """The moments at which an output delivers."""

    def __init__(self, run: hw.Running, output: str) -> None:
        self.moments: list[float] = []
        self._batches = run.subscribe(output, slow="drop")
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        batch: pa.RecordBatch
        for batch in self._batches:
            if batch.num_rows:
                self.moments.append(time.monotonic())

    def longest(self, begin: float, end: float) -> float:
        """Return the longest pause within a time."""
        inside = [begin, *(one for one in self.moments if begin <= one <= end), end]
        return max(later - one for one, later in pairwise(inside))

    def after(self, moment: float) -> float:
        """Return how long it took until it delivered after a moment."""
        until = time.monotonic() + PATIENCE
        while not any(one > moment for one in self.moments):
            assert time.monotonic() < until, "nothing is delivered"
            time.sleep(0.01)
        return min(one for one in self.moments if one > moment) - moment


def main(changes: int = 5) -> None:
    """Measure, and print."""
    run = hw.start(network(3), engine="spark", master="local[2]", outputs={"counts": None, "plain": None})
    counts, plain = Heard(run, "counts"), Heard(run, "plain")
    counts.after(time.monotonic())
    time.sleep(QUIET)
    begin = time.monotonic()
    time.sleep(QUIET)
    usual = plain.longest(begin, time.monotonic())
    print(f"longest pause of the other query without a change: {usual:.2f} s", flush=True)
    print("| change | made after | query back after | longest pause of the other query |")
    print("|---|---|---|---|")
    for number in range(changes):
        begin = time.monotonic()
        run.change(network(4 + number), keep="all")
        made = time.monotonic()
        back = counts.after(made) + made - begin
        time.sleep(QUIET)
        pause = plain.longest(begin, time.monotonic())
        print(f"| {number + 1} | {made - begin:.2f} s | {back:.2f} s | {pause:.2f} s |", flush=True)
    run.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
