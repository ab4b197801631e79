"""The network of forty boxes: how many boxes it runs in a second, and how many results that gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headway_experiments import checks, plots
from headway_experiments.aurora.consumers import BOTH, TRAIN, policy, run_reports
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_BOXES, PAPER_RESULTS = 3200, 830
PLANS = {"a decision for each step": "/plan:1", "plans of many steps": ""}
STEPWISE, LONG = PLANS
TUPLES, FEW = 50_000, 2000


def tasks(quick: bool) -> list[Task]:
    """Return a run for each seed and length of plans."""
    return [
        {"plans": plans, "tuples": FEW if quick else TUPLES, "seed": seed} for seed in range(1, 4) for plans in PLANS
    ]


def measure(task: Task) -> list[Row]:
    """Run it once."""
    return [{**task, **run_reports(policy(BOTH, TRAIN, PLANS[task["plans"]]), task["tuples"], task["seed"])}]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims, which are about its scheduler: one decision for each step."""
    stepwise = rows.where(plans=STEPWISE)
    ratio = PAPER_RESULTS / PAPER_BOXES
    return [
        checks.more(
            "boxes",
            f"Forty boxes with trains and superboxes: at least {PAPER_BOXES:,} box calls in a second.",
            stepwise.mean("calls_per_second"),
            PAPER_BOXES,
            "box calls in a second",
        ),
        checks.more(
            "results",
            f"That gives at least {PAPER_RESULTS} results in a second.",
            stepwise.mean("results_per_second"),
            PAPER_RESULTS,
            "results in a second",
        ),
        checks.about(
            "ratio",
            f"There are about {ratio:.2f} results for a box call.",
            stepwise.mean("results_per_call"),
            ratio,
            "results for a box call",
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Draw box calls and results in a second, beside the paper's."""
    axes = plots.panels(figure, 1)[0]
    labels = ["paper (2003)", STEPWISE.replace(" for", "\nfor"), LONG.replace(" of", "\nof")]
    shown = {"box calls": ("calls_per_second", PAPER_BOXES), "results": ("results_per_second", PAPER_RESULTS)}
    for at, (name, (column, paper)) in enumerate(shown.items()):
        means = [rows.where(plans=plans).mean(column) for plans in PLANS]
        places = [place + 0.38 * (at - 0.5) for place in range(3)]
        heights = [float(paper), *(mean.mean for mean in means)]
        reaches = [math.nan, *(mean.reach for mean in means)]
        bars = axes.bar(
            places,
            heights,
            0.36,
            yerr=reaches,
            capsize=2,
            color=plots.COLOURS[at],
            hatch=("", "///")[at],
            edgecolor="white",
            label=name,
        )
        axes.bar_label(bars, [f"{height:,.0f}" for height in heights], padding=2, fontsize=8)
    axes.set_yscale("log")
    axes.set_ylim(100, 10 * max(rows.values("calls_per_second")))
    axes.set_xticks(range(3), labels)
    plots.finish(axes, "", "in a second")


def notes(rows: Rows) -> str:
    """Return how much faster plans of many steps make it."""
    calls = rows.where(plans=LONG).mean("calls_per_second")
    return (
        f"With plans of many steps, as Headway makes them by default, there are {calls} box calls in a second: "
        f"{calls.mean / PAPER_BOXES:.0f} times as many as in the paper."
    )


EXPERIMENT = register(
    "aurora-boxes", engine="local", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(5.6, 3.8)
)
