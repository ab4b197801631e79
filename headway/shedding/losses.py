"""Loss graphs as walks: what an output loses step by step when ever less of it is delivered.

A loss graph gives the utility by per cent delivered. The load shedder reads it from 100 per cent downwards, as a row of
pieces with one slope each: utility lost per share of tuples lost (Aurora paper, section 4.5)::

    slope = (u(from) - u(to)) / (from - to)        shares delivered: 1 at the start, 0 at the end of the walk

A slope of 0 is a stretch that nobody minds; below 0 the output is better off with less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from headway.network.qos import Graph, QoS

LINEAR = Graph(((0.0, 0.0), (100.0, 1.0)))
"""What holds for an output that says nothing: each tuple is worth the same."""

_EQUAL = 1e-12
"""Slopes closer than this are the same: what is left of rounding."""


class Piece(NamedTuple):
    """A straight stretch of a walk."""

    start: float
    """The share delivered where it begins."""
    end: float
    """The share delivered where it ends, less than at its start."""
    slope: float
    """Utility lost per share of tuples lost."""


Walk = tuple[Piece, ...]
"""Pieces from all delivered, 1, down to nothing, 0; neighbours have different slopes."""


def loss_graph(qos: Sequence[QoS], output: int, instead: Mapping[int, Graph]) -> Graph:
    """Return the graph to walk along for an output: the one to use instead, its own, or a straight line."""
    return instead.get(output) or qos[output].loss or LINEAR


@lru_cache(maxsize=1 << 14)
def walk(graph: Graph) -> Walk:
    """Return a loss graph from 100 per cent delivered downwards.

    What the graph says beyond 0 and 100 per cent is left out; where its points end before, it is level.
    """
    inner = {x / 100.0 for x, _ in graph.points if 0 < x < 100}
    shares = sorted(inner | {0.0, 1.0}, reverse=True)
    utilities = [graph.value(100.0 * share) for share in shares]
    return _joined(
        Piece(start, end, (above - below) / (start - end))
        for (start, above), (end, below) in pairwise(zip(shares, utilities, strict=True))
    )


def together(walks: Sequence[Walk]) -> Walk:
    """Return the walk of several outputs that lose the same share: the sum of their slopes."""
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
    """Return the walk of one who always takes the least slope next, with what each piece costs to reach: it rises.

    A piece that is less steep than one before it is reached only over that one, and then taken at once. Nobody has to
    be asked for a piece with a slope below 0: it counts as 0.
    """
    highest = 0.0
    pieces: list[Piece] = []
    for piece in steps:
        highest = max(highest, piece.slope)
        pieces.append(piece._replace(slope=highest))
    return _joined(pieces)


def _joined(pieces: Iterable[Piece]) -> Walk:
    """Return the pieces with neighbours of the same slope as one."""
    made: list[Piece] = []
    for piece in pieces:
        if made and abs(made[-1].slope - piece.slope) <= _EQUAL:
            made[-1] = Piece(made[-1].start, piece.end, made[-1].slope)
        else:
            made.append(piece)
    return tuple(made)
