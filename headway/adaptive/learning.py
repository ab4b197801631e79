"""Learning strategies, which choose the next algorithm: scores and past turns in, a choice out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headway.errors import PolicyError
from headway.plugins import Registry


class RewardedTurn(NamedTuple):
    """A turn of an algorithm, and its reward: from 0 to 2, where 1 is the mean of the turns it is compared with."""

    algorithm: int
    reward: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that a learning strategy may look at. Every algorithm has had a turn before the first choice."""

    names: tuple[str, ...]
    """By algorithm: its name."""
    scores: tuple[float, ...]
    """By algorithm: its score (equation 2 of AMoS) as of its last turn."""
    turns: tuple[RewardedTurn, ...]
    """The turns within the window, the oldest first."""
    number: int
    """How many turns have ended."""
    seed: int

    def random(self) -> random.Random:
        """Return a random generator that depends only on the seed and the number of turns."""
        return random.Random(f"{self.seed}/{self.number}")

    def rewards(self) -> tuple[list[list[float]], list[float | None]]:
        """Return by algorithm the rewards of its turns within the window, and their mean; None if it has none."""
        by: list[list[float]] = [[] for _ in self.names]
        for turn in self.turns:
            by[turn.algorithm].append(turn.reward)
        return by, [sum(own) / len(own) if own else None for own in by]


class Choice(NamedTuple):
    """The algorithm to use next, and the reason, as a phrase that follows its name."""

    algorithm: int
    reason: str


class Learning(Protocol):
    """A learning strategy. Pure: equal records give equal choices."""

    def choose(self, record: Standing) -> Choice:
        """Return the algorithm for the next turn."""
        ...


_strategies = Registry[Callable[[str | None], Learning]]("strategy", PolicyError)

register_learning = _strategies.register
"""`make` gets the text after a colon, as in ``upper-confidence:0.5``."""


def make_learning(text: str) -> Learning:
    """Make the strategy given as ``name`` or ``name:argument``."""
    entry, argument = _strategies.parse(text)
    return entry.make(argument)


@dataclass(frozen=True, slots=True)
class Roulette:
    """The roulette wheel: probabilities in proportion to scores (Sutherland et al., IDEAS 2005, section 3.5).

    Each algorithm has a slice of the wheel as large as its score; the wheel is spun once. This is the paper's own
    strategy, for comparison: scores are close to 1, so slices are nearly equal, and bad algorithms run nearly as often
    as good ones, however much is known about them.
    """

    def choose(self, record: Standing) -> Choice:
        """Return the algorithm at the marker."""
        slices = [max(score, 0.0) for score in record.scores]
        total = sum(slices)
        if total <= 0:
            slices, total = [1.0] * len(slices), float(len(slices))
        marker = record.random().random() * total
        chosen = len(slices) - 1
        for algorithm, size in enumerate(slices):
            marker -= size
            if marker < 0:
                chosen = algorithm
                break
        share = 100 * slices[chosen] / total
        return Choice(chosen, f"came up on the wheel: score {record.scores[chosen]:.2f}, {share:.0f} % of it")


@dataclass(frozen=True, slots=True)
class UpperConfidence:
    """The algorithm with the largest upper confidence bound.

    Auer, Cesa-Bianchi and Fischer (2002) over a sliding window (Garivier and Moulines, 2011): with n turns of an
    algorithm among the t turns of the window, and m the mean of their rewards, the algorithm with the largest

        m + width * s * sqrt(2 * ln(t) / n)

    is next. s is the standard deviation of rewards around the means of their algorithms: if turns hardly differ, few
    are needed. Bad algorithms are tried ever more rarely (as ln t), but never given up: turns leave the window, and an
    algorithm without any is tried at once.
    """

    width: float = 0.5
    """A factor on the textbook's confidence interval; small, because exploring degrades real results."""

    def choose(self, record: Standing) -> Choice:
        """Return the algorithm with the largest bound; the first if tied."""
        rewards, means = record.rewards()
        scale = self.width * deviation(rewards) * math.sqrt(2 * math.log(max(len(record.turns), 2)))
        bounds = [
            math.inf if mean is None else mean + scale / math.sqrt(len(own))
            for mean, own in zip(means, rewards, strict=True)
        ]
        chosen = max(range(len(bounds)), key=lambda at: (bounds[at], -at))
        return Choice(chosen, explained(record, chosen, means, rewards))


@dataclass(frozen=True, slots=True)
class Thompson:
    """Thompson sampling: a sample is drawn from the belief about each algorithm, and the largest one is next.

    Thompson (1933), with normal beliefs over a sliding window of turns: for an algorithm with n turns of mean reward m
    the distribution is normal with mean m and standard deviation ``width * s / sqrt(n)``, s as in `UpperConfidence`;
    for one without a turn in the window it is that of all turns. So an algorithm runs as often as it is believed to be
    the best.
    """

    width: float = 1.0

    def choose(self, record: Standing) -> Choice:
        """Return the algorithm with the largest sample."""
        chance, (rewards, means) = record.random(), record.rewards()
        spread = self.width * deviation(rewards)
        every = [turn.reward for turn in record.turns] or [1.0]
        middle, wide = sum(every) / len(every), self.width * deviation([every])
        draws = [
            chance.gauss(middle, wide) if mean is None else chance.gauss(mean, spread / len(own) ** 0.5)
            for mean, own in zip(means, rewards, strict=True)
        ]
        chosen = max(range(len(draws)), key=draws.__getitem__)
        return Choice(chosen, explained(record, chosen, means, rewards))


def deviation(rewards: Sequence[Sequence[float]], floor: float = 0.02) -> float:
    """Return the standard deviation of rewards around the mean of their own algorithm, at least `floor`."""
    squares, freedom = 0.0, 0
    for own in rewards:
        if own:
            mean = sum(own) / len(own)
            squares += sum((reward - mean) ** 2 for reward in own)
            freedom += len(own) - 1
    return max(math.sqrt(squares / freedom), floor) if freedom > 0 else max(0.25, floor)


def explained(record: Standing, chosen: int, means: Sequence[float | None], rewards: Sequence[Sequence[float]]) -> str:
    """Return why an algorithm is next: it scores best, or too little is known about it."""
    own = means[chosen]
    text = "not tried lately" if own is None else f"scores {own:.2f}"
    others = [(mean, -at) for at, mean in enumerate(means) if at != chosen and mean is not None]
    if others:
        value, at = max(others)
        text = f"{text}, {record.names[-at]} {value:.2f}"
        if own is not None and own < value:
            text = f"{text}, tried again after {len(rewards[chosen])} of {len(record.turns)} turns"
    return text


def _width(name: str, argument: str) -> float:
    """Parse the positive number after a strategy's colon."""
    try:
        value = float(argument)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise PolicyError(f"after '{name}:' a number above 0 is expected, not '{argument}'")
    return value


register_learning(
    "roulette", lambda _: Roulette(), "chances in proportion to scores, as in the paper", takes_argument=False
)
register_learning(
    "upper-confidence",
    lambda text: UpperConfidence() if text is None else UpperConfidence(_width("upper-confidence", text)),
    "the largest upper confidence bound over a sliding window of turns",
)
register_learning(
    "thompson",
    lambda text: Thompson() if text is None else Thompson(_width("thompson", text)),
    "the best draw from normal beliefs over a sliding window of turns",
)
