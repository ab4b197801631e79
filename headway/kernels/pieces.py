"""Results in pieces: a call whose results would fill the memory gives them one after the other.

Results do not depend on where trains are cut, so a kernel may cut the trains of one call itself, or the pairs that it
looks at, and whoever called it works each piece off before it asks for the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from headway.columns import Int64s
from headway.kernels.kernel import Result
from headway.trains import Train, join_trains

BYTES = 16 << 20
"""About what a piece takes, if its rows are known."""
ROWS = 1 << 17
"""About how many rows a piece has, where only they are known."""


def in_pieces(run: Callable[[Any, Sequence[Train]], Result], state: Any, trains: Sequence[Train], step: int) -> Result:
    """Run a kernel over `step` tuples at a time; the state is changed as the pieces are asked for."""
    if sum([len(train.numbers) for train in trains]) <= step:
        return run(state, trains)

    def pieces() -> Iterator[Result]:
        for piece in cut(trains, step):
            result = run(state, piece)
            yield result._replace(rest=None)
            if result.rest is not None:
                yield from result.rest

    results = pieces()
    return next(results)._replace(rest=results)


def cut(trains: Sequence[Train], step: int) -> Iterator[tuple[Train, ...]]:
    """Yield trains of one call as several, of about `step` tuples each, all up to one arrival number.

    Ticks go with the numbers before them; the end and the progress come with the last.
    """
    reached = [np.maximum.accumulate(train.numbers) if len(train) else train.numbers for train in trains]
    every = np.sort(np.concatenate(reached))
    # A number is never divided: a box with several inputs gets all of it at once.
    upto = np.unique(every[step - 1 : -1 : step]).tolist()
    upto = [one for one in upto if one < every[-1]]
    places, below = [0] * len(trains), -(1 << 63)
    for number in [*upto, None]:
        piece = []
        for at, train in enumerate(trains):
            start, last = places[at], number is None
            stop = len(train) if last else int(np.searchsorted(reached[at], number, side="right"))
            some = [column.slice(start, stop) for column in train.columns]
            ticks = tuple([one for one in train.ticks if one.number > below and (last or one.number <= number)])
            progress = train.progress if number is None else number
            stamps, numbers = train.stamps[start:stop], train.numbers[start:stop]
            piece.append(Train(tuple(some), stamps, numbers, progress, ticks, train.end and last))
            places[at] = stop
        below = below if number is None else number
        yield tuple(piece)


def portions(weights: Int64s) -> list[slice]:
    """Return neighbours in portions of about so much weight as a piece has rows, times eight; at least one each."""
    if len(weights) == 0:
        return []
    share = (np.cumsum(weights) - weights) // (8 * ROWS)
    starts = [0, *(np.flatnonzero(np.diff(share)) + 1).tolist(), len(weights)]
    return [slice(start, stop) for start, stop in pairwise(starts)]


def whole(result: Result) -> Result:
    """Return a result with all of its pieces in one, for callers that need them together."""
    if result.rest is None:
        return result
    every = [result, *result.rest]
    last = every[-1]
    outputs = []
    for port, train in enumerate(last.outputs):
        filled = [one.outputs[port] for one in every if len(one.outputs[port]) or one.outputs[port].ticks]
        joined = join_trains(filled) if filled else train
        outputs.append(Train(joined.columns, joined.stamps, joined.numbers, train.progress, joined.ticks, train.end))
    return Result(
        tuple(outputs),
        sum(one.ignored for one in every),
        tuple([letter for one in every for letter in one.dead]),
        tuple([sum(counts) for counts in zip(*[one.counts for one in every], strict=False)]),
    )
