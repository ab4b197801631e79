"""Figures 9 and 10: how many leaves of a tree are dear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.checks import Check, less
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.prb.drawing import draw_pair
from headway_experiments.prb.judging import below, reductions, responses_steps, steps, table
from headway_experiments.prb.plans import DEPTH, LOAD, Levels, path_costs, tree_costs, tree_row
from headway_experiments.prb.theory import preemptive_rate_based
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEAR = 100.0
NUMBERS = (1, 2, 4, 8, 16, 32)
MANY = 4


def tasks(quick: bool) -> list[Task]:
    """Return all runs."""
    numbers, seeds, tuples = ((1, 8, 32), 2, 150) if quick else (NUMBERS, 5, 700)
    return [
        {"number": number, "policy": policy, "seed": seed, "tuples": tuples}
        for number in numbers
        for policy in ("RB", "PRB")
        for seed in range(1, seeds + 1)
    ]


def costs(seed: int, number: int) -> Levels:
    """Return what the operators of a tree cost whose first leaves, so many, are dear."""
    return tree_costs(seed, {(DEPTH, place): DEAR for place in range(number)})


def expected(seed: int, number: int) -> float:
    """Return PRB's mean response time in the long run: it serves the shortest remaining time first."""
    return preemptive_rate_based(path_costs(costs(seed, number)), LOAD)


def measure(task: Task) -> list[Row]:
    """Run one tree."""
    levels = costs(task["seed"], task["number"])
    return [tree_row(levels, task["policy"], task["tuples"], task["seed"], number=task["number"])]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    reduced = reductions(rows, "number")
    numbers = reduced.levels("number")
    best = max(numbers[1:-1], key=lambda number: reduced.where(number=number).mean("reduction").mean)
    up, down = ([one for one in numbers if one <= best], [one for one in numbers if one >= best])
    many = [one for one in numbers if one >= MANY]
    second = Interval.of([expected(seed, 2) / expected(seed, 1) for seed in rows.levels("seed")])
    return [
        below("rb", "PRB is below RB at every number", rows, "number", "PRB", "RB"),
        responses_steps("grows", "Response times grow with the number of dear operators", rows, "number", numbers,
                        up=True),
        responses_steps("many", f"Response times grow with each step from {MANY} dear operators on", rows, "number",
                        many, up=True),
        less("few", "By queueing theory, PRB's response time in the long run is shorter with 2 dear operators than "
             "with 1", second, 1, "2 dear/1 dear"),
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
    """Return the numbers, with those of theory."""
    seeds = rows.levels("seed")
    wanted = ", ".join(
        f"{sum(expected(seed, number) for seed in seeds) / len(seeds):.0f} with {number}" for number in NUMBERS
    )
    return (
        f"{table(rows, 'number', 'dear operators')}\n\n"
        f"PRB's response time by queueing theory for the same plans in the long run: {wanted}. PRB serves whoever has "
        "least left of the whole path, so that Schrage and Miller's formula holds for trees, too."
    )


register("prb-fig9", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
