"""Plots of latency and memory over time, a curve for each strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway_experiments.intervals import Interval
from headway_experiments.mavstream.courses import courses, looks
from headway_experiments.mavstream.query import LABELS, OPTIMIZER, STRATEGIES
from headway_experiments.plots import line
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LATENCY, MEMORY = 1, 2
"""Places in a look."""


def draw_course(
    axes: Axes,
    rows: Rows,
    what: int,
    interval: float,
    strategies: Sequence[str] = (*STRATEGIES, OPTIMIZER),
) -> None:
    """Draw latency or memory over intervals of so many seconds, as means over seeds.

    Intervals of two runs are so wide that they would hide the curves: error bars begin with three.
    """
    for at, name in enumerate(strategies):
        found = [looks(course, interval) for course in courses(rows, strategy=name).values()]
        ends = [look[0] for look in found[0]]
        means = [Interval.of([look[what] for some in found for look in some if look[0] == end]) for end in ends]
        line(axes, at, LABELS[name], ends, means if len(found) > 2 else [one.mean for one in means])


def draw_target(axes: Axes, value: float, text: str, begin: float, end: float) -> None:
    """Draw a target between two moments as a grey line, with a few words above its end; axes begin at 0."""
    axes.plot([begin, end], [value, value], color="#666666", linewidth=1.0)
    axes.annotate(text, (end, value), (0, 3), textcoords="offset points", ha="right", fontsize=8, color="#555555")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
