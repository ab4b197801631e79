"""Union: several streams as one, in ascending arrival number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.kernels.kernel import Kernel, Result
from headway.trains import Train, join_trains


class UnionKernel(Kernel):
    """Merge one train of each input by arrival number; equal numbers come in the order of the inputs."""

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Merge. The engine has cut the trains at one arrival number."""
        return None, Result((merge(trains),))


def merge(trains: Sequence[Train]) -> Train:
    """Return trains of several streams as one, sorted by arrival number."""
    progress = min(train.progress for train in trains)
    end = all(train.end for train in trains)
    # A tick comes along on every input; it counts once.
    ticks = tuple(sorted({tick for train in trains for tick in train.ticks}))
    filled = [train for train in trains if len(train)]
    if len(filled) <= 1:
        one = filled[0] if filled else trains[0]
        return Train(one.columns, one.stamps, one.numbers, progress, ticks, end)
    both = join_trains(filled)
    order = np.argsort(both.numbers, kind="stable")
    merged = both.take(order)
    return Train(merged.columns, merged.stamps, merged.numbers, progress, ticks, end)
