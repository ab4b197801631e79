"""Figure 8: what trains save when tuples come in groups.

A tuple's overhead is its latency less the time for which it is worked on itself. If a step of a box has the overhead h
and a tuple costs c at each of d boxes, and groups of n do not meet, then with tuples one by one the k-th of a group
waits for k - 1 others, and with the group as one train it waits for the others at each box:

    one by one:  d ((n + 1) / 2 h + (n - 1) / 2 c)
    one train:   d h + ((d - 1) (n - 1) + (n - 1) / 2) c

Both over d h, the overhead without bursts, are numbers that follow from n, d and c / h alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headway_experiments import checks, plots
from headway_experiments.checks import ABOUT, Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.application_trees import CALL, groups, latency_of, run_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAN_OUT, DEPTH = 2, 5
LEAVES = FAN_OUT ** (DEPTH - 1)
STEP = 3 * CALL
"""Seconds of overhead that a step of a box has: the call, the scheduler and the storage, each as much."""
COST = 0.1
"""Milliseconds per tuple and box: the least of the paper's range."""
COSTS = (0.03, 0.1, 0.2, 0.6, 1.0)
QUICK_COSTS = (0.1, 0.6)
BUSY = 0.7
"""The processor's load when tuples come one by one, overheads included."""
TRAINS = (20, 40, 60, 80, 100)
"""Per cent of the queue."""
BURSTS = (1, 2, 4)
READINGS = {
    "in turn": "groups of one source, one after the other, as far apart as their tuples would have been in all",
    "early": "groups of one source, each at the moment of its first tuple, so that those of all sources follow closely",
}
"""How the tuples of an even workload are gathered."""


def predicted(burst: int, one_train: bool, ratio: float) -> float:
    """Return the overhead in groups over that without; `ratio` is a tuple's cost over a step's overhead."""
    if one_train:
        return 1 + ratio * ((DEPTH - 1) * (burst - 1) + (burst - 1) / 2) / DEPTH
    return (burst + 1) / 2 + ratio * (burst - 1) / 2


def offset(reading: str, burst: int, place: int, gap: float) -> float:
    """Return when the first group of the source at a place comes; without bursts a tuple comes every `gap` seconds."""
    return place * gap * (burst if reading == "in turn" else 1)


def _tasks(quick: bool) -> Sequence[Task]:
    seeds = range(1, 3 if quick else 7)

    def task(reading: str, cost: float, burst: int, train: int, seed: int) -> Task:
        tuples = 4 if quick else 8  # of each source
        return {"reading": reading, "cost": cost, "burst": burst, "train": train, "seed": seed, "tuples": tuples}

    tasks = [task("in turn", COST, burst, train, seed) for burst in BURSTS for train in TRAINS for seed in seeds]
    ends = (TRAINS[0], TRAINS[-1])
    for cost in QUICK_COSTS if quick else COSTS:
        if cost != COST:
            tasks += [task("in turn", cost, burst, train, seed) for burst in (1, 4) for train in ends for seed in seeds]
    if not quick:
        tasks += [task("early", COST, burst, train, seed) for burst in (1, 4) for train in ends for seed in seeds]
    return tasks


def _measure(task: Task) -> Sequence[Row]:
    burst, cost, seed = task["burst"], task["cost"] / 1000, task["seed"]
    gap = DEPTH * (STEP + cost) / BUSY
    places = np.random.default_rng(seed).permutation(LEAVES).tolist()
    spread = {"cost": {"uniform": [0.5 * cost, 1.5 * cost]}, "seed": seed}
    result = run_tree(
        DEPTH,
        FAN_OUT,
        lambda level, place: spread,
        lambda leaf: groups(
            burst, LEAVES * gap * burst, task["tuples"] // burst, offset(task["reading"], burst, places[leaf], gap)
        ),
        "sim",
        f"round-robin/box/{task['train']}%",
        model={"overheads": {"call": CALL, "scheduler": CALL, "storage": CALL}},
    )
    spent = result.summary["time"]
    # Box at a time, each call fetches its tuples, and costs as much beside them as that: so much is no tuple's.
    worked = spent["boxes"] - spent["storage"]
    return [{**task, "overhead": latency_of(result) - worked / result.summary["tuples_in"]}]


def _over(rows: Rows, burst: int, train: int) -> Interval:
    """Return the overhead with bursts over that without, at a train."""
    return rows.where(burst=burst, train=train).ratio("overhead", rows.where(burst=1, train=train))


def _check(rows: Rows) -> Sequence[Check]:
    even = rows.where(reading="in turn")
    base = even.where(cost=COST)
    short, whole = TRAINS[0], TRAINS[-1]
    single = base.where(burst=1)
    return [
        checks.all_of(
            "flat",
            "Without bursts the train makes no difference (less than 1 %).",
            {
                f"{train} %": checks.less(
                    "",
                    "",
                    single.where(train=train).paired(
                        "overhead", single.where(train=short), lambda mine, theirs: 100 * abs(mine / theirs - 1)
                    ),
                    1,
                    f"% from that at {short} %",
                )
                for train in TRAINS[1:]
            },
        ),
        checks.about(
            "quadruple",
            "With trains of 20 % of the queue, groups of 4 have about four times the overhead.",
            _over(base, 4, short),
            4,
            "times",
        ),
        checks.more(
            "by-burst",
            "There the effect grows with the size of groups: 4 have more overhead than 2.",
            base.where(burst=4, train=short).ratio("overhead", base.where(burst=2, train=short)),
            1,
            "4 over 2",
        ),
        checks.more(
            "pair", "Groups of 2 have more overhead there than no groups.", _over(base, 2, short), 1, "2 over 1"
        ),
        *(_falls(base, burst) for burst in BURSTS[1:]),
        checks.less(
            "markedly",
            f"The whole queue as one train reduces the overhead of groups of 4 markedly, by {ABOUT:g} times or more.",
            base.where(burst=4, train=whole).ratio("overhead", base.where(burst=4, train=short)),
            1 / ABOUT,
            "of that at 20 %",
        ),
        checks.all_of(
            "near",
            f"It then comes near to the overhead without bursts: less than {ABOUT:g} times as much.",
            {f"groups of {burst}": checks.less("", "", _over(base, burst, whole), ABOUT, "times") for burst in (2, 4)},
        ),
        checks.all_of(
            "above",
            "It stays above it.",
            {f"groups of {burst}": checks.more("", "", _over(base, burst, whole), 1, "times") for burst in (2, 4)},
        ),
        _theory(even),
    ]


def _falls(rows: Rows, burst: int) -> Check:
    """Check that longer trains never have more overhead (by more than 1 %, for costs are drawn), and less in all."""
    own, claim = rows.where(burst=burst), f"The overhead of groups of {burst} falls with the train, and nowhere rises."
    parts = {
        f"{low} to {high} %": checks.less(
            "", "", own.where(train=high).ratio("overhead", own.where(train=low)), 1.01, "times"
        )
        for low, high in pairwise(TRAINS)
    }
    parts["in all"] = checks.less(
        "", "", own.where(train=TRAINS[-1]).ratio("overhead", own.where(train=TRAINS[0])), 1, "times"
    )
    return checks.all_of(f"falls-{burst}", claim, parts)


def _theory(rows: Rows) -> Check:
    """Check that both ends of the curve are what a tuple's cost over a step's overhead says."""
    parts = {}
    for cost in rows.levels("cost"):
        for train in (TRAINS[0], TRAINS[-1]):
            wanted = predicted(4, train == TRAINS[-1], cost / 1000 / STEP)
            own = rows.where(cost=cost)
            off = own.where(burst=4, train=train).paired(
                "overhead",
                own.where(burst=1, train=train),
                lambda mine, theirs, wanted=wanted: 100 * abs(mine / theirs / wanted - 1),  # type: ignore[misc]
            )
            parts[f"{cost:g} ms at {train} %"] = checks.less("", "", off, 2, f"{wanted:.2f} times, % off")
    return checks.all_of("theory", "Groups of 4 have the overhead that theory says, at all costs (within 2 %).", parts)


def _notes(rows: Rows) -> str:
    """Return for which costs the claims hold."""
    lines = ["| gathered | cost / overhead of a step | at 20 % | at 100 % |", "|---|---|---|---|"]
    for reading in rows.levels("reading"):
        own = rows.where(reading=reading)
        for cost in own.levels("cost"):
            some = own.where(cost=cost)
            ends = " | ".join(str(_over(some, 4, train)) for train in (TRAINS[0], TRAINS[-1]))
            lines.append(f"| {reading} | {cost / 1000 / STEP:.2f} | {ends} |")
    return (
        "\n".join(lines)
        + "\n\nThe overhead of groups of 4 over that without bursts. With x for a tuple's cost over a step's overhead "
        "it is 2.5 + 1.5 x at 20 % and 1 + 2.7 x at 100 %. So it is exactly four times as much at x = 1, and comes "
        f"near that without bursts only below x = {(ABOUT - 1) / 2.7:.2f}. From x = 1.25 on trains make it worse, "
        "because the first tuples of a train wait at every box for the last ones."
    )


def _draw(rows: Rows, figure: Figure) -> None:
    left, right = plots.panels(figure, 2)
    even = rows.where(reading="in turn")
    for at, burst in enumerate(BURSTS):
        trains, means = even.where(cost=COST, burst=burst).curve("train", "overhead")
        scaled = [Interval(one.mean * 1000, one.reach * 1000) for one in means]
        plots.line(left, at, f"groups of {burst}" if burst > 1 else "no bursts", trains, scaled)
    left.set_xticks(TRAINS)
    plots.finish(
        left,
        "train (% of the queue)",
        "mean overhead (ms)",
        f"a tuple costs {COST / 1000 / STEP:.2f} of a step's overhead",
    )
    costs = even.levels("cost")
    xs = [cost / 1000 / STEP for cost in costs]
    for at, train in enumerate((TRAINS[0], TRAINS[-1])):
        plots.line(right, at, f"train of {train} %", xs, [_over(even.where(cost=cost), 4, train) for cost in costs])
        ends = [0.0, max(xs)]
        right.plot(
            ends, [predicted(4, at == 1, x) for x in ends], color="#888888", linewidth=0.8, zorder=0, linestyle=":"
        )
    right.axhspan(4 / ABOUT, 4 * ABOUT, color="#0072B2", alpha=0.08, linewidth=0)
    right.axhspan(1, ABOUT, color="#D55E00", alpha=0.12, linewidth=0)
    plots.finish(
        right,
        "cost of a tuple / overhead of a step",
        "overhead of groups of 4 / without bursts",
        "shaded: about 4 times; near 1 (dotted: theory)",
    )


EXPERIMENT = register(
    "scheduling-fig8",
    engine="sim",
    tasks=_tasks,
    measure=_measure,
    check=_check,
    draw=_draw,
    notes=_notes,
    size=(9.0, 3.6),
)
