"""Performance specifications: which metrics matter, which way, and how much.

Sutherland, Zhu, Ding and Rundensteiner, "An Adaptive Multi-Objective Scheduling Selection Framework for Continuous
Query Processing" (IDEAS 2005), section 3.2: a requirement is a metric, whether it is to be maximised or minimised,
and a weight; the weights of a specification sum up to 1. They say what matters more, never how good is good enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headway.adaptive.base import METRICS
from headway.errors import PolicyError, choices, finite, unknown

DIRECTIONS = ("maximise", "minimise")
UPWARD = frozenset({"throughput", "utility"})
"""Metrics of which more is better, unless the user says otherwise; of the others, less is."""
HINT = (
    "objectives are metrics with weights, such as {queue: 0.75, latency: 0.25} or {queue: {minimise: 0.75}}, "
    f"or a list of metrics; metrics: {choices(METRICS)}"
)


class Objective(NamedTuple):
    """One requirement: a metric, which way it should go, and its share of all that matters."""

    metric: str
    maximise: bool
    weight: float

    @property
    def signed(self) -> float:
        """The weight, negative where the metric is to be minimised: q and w of the paper in one."""
        return self.weight if self.maximise else -self.weight


@dataclass(frozen=True, slots=True)
class Specification:
    """Requirements, each of another metric; their weights sum up to 1."""

    objectives: tuple[Objective, ...]

    @classmethod
    def parse(cls, value: object) -> Specification:
        """Read ``{queue: {minimise: 0.75}, latency: 0.25}``, ``[latency, queue]`` or ``latency``.

        Weights are above 0, and are divided by their sum. Raises a PolicyError that says how to write it.
        """
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Mapping):
            parsed = [_objective(name, wish) for name, wish in value.items()]
        elif isinstance(value, Sequence):
            parsed = [_objective(name, 1) for name in value]
        else:
            raise PolicyError(f"objectives: {value!r} will not do; {HINT}")
        if not parsed:
            raise PolicyError(f"objectives: there must be at least one; {HINT}")
        names = [objective.metric for objective in parsed]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise PolicyError(f"objectives: named more than once: {choices(twice)}")
        total = math.fsum(objective.weight for objective in parsed)
        return cls(tuple(objective._replace(weight=objective.weight / total) for objective in parsed))

    def __str__(self) -> str:
        """Return a text for people, such as ``minimise queue (75 %), minimise latency (25 %)``."""
        words = [
            (
                DIRECTIONS[0] if objective.maximise else DIRECTIONS[1],
                objective.metric,
                f"{100 * objective.weight:.3g} %",
            )
            for objective in self.objectives
        ]
        return ", ".join(f"{way} {metric} ({share})" for way, metric, share in words)


def _objective(name: object, wish: object) -> Objective:
    """Read one requirement: a weight, or ``{minimise: weight}``."""
    if not isinstance(name, str) or name not in METRICS:
        raise PolicyError(f"objectives: {unknown('metric', str(name), METRICS)}")
    maximise = name in UPWARD
    if isinstance(wish, Mapping):
        if len(wish) != 1:
            raise PolicyError(
                f"objectives: {name}: one direction with its weight is expected, such as {{minimise: 0.5}}, "
                f"not {dict(wish)!r}; directions: {choices(DIRECTIONS)}"
            )
        ((way, wish),) = wish.items()
        if way not in DIRECTIONS:
            raise PolicyError(f"objectives: {name}: {unknown('direction', str(way), DIRECTIONS)}")
        maximise = way == DIRECTIONS[0]
    weight = finite(wish)
    if weight is None or weight <= 0:
        raise PolicyError(f"objectives: {name}: a weight is a number above 0, not {wish!r}")
    return Objective(name, maximise, weight)
