"""Priority classes: how much a measure weighs, and how far the runtime optimizer goes for it.

MavStream's runtime optimizer, sections 4.3 and 4.8. A class with more weight comes first. While all its measures are
met it still has a say, with a weight that falls the more there is to spare, but never below that of the next class:

    reduced weight = weight - spare * range,    range = weight - weight of the next class (0 after the last)

The paper also speaks of weights divided by the number of classes; that changes no order, and its tables do without.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headway.errors import PolicyError, unknown

MUST_SATISFY = "must-satisfy"
BEST_EFFORT = "best-effort"
DONT_CARE = "dont-care"
WEIGHTS: Mapping[str, float] = {MUST_SATISFY: 1.0, BEST_EFFORT: 0.5, DONT_CARE: 0.01}
SHEDDING = (MUST_SATISFY,)
"""The classes for which tuples may be dropped, where nothing is said."""


@dataclass(frozen=True, slots=True)
class Priority:
    """One class."""

    name: str
    weight: float
    range: float
    """By how much the weight falls when everything is to spare."""
    sheds: bool
    """Whether tuples may be dropped where no strategy helps."""
    easily_pleased: bool
    """Whether any better strategy will do; otherwise it is the best one."""

    def reduced(self, spare: float) -> float:
        """Return the weight of a measure that is met with so much to spare, from 0 to 1 (equation 2)."""
        return self.weight - spare * self.range


@dataclass(frozen=True, slots=True)
class Priorities:
    """All classes, the one with the most weight first."""

    classes: tuple[Priority, ...]

    @classmethod
    def of(cls, weights: Mapping[str, float] = WEIGHTS, shedding: Iterable[str] = SHEDDING) -> Priorities:
        """Return the classes with these weights. Raises a PolicyError where weights are equal or not above 0.

        The last of several classes is easily pleased.
        """
        sheds = set(shedding)
        for name in sorted(sheds - set(weights)):
            raise PolicyError(f"shed: {unknown('class', name, weights)}")
        for name, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise PolicyError(f"classes: the weight of '{name}' is a number above 0, not {weight!r}")
        names = sorted(weights, key=lambda name: -weights[name])
        classes: list[Priority] = []
        for at, name in enumerate(names):
            last = at == len(names) - 1
            below = 0.0 if last else float(weights[names[at + 1]])
            weight = float(weights[name])
            if weight == below:
                raise PolicyError(f"classes: '{name}' and '{names[at + 1]}' have the same weight {weight:g}")
            classes.append(Priority(name, weight, weight - below, name in sheds, last and len(names) > 1))
        return cls(tuple(classes))

    def __getitem__(self, name: str) -> Priority:
        """Return a class by name. Raises a PolicyError that lists them."""
        for one in self.classes:
            if one.name == name:
                return one
        raise PolicyError(unknown("class", name, [one.name for one in self.classes]))
