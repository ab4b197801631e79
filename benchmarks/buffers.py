"""Arrow's kernels against numpy over the same buffers: why Headway's kernels are what they are.

The same work on the same memory: five filters and a map over trains of 65,536 tuples, as one fused kernel and one
filter after the other, and single operations on one tuple.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headway.clock import stopwatch

TRAIN = 65_536
BOUND = 0.1


def make_trains(tuples: int) -> list[pa.RecordBatch]:
    """Return trains of a timestamp, a key, a value and five fields to filter by."""
    chance = np.random.default_rng(0)
    fields: dict[str, Any] = {
        "time": np.arange(tuples),
        "key": chance.integers(0, 100, tuples).astype(np.int32),
        "value": chance.random(tuples),
    }
    fields |= {f"f{at}": chance.random(tuples) for at in range(5)}
    batches: list[pa.RecordBatch] = pa.table(fields).to_batches(max_chunksize=TRAIN)
    return batches


def one_after_the_other(batch: pa.RecordBatch) -> pa.Array:
    """Filter five times, copying each time, then map."""
    for at in range(5):
        batch = batch.filter(pc.greater(batch.column(f"f{at}"), BOUND))
    return pc.add(pc.multiply(batch.column("value"), 2.0), 1.0)


def fused_arrow(batch: pa.RecordBatch) -> pa.Array:
    """Combine five masks, take once, map: with Arrow's kernels."""
    mask = pc.greater(batch.column("f0"), BOUND)
    for at in range(1, 5):
        mask = pc.and_kleene(mask, pc.greater(batch.column(f"f{at}"), BOUND))
    kept = batch.select(["time", "key", "value"]).filter(mask)
    return pc.add_checked(pc.multiply_checked(kept.column("value"), 2.0), 1.0)


def fused_numpy(batch: pa.RecordBatch) -> Any:
    """Do the same with numpy over the same buffers."""
    columns = {name: batch.column(name).to_numpy(zero_copy_only=True) for name in batch.schema.names}
    mask = columns["f0"] > BOUND
    for at in range(1, 5):
        mask &= columns[f"f{at}"] > BOUND
    chosen = np.flatnonzero(mask)
    kept = [columns[name].take(chosen) for name in ("time", "key", "value")]
    return kept[2] * 2.0 + 1.0


def best(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest time in seconds."""
    times = []
    for _ in range(repeats):
        begun = stopwatch()
        work()
        times.append(stopwatch() - begun)
    return min(times) / 1e9


def report(tuples: int, repeats: int) -> str:
    """Measure, and return the tables as Markdown."""
    batches = make_trains(tuples)
    lines = [f"## Arrow's kernels and numpy over the same buffers, best of {repeats}", ""]
    lines += ["| five filters and a map, trains of 65,536 | million tuples/s |", "|---|---:|"]
    for name, kernel in (
        ("pyarrow, one filter after the other", one_after_the_other),
        ("pyarrow, fused", fused_arrow),
        ("numpy, fused", fused_numpy),
    ):
        seconds = best(lambda kernel=kernel: [kernel(batch) for batch in batches], repeats)  # type: ignore[misc]
        lines.append(f"| {name} | {tuples / seconds / 1e6:.1f} |")
    one = batches[0].slice(0, 1)
    column, bound = one.column("f0"), pa.scalar(BOUND)
    values, mask = column.to_numpy(), pc.greater(column, bound)
    true = np.array([True])
    lines += ["", "| one tuple | µs |", "|---|---:|"]
    for name, call in (
        ("pyarrow: compare a column with a number", lambda: pc.greater(column, bound)),
        ("numpy: the same", lambda: values > BOUND),
        ("pyarrow: filter a batch of 8 columns", lambda: one.filter(mask)),
        ("numpy: filter 8 columns", lambda: [values.take(true.nonzero()[0]) for _ in range(8)]),
    ):
        seconds = best(lambda call=call: [call() for _ in range(1000)], 10 * repeats) / 1000  # type: ignore[misc]
        lines.append(f"| {name} | {seconds * 1e6:.2f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.buffers", description=__doc__)
    parser.add_argument("--tuples", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args(arguments)
    print(report(given.tuples, given.repeats))
    return 0


if __name__ == "__main__":
    sys.exit(main())
