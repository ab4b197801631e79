"""What the guard of a foreign operator's kernel costs per call: the same kernel, bare and guarded.

The kernel passes on a train of three columns (a bigint, a double, a string), so that the difference is the guard.
"""

from __future__ import annotations

import timeit
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from benchmarks.machine import describe
from headway.boxes import Union
from headway.kernels.guarded import GuardedKernel
from headway.kernels.kernel import Kernel, Result
from headway.network.schema import Schema
from headway.trains import Train

LENGTHS = (1, 1_000, 100_000)
_REPEATS = 5


class Passing(Kernel):
    """Passes its train on."""

    def run(self, state: Any, trains: Sequence[Train], now: int) -> tuple[Any, Result]:
        """Do nothing."""
        return state, Result((trains[0],))


def microseconds(kernel: Kernel, train: Train, calls: int) -> float:
    """Return the least mean time of a call."""
    taken = timeit.repeat(lambda: kernel.run(None, (train,), 0), number=calls, repeat=_REPEATS)
    return min(taken) / calls * 1e6


def measure(length: int, calls: int) -> tuple[float, float]:
    """Return the time of a call of the kernel, bare and guarded, for trains of a length."""
    schema = Schema.parse("a bigint, b double, c string")
    columns = {"a": list(range(length)), "b": [0.5] * length, "c": ["text"] * length}
    train = Train.from_batch(pa.RecordBatch.from_pydict(columns, schema=schema.to_arrow()))
    bare = Passing(Union(), "box", [schema], (None,), None)
    guarded = GuardedKernel(bare, Union(), "box", [schema], [schema])
    return microseconds(bare, train, calls), microseconds(guarded, train, calls)


def main(calls: int = 10_000) -> None:
    """Print a line for each length of train."""
    print(describe())
    for length in LENGTHS:
        bare, guarded = measure(length, calls)
        print(f"{length:>7,} tuples: {guarded - bare:.1f} µs per call")


if __name__ == "__main__":
    main()
