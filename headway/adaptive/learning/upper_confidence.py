"""Upper confidence: take the algorithm that could be the best, given what is known of it.

Auer, Cesa-Bianchi and Fischer (2002) over a sliding window (Garivier and Moulines, 2011): with n turns of an
algorithm among the t turns of the window, and m the mean of their rewards, the largest

    m + width * s * sqrt(2 * ln(t) / n)

is next. s is the standard deviation of rewards around the means of their algorithms: where turns hardly differ, few
are needed. Bad algorithms are tried ever more rarely (as ln t), but not forever: turns leave the window, and an
algorithm without any is tried at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from headway.adaptive.learning.base import Choice, Record, against, number_after, register_learning

WIDTH = 0.5
"""How many times the textbook's confidence interval; exploring costs real results."""


def deviation(rewards: Sequence[Sequence[float]], floor: float = 0.02) -> float:
    """Return the standard deviation of rewards around the mean of their own algorithm, at least `floor`."""
    squares, freedom = 0.0, 0
    for own in rewards:
        if own:
            mean = sum(own) / len(own)
            squares += sum((reward - mean) ** 2 for reward in own)
            freedom += len(own) - 1
    return max(math.sqrt(squares / freedom), floor) if freedom > 0 else max(0.25, floor)


@dataclass(frozen=True, slots=True)
class UpperConfidence:
    """The largest upper bound of a mean reward."""

    width: float = WIDTH

    def choose(self, record: Record) -> Choice:
        """Return the algorithm with the largest bound; of equals, the first."""
        rewards = record.rewards()
        means = [sum(own) / len(own) if own else None for own in rewards]
        scale = self.width * deviation(rewards) * math.sqrt(2 * math.log(max(len(record.turns), 2)))
        bounds = [
            math.inf if mean is None else mean + scale / math.sqrt(len(own))
            for mean, own in zip(means, rewards, strict=True)
        ]
        chosen = max(range(len(bounds)), key=lambda at: (bounds[at], -at))
        return Choice(chosen, explained(record, chosen, means, rewards))


def explained(record: Record, chosen: int, means: Sequence[float | None], rewards: Sequence[Sequence[float]]) -> str:
    """Return why: it scores best, or too little is known of it."""
    known = [mean for mean in means if mean is not None]
    text = against(record, chosen, means)
    mean = means[chosen]
    if mean is None or not known or mean >= max(known):
        return text
    return f"{text}, tried again after {len(rewards[chosen])} of {len(record.turns)} turns"


def _make(argument: str | None) -> UpperConfidence:
    return UpperConfidence(number_after("upper-confidence", argument, WIDTH))


register_learning("upper-confidence", _make, "the largest upper confidence bound over a sliding window of turns")
