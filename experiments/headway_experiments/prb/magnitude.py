"""Figure 11: how dear the dear operator is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.checks import Check, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.plots import finish, line, panels
from headway_experiments.prb.drawing import draw_responses
from headway_experiments.prb.judging import below, reductions, steps, table
from headway_experiments.prb.plans import LIGHT, tree_costs, tree_row
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTH_OF_DEAR = 4
COSTS = (25, 100, 200, 300)
"""As in the paper: from 25 to 300 units."""
BEYOND = 600


def tasks(quick: bool) -> list[Task]:
    """Return all runs; beyond the paper's costs, and with a light top, only what round robin is compared with."""
    costs, seeds, tuples = ((COSTS[0], COSTS[-1]), 2, 100) if quick else (COSTS, 4, 500)
    settings = [(cost, "drawn", policy) for cost in costs for policy in ("RB", "PRB", "RR")]
    settings += [(BEYOND, "drawn", policy) for policy in ("RB", "RR")]
    settings += [(COSTS[-1], "light", policy) for policy in ("RB", "RR")]
    return [
        {"cost": cost, "top": top, "policy": policy, "seed": seed, "tuples": tuples}
        for cost, top, policy in settings
        for seed in range(1, seeds + 1)
    ]


def measure(task: Task) -> list[Row]:
    """Run one tree."""
    dear = {(DEPTH_OF_DEAR, 0): float(task["cost"]), **(LIGHT if task["top"] == "light" else {})}
    levels = tree_costs(task["seed"], dear)
    return [tree_row(levels, task["policy"], task["tuples"], task["seed"], cost=task["cost"], top=task["top"])]


def sliced(rows: Rows, cost: int, top: str = "drawn") -> Rows:
    """Return by seed the response time of RR as a part of that of RB."""
    other = {row["seed"]: float(row["response"]) for row in rows.where(policy="RB", cost=cost, top=top)}
    return Rows(
        {"cost": cost, "seed": row["seed"], "ratio": float(row["response"]) / other[row["seed"]]}
        for row in rows.where(policy="RR", cost=cost, top=top)
    )


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims, and under which other conditions that on RR holds."""
    drawn = rows.where(top="drawn")
    given = Rows(row for row in drawn if float(row["cost"]) <= COSTS[-1])
    reduced = reductions(given, "cost")
    costs = reduced.levels("cost")
    ratios = Rows(row for cost in (*costs, BEYOND) for row in sliced(drawn, cost))
    at = {cost: ratios.where(cost=cost).mean("ratio") for cost in (*costs, BEYOND)}
    light = sliced(rows, costs[-1], "light").mean("ratio")
    return [
        below("prb", "PRB is below RB at every cost", given, "cost", "PRB", "RB"),
        steps("grows", "The reduction by PRB grows with the cost", reduced, "reduction", "cost", costs),
        less("rr", "RR is below RB where the operator is dear (300 units)", at[costs[-1]], 1, "RR/RB"),
        more("rr-cheap", "RR is above RB where it is not (25 units)", at[costs[0]], 1, "RR/RB"),
        steps("closer", "The dearer the operator, the less RR is above RB", ratios, "ratio", "cost",
              (*costs, BEYOND), up=False),
        less("rr-dearer", f"RR is below RB at {BEYOND} units", at[BEYOND], 1, "RR/RB"),
        less("rr-light", "RR is below RB at 300 units if the root and its two children cost 1 unit each", light, 1,
             "RR/RB"),
    ]  # fmt: skip


def draw(rows: Rows, figure: Figure) -> None:
    """Draw the response times, and round robin against RB beyond the paper's costs."""
    left, right = panels(figure, 2)
    label = "cost of the dear operator (units)"
    drawn = rows.where(top="drawn")
    draw_responses(left, Rows(row for row in drawn if float(row["cost"]) <= COSTS[-1]), "cost", label)
    ratios = Rows(row for cost in drawn.where(policy="RR").levels("cost") for row in sliced(drawn, cost))
    line(right, 2, "RR/RB", *ratios.curve("cost", "ratio"))
    light = sliced(rows, COSTS[-1], "light").mean("ratio")
    line(right, 5, "the same, operators next\nto the output cost 1 unit", [COSTS[-1]], [light], linestyle="")
    right.axhline(1, color="black", linewidth=0.8)
    finish(right, label, "response time of RR / of RB", "paired by plan")


def notes(rows: Rows) -> str:
    """Return the numbers."""
    return table(rows.where(top="drawn"), "cost", "cost of the dear operator")


register("prb-fig11", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
