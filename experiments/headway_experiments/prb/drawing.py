"""The paper's pairs of figures: response times, and beside them the reduction by PRB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.plots import finish, line, panels
from headway_experiments.prb.judging import reductions
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"RB": "RB, rate-based", "PRB": "PRB, preemptive", "RR": "RR, round robin", "FIFO": "FIFO"}
"""By policy, in the order of colours and markers: each policy looks the same in all figures."""


def common(rows: Rows, x: str) -> tuple[Rows, int]:
    """Return the runs of those seeds that every policy has at every level of its own, and how many seeds these are."""
    seeds: dict[tuple[object, object], set[object]] = {}
    for row in rows:
        seeds.setdefault((row["policy"], row[x]), set()).add(row["seed"])
    shared = set.intersection(*seeds.values())
    return Rows(row for row in rows if row["seed"] in shared), len(shared)


def draw_responses(axes: Axes, rows: Rows, x: str, label: str) -> None:
    """Draw the response times of all policies over `x`, as means over the same plans.

    Without error bars: they would show how much plans differ, which is far more than policies do on one plan.
    """
    kept, plans = common(rows, x)
    for at, (policy, name) in enumerate(NAMES.items()):
        if policy in rows.levels("policy"):
            levels, means = kept.where(policy=policy).curve(x, "response")
            line(axes, at, name, levels, [one.mean for one in means])
    finish(axes, label, "mean response time (units)", f"means over {plans} plans")


def draw_pair(rows: Rows, figure: Figure, x: str, label: str) -> tuple[Axes, Axes]:
    """Draw response times on the left and reductions on the right; return both axes, for what else belongs there."""
    left, right = panels(figure, 2)
    draw_responses(left, rows, x, label)
    line(right, 4, "simulated", *reductions(rows, x).curve(x, "reduction"))
    finish(right, label, "reduction by PRB against RB (%)", "paired by plan, all plans", legend=False)
    return left, right
