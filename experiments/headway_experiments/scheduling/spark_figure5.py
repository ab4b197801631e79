"""Figure 5 of the paper on operator scheduling, on Spark: a query for each application against one for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headway_experiments.checks import Check, all_of, given, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.plots import finish, line, panels
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.spark_networks import (
    WORK,
    applications,
    cost_in_run,
    plan_spells,
    run_spells,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APPLICATIONS = 5
APART, TOGETHER = "a query each", "all in one query"
UNITS = {APART: "output", TOGETHER: "one"}
LOW, MIDDLE, HIGH = 0.3, 0.8, 0.92
SECONDS = 5.0
"""Of arrivals in a spell."""
LONG = 300.0
"""Of arrivals where latencies are calculated: until rounds are as long as they get."""
FIXED = 0.18
"""Seconds that a micro-batch costs there: what they cost here while nobody else used the machine."""
OFF = 0.25
"""By how much the calculated ratios may be off."""
CALCULATED = "none, calculated"
SILENCES = {APART: {LOW: 2.5, MIDDLE: 3.5, HIGH: 4.0}, TOGETHER: {LOW: 1.0, MIDDLE: 2.0, HIGH: 2.5}}
"""By units and load: seconds without arrivals after a spell, until all is delivered."""


def tasks(quick: bool) -> Sequence[Task]:
    """Return a run for each repetition and way to cut the network; and for each way what is to be expected."""
    real = [{"units": units, "seed": seed} for seed in range(1, 2 if quick else 4) for units in UNITS]
    return [*real, *({"units": units, "seed": 1, "calculated": True} for units in UNITS)]


def measure(task: Task) -> Sequence[Row]:
    """Run all spells, or calculate how late results would be if there were only fixed costs and work."""
    return _calculated(task) if task.get("calculated") else _on_spark(task)


def _on_spark(task: Task) -> Sequence[Row]:
    spells = plan_spells(SILENCES[task["units"]], ["round-robin"], task["seed"], SECONDS, APPLICATIONS)
    summary, results = run_spells(applications([None] * APPLICATIONS), UNITS[task["units"]], spells)
    batches = 100 * sum(unit["batches"] for unit in summary["units"].values()) / summary["tuples_in"]
    return [
        {
            "engine": "spark",
            "units": task["units"],
            "load": one.spell.load,
            "seconds": SECONDS,
            "seed": one.spell.seed,
            "tuples": one.spell.tuples,
            "latency": one.seen.latency(),
            "late": one.late,
            "batches": batches,
            "cost": cost_in_run(summary),
        }
        for one in results
    ]


def _calculated(task: Task) -> Sequence[Row]:
    count = 1 if task["units"] == TOGETHER else APPLICATIONS
    rows = []
    for load, seconds in (*((load, SECONDS) for load in (LOW, MIDDLE, HIGH)), (HIGH, LONG)):
        tuples = round(load * seconds / (WORK * APPLICATIONS))
        latency = in_turn(seconds * np.arange(tuples) / tuples, count, FIXED, WORK * APPLICATIONS / count)
        rows.append(
            {
                "engine": CALCULATED,
                "units": task["units"],
                "load": load,
                "seconds": seconds,
                "seed": task["seed"],
                "tuples": tuples,
                "latency": latency,
                "cost": FIXED,
            }
        )
    return rows


def in_turn(moments: npt.NDArray[np.float64], count: int, fixed: float, work: float) -> float:
    """Return the mean latency of tuples that come at these moments, to so many queries which are served in turn.

    A query works on all that waits for it, for `fixed` seconds and `work` for each tuple; then all its results are
    there. One that nothing waits for is passed over.
    """
    done, taken, now, summed = 0, [0] * count, 0.0, 0.0
    while done < count * len(moments):
        before = done
        for at in range(count):
            came = int(np.searchsorted(moments, now, side="right"))
            if came > taken[at]:
                now += fixed + work * (came - taken[at])
                summed += float(np.sum(now - moments[taken[at] : came]))
                done += came - taken[at]
                taken[at] = came
        if done == before:
            now = float(moments[min(taken)])
    return summed / done


def check(rows: Rows) -> Sequence[Check]:
    """Judge all rows."""
    real, calculated = rows.where(engine="spark"), rows.where(engine=CALCULATED)
    apart, together = real.where(units=APART), real.where(units=TOGETHER)

    def ratio(load: float, of: Rows = real, seconds: float = SECONDS) -> Interval:
        spells = of.where(load=load, seconds=seconds)
        return spells.where(units=APART).ratio("latency", spells.where(units=TOGETHER))

    def off(load: float) -> Check:
        expected = ratio(load, calculated).mean
        apart_by = Interval(abs(ratio(load).mean / expected - 1), ratio(load).reach / expected)
        return less("", "", apart_by, OFF, f"{ratio(load)} instead of {expected:.2f}, off by")

    def sooner(key: str, claim: str, load: float) -> Check:
        late = together.where(load=HIGH).ratio("latency", apart.where(load=load))
        return less(key, claim, late, 1.0, f"at {HIGH} over at {load}, ratio of mean latencies")

    return [
        all_of(
            "always-above",
            "At every load results of a query for each application come later than those of one query for all.",
            {f"{load}": more("", "", ratio(load), 1.0, "ratio of mean latencies") for load in apart.levels("load")},
        ),
        more(
            "twice",
            f"At a load of {HIGH}, over 0.9, they come more than twice as late.",
            ratio(HIGH),
            2.0,
            "ratio of mean latencies",
        ),
        sooner(
            "much-longer",
            f"One query for all holds on at loads over 0.9, a query for each application saturates much earlier: at "
            f"{HIGH} results of the one still come sooner than those of the others do at {LOW}.",
            LOW,
        ),
        sooner(
            "longer",
            f"It holds on longer: at {HIGH} its results still come sooner than those of the others do at {MIDDLE}.",
            MIDDLE,
        ),
        less(
            "not-saturated",
            f"At {LOW} a query for each application is not saturated: its results come in less than 2/3 of the time "
            f"they take at {HIGH}.",
            apart.where(load=LOW).ratio("latency", apart.where(load=HIGH)),
            2 / 3,
            "ratio of mean latencies",
        ),
        less(
            "fewer-batches",
            "The cause: one query for all needs fewer micro-batches for the same tuples.",
            together.where(load=MIDDLE).ratio("batches", apart.where(load=MIDDLE)),
            1.0,
            "ratio of micro-batches for 100 tuples, over the whole run",
        ),
        all_of(
            "by-fixed-costs",
            f"The whole difference is that of fixed costs: the ratios of latencies are, up to {OFF:.0%}, those "
            f"calculated for micro-batches that cost {FIXED} s and their work, and nothing else.",
            {f"{load}": off(load) for load in (LOW, MIDDLE, HIGH)},
        ),
        given(
            more(
                "twice-in-time",
                f"By the same calculation results at {HIGH} come more than twice as late if tuples come for "
                f"{LONG / 60:.0f} minutes instead of {SECONDS:.0f} s.",
                ratio(HIGH, calculated, LONG),
                2.0,
                "ratio of mean latencies",
            )
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot latency over load."""
    left, right = panels(figure, 2)
    for at, units in enumerate(UNITS):
        own = rows.where(units=units, engine="spark")
        line(left, at, units, *own.curve("load", "latency"))
        line(right, at, units, *own.curve("load", "late"))
        calculated = rows.where(units=units, engine=CALCULATED, seconds=SECONDS)
        line(left, at + 2, f"{units}, calculated", *calculated.curve("load", "latency"))
    finish(left, "load (share of a core)", "mean latency (s)", "Latency")
    finish(right, "load (share of a core)", "time until all is delivered (s)", "After the last arrival")


register("scheduling-fig5-spark", engine="spark", tasks=tasks, measure=measure, check=check, draw=draw, size=(9, 3.6))
