"""Plots for print, and the plot of a comparison: a row for each policy, a panel for each figure.

Colours are safe for colour-blind readers. Values are dots instead of bars, because bars must start at 0: so axes can be
logarithmic, and policies that differ by orders of magnitude can be compared; each dot has its value beside it.
Matplotlib is imported only when something is drawn: it is slow to load, and most commands draw nothing.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.compare.figures import Figures
from headway.extras import need_extra
from headway.paths import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#8C564B")
"""Based on Okabe and Ito's palette, distinguishable for nearly everyone, and in greyscale."""
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
WIDTH, ROW, FRAME = 14.0, 0.36, 1.9
"""Inches: the width of the plot, the height of a row, and the height of the space above and below the rows."""
_SPREAD = 30
"""The ratio of the largest to the smallest value above which an axis is logarithmic."""
_EMPTY = 1e-9
_DOTS, _VALUE, _MARK = 0.55, 0.75, 0.99
"""Where the dots and the two columns of values end, as shares of a panel's width."""
_SHAPES = "os"
"""The shapes of dots by group: predicted, measured."""


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure in our style; needs no display."""
    need_extra("plots", "a plot")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # its messages about its font cache are noise
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update(STYLE)
    return Figure(figsize=size, layout="constrained")


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write `stem`.png and `stem`.svg, each atomically; return their paths."""
    written = []
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        path = stem.with_name(f"{stem.name}.{kind}")
        with whole(path, "plot") as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
        written.append(path)
    return written[0], written[1]


class Panel(NamedTuple):
    """The layout of a figure: title, unit with its factor, and the name of a second figure that is drawn as a mark."""

    title: str
    unit: str
    name: str
    factor: float = 1.0
    mark: str = ""
    mark_label: str = ""
    logarithmic: bool = False
    most: float | None = None
    """The upper bound of values, if there is one."""


PANELS = (
    Panel("Utility", "mean over outputs", "utility", mark="worst", mark_label="worst output", most=1.0),
    Panel("Latency", "ms, mean", "latency", 1e3, "p99", "99 % quantile", True),
    Panel("Memory", "kB in queues, mean", "queued", 1e-3, "peak", "most", True),
    Panel("Throughput", "results per second", "throughput"),
    Panel("Overhead", "% of the processors' time", "overhead", 100, most=100.0),
)


class _Row(NamedTuple):
    """A policy's values in a panel, and their position."""

    group: int
    place: float
    value: float
    mark: float


def size(policies: int, groups: int) -> tuple[float, float]:
    """Return the size of the plot, in inches."""
    return WIDTH, FRAME + ROW * policies * (1 if groups == 1 else 1.6)


def draw(figure: Figure, groups: Sequence[tuple[str, Sequence[Figures]]], chosen: str, title: str) -> None:
    """Draw groups of figures (predicted, measured) with a title; an arrow marks the chosen policy."""
    policies = list(dict.fromkeys(one.policy for _, some in groups for one in some))
    graded = any(one.utility is not None for _, some in groups for one in some)
    shown = [panel for panel in PANELS if graded or panel.name != "utility"]
    axes = list(figure.subplots(1, len(shown), sharey=True, squeeze=False)[0])
    for panel, one in zip(shown, axes, strict=True):
        _panel(one, panel, _rows(panel, groups, policies), len(groups))
    first = axes[0]
    first.set_yticks(range(len(policies)), [f"➤ {name}" if name == chosen else name for name in policies])
    first.set_ylim(len(policies) - 0.4, -0.6)
    first.set_ylabel("policy")
    for label, name in zip(first.get_yticklabels(), policies, strict=True):
        if name == chosen:
            label.set_fontweight("bold")
    figure.suptitle(title, fontsize=11)
    if len(groups) > 1:
        names = [name for name, _ in groups]
        figure.legend(first.lines[: len(groups)], names, loc="outside lower center", ncols=len(groups))


def _rows(panel: Panel, groups: Sequence[tuple[str, Sequence[Figures]]], policies: Sequence[str]) -> list[_Row]:
    rows = []
    for at, (_, some) in enumerate(groups):
        known = {one.policy: one for one in some}
        shift = (at - (len(groups) - 1) / 2) * 0.7 / len(groups)
        for place, name in enumerate(policies):
            if name in known:
                value = _value(known[name], panel.name, panel.factor)
                mark = _value(known[name], panel.mark, panel.factor) if panel.mark else math.nan
                rows.append(_Row(at, place + shift, value, mark))
    return rows


def _panel(axes: Axes, panel: Panel, rows: Sequence[_Row], groups: int) -> None:
    _scale(axes, panel, [one for row in rows for one in (row.value, row.mark) if math.isfinite(one)])
    for at in range(groups):  # before all other lines: the legend uses the first ones
        own = [row for row in rows if row.group == at]
        values, places = [_inside(axes, row.value) for row in own], [row.place for row in own]
        axes.plot(values, places, _SHAPES[at % 2], color=COLOURS[at], markersize=6, clip_on=False, zorder=4)
    for row in rows:
        colour = COLOURS[row.group]
        if math.isfinite(row.mark):
            ends = [_inside(axes, row.value), _inside(axes, row.mark)]
            axes.plot(ends, [row.place] * 2, "-", color=colour, linewidth=1, zorder=2)
            style: Any = {"markerfacecolor": "white", "markersize": 4.5, "clip_on": False, "zorder": 3}
            axes.plot(ends[1:], [row.place], "D", color=colour, **style)
        beside: Any = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "fontsize": 7.5}
        axes.text(_VALUE if panel.mark else _MARK, row.place, _text(row.value), color=colour, **beside)
        if panel.mark:
            axes.text(_MARK, row.place, f"◇ {_text(row.mark)}", color=colour, **beside)
    axes.set_title(panel.title, fontsize=9.5)
    axes.set_xlabel(panel.unit + (f"\n◇ {panel.mark_label}" if panel.mark else "\n"), fontsize=8)
    axes.tick_params(axis="x", labelsize=7.5)
    axes.grid(visible=True, axis="y", linestyle=":")


def _scale(axes: Axes, panel: Panel, seen: Sequence[float]) -> None:
    """Scale an axis so that the dots end where the columns of values begin; there are no ticks beyond."""
    positive = [value for value in seen if value > _EMPTY]
    if panel.logarithmic and positive and max(positive) > _SPREAD * min(positive):
        low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
        axes.set_xscale("log")
        axes.set_xlim(10.0**low / 1.5, 10 ** (low + (high - low) / _DOTS))
        axes.set_xticks([10.0**power for power in range(low, high + 1, max(1, math.ceil((high - low) / 3)))])
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: _text(value))
        return
    most = panel.most or max(positive, default=1.0)
    axes.set_xlim(-0.02 * most, most / _DOTS)
    ticks = [0.0, most / 2, most] if panel.most else [tick for tick in axes.get_xticks() if 0 <= tick <= 1.01 * most]
    axes.set_xticks(ticks[:: max(1, len(ticks) // 3)])
    axes.xaxis.set_major_formatter(lambda value, _: _text(value))


def _inside(axes: Axes, value: float) -> float:
    """Limit a value to the axis: a logarithmic one has no 0, and dots outside would shrink the axes."""
    low, high = axes.get_xlim()
    return min(max(value, low), high) if math.isfinite(value) else value


def _value(one: Figures, name: str, factor: float) -> float:
    value = getattr(one, name)
    return math.nan if value is None else factor * float(value)


def _text(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
