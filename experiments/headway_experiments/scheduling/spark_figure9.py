"""Figure 9 of the paper on operator scheduling, on Spark: what trains and queries for several applications save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway_experiments.checks import Check, about, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure9 import (
    FAR_WORSE,
    HALF,
    PARTS,
    falls,
    grows,
    stacked,
)
from headway_experiments.scheduling.spark_networks import WARM, Spell, applications, run_spells, warming

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APPLICATIONS = 4
TRAIN = 25
TAAT, TRAINS, SUPERBOXES = "tuple at a time", "trains", "superboxes"
DISCIPLINES: Mapping[str, Mapping[str, Any]] = {
    TAAT: {"units": "output", "train": 1, "tuples": 3},
    TRAINS: {"units": "output", "train": TRAIN, "tuples": 4 * TRAIN},
    SUPERBOXES: {"units": "one", "train": TRAIN, "tuples": 4 * TRAIN},
}
"""How the network is cut, the most tuples of a grant, and how many tuples a repetition has."""
EVERY = 10.0
"""Seconds from one repetition to the next."""


def tasks(quick: bool) -> Sequence[Task]:
    """Return the runs of each discipline."""
    size = {"repetitions": 1} if quick else {"repetitions": 2}
    return [
        {"discipline": discipline, "run": run, **size}
        for run in range(1, 2 if quick else 3)
        for discipline in DISCIPLINES
    ]


def measure(task: Task) -> Sequence[Row]:
    """Run a discipline: in each repetition all tuples come at one moment, and all results are waited for."""
    chosen = DISCIPLINES[task["discipline"]]
    first = warming("round-robin")
    spells = [first if chosen["train"] > 1 else first._replace(tuples=2)]
    for at in range(task["repetitions"]):
        spells.append(Spell(0.0, "round-robin", at + 1, WARM + EVERY * at, 0.0, chosen["tuples"]))
    summary, results = run_spells(applications([None] * APPLICATIONS), chosen["units"], spells, chosen["train"])
    spent = {name: summary["time"][part] for name, part in PARTS.items()}
    rows: list[Row] = [
        {
            "row": "time",
            "discipline": task["discipline"],
            "seed": task["repetitions"] * (task["run"] - 1) + one.spell.seed,
            "tuples": one.spell.tuples,
            "seconds": 100 * one.late / one.spell.tuples,
        }
        for one in results
    ]
    shares = {name: 100 * value / sum(spent.values()) for name, value in spent.items()}
    batches = sum(unit["batches"] for unit in summary["units"].values())
    return [
        *rows,
        {"row": "shares", "discipline": task["discipline"], "seed": task["run"], "batches": batches, **shares},
    ]


def check(rows: Rows) -> Sequence[Check]:
    """Judge all rows."""
    times, shares = rows.where(row="time"), rows.where(row="shares")
    trains = times.where(discipline=TRAINS)
    return [
        more(
            "taat-worst",
            f"A tuple at a time takes more than {FAR_WORSE} times as long as trains.",
            times.where(discipline=TAAT).ratio("seconds", trains),
            FAR_WORSE,
            "ratio of times",
        ),
        about(
            "superboxes-halve",
            f"Superboxes cut the time of trains by about {HALF:.0f} %.",
            times.where(discipline=SUPERBOXES).reduction("seconds", trains),
            HALF,
            "reduction in per cent",
        ),
        falls("storage-falls", "storage", shares, list(DISCIPLINES)),
        grows("scheduler-grows", "scheduler", shares, list(DISCIPLINES)),
        all_of(
            "scheduler-small",
            "The scheduler takes less than 1 % of the time in all of them.",
            {
                name: less("", "", shares.where(discipline=name).mean("scheduler"), 1.0, "per cent")
                for name in DISCIPLINES
            },
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot shares as stacked bars, with times on top."""
    stacked(figure.subplots(), rows, list(DISCIPLINES), "for 100 tuples")


register("scheduling-fig9-spark", engine="spark", tasks=tasks, measure=measure, check=check, draw=draw)
