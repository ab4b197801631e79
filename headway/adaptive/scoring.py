"""The scores of AMoS: the user's objectives, and how well algorithms meet them.

Sutherland, Zhu, Ding and Rundensteiner, "An Adaptive Multi-Objective Scheduling Selection Framework for Continuous
Query Processing" (IDEAS 2005), sections 3.2 to 3.4. An objective is a metric, whether to maximise or to minimise it,
and a weight; the weights of a specification sum to 1. They say what matters more, never how good is good enough. A
sample holds the metrics of a short time, a synopsis those of a turn. For every metric i, the mean of the turn that just
ended (C) is compared with all statistics so far (H), of all algorithms and including that turn:

    z_i = (mean_i(C) - mean_i(H)) / (max_i(H) - min_i(H)) * (1 - decay) + old z_i * decay        (1)
    score = sum over i of q_i * z_i * w_i, plus 1                                                 (2)

with decay in [0, 0.5), 0 for an algorithm's first turn; q is 1 for a metric to maximise and -1 for one to minimise, w
its weight. So z is between -1 and 1, a score between 0 and 2, and 1 is as good as the mean. If all statistics are
equal, the quotient is defined as 0.

Two extensions are ours. The latency of results is not enough: an algorithm that lets some tuples wait for long, and
delivers only recent ones, looks fast; the next one delivers the old ones, and looks slow. So a share (`waiting`) of a
sample's latency is the age of the oldest waiting tuple, if that is larger; the same share of its utility is that of
results of that age, as the mean over the outputs with latency graphs, if that is smaller. With a share of 0 the metrics
are those of AMoS.

And learning strategies get rewards: scores of single turns, without decay. Compared with all turns of the window, turns
in a burst of input would look bad and those after it good, whatever the algorithm. So the history of a turn consists of
its neighbours: itself, and some turns before and after it. A turn among others of the same algorithm gets about 1; a
turn of a different algorithm among them gets more or less, by how much it differs from them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headway.adaptive.goals import MEASURES
from headway.adaptive.layer import METRICS, Interval
from headway.adaptive.learning import RewardedTurn
from headway.columns import Int64s
from headway.errors import PolicyError, choices, finite, unknown
from headway.fading import mixed
from headway.network.qos import Graph, QoS
from headway.totals import SYSTEM, Totals

DIRECTIONS = ("maximise", "minimise")
HINT = (
    "objectives are metrics with weights, such as {queue: 0.75, latency: 0.25} or {queue: {minimise: 0.75}}, "
    f"or a list of metrics; metrics: {choices(METRICS)}"
)


class Objective(NamedTuple):
    """A metric, whether to maximise it, and its weight."""

    metric: str
    maximise: bool
    weight: float

    @property
    def signed(self) -> float:
        """The weight, negative if the metric is to be minimised: the paper's q * w."""
        return self.weight if self.maximise else -self.weight


@dataclass(frozen=True, slots=True)
class Specification:
    """Objectives for distinct metrics; their weights sum to 1."""

    objectives: tuple[Objective, ...]

    @classmethod
    def parse(cls, value: object) -> Specification:
        """Parse ``{queue: {minimise: 0.75}, latency: 0.25}``, ``[latency, queue]`` or ``latency``.

        Weights must be above 0, and are divided by their sum. Raises a PolicyError that describes the form.
        """
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Mapping):
            parsed = [_objective(name, wish) for name, wish in value.items()]
        elif isinstance(value, Sequence):
            parsed = [_objective(name, 1) for name in value]
        else:
            raise PolicyError(f"{value!r} will not do; {HINT}")
        if not parsed:
            raise PolicyError(f"there must be at least one; {HINT}")
        names = [objective.metric for objective in parsed]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PolicyError(f"named more than once: {choices(twice)}")
        total = math.fsum(objective.weight for objective in parsed)
        return cls(tuple(objective._replace(weight=objective.weight / total) for objective in parsed))

    def __str__(self) -> str:
        """Return a text for people, such as ``minimise queue (75 %), minimise latency (25 %)``."""
        ways = [(DIRECTIONS[0] if one.maximise else DIRECTIONS[1], one) for one in self.objectives]
        return ", ".join(f"{way} {one.metric} ({100 * one.weight:.3g} %)" for way, one in ways)


def _objective(name: object, wish: object) -> Objective:
    """Parse one objective: a weight, or ``{minimise: weight}``."""
    if not isinstance(name, str) or name not in METRICS:
        raise PolicyError(f"{unknown('metric', str(name), METRICS)}")
    maximise = not MEASURES[name].at_most
    if isinstance(wish, Mapping):
        if len(wish) != 1:
            raise PolicyError(
                f"objectives: {name}: one direction with its weight is expected, such as {{minimise: 0.5}}, "
                f"not {dict(wish)!r}; directions: {choices(DIRECTIONS)}"
            )
        ((way, wish),) = wish.items()
        if way not in DIRECTIONS:
            raise PolicyError(f"{name}: {unknown('direction', str(way), DIRECTIONS)}")
        maximise = way == DIRECTIONS[0]
    weight = finite(wish)
    if weight is None or weight <= 0:
        raise PolicyError(f"{name}: a weight is a number above 0, not {wish!r}")
    return Objective(name, maximise, weight)


ORDER = tuple(METRICS)
"""The order of metrics in tuples of statistics and of scores."""

Statistics = tuple[float, ...]
"""A number per metric, in `ORDER`."""


@dataclass(frozen=True, slots=True, eq=False)
class Worth:
    """The utility of results by age: the latency graphs, each with the outputs that have it."""

    graphs: tuple[tuple[Graph, Int64s], ...]

    @classmethod
    def of(cls, qos: Iterable[QoS]) -> Worth:
        """Collect the distinct latency graphs of the outputs."""
        places: dict[Graph, list[int]] = {}
        for output, wish in enumerate(qos):
            if wish.latency is not None:
                places.setdefault(wish.latency, []).append(output)
        return cls(tuple((graph, np.array(outputs, np.int64)) for graph, outputs in places.items()))

    def waiting(self, totals: Totals) -> float | None:
        """Return the mean utility of results as old as the oldest waiting tuples; None if no output has a graph."""
        if not self.graphs:
            return None
        values = np.concatenate([graph.values(totals.oldest[outputs]) for graph, outputs in self.graphs])
        return float(values.mean())


def measure(interval: Interval, waiting: float = 0.0, worth: Worth | None = None) -> Statistics:
    """Return one sample: all metrics of the whole run over an interval, including waiting tuples by a share."""
    sample = {name: float(metric(interval, SYSTEM)) for name, metric in METRICS.items()}
    if waiting > 0:
        latency, oldest = sample["latency"], float(interval.after.oldest[SYSTEM])
        sample["latency"] += waiting * max(oldest - latency, 0.0)
        worthy = None if worth is None else worth.waiting(interval.after)
        if worthy is not None:
            none = interval.after.delivered[SYSTEM] == interval.before.delivered[SYSTEM]
            delivered = worthy if none else sample["utility"]
            sample["utility"] = delivered + waiting * min(worthy - delivered, 0.0)
    return tuple(sample.values())


def idle(interval: Interval) -> bool:
    """Return whether nothing was delivered and nothing waited: such an interval says nothing about an algorithm."""
    before, after = interval.before, interval.after
    return bool(
        after.delivered[SYSTEM] == before.delivered[SYSTEM]
        and after.queued[SYSTEM] <= before.queued[SYSTEM]
        and after.oldest[SYSTEM] <= 0
    )


@dataclass(frozen=True, slots=True)
class Synopsis:
    """A summary of samples: their count, and the sum, largest and smallest value of each metric."""

    count: int
    total: Statistics
    largest: Statistics
    smallest: Statistics

    @classmethod
    def of(cls, samples: Iterable[Statistics]) -> Synopsis:
        """Return the synopsis of at least one sample."""
        return cls.merged([cls(1, sample, sample, sample) for sample in samples])

    @classmethod
    def merged(cls, parts: Sequence[Synopsis]) -> Synopsis:
        """Return the synopsis of all samples of at least one synopsis."""
        return cls(
            sum(part.count for part in parts),
            tuple(map(sum, zip(*(part.total for part in parts), strict=True))),
            tuple(map(max, zip(*(part.largest for part in parts), strict=True))),
            tuple(map(min, zip(*(part.smallest for part in parts), strict=True))),
        )

    @property
    def means(self) -> Statistics:
        """The mean of each metric; kept between the smallest and the largest value despite rounding errors."""
        return tuple(
            min(max(total / self.count, low), high)
            for total, low, high in zip(self.total, self.smallest, self.largest, strict=True)
        )


def positions(turn: Statistics, history: Synopsis) -> Statistics:
    """Return by metric the position of a turn's mean in a history that includes the turn, from -1 to 1.

    That is its difference from the history's mean, as a share of the history's range; 0 if the range is empty.
    """
    rows = zip(turn, history.means, history.largest, history.smallest, strict=True)
    return tuple((own - mean) / (high - low) if high > low else 0.0 for own, mean, high, low in rows)


def statistics_scores(turn: Synopsis, history: Synopsis, old: Statistics | None, decay: float) -> Statistics:
    """Return z of each metric after a turn, by equation 1; `old` is the algorithm's previous z, if it ran before."""
    news = positions(turn.means, history)
    return news if old is None else tuple(mixed(z, new, decay) for new, z in zip(news, old, strict=True))


def algorithm_score(scores: Statistics, specification: Specification) -> float:
    """Return the score of an algorithm from its z by metric, by equation 2."""
    return sum(wish.signed * scores[ORDER.index(wish.metric)] for wish in specification.objectives) + 1


class Past(NamedTuple):
    """A past turn: its algorithm and its measurements."""

    algorithm: int
    synopsis: Synopsis


def rewarded(turns: Sequence[Past], specification: Specification, neighbours: int | None) -> tuple[RewardedTurn, ...]:
    """Return the turns with their rewards, from 0 to 2, relative to `neighbours` turns on each side (None: all)."""
    rewards, reach = [], len(turns) if neighbours is None else neighbours
    for at, (algorithm, synopsis) in enumerate(turns):
        near = Synopsis.merged([past.synopsis for past in turns[max(at - reach, 0) : at + reach + 1]])
        rewards.append(RewardedTurn(algorithm, algorithm_score(positions(synopsis.means, near), specification)))
    return tuple(rewards)
