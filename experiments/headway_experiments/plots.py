"""Curves that can be read in print: colours for the colour-blind, markers and dashes for black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.compare.plots import COLOURS as COLOURS
from headway_experiments.intervals import Interval
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX*"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))


def panels(figure: Figure, count: int, **settings: Any) -> list[Axes]:
    """Return so many axes side by side."""
    return list(figure.subplots(1, count, squeeze=False, **settings)[0])


def line(
    axes: Axes, at: int, label: str, xs: Sequence[float], means: Sequence[Interval] | Sequence[float], **more: Any
) -> None:
    """Draw curve number `at` of a plot, with error bars where means have intervals; finite ones only."""
    style: dict[str, Any] = {
        "color": COLOURS[at % len(COLOURS)],
        "marker": MARKERS[at % len(MARKERS)],
        "linestyle": DASHES[at % len(DASHES)],
        "label": label,
        **more,
    }
    ys = [value.mean if isinstance(value, Interval) else value for value in means]
    reaches = [value.reach if isinstance(value, Interval) and value.reach < float("inf") else 0.0 for value in means]
    if any(reaches):
        axes.errorbar(xs, ys, yerr=reaches, capsize=2, elinewidth=0.8, **style)
    else:
        axes.plot(xs, ys, **style)


def curves(axes: Axes, rows: Rows, x: str, column: str, by: str, labels: Mapping[Any, str] | None = None) -> None:
    """Draw the mean of a column over `x`, a curve for each level of `by`."""
    for at, level in enumerate(rows.levels(by)):
        xs, means = rows.where(**{by: level}).curve(x, column)
        line(axes, at, (labels or {}).get(level, str(level)), xs, means)


def finish(axes: Axes, x: str, y: str, title: str = "", legend: bool = True, zero: bool = True) -> None:
    """Label axes (with units), and let the y-axis begin at 0 unless it is logarithmic."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize=9)
    if zero and axes.get_yscale() == "linear" and axes.get_ylim()[0] > 0:
        axes.set_ylim(bottom=0)
    if legend:
        axes.legend()
