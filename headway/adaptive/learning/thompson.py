"""Thompson sampling: let each algorithm draw from what is believed of it; the best draw is next.

Thompson (1933), with normal beliefs over a sliding window of turns: an algorithm with n turns of mean reward m draws
from a normal distribution with mean m and standard deviation ``width * s / sqrt(n)``, s as in `upper_confidence`. An
algorithm without a turn in the window draws from that of all turns. So an algorithm runs as often as it is believed
to be the best.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.adaptive.learning.base import Choice, Record, number_after, register_learning
from headway.adaptive.learning.upper_confidence import deviation, explained

WIDTH = 1.0


@dataclass(frozen=True, slots=True)
class Thompson:
    """The largest of random draws, one for each algorithm."""

    width: float = WIDTH

    def choose(self, record: Record) -> Choice:
        """Return the algorithm with the best draw."""
        chance, rewards = record.random(), record.rewards()
        means = [sum(own) / len(own) if own else None for own in rewards]
        spread = self.width * deviation(rewards)
        every = [turn.reward for turn in record.turns] or [1.0]
        middle, wide = sum(every) / len(every), self.width * deviation([every])
        draws = [
            chance.gauss(middle, wide) if mean is None else chance.gauss(mean, spread / len(own) ** 0.5)
            for mean, own in zip(means, rewards, strict=True)
        ]
        chosen = max(range(len(draws)), key=draws.__getitem__)
        return Choice(chosen, explained(record, chosen, means, rewards))


def _make(argument: str | None) -> Thompson:
    return Thompson(number_after("thompson", argument, WIDTH))


register_learning("thompson", _make, "the best draw from normal beliefs over a sliding window of turns")
