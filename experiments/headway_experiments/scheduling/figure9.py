"""Figure 9 of the paper on operator scheduling: where the time goes with tuple at a time, trains and superboxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headway_experiments.checks import Check, about, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.plots import COLOURS, finish
from headway_experiments.rows import Row, Rows
from headway_experiments.trees import SCHEMA, run_for_summary, together, tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TREES, DEPTH, FAN_OUT = 4, 5, 3
TAAT, TRAINS, SUPERBOXES = "tuple at a time", "trains", "superboxes"
DISCIPLINES = (TAAT, TRAINS, SUPERBOXES)
POLICIES = {
    TAAT: "round-robin/box/1/plan:1",
    TRAINS: "round-robin/box/65536/plan:1",
    SUPERBOXES: "round-robin/superbox/mc/65536/plan:1",
    "trains, plans of 4": "round-robin/box/65536/plan:4",
    "superboxes, plans of 4": "round-robin/superbox/mc/65536/plan:4",
    "trains, long plans": "round-robin/box/65536",
    "superboxes, traversals weighed": "round-robin/superbox/best/65536",
}
PARTS = {"worker": "boxes", "storage": "storage", "scheduler": "scheduler"}
"""The parts of a bar, and what a run's summary calls them."""
FAR_WORSE = 2.0
"""A tuple at a time is significantly worse if it takes more than twice as long; the paper's text gives no number."""
HALF = 50.0
HUNDRED_THOUSAND = 100_000


def make_network(tuples: int) -> dict[str, Any]:
    """Return the trees; so many tuples wait at each leaf from the start, and boxes have nothing to do with them."""
    leaf = {"schema": SCHEMA, "source": {"generate": {"count": tuples, "fields": {"a": 1}}}}
    trees = [tree(DEPTH, FAN_OUT, lambda level, place: {}, lambda place: leaf, name=f"q{at}") for at in range(TREES)]
    return together("overheads", trees)


def tasks(quick: bool) -> Sequence[Task]:
    """Return all runs: each repetition has all disciplines one after the other, so that they see the same machine."""
    return [
        {"discipline": name, "tuples": 2 if quick else 6, "seed": seed}
        for seed in range(1, 4 if quick else 7)
        for name in POLICIES
    ]


def measure(task: Task) -> Sequence[Row]:
    """Run one discipline."""
    summary = run_for_summary(make_network(task["tuples"]), "local", POLICIES[task["discipline"]])
    spent = divide(summary)
    seconds = sum(spent.values())
    return [
        {
            "row": "time",
            **task,
            "seconds": HUNDRED_THOUSAND * seconds / summary["tuples_in"],
            "plans": summary["plans"],
            "box_calls": summary["box_calls"],
        },
        {"row": "shares", **task, **{name: 100 * value / seconds for name, value in spent.items()}},
    ]


def divide(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of a run by part; sources and sinks do not count.

    What the engine does between boxes, and counts nowhere, is the worker's.
    """
    spent = summary["time"]
    parts = {name: float(spent[part]) for name, part in PARTS.items()}
    parts["worker"] += max(0.0, summary["seconds"] - sum(spent.values()))
    return parts


def grows(key: str, part: str, shares: Rows, disciplines: Sequence[str]) -> Check:
    """Check that a part's share grows from each discipline to the next."""
    steps = {
        f"{after} and {before}": more(
            "", "", shares.where(discipline=after).ratio(part, shares.where(discipline=before)), 1.0, "ratio of shares"
        )
        for before, after in pairwise(disciplines)
    }
    return all_of(key, f"The more is batched, the larger is the share of the {part}.", steps)


def falls(key: str, part: str, shares: Rows, disciplines: Sequence[str]) -> Check:
    """Check that a part's share falls from each discipline to the next."""
    steps = {
        f"{after} and {before}": less(
            "", "", shares.where(discipline=after).ratio(part, shares.where(discipline=before)), 1.0, "ratio of shares"
        )
        for before, after in pairwise(disciplines)
    }
    return all_of(key, f"The more is batched, the smaller is the share of the {part}.", steps)


def check(rows: Rows) -> Sequence[Check]:
    """Judge all rows."""
    times, shares = rows.where(row="time"), rows.where(row="shares")
    trains, superboxes = times.where(discipline=TRAINS), times.where(discipline=SUPERBOXES)
    four = [times.where(discipline=f"{name}, plans of 4") for name in (TRAINS, SUPERBOXES)]
    long = shares.where(discipline="trains, long plans")
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
            superboxes.reduction("seconds", trains),
            HALF,
            "reduction in per cent",
        ),
        grows("scheduler-grows", "scheduler", shares, DISCIPLINES),
        falls("worker-falls", "worker", shares, DISCIPLINES),
        falls("storage-falls", "storage", shares, DISCIPLINES),
        more(
            "superboxes-halve-at-least",
            f"Superboxes cut the time of trains by {HALF:.0f} % at least.",
            superboxes.reduction("seconds", trains),
            HALF,
            "reduction in per cent",
        ),
        about(
            "superboxes-halve-with-plans",
            f"Where a decision holds for four steps, superboxes cut the time of trains by about {HALF:.0f} %.",
            four[1].reduction("seconds", four[0]),
            HALF,
            "reduction in per cent",
        ),
        less(
            "few-decisions",
            "A decision about superboxes holds for more than fifty box calls.",
            superboxes.paired("plans", superboxes, lambda plans, _: plans / float(superboxes[0]["box_calls"])),
            1 / 50,
            "decisions for each box call",
        ),
        more(
            "scheduler-grows-with-wit",
            "Where plans are long, and the scheduler weighs traversals against each other for every step of a "
            "superbox, its share is larger with superboxes than with trains.",
            shares.where(discipline="superboxes, traversals weighed").ratio("scheduler", long),
            1.0,
            "ratio of shares",
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot shares as stacked bars, with times on top."""
    names = [name for name in POLICIES if name in rows.levels("discipline")]
    stacked(figure.subplots(), rows, names, "for 100,000 tuples")


def stacked(axes: Axes, rows: Rows, names: Sequence[str], per: str) -> None:
    """Draw the shares of each discipline as a bar, and its time on top of it."""
    times, shares = rows.where(row="time"), rows.where(row="shares")
    below = [0.0] * len(names)
    for at, (part, hatch) in enumerate(zip(PARTS, ("", "//", ".."), strict=True)):
        values = [shares.where(discipline=name).mean(part).mean for name in names]
        axes.bar(
            range(len(names)),
            values,
            0.6,
            below,
            label=part,
            color=COLOURS[at],
            hatch=hatch,
            edgecolor="white",
            linewidth=0.5,
        )
        below = [base + value for base, value in zip(below, values, strict=True)]
    for at, name in enumerate(names):
        mean = times.where(discipline=name).mean("seconds").mean
        axes.text(at, below[at] + 1.5, f"{mean:,.3g} s", ha="center", fontsize=8)
    axes.set_xticks(range(len(names)), [name.replace(", ", ",\n") for name in names], fontsize=7.5)
    axes.set_ylim(0, 112)
    axes.grid(axis="x", visible=False)
    finish(axes, f"discipline, with its time {per} on top", "share of the time (%)", legend=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


register("scheduling-fig9", engine="local", tasks=tasks, measure=measure, check=check, draw=draw, size=(8.6, 4.0))
