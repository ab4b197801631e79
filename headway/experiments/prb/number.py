"""Figures 9 and 10: how many leaves of a tree are dear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.experiments.base import Experiment, Task, register
from headway.experiments.checks import Check
from headway.experiments.prb.drawing import draw_pair
from headway.experiments.prb.judging import below, reductions, responses_steps, steps, table
from headway.experiments.prb.plans import DEPTH, tree_costs, tree_row
from headway.experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEAR = 100.0
NUMBERS = (1, 2, 4, 8, 16, 32)


def tasks(quick: bool) -> list[Task]:
    """Return all runs."""
    numbers, seeds, tuples = ((1, 8, 32), 2, 150) if quick else (NUMBERS, 5, 700)
    return [
        {"number": number, "policy": policy, "seed": seed, "tuples": tuples}
        for number in numbers
        for policy in ("RB", "PRB")
        for seed in range(1, seeds + 1)
    ]


def measure(task: Task) -> list[Row]:
    """Run one tree, whose first leaves are dear."""
    levels = tree_costs(task["seed"], {(DEPTH, place): DEAR for place in range(task["number"])})
    return [tree_row(levels, task["policy"], task["tuples"], task["seed"], number=task["number"])]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    reduced = reductions(rows, "number")
    numbers = reduced.levels("number")
    best = max(numbers[1:-1], key=lambda number: reduced.where(number=number).mean("reduction").mean)
    up, down = ([one for one in numbers if one <= best], [one for one in numbers if one >= best])
    return [
        below("rb", "PRB is below RB at every number", rows, "number", "PRB", "RB"),
        responses_steps("grows", "Response times grow with the number of dear operators", rows, "number", numbers,
                        up=True),
        steps("rises", "With few dear operators, each more makes the reduction greater", reduced, "reduction",
              "number", up),
        steps("sinks", "With many, each more makes it smaller", reduced, "reduction", "number", down, up=False),
    ]  # fmt: skip


def draw(rows: Rows, figure: Figure) -> None:
    """Draw both figures; numbers double, so their axis is logarithmic."""
    for axes in draw_pair(rows, figure, "number", "number of dear operators (of 64 leaves)"):
        axes.set_xscale("log", base=2)
        axes.set_xticks(NUMBERS, [str(one) for one in NUMBERS])
        axes.minorticks_off()


def notes(rows: Rows) -> str:
    """Return the numbers."""
    return table(rows, "number", "dear operators")


register(
    Experiment(
        name="prb-fig9",
        aliases=("prb-fig10",),
        paper="prb",
        figures=("figure 9", "figure 10"),
        title="RB and PRB over the number of dear operators",
        claim="Response times grow with the number of dear leaves. The reduction by PRB first grows, because more "
        "steps can be in the way of cheap tuples, and then falls, because fewer tuples are cheap.",
        setting=(
            "A tree of depth 6 and fan-out 2: 127 operators, 64 streams.",
            "Operators cost 1 to 10 units, all alike; 1 to 32 of the leaves cost 100. Selectivity 1.",
            "Poisson arrivals, the same rate at all streams, utilisation 0.9.",
        ),
        chosen=(
            "A unit is a millisecond. Costs are whole units. Operators with two inputs take tuples as they come.",
            "The left-most leaves are the dear ones.",
            "5 runs of 700 tuples for each point: every seed draws other costs.",
        ),
        engine="sim",
        tasks=tasks,
        measure=measure,
        check=check,
        draw=draw,
        size=(9, 3.6),
        notes=notes,
    )
)
