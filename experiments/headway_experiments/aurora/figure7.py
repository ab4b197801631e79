"""Figure 7: what the scheduler and the whole run cost with a tuple at a time, with trains, and with superboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments import checks, plots
from headway_experiments.aurora.consumers import ALONE, BOTH, TRAIN, TRAINS, policy, run_reports
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_TRAINS, PAPER_SUPERBOXES = 0.48, 0.43
LENGTHS = (2, TRAIN, 8, 16)
TUPLES, FEW = 700, 200
RUNS = 3


def tasks(quick: bool) -> list[Task]:
    """Return a run for each seed and discipline, and for some lengths of trains."""
    tuples, seeds, lengths = (FEW, 3, (TRAIN,)) if quick else (TUPLES, 5, LENGTHS)
    disciplines = [(ALONE, 1), *((one, length) for one in (TRAINS, BOTH) for length in lengths)]
    return [
        {"discipline": discipline, "train": length, "tuples": tuples, "seed": seed}
        for seed in range(1, seeds + 1)
        for discipline, length in disciplines
    ]


def measure(task: Task) -> list[Row]:
    """Run it some times; the run with less time in the scheduler counts, because other processes can only add to it."""
    schedule = policy(task["discipline"], task["train"])
    runs = [run_reports(schedule, task["tuples"], task["seed"]) for _ in range(RUNS)]
    return [{**task, **min(runs, key=lambda one: one["scheduler"])}]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    alone = rows.where(discipline=ALONE)
    trains, both = (rows.where(discipline=one, train=TRAIN) for one in (TRAINS, BOTH))
    return [
        checks.less(
            "trains",
            f"Trains cut the time in the scheduler to {PAPER_TRAINS} of that of a tuple at a time, or less.",
            trains.ratio("scheduler", alone),
            PAPER_TRAINS,
            "time in the scheduler with trains, of a tuple at a time",
        ),
        checks.less(
            "superboxes",
            f"Superboxes cut that again to {PAPER_SUPERBOXES}, or less.",
            both.ratio("scheduler", trains),
            PAPER_SUPERBOXES,
            "time in the scheduler with superboxes, of trains alone",
        ),
        checks.less(
            "trains-in-all",
            "Trains cut the cost of the whole run, too.",
            trains.ratio("seconds", alone),
            1,
            "seconds with trains, of a tuple at a time",
        ),
        checks.less(
            "superboxes-in-all",
            "Superboxes cut it again.",
            both.ratio("seconds", trains),
            1,
            "seconds with superboxes, of trains alone",
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Draw the cost of a report by discipline, and the time in the scheduler by the length of trains."""
    left, right = plots.panels(figure, 2)
    names = (ALONE, TRAINS, BOTH)
    cost = {name: rows.where(discipline=name, train=1 if name == ALONE else TRAIN) for name in names}
    reports = [1000 / one.values("tuples")[0] for one in cost.values()]
    scheduler = [one.mean("scheduler").mean * scale for one, scale in zip(cost.values(), reports, strict=True)]
    seconds = [one.mean("seconds") for one in cost.values()]
    rest = [one.mean * scale - own for one, own, scale in zip(seconds, scheduler, reports, strict=True)]
    reach = [one.reach * scale for one, scale in zip(seconds, reports, strict=True)]
    labels = ["a tuple\nat a time", f"trains\nof {TRAIN}", f"trains of {TRAIN} and\nsuperboxes"]
    left.bar(labels, scheduler, 0.6, color=plots.COLOURS[0], label="scheduler")
    left.bar(
        labels,
        rest,
        0.6,
        bottom=scheduler,
        yerr=reach,
        capsize=2,
        color="white",
        edgecolor=plots.COLOURS[0],
        hatch="///",
        label="calls, queues, boxes",
    )
    plots.finish(left, "", "cost of a report (ms)", "figure 7")
    for at, discipline in enumerate((TRAINS, BOTH)):
        some = rows.where(discipline=discipline)
        lengths = some.levels("train")
        ratios = [some.where(train=length).ratio("scheduler", cost[ALONE]) for length in lengths]
        plots.line(right, at, discipline, lengths, ratios)
    for value, text in ((PAPER_TRAINS, "paper: trains"), (PAPER_TRAINS * PAPER_SUPERBOXES, "paper: both")):
        right.axhline(value, color="#555555", linewidth=1, linestyle=":")
        right.annotate(text, (LENGTHS[-1], value), xytext=(0, 3), textcoords="offset points", ha="right", fontsize=8)
    right.set_xscale("log", base=2)
    right.set_ylim(bottom=0)
    right.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    plots.finish(right, "longest train (tuples)", "time in the scheduler,\nof that of a tuple at a time")


EXPERIMENT = register(
    "aurora-fig7", engine="local", tasks=tasks, measure=measure, check=check, draw=draw, size=(9, 3.6)
)
