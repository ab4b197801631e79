"""Figure 6 for real: min-cost against min-latency traversals with the overheads that the engine `local` has.

Nothing is modelled here but the work on tuples: a universal box burns its cost. What a call costs beside it, and what
it costs to find the order of calls, is what it is. The medians of many superbox runs are compared, because a machine
that does other things now and then makes some runs much longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway_experiments import checks, plots
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.application_trees import OUTPUT, groups, run_tree
from headway_experiments.scheduling.figure6 import TRAVERSALS, crossings, leaves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAN_OUT, DEPTH = 3, 3
COSTS = (0.003, 0.01, 0.03, 0.1, 0.3)
QUICK_COSTS = (0.003, 0.03, 0.3)
"""Milliseconds per tuple and box."""
PAUSE = 0.02
"""Seconds between the tuples of a round and the next ones, beside four times the work on them: runs must not meet."""


def _tasks(quick: bool) -> Sequence[Task]:
    return [
        {"cost": cost, "traversal": name, "seed": seed, "rounds": 6 if quick else 10}
        for seed in range(1, 3 if quick else 7)
        for cost in (QUICK_COSTS if quick else COSTS)
        for name in TRAVERSALS
    ]


def _measure(task: Task) -> Sequence[Row]:
    cost = task["cost"] / 1000
    every = PAUSE + 4 * leaves(DEPTH, FAN_OUT) * DEPTH * cost
    tries = [
        run_tree(
            DEPTH,
            FAN_OUT,
            lambda level, place: {"cost": cost},
            lambda place: groups(1, every, task["rounds"]),
            "local",
            f"round-robin/superbox/{task['traversal']}",
        )
        for _ in range(2)
    ]
    # Other work on the machine only ever adds, so the better of both is nearer to what we ask.
    return [{**task, "latency": min(float(one.summary["outputs"][OUTPUT]["latency"]["p50"]) for one in tries)}]


def _ratio(rows: Rows, cost: float) -> Interval:
    """Return min-latency's latency over min-cost's."""
    return rows.where(cost=cost, traversal="ml").ratio("latency", rows.where(cost=cost, traversal="mc"))


def _crossings(rows: Rows) -> list[float]:
    """Return the costs at which the ratio of latencies passes 1; costs lie evenly on a logarithmic scale."""
    costs = rows.levels("cost")
    passed = crossings([math.log(cost) for cost in costs], [_ratio(rows, cost).mean - 1 for cost in costs])
    return [math.exp(one) for one in passed]


def _check(rows: Rows) -> Sequence[Check]:
    costs = rows.levels("cost")
    low, high = costs[0], costs[-1]
    crossed = _crossings(rows)
    return [
        checks.more("mc-small", "At the smallest cost min-cost wins.", _ratio(rows, low), 1, f"ML / MC at {low:g} ms"),
        checks.less(
            "ml-large", "At the largest cost min-latency wins.", _ratio(rows, high), 1, f"ML / MC at {high:g} ms"
        ),
        Check(
            "one-crossing",
            "The curves cross once.",
            len(crossed) == 1,
            "at " + (", ".join(f"{cost:.3f} ms" for cost in crossed) or "no cost"),
        ),
        *(
            checks.more(
                f"{name}-rises",
                f"{label} gets worse with the cost, from the smallest to the largest.",
                rows.where(cost=high, traversal=name).ratio("latency", rows.where(cost=low, traversal=name)),
                1,
                "times as long",
            )
            for name, label in TRAVERSALS.items()
        ),
    ]


def _draw(rows: Rows, figure: Figure) -> None:
    (axes,) = plots.panels(figure, 1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for at, (name, label) in enumerate(TRAVERSALS.items()):
        costs, means = rows.where(traversal=name).curve("cost", "latency")
        plots.line(axes, at, label, costs, [Interval(one.mean * 1000, one.reach * 1000) for one in means])
    axes.set_xticks(costs, [f"{cost:g}" for cost in costs])
    axes.minorticks_off()
    ticks = [1, 2, 5, 10, 20]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    plots.finish(axes, "cost per tuple and box (ms)", "median latency (ms)")


EXPERIMENT = register(
    "scheduling-fig6-local", engine="local", tasks=_tasks, measure=_measure, check=_check, draw=_draw, size=(5.4, 3.6)
)
