"""Plots that can be read in print: colours for the colour-blind, markers and dashes for black and white.

Matplotlib is imported when something is drawn, not before: it is slow to load, and most commands draw nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.experiments.intervals import Interval
from headway.experiments.rows import Rows
from headway.extras import need_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#8C564B")
"""Okabe and Ito's palette, told apart by nearly everybody, and in greys."""
MARKERS = "osD^vPX*"
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)))
STYLE: Any = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "svg.hashsalt": "headway",
    "savefig.dpi": 150,
}


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure in our style, which needs no display."""
    need_extra("plots", "a plot")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # nobody needs to hear where it keeps its fonts
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(STYLE)
    return Figure(figsize=size, layout="constrained")


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


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write `stem`.png and `stem`.svg, each at once as a whole; return their paths."""
    written = []
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        path = stem.with_name(f"{stem.name}.{kind}")
        half = path.with_name(path.name + ".part")
        figure.savefig(half, format=kind, metadata=metadata)
        half.replace(path)
        written.append(path)
    return written[0], written[1]
