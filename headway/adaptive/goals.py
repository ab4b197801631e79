"""Goals of a query: targets of measures, and their importance (priority classes).

MavStream's runtime optimizer, sections 4.2, 4.3 and 4.8. Targets are piecewise-linear functions of the time since the
run's start. The paper gives a start and an end for each piece and fills the gaps between pieces from the values at
their borders; that is equivalent to a list of points with straight lines between them: the ends of all pieces, in
order. Two points at the same time are a jump, as between two adjacent pieces. `MEASURES` lists what can have a target,
and whether the target is an upper or a lower bound.

A class with a larger weight comes first. While all its measures are met it still counts, with a weight that decreases
the more there is to spare, but never below that of the next class:

    reduced weight = weight - spare * range,    range = weight - weight of the next class (0 after the last)

The paper also mentions weights divided by the number of classes; that changes no order, and its tables do not do so.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from headway.durations import DURATION_HINT, Duration
from headway.errors import HeadwayError, PolicyError, finite, unknown, within
from headway.scheduling.trains import Bytes, parse_train

EASED = 0.8
"""The share of an upper bound at or below which a measure has something to spare."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric that can have a target. Its name is one of `headway.adaptive.layer.METRICS`, which measures it."""

    name: str
    at_most: bool
    """Whether the target is an upper bound; otherwise it is a lower bound."""
    read: Callable[[object], float]
    """Parses a target's value from user input; raises a PolicyError that describes the form."""
    write: Callable[[float], str]
    """Formats a value for people."""
    dropping_helps: bool = True
    """Whether it improves when tuples are dropped."""

    def violated(self, observed: float, expected: float) -> bool:
        """Return whether the observed value misses the target; a value equal to the target does not."""
        return observed > expected if self.at_most else observed < expected

    def spare(self, observed: float, expected: float) -> float:
        """Return the reduction percentage of equation 2: the unused share of the target, from 0 to 1.

        For an upper bound it is ``(expected - observed) / expected``. For a lower bound it is the same for the inverse,
        the time per tuple: ``1 - expected / observed``; so twice the minimum throughput leaves as much to spare as half
        the maximum latency. A measure that misses its target has nothing to spare.
        """
        low, high = (observed, expected) if self.at_most else (expected, observed)
        if low >= high:
            return 0.0
        return 1.0 if math.isinf(high) else min(1.0, 1.0 - low / high)

    def eased(self, observed: float, expected: float) -> bool:
        """Return whether the target is met well enough to end dropping: for an upper bound, at `EASED` of it or less.

        A lower bound only has to be met: the best possible value may be close to it, as for utility.
        """
        return observed <= EASED * expected if self.at_most else observed >= expected

    def miss(self, observed: float, expected: float) -> str:
        """Return how the target is missed as text: ``latency 1.3 s over its target 0.5 s``."""
        side = "over" if self.at_most else "under"
        return f"{self.name} {self.write(observed)} {side} its target {self.write(expected)}"


@dataclass(frozen=True, slots=True)
class Target:
    """Points (seconds since the start, value) with straight lines between them, constant before and after them.

    Of points at the same time the last one applies from then on.
    """

    points: tuple[tuple[float, float], ...]

    @classmethod
    def constant(cls, value: float) -> Target:
        """Return a target that does not change over time."""
        return cls(((0.0, value),))

    @classmethod
    def parse(cls, value: object, measure: Measure) -> Target:
        """Parse one value, or a list of points such as ``[[0, 500ms], [500, 100ms]]``. Raises a PolicyError."""
        if not isinstance(value, Sequence) or isinstance(value, str):
            return cls.constant(measure.read(value))
        if not value:
            raise PolicyError(_POINTS.format(value))
        points = tuple(_point(point, measure) for point in value)
        if any(later < earlier for (earlier, _), (later, _) in pairwise(points)):
            raise PolicyError(f"the times of a target's points ascend, not {[time for time, _ in points]}")
        return cls(points)

    def at(self, seconds: float) -> float:
        """Return the value at a number of seconds after the start."""
        place = bisect_right(self.points, seconds, key=itemgetter(0))
        if place == 0:
            return self.points[0][1]
        before, low = self.points[place - 1]
        if place == len(self.points):
            return low
        after, high = self.points[place]
        return low + (high - low) * ((seconds - before) / (after - before))


_POINTS = "a target is a value, or a list of points [seconds, value] such as [[0, 0.5], [500, 0.1]], not {!r}"


def _point(point: object, measure: Measure) -> tuple[float, float]:
    if not isinstance(point, Sequence) or isinstance(point, str) or len(point) != 2:
        raise PolicyError(_POINTS.format(point))
    with within(f"point {point!r}"):
        return read_seconds(point[0]), measure.read(point[1])


def read_seconds(value: object) -> float:
    """Parse seconds as a number, or a duration such as ``500ms``. Raises a PolicyError."""
    if isinstance(value, str | Duration):
        try:
            return Duration.parse(value).seconds
        except HeadwayError as error:
            raise PolicyError(str(error)) from None
    return _number(value, f"a number of seconds, or a duration; {DURATION_HINT}")


def _bytes(value: object) -> float:
    form = "a number of bytes, or a size such as '64kB' or '10MB'; units: B, kB, MB, GB"
    if isinstance(value, str):
        try:
            size = parse_train(value)  # a train rule may be a number of bytes
        except PolicyError:
            size = None
        if not isinstance(size, Bytes):
            raise PolicyError(f"{value!r} is not {form}")
        return float(size.bytes)
    return _number(value, form)


def _per_second(value: object) -> float:
    form = "a number of tuples per second, such as 100 or '100/s'"
    if isinstance(value, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(?:tuples)?/s", value.strip())
        if not found:
            raise PolicyError(f"{value!r} is not {form}")
        return float(found[1])
    return _number(value, form)


def _utility(value: object) -> float:
    form = "a utility from 0 to 1"
    number = _number(value, form)
    if number > 1:
        raise PolicyError(f"{value!r} is not {form}")
    return number


def _number(value: object, form: str) -> float:
    number = finite(value)
    if number is None or number < 0:
        raise PolicyError(f"{value!r} is not {form}")
    return number


def plain(number: float) -> str:
    """Format a number for people: three significant digits, but at least all digits before the point."""
    return f"{number:.0f}" if 1000 <= abs(number) < math.inf else f"{number:.3g}"


def _write_bytes(value: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{plain(value / factor)} {unit}"
    return f"{plain(value)} B"


MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("latency", True, read_seconds, lambda value: f"{plain(value)} s"),
        Measure("memory", True, _bytes, _write_bytes),
        Measure("throughput", False, _per_second, lambda value: f"{plain(value)}/s", dropping_helps=False),
        Measure(
            "queue", True, lambda value: _number(value, "a number of tuples"), lambda value: f"{plain(value)} tuples"
        ),
        Measure("utility", False, _utility, plain),
    )
}
"""The metrics that can have a target, by name."""


MUST_SATISFY = "must-satisfy"
BEST_EFFORT = "best-effort"
DONT_CARE = "dont-care"
WEIGHTS: Mapping[str, float] = {MUST_SATISFY: 1.0, BEST_EFFORT: 0.5, DONT_CARE: 0.01}
SHEDDING = (MUST_SATISFY,)
"""The classes for which tuples may be dropped by default."""


@dataclass(frozen=True, slots=True)
class Priority:
    """A priority class."""

    name: str
    weight: float
    range: float
    """The amount by which the weight decreases if `spare` is 1."""
    sheds: bool
    """Whether tuples may be dropped if no strategy helps."""
    easily_pleased: bool
    """Whether any better strategy is enough; otherwise the best one is chosen."""

    def reduced(self, spare: float) -> float:
        """Return the weight of a measure that is met with `spare` (0 to 1) of its target unused (equation 2)."""
        return self.weight - spare * self.range


def priorities(weights: Mapping[str, float] = WEIGHTS, shedding: Iterable[str] = SHEDDING) -> Mapping[str, Priority]:
    """Return the classes by name, the one with the largest weight first. Raises a PolicyError.

    Weights must be above 0 and distinct. The last of several classes is easily pleased.
    """
    sheds = set(shedding)
    for name in sorted(sheds - set(weights)):
        raise PolicyError(f"shed: {unknown('class', name, weights)}")
    for name, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise PolicyError(f"classes: the weight of '{name}' is a number above 0, not {weight!r}")
    names = sorted(weights, key=lambda name: -weights[name])
    classes = {}
    for at, name in enumerate(names):
        last = at == len(names) - 1
        below = 0.0 if last else float(weights[names[at + 1]])
        weight = float(weights[name])
        if weight == below:
            raise PolicyError(f"classes: '{name}' and '{names[at + 1]}' have the same weight {weight:g}")
        classes[name] = Priority(name, weight, weight - below, name in sheds, last and len(names) > 1)
    return classes


@dataclass(frozen=True, slots=True)
class Goal:
    """A measure of a query, with its target and its class."""

    measure: Measure
    target: Target
    priority: Priority
