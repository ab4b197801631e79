"""Controls: what AMoS would do if it had learned nothing, or the wrong thing.

A fair coin gives each algorithm the same chance, whatever its score. The inverted wheel gives those with high scores
the small slices. What either of them gains over single algorithms comes of mixing algorithms, not of learning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.adaptive.learning import Choice, Learning, Roulette, Standing, register_learning
from headway.errors import PolicyError

COIN, INVERTED = "fair-coin", "inverted-wheel"
CONTROLS = {COIN: "a fair coin", INVERTED: "the inverted wheel"}


@dataclass(frozen=True, slots=True)
class Coin:
    """The same chance for each algorithm."""

    def choose(self, record: Standing) -> Choice:
        """Return any algorithm."""
        return Choice(record.random().randrange(len(record.names)), "by a fair coin")


@dataclass(frozen=True, slots=True)
class Inverted:
    """The wheel with its slices turned round: who has the highest score gets the slice of who has the lowest."""

    def choose(self, record: Standing) -> Choice:
        """Return the algorithm at the marker."""
        ends = max(record.scores) + min(record.scores)
        return Roulette().choose(replace(record, scores=tuple(ends - score for score in record.scores)))


def _register(name: str, made: Learning, about: str) -> None:
    def make(argument: str | None) -> Learning:
        if argument is not None:
            raise PolicyError(f"learning: '{name}' takes nothing after a colon, got '{argument}'")
        return made

    register_learning(name, make, about)


_register(COIN, Coin(), "control: chances are equal, whatever the scores")
_register(INVERTED, Inverted(), "control: the wheel with its slices turned round")
