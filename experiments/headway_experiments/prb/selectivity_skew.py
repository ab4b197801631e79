"""Figures 5 and 6: what preemption is worth where the operators' selectivities are skewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.prb.drawing import draw_pair
from headway_experiments.prb.judging import below, reductions, steps, table
from headway_experiments.prb.plans import RANKS, merged_streams, ranks, run_units, stream_draws
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SKEWS = (0.0, 0.3, 0.5, 0.7, 0.9)
COST = 100


def tasks(quick: bool) -> list[Task]:
    """Return all runs."""
    skews = (SKEWS[0], SKEWS[-1]) if quick else SKEWS
    seeds, tuples = (3, 500) if quick else (10, 1000)
    return [
        {"skew": skew, "policy": policy, "seed": seed, "tuples": tuples}
        for policy in ("RB", "PRB")
        for skew in skews
        for seed in range(1, seeds + 1)
    ]


def measure(task: Task) -> list[Row]:
    """Run one plan."""
    selectivities = [rank / RANKS for rank in ranks(stream_draws(task["seed"]), task["skew"])]
    network = merged_streams([COST] * len(selectivities), selectivities, task["tuples"], task["seed"])
    return [{**task, **run_units(network, task["policy"])}]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    reduced = reductions(rows, "skew")
    return [
        below("rb", "PRB is below RB at every skew", rows, "skew", "PRB", "RB"),
        steps("grows", "The reduction grows with the skew", reduced, "reduction", "skew", reduced.levels("skew")),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Draw both figures."""
    draw_pair(rows, figure, "skew", "skew of selectivities (Zipf parameter)")


def notes(rows: Rows) -> str:
    """Return the numbers."""
    return table(rows, "skew", "Zipf")


register("prb-fig5", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
