"""Loss graphs as walks: the utility that an output loses piece by piece as less and less of it is delivered.

A loss graph gives the utility by per cent delivered. The load shedder reads it from 100 per cent downwards, as a
sequence of pieces with one slope each: utility lost per share of tuples lost (Aurora paper, section 4.5)::

    slope = (u(from) - u(to)) / (from - to)        shares delivered: 1 at the start, 0 at the end of the walk

A piece of slope 0 loses no utility; with a slope below 0 the output gains by losing tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from headway.network.qos import Graph, QoS

LINEAR = Graph(((0.0, 0.0), (100.0, 1.0)))
"""The default for an output without a loss graph: each tuple is worth the same."""

_EQUAL = 1e-12
"""Slopes that differ by no more than this are equal, because of rounding errors."""


class Piece(NamedTuple):
    """A straight piece of a walk."""

    start: float
    """The share delivered where it begins."""
    end: float
    """The share delivered where it ends, less than at its start."""
    slope: float
    """Utility lost per share of tuples lost."""


Walk = tuple[Piece, ...]
"""Pieces from 1 (all delivered) down to 0 (nothing); neighbours have different slopes."""


def loss_graph(qos: Sequence[QoS], output: int, instead: Mapping[int, Graph]) -> Graph:
    """Return an output's loss graph: the one in `instead`, its own, or a straight line."""
    return instead.get(output) or qos[output].loss or LINEAR


@lru_cache(maxsize=1 << 14)
def walk(graph: Graph) -> Walk:
    """Return a loss graph as a walk from 100 per cent delivered downwards.

    Points outside of 0 to 100 per cent are ignored; beyond its outermost points the graph is constant.
    """
    inner = {x / 100.0 for x, _ in graph.points if 0 < x < 100}
    shares = sorted(inner | {0.0, 1.0}, reverse=True)
    utilities = [graph.value(100.0 * share) for share in shares]
    return _joined(
        Piece(start, end, (above - below) / (start - end))
        for (start, above), (end, below) in pairwise(zip(shares, utilities, strict=True))
    )


def together(walks: Sequence[Walk]) -> Walk:
    """Return the joint walk of outputs that lose the same share: its slopes are the sums of theirs."""
    if len(walks) == 1:
        return walks[0]
    steps: dict[float, list[float]] = {}
    for one in walks:
        before = 0.0
        for piece in one:
            steps.setdefault(piece.start, []).append(piece.slope - before)
            before = piece.slope
    ends = sorted(steps, reverse=True)
    pieces: list[Piece] = []
    slope = 0.0
    for start, end in pairwise([*ends, 0.0]):
        slope += sum(steps[start])
        pieces.append(Piece(start, end, slope))
    return _joined(pieces)


@lru_cache(maxsize=1 << 14)
def rising(steps: Walk) -> Walk:
    """Return a walk with ascending slopes: each piece has the largest slope up to it, at least 0.

    A greedy walk reaches a piece that is less steep than one before it only through that one, and then takes it at
    once. A slope below 0 costs nothing, and counts as 0.
    """
    highest = 0.0
    pieces: list[Piece] = []
    for piece in steps:
        highest = max(highest, piece.slope)
        pieces.append(piece._replace(slope=highest))
    return _joined(pieces)


def _joined(pieces: Iterable[Piece]) -> Walk:
    """Return the pieces with neighbours of equal slope merged."""
    made: list[Piece] = []
    for piece in pieces:
        if made and abs(made[-1].slope - piece.slope) <= _EQUAL:
            made[-1] = Piece(made[-1].start, piece.end, made[-1].slope)
        else:
            made.append(piece)
    return tuple(made)
