"""Chain: first the boxes that free memory fastest, together with those that must run before them.

Babcock, Babu, Datar and Motwani, "Chain: Operator Scheduling for Memory Minimization in Data Stream Systems" (SIGMOD
2003). A path's progress chart has a point for every box, and one for the start::

    x = C1 + S1 C2 + ... + S1 ... Sk-1 Ck   seconds of work on a tuple that enters the path, up to and with box k
    y = S1 ... Sk * size                    expected size of what is then left of it; 0 after the last box

Its lower envelope connects points, from each to the one with the steepest descent. A box's priority is the slope of
the piece of the envelope that spans it, the steepest if the box is on several paths: so a box that frees nothing
itself is worth running if it leads to one that frees much. Steepest first, ties by the oldest tuple, and among tuples
with the same timestamp the one furthest downstream: a piece frees memory only at its end, so each tuple of a burst is
processed to the end of the piece before the next one.

It keeps queues small in bursts. Tuples near the end of a path with a flat end wait long, though.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.columns import Floats, Mask
from headway.scheduling.paths import MANY, ByPath, Stretches
from headway.scheduling.policy import register_policy

_ROUNDS = 16
"""Rounds over all paths at once; the few paths that need more are finished one by one."""


@dataclass(frozen=True)
class Chain(ByPath):
    """Serve the ready units by the slope of the lower envelope, then by their oldest tuple, then from the end."""

    priority = "slope"
    oldest_first = True

    def cut(self, single: Stretches) -> tuple[Stretches, Floats]:
        """Return the pieces of the envelopes, and their slopes."""
        pieces = envelope(single)
        return pieces, pieces.slope


def envelope(stretches: Stretches, rounds: int = _ROUNDS) -> Stretches:
    """Return the pieces of the lower envelope of every path.

    Where a stretch is steeper than the one before, no piece of the envelope ends between them; joining such
    neighbours until there are none yields the envelope, whatever the order of joining.
    """
    for _ in range(rounds):
        steeper = stretches.steeper()
        if not steeper.any():
            return stretches
        stretches = stretches.joined(steeper)
    return stretches.joined(_one_by_one(stretches))


def _one_by_one(stretches: Stretches) -> Mask:
    """Return which stretches to join to the one before, in a single pass along each unfinished path."""
    joins: Mask = np.zeros(len(stretches.cost), np.bool_)
    bounds = np.append(np.flatnonzero(stretches.begins), len(joins))
    unfinished = np.unique(np.searchsorted(bounds, np.flatnonzero(stretches.steeper()), side="right") - 1)
    for first, end in zip(bounds[unfinished].tolist(), bounds[unfinished + 1].tolist(), strict=True):
        cost, passing, size_in, size_out = [
            values[first:end].tolist()
            for values in (stretches.cost, stretches.passing, stretches.size_in, stretches.size_out)
        ]
        pieces: list[tuple[int, float, float, float]] = []  # head, cost, passing, slope
        for at, out in enumerate(size_out):
            head, work, left = at, cost[at], passing[at]
            slope = (size_in[head] - left * out) / work
            while pieces and slope > pieces[-1][3]:
                head, before, reach, _ = pieces.pop()
                work, left = before + reach * work, min(reach * left, MANY)
                slope = (size_in[head] - left * out) / work
            pieces.append((head, work, left, slope))
        joins[first:end] = True
        joins[[first + head for head, *_ in pieces]] = False
    return joins


register_policy(
    "chain",
    lambda _: Chain(),
    "first the boxes that set memory free fastest, together with those that must run before them",
    formula="slope of the lower envelope of the points (C1 + S1 C2 + ..., S1 ... Sk * size)",
    paper="Babcock et al., Chain, SIGMOD 2003; compared in Sutherland et al., AMoS, section 2.1",
    use="small queues in bursts, where memory is short and latency matters less",
    takes_argument=False,
)
