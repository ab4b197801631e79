"""Union: several streams as one, in ascending arrival number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.columns import Int64s
from headway.kernels.kernel import Kernel, Result
from headway.trains import Train, join_trains


class UnionKernel(Kernel):
    """Merge one train of each input by arrival number; equal numbers come in the order of the inputs."""

    def run(self, state: None, trains: Sequence[Train], now: int) -> tuple[None, Result]:
        """Merge. The engine has cut the trains at one arrival number."""
        return None, Result((merge(trains),))


def merge(trains: Sequence[Train]) -> Train:
    """Return trains of several streams as one, sorted by arrival number."""
    marks = common_marks(trains)
    progress, ticks, end = marks.progress, marks.ticks, marks.end
    filled = [train for train in trains if len(train)]
    if len(filled) <= 1:
        one = filled[0] if filled else trains[0]
        return Train(one.columns, one.stamps, one.numbers, progress, ticks, end)
    both = join_trains(filled)
    order = np.argsort(both.numbers, kind="stable")
    merged = both.take(order)
    return Train(merged.columns, merged.stamps, merged.numbers, progress, ticks, end)


def common_marks(trains: Sequence[Train]) -> Train:
    """Return an empty train with the progress, the ticks and the end that trains of several streams have together."""
    none = np.zeros(0, np.int64)
    # The same tick arrives on every input; it counts once.
    ticks = tuple(sorted({tick for train in trains for tick in train.ticks}))
    return Train((), none, none, min(train.progress for train in trains), ticks, all(train.end for train in trains))


def arrival_places(trains: Sequence[Train]) -> Int64s:
    """Return for each tuple, train after train, its place in the merged order of arrival, from 0."""
    order = np.argsort(np.concatenate([train.numbers for train in trains]), kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return places
