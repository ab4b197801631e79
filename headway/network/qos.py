"""QoS graphs: the utility of results that are late, lost or of certain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.columns import Floats
from headway.errors import NetworkError, finite


@dataclass(frozen=True)
class Graph:
    """A piecewise-linear utility function, constant before the first and after the last point."""

    points: tuple[tuple[float, float], ...]
    _xs: Floats = field(init=False, repr=False, compare=False)
    _ys: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Cache the points as arrays, to evaluate whole trains at once."""
        object.__setattr__(self, "_xs", np.array([x for x, _ in self.points], np.float64))
        object.__setattr__(self, "_ys", np.array([y for _, y in self.points], np.float64))

    @classmethod
    def parse(cls, points: object, where: str, descending: bool = False) -> Graph:
        """Parse ``[[0, 1], [2, 1], [10, 0]]``; `descending` also allows x to go down from 100 per cent."""
        if not isinstance(points, Sequence) or isinstance(points, str) or not points:
            raise NetworkError(
                f"{where}: a QoS graph is a list of points such as [[0, 1], [2, 1], [10, 0]], not {points!r}"
            )
        pairs = [_point(point, where) for point in points]
        if descending and len(pairs) > 1 and pairs[0][0] > pairs[-1][0]:
            pairs.reverse()
        xs = [x for x, _ in pairs]
        if any(b <= a for a, b in pairwise(xs)):
            raise NetworkError(f"{where}: the points of a QoS graph must have ascending x, got {xs}")
        for x, y in pairs:
            if not 0 <= y <= 1:
                raise NetworkError(f"{where}: utility {y:g} at {x:g} is outside of 0 to 1")
        return cls(tuple(pairs))

    def value(self, x: float) -> float:
        """Return the utility at x."""
        return float(np.interp(x, self._xs, self._ys))

    def values(self, xs: npt.NDArray[Any]) -> Floats:
        """Return the utilities at many values of x."""
        utilities: Floats = np.interp(xs, self._xs, self._ys)
        return utilities

    @property
    def critical_points(self) -> tuple[float, ...]:
        """The x values of inner points where the slope changes."""
        slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(self.points)]
        inner = self.points[1:-1]
        return tuple(x for (x, _), left, right in zip(inner, slopes, slopes[1:], strict=False) if left != right)

    @property
    def good_until(self) -> float:
        """The largest x with the highest utility, the end of the good zone; infinite if the graph ends there."""
        best = max(y for _, y in self.points)
        if self.points[-1][1] == best:
            return float("inf")
        return max(x for x, y in self.points if y == best)


@dataclass(frozen=True, slots=True)
class ValueGraph:
    """The utility of a result as a function of the value of one of its fields."""

    field: str
    graph: Graph


@dataclass(frozen=True, slots=True)
class QoS:
    """The utility of an output's results: by latency in seconds, by per cent delivered, and by value."""

    latency: Graph | None = None
    loss: Graph | None = None
    value: ValueGraph | None = None


def doubts(qos: QoS) -> list[str]:
    """Return warnings about graphs that are valid but probably unintended."""
    found = []
    if qos.loss is not None and 0 < qos.loss.points[-1][0] <= 1:
        found.append(
            "loss: x is the per cent of tuples delivered, 100 for all of them, and the largest here is "
            f"{qos.loss.points[-1][0]:g}"
        )
    graphs = (("latency", qos.latency), ("loss", qos.loss), ("value", qos.value.graph if qos.value else None))
    for name, graph in graphs:
        if graph is not None and len(graph.points) == 1:
            found.append(f"its {name} graph has one point: every result is worth the same, {graph.points[0][1]:g}")
    for (x0, y0), (x1, y1) in pairwise(qos.latency.points if qos.latency else ()):
        if y1 > y0:
            found.append(
                f"its latency graph rises, from {y0:g} at {x0:g} s to {y1:g} at {x1:g} s: later results would be worth "
                "more; a point is [seconds, utility]"
            )
            break
    for (x0, y0), (x1, y1) in pairwise(qos.loss.points if qos.loss else ()):
        if y1 < y0:
            found.append(
                f"its loss graph falls, from {y0:g} at {x0:g} % to {y1:g} at {x1:g} % delivered: less would be worth "
                "more; a point is [per cent delivered, utility]"
            )
            break
    return found


def _point(point: object, where: str) -> tuple[float, float]:
    if (
        isinstance(point, Iterable)
        and not isinstance(point, str)
        and len(pair := list(point)) == 2
        and all(finite(number) is not None for number in pair)
    ):
        return float(pair[0]), float(pair[1])
    raise NetworkError(f"{where}: a point of a QoS graph is [x, utility] with two numbers, not {point!r}")
