"""How the figures on AMoS are drawn: values over time, or side by side as shares of the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway_experiments.amos.judging import costs, of_mean
from headway_experiments.amos.plans import LABELS, OBJECTIVES, SINGLES, SPAN
from headway_experiments.intervals import Interval
from headway_experiments.plots import COLOURS, finish, line
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCHES = ("", "///", "\\\\\\", "...", "", "xxx")
QUANTITIES = {
    "latency": "latency of results (s)",
    "queue": "waiting tuples",
    "throughput": "results per second",
}


def over_time(axes: Axes, rows: Rows, plan: str, column: str, amos: Mapping[str, str], legend: bool) -> None:
    """Draw the mean over seeds in each second, of the single algorithms and of AMoS (by objective, its label)."""
    labels = {**LABELS, **amos}
    for at, (policy, label) in enumerate(labels.items()):
        xs, means = rows.where(plan=plan, policy=policy, what="second").curve("time", column)
        more = {"linewidth": 2.2} if policy in amos else {}
        line(axes, at, label, xs, [mean.mean for mean in means], **more)
    axes.axvspan(SPAN, 2 * SPAN, color="#eeeeee", zorder=0, label="burst")
    axes.set_xlim(left=0)
    finish(axes, "time (s)", QUANTITIES[column], plan, legend)


def side_by_side(
    axes: Axes, rows: Rows, plan: str, columns: Sequence[str], objectives: Sequence[str], amos: Mapping[str, str]
) -> None:
    """Draw bars: by column, and by overall cost for each objective, the shares of the mean of single algorithms."""
    labels = {**{single: LABELS[single] for single in SINGLES}, **amos}
    width = 0.8 / len(labels)
    for at, (policy, label) in enumerate(labels.items()):
        shares: list[Interval] = [of_mean(rows, plan, policy, column) for column in columns]
        shares += [costs(rows, plan, policy, OBJECTIVES[wanted]).mean("cost") for wanted in objectives]
        places = [group + (at - (len(labels) - 1) / 2) * width for group in range(len(shares))]
        reaches = [share.reach if share.reach < float("inf") else 0.0 for share in shares]
        axes.bar(
            places,
            [share.mean for share in shares],
            width,
            yerr=reaches,
            label=label,
            color=COLOURS[at % len(COLOURS)],
            hatch=HATCHES[at % len(HATCHES)],
            edgecolor="white",
            error_kw={"elinewidth": 0.8, "capsize": 2},
        )
    names = {"latency": "latency", "queue": "queue", "throughput": "output rate\n(more is better)"}
    costly = [f"overall cost\n{wanted}" for wanted in objectives]
    axes.set_xticks(range(len(columns) + len(objectives)), [names[column] for column in columns] + costly)
    axes.axhline(1, color="#555555", linewidth=0.8, linestyle=":")
    axes.grid(visible=False, axis="x")
    finish(axes, "", "share of the mean of RR, FIFO, MTIQ, Chain", plan, legend=False)
