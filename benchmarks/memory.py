"""Resident memory over a long stream: 100 million generated tuples through Query 1.

Query 1 of the paper (section 5.3): soldiers report their positions; those across a line are counted per time
step, with slack 1, and a step with at least m of them is reported. 50 soldiers report in each step, and one
report of each step comes one place late. Memory is read about once a second. It is flat when the mean of the
last tenth of the run is within 5 % of the mean of the tenth that follows the warm-up, which is the first fifth.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

import headway as hw
from headway.engines.runs import Status

TUPLES = 100_000_000
WARM_UP = 0.2
ALLOWED = 0.05
TRAIN = 65_536
SINGLE = 60_000
"""Tuples of the second run, whose trains are one tuple: what is kept for each call shows there, not in long trains."""

NETWORK = """\
network: query1
sources:
  positions:
    schema: {{sid: int, time: bigint, pos: int}}
    source:
      generate:
        seed: 7
        count: {tuples}
        fields:
          sid: {{uniform: [0, 49]}}
          time: "i div 50 - CASE WHEN i % 50 = 1 AND i > 50 THEN 1 ELSE 0 END"
          pos: {{uniform: [0, 99]}}
boxes:
  across: {{op: filter, in: positions, where: "pos >= 70"}}
  counts:
    op: aggregate
    in: across
    select: "count(*) as n"
    order: {{on: time, slack: 1}}
    size: 1
  crowded: {{op: filter, in: counts, where: "n >= 20"}}
outputs:
  alarms: {{from: crowded}}
"""


@dataclass(frozen=True)
class Memory:
    """Megabytes resident: at the first sample, after the warm-up, at the end, and the peak of the process."""

    tuples: int
    train: int
    seconds: float
    results: int
    first: float
    warm: float
    last: float
    peak: float
    samples: tuple[tuple[int, float], ...]
    """Tuples so far, megabytes."""

    @property
    def growth(self) -> float:
        """How much memory grew after the warm-up, as a share."""
        return self.last / self.warm - 1

    @property
    def flat(self) -> bool:
        """Whether that is allowed."""
        return self.growth < ALLOWED


def resident() -> float:
    """Return this process's resident memory in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(tuples: int = TUPLES, train: int = TRAIN) -> Memory:
    """Run Query 1 over generated tuples and watch the memory."""
    samples: list[tuple[int, float]] = [(0, resident())]
    every = max(0.01, min(1.0, tuples / 20e6))
    due = 0.0

    def sample(status: Status) -> None:
        nonlocal due
        if status.seconds >= due:
            samples.append((status.tuples_in, resident()))
            due = status.seconds + every

    def forget(batch: pa.RecordBatch) -> None:
        pass

    network = hw.load(NETWORK.format(tuples=tuples))
    summary = hw.run(network, engine="local", train=train, outputs={"alarms": forget}, on_status=sample).summary
    samples.append((tuples, resident()))
    warm = [size for at, size in samples if WARM_UP * tuples <= at <= (WARM_UP + 0.1) * tuples]
    warm = warm or [size for at, size in samples if at >= WARM_UP * tuples][:1]
    last = [size for at, size in samples if at >= 0.9 * tuples]
    return Memory(
        tuples,
        train,
        summary["seconds"],
        summary["tuples_out"],
        samples[0][1],
        sum(warm) / len(warm),
        sum(last) / len(last),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        tuple(samples),
    )


def report(tuples: int = TUPLES, train: int = TRAIN) -> Memory:
    """Measure, print and return the memory."""
    found = measure(tuples, train)
    print(f"## Memory: {tuples:,} generated tuples through Query 1, trains of {train:,}\n")
    print("| tuples so far | resident MB |\n|---:|---:|")
    step = max(1, len(found.samples) // 10)
    for at, size in (*found.samples[:-1:step], found.samples[-1]):
        print(f"| {at:,} | {size:.1f} |")
    rate = tuples / found.seconds / 1e6
    print(f"\n{found.seconds:.1f} s, {rate:.2f} million tuples/s, {found.results:,} results.")
    sizes = f"first {found.first:.1f}, after warm-up {found.warm:.1f}, last {found.last:.1f}, peak {found.peak:.1f}"
    print(f"Resident MB: {sizes}.")
    print(f"Growth after warm-up {100 * found.growth:+.1f} %: {'flat' if found.flat else 'NOT flat'}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--tuples", type=int, default=TUPLES, help="how many tuples (default: %(default)s)")
    parser.add_argument("--single", type=int, default=SINGLE, help="tuples in trains of one (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write the samples to this file")
    given = parser.parse_args(arguments)
    results = [report(given.tuples)]
    print()
    results.append(report(given.single, 1))
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n")
    return 0 if all(one.flat for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
