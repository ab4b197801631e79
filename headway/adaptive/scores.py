"""How well algorithms do, as numbers that compare: equations 1 and 2 of AMoS.

Sutherland et al. (IDEAS 2005), sections 3.3 and 3.4. Of every metric i, the mean of the turn that just ended (C) is
set against all statistics so far (H), of whatever algorithm, that turn included:

    z_i = (mean_i(C) - mean_i(H)) / (max_i(H) - min_i(H)) * (1 - decay) + old z_i * decay        (1)
    score = sum over i of q_i * z_i * w_i, plus 1                                                 (2)

with decay in [0, 0.5), 0 for an algorithm's first turn; q is 1 where a metric is to be maximised and -1 where it is
to be minimised, w its weight. So z lies between -1 and 1, a score between 0 and 2, and 1 is as good as the mean.
Where all statistics are the same, nobody differs from the mean, and the quotient counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headway.adaptive.samples import ORDER, Statistics
from headway.adaptive.specification import Specification
from headway.fading import mixed


@dataclass(frozen=True, slots=True)
class Synopsis:
    """What is kept of samples: how many, and of each metric the sum, the largest and the smallest."""

    count: int
    total: Statistics
    largest: Statistics
    smallest: Statistics

    @classmethod
    def of(cls, samples: Iterable[Statistics]) -> Synopsis:
        """Return the synopsis of samples, of which there is at least one."""
        return cls.merged([cls(1, sample, sample, sample) for sample in samples])

    @classmethod
    def merged(cls, parts: Sequence[Synopsis]) -> Synopsis:
        """Return the synopsis of all samples of some synopses, of which there is at least one."""
        return cls(
            sum(part.count for part in parts),
            tuple(map(sum, zip(*(part.total for part in parts), strict=True))),
            tuple(map(max, zip(*(part.largest for part in parts), strict=True))),
            tuple(map(min, zip(*(part.smallest for part in parts), strict=True))),
        )

    @property
    def means(self) -> Statistics:
        """The mean of each metric; never outside of the smallest and the largest, as rounding could make it."""
        return tuple(
            min(max(total / self.count, low), high)
            for total, low, high in zip(self.total, self.smallest, self.largest, strict=True)
        )


def normalised(current: float, mean: float, largest: float, smallest: float) -> float:
    """Return how far a mean lies above the mean of history, as a share of history's range; 0 where it has none."""
    return (current - mean) / (largest - smallest) if largest > smallest else 0.0


def decayed(new: float, old: float | None, decay: float) -> float:
    """Return a new value and the old one mixed; the new one alone where there is no old one."""
    return new if old is None else mixed(old, new, decay)


def positions(turn: Statistics, history: Synopsis) -> Statistics:
    """Return by metric where the means of a turn lie in a history that includes it, from -1 to 1."""
    return tuple(map(normalised, turn, history.means, history.largest, history.smallest))


def statistics_scores(turn: Synopsis, history: Synopsis, old: Statistics | None, decay: float) -> Statistics:
    """Return z of each metric after a turn, by equation 1; `old` is the algorithm's z before, if it ran before."""
    news = positions(turn.means, history)
    return news if old is None else tuple(decayed(new, z, decay) for new, z in zip(news, old, strict=True))


def algorithm_score(scores: Statistics, specification: Specification) -> float:
    """Return the score of an algorithm from its z by metric, by equation 2."""
    return sum(wish.signed * scores[ORDER.index(wish.metric)] for wish in specification.objectives) + 1
