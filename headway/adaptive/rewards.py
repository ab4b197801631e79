"""How good each single turn was, for learning strategies that look at turns.

A reward is a score (equations 1 and 2 of AMoS, without decay) of one turn against a history. Against all turns of
the window, turns in a burst of input would look bad and those after it good, whoever had them. So the history of a
turn is made of its neighbours: itself, and so many turns before and after it. A turn among others of the same
algorithm gets about 1; a turn of another algorithm among them gets more or less, by how much it differs from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headway.adaptive.learning import Turn
from headway.adaptive.scores import Synopsis, algorithm_score, positions
from headway.adaptive.specification import Specification


class Past(NamedTuple):
    """A turn that has ended: whose, and what was measured."""

    algorithm: int
    synopsis: Synopsis


def rewarded(turns: Sequence[Past], specification: Specification, neighbours: int | None) -> tuple[Turn, ...]:
    """Return the turns with their rewards, between 0 and 2; `neighbours` on each side, None: all turns."""
    rewards, reach = [], len(turns) if neighbours is None else neighbours
    for at, (algorithm, synopsis) in enumerate(turns):
        near = Synopsis.merged([past.synopsis for past in turns[max(at - reach, 0) : at + reach + 1]])
        rewards.append(Turn(algorithm, algorithm_score(positions(synopsis.means, near), specification)))
    return tuple(rewards)
