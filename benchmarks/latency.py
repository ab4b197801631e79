"""Latency of W2's results at 1,000 tuples per second.

A window's result carries the timestamp of the window's oldest tuple, so its QoS latency includes the length of
the window: about a second here, whatever the engine does. What the engine can be held to is the time from the
arrival of the tuple that closes a window to the delivery of the window's result. That is what is measured: the
closing tuple is the first one of the same key in a later second; it arrives at its due moment, which follows
from the rate; and the sink notes the moment of each delivery.

The moment at which the run began, which due moments count from, follows from the summary: the mean of the QoS
latencies is the mean delivery moment less the mean due moment of the windows' oldest tuples.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import headway as hw
from benchmarks.workloads import SECOND, WORKLOADS, make_table
from headway.clock import WallClock

RATE = 1_000
SECONDS = 10.0
PROMISED = 2.0
"""Milliseconds at the median."""

POLICIES = ("round-robin/superbox", "round-robin/box")

Moments = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the arrival of the closing tuple to the delivery of the result."""

    policy: str
    workers: int
    results: int
    p50: float
    p99: float
    largest: float
    qos_p50: float
    """The QoS latency's median, the window's length included, from the summary."""


def measure(policy: str, seconds: float = SECONDS, rate: int = RATE) -> Latency:
    """Run W2's network for some seconds and return the latencies of its results."""
    table = make_table(max(2, int(seconds * rate)), rate=rate)
    clock = WallClock()
    batches: list[pa.RecordBatch] = []
    moments: list[int] = []

    def note(batch: pa.RecordBatch) -> None:
        moments.append(clock.now())
        batches.append(batch)

    summary = hw.run(
        hw.load(WORKLOADS["W2"].network),
        {"events": table},
        engine="local",
        policy=policy,
        rates={"events": rate},
        outputs={"result": note},
        clock=clock,
    ).summary
    counts = [batch.num_rows for batch in batches]
    delivered: Moments = np.repeat(np.array(moments, np.int64), counts)
    opening, closing = _causes(table, pa.Table.from_batches(batches), rate)
    latency = summary["outputs"]["result"]["latency"]
    since = delivered - delivered[0]
    begun = float(since.mean() - opening.mean()) - latency["mean"] * 1e9
    closed = closing >= 0  # the others were emitted because the input ended
    milliseconds = (since - begun - closing)[closed] / 1e6
    return Latency(
        policy,
        summary["workers"],
        int(closed.sum()),
        float(np.quantile(milliseconds, 0.5)),
        float(np.quantile(milliseconds, 0.99)),
        float(milliseconds.max()),
        latency["p50"] * 1e3,
    )


def _causes(table: pa.Table, results: pa.Table, rate: int) -> tuple[Moments, Moments]:
    """Return for each result when the first tuple of its window was due and when the one that closes it, or -1."""
    seconds = table["time"].cast(pa.int64()).to_numpy() // SECOND
    keys = table["key"].to_numpy()
    first: dict[tuple[int, int], int] = {}
    after: dict[tuple[int, int], int] = {}
    current: dict[int, int] = {}
    for at, (second, key) in enumerate(zip(seconds.tolist(), keys.tolist(), strict=True)):
        known = current.get(key)
        if known != second:
            first[key, second] = at
            current[key] = second
            if known is not None:
                after[key, known] = at
    step = 1_000_000_000 / rate
    windows = (results["time"].cast(pa.int64()).to_numpy() // SECOND).tolist()
    pairs: list[Any] = list(zip(results["key"].to_pylist(), windows, strict=True))
    opening = np.array([round(first[pair] * step) for pair in pairs], np.int64)
    closing = np.array([round(after[pair] * step) if pair in after else -1 for pair in pairs], np.int64)
    return opening, closing


def report(seconds: float = SECONDS, rate: int = RATE) -> list[Latency]:
    """Measure, print and return the latencies."""
    results = [measure(policy, seconds, rate) for policy in POLICIES]
    print(f"## Latency of W2's results at {rate:,} tuples/s, {seconds:g} s\n")
    print("From the arrival of the tuple that closes a window to the delivery of its result, in ms.\n")
    print("| policy | workers | results | median | p99 | largest | QoS latency (window included), median |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for one in results:
        times = f"{one.p50:.2f} | {one.p99:.2f} | {one.largest:.2f} | {one.qos_p50:,.0f}"
        print(f"| {one.policy} | {one.workers} | {one.results} | {times} |")
    median = results[0].p50
    verdict = "reached" if median < PROMISED else f"missed by {median - PROMISED:.2f} ms"
    print(f"\nMedian {median:.2f} ms; promised below {PROMISED:g} ms: {verdict}")
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each run is (default: %(default)s)")
    parser.add_argument("--rate", type=int, default=RATE, help="tuples per second (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    given = parser.parse_args(arguments)
    results = report(given.seconds, given.rate)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
