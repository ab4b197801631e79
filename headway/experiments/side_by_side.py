"""The plot of a comparison: a bar for each policy, a panel for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headway.experiments.comparing import Figures
from headway.experiments.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, FRAME = 11.0, 0.34, 1.5
"""Inches: of the whole plot, of a bar, and of what is above and below."""
_SPREAD = 30
"""If the largest bar is so many times the smallest, an axis is logarithmic."""
_EMPTY = 1e-9


class Panel(NamedTuple):
    """One of the figures: its title, its unit with a factor, and the name of a second one that is drawn as a mark."""

    title: str
    unit: str
    name: str
    factor: float = 1.0
    mark: str = ""
    mark_label: str = ""
    logarithmic: bool = False


PANELS = (
    Panel("Utility", "mean over outputs", "utility", mark="worst", mark_label="worst output"),
    Panel("Latency", "ms, mean", "latency", 1e3, "p99", "99 % quantile", True),
    Panel("Memory", "kB in queues, mean", "queued", 1e-3, "peak", "most", True),
    Panel("Throughput", "results per second", "throughput"),
    Panel("Overhead", "% of the time", "overhead", 100),
)


def size(policies: int, groups: int) -> tuple[float, float]:
    """Return the size of the plot, in inches."""
    return WIDTH, FRAME + ROW * policies * (1 if groups == 1 else 1.6)


def draw(figure: Figure, groups: Sequence[tuple[str, Sequence[Figures]]], chosen: str) -> None:
    """Draw groups of figures (predicted, measured) side by side; the chosen policy is marked by an arrow."""
    policies = list(dict.fromkeys(one.policy for _, some in groups for one in some))
    graded = any(one.utility is not None for _, some in groups for one in some)
    shown = [panel for panel in PANELS if graded or panel.name != "utility"]
    axes = list(figure.subplots(1, len(shown), sharey=True, squeeze=False)[0])
    for panel, one in zip(shown, axes, strict=True):
        _panel(one, panel, groups, policies)
    first = axes[0]
    first.set_yticks(range(len(policies)), [f"➤ {name}" if name == chosen else name for name in policies])
    first.set_ylim(len(policies) - 0.4, -0.6)
    for label, name in zip(first.get_yticklabels(), policies, strict=True):
        if name == chosen:
            label.set_fontweight("bold")
    if len(groups) > 1:
        handles = [first.containers[at] for at in range(len(groups))]
        figure.legend(handles, [name for name, _ in groups], loc="outside lower center", ncols=len(groups))


def _panel(axes: Axes, panel: Panel, groups: Sequence[tuple[str, Sequence[Figures]]], policies: Sequence[str]) -> None:
    height = 0.7 / len(groups)
    seen: list[float] = []
    for at, (_, some) in enumerate(groups):
        known = {one.policy: one for one in some}
        places = [place + (at - (len(groups) - 1) / 2) * height for place in range(len(policies))]
        values = [_value(known.get(name), panel.name, panel.factor) for name in policies]
        axes.barh(places, values, height * 0.9, color=COLOURS[at], hatch="//" if at else None, edgecolor="white")
        seen += values
        if panel.mark:
            marks = [_value(known.get(name), panel.mark, panel.factor) for name in policies]
            axes.plot(marks, places, "D", color="black", markersize=3.5, clip_on=False, zorder=3)
            seen += marks
    positive = [value for value in seen if value > _EMPTY]
    if panel.logarithmic and positive and max(positive) > _SPREAD * min(positive):
        axes.set_xscale("log")
        axes.set_xlim(left=min(positive) / 2)
        axes.xaxis.set_major_formatter("{x:,g}")
    else:
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=4)
    if panel.name == "utility":
        axes.set_xlim(0, 1.02)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.unit + (f"\n◆ {panel.mark_label}" if panel.mark else ""), fontsize=8)
    axes.tick_params(axis="x", labelsize=7.5)
    axes.grid(visible=False, axis="y")


def _value(one: Figures | None, name: str, factor: float) -> float:
    value = None if one is None else getattr(one, name)
    return float("nan") if value is None else factor * float(value)
