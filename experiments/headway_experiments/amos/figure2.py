"""Figure 2: what single algorithms are good at, in queues and in latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.amos.drawing import over_time
from headway_experiments.amos.judging import below_each, runs
from headway_experiments.amos.plans import (
    LABELS,
    QUICK_SEEDS,
    SECONDS,
    SEEDS,
    SELECTIVE,
    SINGLES,
    SLICED,
    measure,
    tasks_of,
)
from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAN = "plan 2"
QUEUES, PROMPT = ("most-tuples", "chain"), (SLICED, "fifo")
"""Those that should have short queues, and the others."""


def tasks(quick: bool) -> list[Task]:
    """Return the runs: the single algorithms on plan 2, and on one with more selective operators."""
    return tasks_of({PLAN: SINGLES, SELECTIVE: SINGLES}, QUICK_SEEDS if quick else SEEDS, SECONDS)


def best(rows: Rows, plan: str, column: str) -> str:
    """Return the algorithm with the least mean."""
    return min(SINGLES, key=lambda single: runs(rows, plan, single).mean(column).mean)


def slow_at_the_end(key: str, claim: str, rows: Rows, plan: str) -> Check:
    """Check that MTIQ and Chain both have a higher latency than both others in the last third of the time."""
    parts = {}
    for slow in QUEUES:
        for prompt in PROMPT:
            ratio = runs(rows, plan, slow).ratio("late latency", runs(rows, plan, prompt))
            parts[f"{LABELS[slow]} to {LABELS[prompt]}"] = more(key, "", ratio, 1, "ratio")
    return all_of(key, claim, parts)


def nobody(key: str, claim: str, rows: Rows, plan: str) -> Check:
    """Check that no algorithm is the best both in queues and in latency."""
    short, prompt = best(rows, plan, "queue"), best(rows, plan, "latency")
    told = f"shortest queue: {LABELS[short]}, lowest latency: {LABELS[prompt]}"
    return Check(key, claim, short != prompt, told)


def of_four(rows: Rows, plan: str, single: str, column: str) -> Interval:
    """Return an algorithm's value as a share of the mean of all four, seed by seed."""
    by = [{row["seed"]: float(row[column]) for row in runs(rows, plan, one)} for one in SINGLES]
    own = {row["seed"]: float(row[column]) for row in runs(rows, plan, single)}
    return Interval.of([own[seed] / (sum(one[seed] for one in by) / len(by)) for seed in own])


def check(rows: Rows) -> list[Check]:
    """Judge who is good at what."""
    best_queue = best(rows, PLAN, "queue")
    mediocre = runs(rows, PLAN, "fifo").ratio("queue", runs(rows, PLAN, best_queue))
    calls = runs(rows, PLAN, "chain").ratio("calls", runs(rows, PLAN, "most-tuples"))
    return [
        below_each(
            "mtiq-queue", "MTIQ has a shorter queue than RR and FIFO.", rows, PLAN, "most-tuples", "queue", PROMPT
        ),
        below_each("chain-queue", "Chain has a shorter queue than RR and FIFO.", rows, PLAN, "chain", "queue", PROMPT),
        slow_at_the_end("late", "Near the end, MTIQ and Chain have the highest latencies.", rows, PLAN),
        more("fifo-queue", "FIFO's queue is not the shortest.", mediocre, 1, f"ratio to {LABELS[best_queue]}"),
        less(
            "fifo-latency",
            "FIFO's latency is below the mean of the four.",
            of_four(rows, PLAN, "fifo", "latency"),
            1,
            "share of the mean",
        ),
        nobody("nobody", "No algorithm is the best in both.", rows, PLAN),
        more("calls", "Evidence: on plan 2 Chain calls operators more often than MTIQ.", calls, 1, "ratio of calls"),
        below_each(
            "selective-mtiq",
            "Evidence: with selective operators before the join, MTIQ has a shorter queue than RR and FIFO.",
            rows,
            SELECTIVE,
            "most-tuples",
            "queue",
            PROMPT,
        ),
        below_each(
            "selective-chain",
            "Evidence: with selective operators before the join, Chain has a shorter queue than RR and FIFO.",
            rows,
            SELECTIVE,
            "chain",
            "queue",
            PROMPT,
        ),
        slow_at_the_end(
            "selective-late",
            "Evidence: with selective operators before the join, MTIQ and Chain have the highest latencies near the "
            "end.",
            rows,
            SELECTIVE,
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot queues and latencies over time, for both plans."""
    grid = figure.subplots(2, 2, squeeze=False)
    for at, plan in enumerate((PLAN, SELECTIVE)):
        for place, column in enumerate(("queue", "latency")):
            over_time(grid[at][place], rows, plan, column, {}, legend=(at, place) == (0, 0))


register("amos-fig2", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, size=(9, 6.4))
