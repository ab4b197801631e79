"""How much others notice of a change: the latency of results that it does not touch, with and without a seam.

`local` runs 10 chains of 10 boxes at 50,000 tuples a second in total. At 200 moments it is either changed (a query is
attached or detached, or one filter's threshold changes; in turn) or left alone. For each moment, the latency of all
results of tuples that are pushed within 100 ms after it, to outputs that no change touches, is compared.

    python -m benchmarks.seams [--seams 100] [--rate 50000]
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import headway as hw
from benchmarks.machine import describe as machine
from headway.engines.control import Control

CHAINS = 10
AFTER = 0.1
"""Seconds after a moment in which tuples are pushed whose results count."""
GAP = 0.3
"""Seconds between two moments."""
BATCH = 0.005
"""Seconds between two pushes."""

Floats = npt.NDArray[np.float64]


def network(floor: int = 0) -> dict[str, Any]:
    """Return chains of filters, maps and windowed counts; `floor` is the threshold of a filter in the last one."""
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for chain in range(CHAINS):
        arc = "s"
        for at in range(10):
            name = f"c{chain}b{at}"
            if at == 8:
                order = {"on": "t", "by": ["k"]}
                box = {"op": "aggregate", "select": "count(*) as n, max(sent) as sent", "order": order, "size": 20}
            elif at == 0:
                box = {"op": "filter", "where": f"k % {CHAINS} = {chain}"}
            elif at == 9:
                box = {"op": "map", "select": "t, k, n, sent"}
            elif at % 2:
                box = {"op": "filter", "where": f"v >= {floor if (chain, at) == (CHAINS - 1, 5) else -at}"}
            else:
                box = {"op": "map", "select": f"t, k, v + {at} as v, sent"}
            boxes[name] = {**box, "in": arc}
            arc = name
        outputs[f"windows{chain}"] = {"from": arc}
        outputs[f"tuples{chain}"] = {"from": f"c{chain}b7"}
    fields = {"t": "bigint", "k": "int", "v": "int", "sent": "double"}
    return {
        "network": "seams",
        "sources": {"s": {"schema": fields, "push": True}},
        "boxes": boxes,
        "outputs": outputs,
    }


QUERY = {
    "attach": "query",
    "since": "now",
    "boxes": {
        "some": {"op": "filter", "in": "c9b3", "where": "v % 2 = 0"},
        "count": {"op": "aggregate", "in": "some", "select": "count(*) as n", "order": {"on": "t"}, "size": 50},
    },
    "outputs": {"counts": {"from": "count"}},
}


class Pace(threading.Thread):
    """Pushes at a constant rate."""

    def __init__(self, run: Any, rate: int) -> None:
        super().__init__(daemon=True)
        self._run, self._rate = run, rate
        self.stopped = False
        self.late = 0.0

    def run(self) -> None:
        """Push until it is stopped."""
        import pyarrow as pa

        count, chance = int(self._rate * BATCH), np.random.default_rng(1)
        schema = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32()), ("sent", pa.float64())])
        begun, at = time.perf_counter(), 0
        while not self.stopped:
            pause = begun + at * BATCH - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            self.late = max(self.late, -pause)
            moment = time.perf_counter()
            numbers = np.arange(at * count, (at + 1) * count)
            columns = [
                pa.array(numbers // 1000),
                pa.array((numbers % 100).astype(np.int32)),
                pa.array(chance.integers(0, 1000, count, np.int32)),
                pa.array(np.full(count, moment)),
            ]
            inbox = self._run._inboxes["s"]
            inbox.offer(pa.RecordBatch.from_arrays(columns, schema=schema))
            at += 1


class Ears:
    """Notes when results were delivered, and when what caused them was pushed."""

    def __init__(self) -> None:
        self._heard: list[tuple[float, float, int]] = []

    def __call__(self, batch: Any) -> None:
        """Take a batch."""
        sent = batch.column("sent")
        now = time.perf_counter()
        self._heard.append((now, now - sent[len(sent) - 1].as_py(), len(batch)))

    def after(self, moments: list[float]) -> Floats:
        """Return by moment the 95th percentile of the latencies within `AFTER`, in milliseconds."""
        table = np.array(self._heard)
        found = []
        for moment in moments:
            pushed = table[:, 0] - table[:, 1]
            within = table[(pushed >= moment) & (pushed < moment + AFTER)]
            if not len(within):
                found.append(1000 * AFTER)  # nothing came
                continue
            found.append(np.percentile(np.repeat(within[:, 1], within[:, 2].astype(int)), 95) * 1000)
        return np.array(found)


def measure(seams: int, rate: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the latencies after seams and control moments, and how long the calls took, in milliseconds."""
    ears = Ears()
    outputs: dict[str, Any] = {}
    for chain in range(CHAINS - 1):
        outputs |= {f"tuples{chain}": ears, f"windows{chain}": None}
    outputs |= {f"tuples{CHAINS - 1}": None, f"windows{CHAINS - 1}": None}
    run = hw.start(hw.load(network()), engine="local", outputs=outputs, control=Control(), **options)
    pace = Pace(run, rate)
    pace.start()
    time.sleep(2)
    kinds = ["seam", "control"] * seams
    random.Random(1).shuffle(kinds)
    moments: dict[str, list[float]] = {"seam": [], "control": []}
    calls: dict[str, list[float]] = {"attach": [], "detach": [], "change": []}
    attached, floor, turn = None, 0, 0
    for kind in kinds:
        time.sleep(GAP)
        moments[kind].append(begun := time.perf_counter())
        if kind == "control":
            continue
        what = ("attach", "change", "detach")[turn % 3]
        turn += 1
        if what == "attach":
            attached = run.attach(QUERY)
        elif what == "detach":
            assert attached is not None
            attached.detach()
        else:
            floor += 1
            run.change(network(floor), keep="all")
        calls[what].append((time.perf_counter() - begun) * 1000)
    time.sleep(GAP)
    pace.stopped = True
    pace.join()
    run.stop(drain=True)
    return {
        "seam": ears.after(moments["seam"]),
        "control": ears.after(moments["control"]),
        "calls": calls,
        "late": pace.late,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seams", type=int, default=100)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--policy", default="fifo")
    given = parser.parse_args()
    found = measure(given.seams, given.rate, {"policy": given.policy})
    seam, control = found["seam"], found["control"]
    print(machine())
    print(f"{given.seams} seams, {given.rate:,} tuples/s, {given.policy}; source late by {found['late'] * 1000:.0f} ms")
    for name in ("seam", "control"):
        median, high = np.percentile(found[name], [50, 95])
        print(f"{name:8} latency within {AFTER * 1000:.0f} ms: median {median:6.1f}  95th {high:6.1f} ms")
    ranks = np.percentile(np.sort(seam) - np.sort(control), 95)
    above = np.percentile(seam - np.median(control), 95)
    print(f"difference: 95th by rank {ranks:.1f} ms; 95th above the usual {above:.1f} ms")
    for name, times in found["calls"].items():
        print(f"{name:8} call: median {np.median(times):6.1f}  95th {np.percentile(times, 95):6.1f} ms")


if __name__ == "__main__":
    main()
