"""Figures 7 and 8: where in a tree the dear operator stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.prb.drawing import draw_pair
from headway_experiments.prb.judging import below, reductions, responses_steps, steps, table
from headway_experiments.prb.plans import DEPTH, tree_costs, tree_row
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEAR = 100.0
BEST = 4
"""The depth at which the paper sees the greatest reduction."""


def tasks(quick: bool) -> list[Task]:
    """Return all runs; more where reductions are close to each other."""
    depths, near, tuples = ((1, BEST, DEPTH), 2, 150) if quick else (tuple(range(DEPTH + 1)), 10, 1000)
    return [
        {"depth": depth, "policy": policy, "seed": seed, "tuples": tuples}
        for depth in depths
        for policy in ("RB", "PRB")
        for seed in range(1, 1 + (near if quick or depth >= 3 else 3))
    ]


def measure(task: Task) -> list[Row]:
    """Run one tree, with the dear operator on the left-most path."""
    levels = tree_costs(task["seed"], {(task["depth"], 0): DEAR})
    return [tree_row(levels, task["policy"], task["tuples"], task["seed"], depth=task["depth"])]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    reduced = reductions(rows, "depth")
    depths = reduced.levels("depth")
    up, down = ([one for one in depths if one <= BEST], [one for one in depths if one >= BEST])
    return [
        below("rb", "PRB is below RB at every depth", rows, "depth", "PRB", "RB"),
        responses_steps("shared", f"Response times fall from depth to depth up to {BEST}", rows, "depth", up, up=False),
        responses_steps("falls", "Response times are lower at depth 6 than at the least", rows, "depth",
                        (depths[0], depths[-1]), up=False),
        steps("rises", f"The reduction grows from depth to depth up to {BEST}", reduced, "reduction", "depth", up),
        steps("sinks", f"The reduction falls from depth to depth after {BEST}", reduced, "reduction", "depth", down,
              up=False),
    ]  # fmt: skip


def draw(rows: Rows, figure: Figure) -> None:
    """Draw both figures."""
    for axes in draw_pair(rows, figure, "depth", "depth of the dear operator (0: root, 6: leaf)"):
        axes.set_xticks(range(DEPTH + 1))


def notes(rows: Rows) -> str:
    """Return the numbers."""
    return table(rows, "depth", "depth")


register("prb-fig7", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
