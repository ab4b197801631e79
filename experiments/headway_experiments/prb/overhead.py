"""Figure 12: what transitions between operators cost, by policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headway_experiments.checks import Check, about, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.plots import finish, line, panels
from headway_experiments.prb.drawing import draw_responses
from headway_experiments.prb.judging import below, ratio, table
from headway_experiments.prb.plans import (
    DEPTH,
    LEAVES,
    LIGHT,
    LOAD,
    Levels,
    path_costs,
    query_tree,
    run_units,
    tree_costs,
)
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEAR = {(4, 0): 300.0}
OVERHEADS = (0, 1, 10, 20, 30, 40, 50, 60)
UPTO = 50
"""The overhead up to which the paper sees PRB below RB."""
DELAYS = (1, 10)
CALLS = DEPTH + 1
"""Operators on a tuple's way."""


def tasks(quick: bool) -> list[Task]:
    """Return all runs: those whose transitions are counted, in two kinds of trees, and those where they take time."""
    seeds, tuples = (2, 100) if quick else (4, 500)
    settings = [("counted", 0, policy) for policy in ("RB", "PRB", "RR")]
    settings += [("counted, light top", 0, policy) for policy in ("RB", "RR")]
    settings += [("taking time", cost, policy) for cost in DELAYS for policy in ("RB", "PRB")]
    return [
        {"how": how, "overhead": cost, "policy": policy, "seed": seed, "tuples": tuples}
        for how, cost, policy in settings
        for seed in range(1, seeds + 1)
    ]


def transitions(counts: Mapping[str, float]) -> float:
    """Return a run's transitions for each of its results, as the paper counts them.

    An operator is invoked for each tuple, and again after it was preempted; the scheduler is invoked as often as the
    policy was asked. Calls that only pass on the end of streams, and what was asked for them, do not count.
    """
    invoked = CALLS * counts["results"]
    asked = counts["plans"] - (counts["calls"] - invoked)
    return (invoked + asked + 2 * counts["preemptions"]) / counts["results"]


def measure(task: Task) -> list[Row]:
    """Run one tree; return a row for each overhead if transitions are counted, and one if they take time."""
    levels = tree_costs(task["seed"], {**DEAR, **(LIGHT if "light" in task["how"] else {})})
    if task["how"] == "taking time":
        return [_taking_time(task, levels)]
    found = run_units(query_tree(levels, task["tuples"], task["seed"]), task["policy"])
    each = transitions(found)
    counts = {**found, "transitions": each, "work": sum(path_costs(levels)) / LEAVES}
    return [{**task, **counts, "overhead": cost, "response": found["response"] + cost * each} for cost in OVERHEADS]


def _taking_time(task: Task, levels: Levels) -> Row:
    each = task["overhead"] / 1000
    # RB has two transitions for each call. With them, its utilisation is that of the other experiments.
    gap = (sum(path_costs(levels)) + 2 * CALLS * LEAVES * task["overhead"]) / LOAD
    network = query_tree(levels, task["tuples"], task["seed"], gap)
    # What was preempted is invoked again later on, which the simulator does not charge: it is added here.
    overheads = {"call": each, "scheduler": each, "preemption": 2 * each}
    found = run_units(network, task["policy"], {"overheads": overheads})
    return {**task, **found, "transitions": transitions(found)}


def crossing(rows: Rows) -> Interval:
    """Return the overhead from which on PRB is no longer below RB, by seed: what it saves by what it costs more."""
    start = rows.where(how="counted", overhead=0)
    rb, prb = ({row["seed"]: row for row in start.where(policy=policy)} for policy in ("RB", "PRB"))
    return Interval.of(
        [
            (float(rb[seed]["response"]) - float(prb[seed]["response"]))
            / (float(prb[seed]["transitions"]) - float(rb[seed]["transitions"]))
            for seed in rb
        ]
    )


def compared(rows: Rows, policy: str, how: str) -> dict[int, Interval]:
    """Return by overhead the response time of a policy as a part of that of RB."""
    some = rows.where(how=how)
    return {
        cost: ratio(some, {"policy": policy, "overhead": cost}, {"policy": "RB", "overhead": cost})
        for cost in some.where(policy=policy).levels("overhead")
    }


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims, and what becomes of them under other conditions."""
    sliced, light = (compared(rows, "RR", how) for how in ("counted", "counted, light top"))
    late = compared(rows, "PRB", "taking time")
    upto = Rows(row for row in rows.where(how="counted") if float(row["overhead"]) <= UPTO)
    before = Rows(row for row in upto if float(row["overhead"]) < UPTO)
    costly = "as soon as a transition costs 1 unit"
    return [
        less("rr-free", "RR is below RB if transitions cost nothing", sliced[0], 1, "RR/RB"),
        all_of("rr", f"RR is above RB {costly}",
               {f"at {cost}": more("", "", one, 1, "RR/RB") for cost, one in sliced.items() if cost}),
        below("prb", "PRB is below RB at every overhead up to 50 units", upto, "overhead", "PRB", "RB"),
        below("prb-before", "PRB is below RB at every overhead before 50 units", before, "overhead", "PRB", "RB"),
        about("crossing", "PRB is no longer below RB from about 50 units on", crossing(rows), UPTO, "units"),
        less("rr-free-light", "If the root and its two children cost 1 unit each, RR is below RB if transitions cost "
             "nothing", light[0], 1, "RR/RB"),
        all_of("rr-light", f"and above RB {costly}",
               {f"at {cost}": more("", "", one, 1, "RR/RB") for cost, one in light.items() if cost}),
        less("prb-1", "If transitions take the processor's time, and utilisation with them is 0.9, PRB is below RB at "
             "1 unit", late[1], 1, "PRB/RB"),
        more("prb-10", "and above RB at 10 units already", late[10], 1, "PRB/RB"),
    ]  # fmt: skip


def draw(rows: Rows, figure: Figure) -> None:
    """Draw the paper's figure, and PRB against RB by how overheads are accounted for."""
    left, right = panels(figure, 2)
    label = "cost of a transition (units)"
    left.set_yscale("log")
    draw_responses(left, rows.where(how="counted"), "overhead", label)
    for at, how, name in ((1, "counted", "transitions counted"), (5, "taking time", "transitions take time")):
        found = compared(rows, "PRB", how)
        line(right, at, name, list(found), list(found.values()))
    right.axhline(1, color="black", linewidth=0.8)
    finish(right, label, "response time of PRB / of RB", "paired by plan")


def notes(rows: Rows) -> str:
    """Return the numbers, and how many transitions there were."""
    counted = rows.where(how="counted", overhead=0)
    each = ", ".join(f"{policy} {counted.where(policy=policy).mean('transitions')}" for policy in ("RB", "PRB", "RR"))
    work = counted.mean("work").mean
    return (
        f"{table(rows.where(how='counted'), 'overhead', 'overhead')}\n\n"
        f"Transitions for each result: {each}. A tuple needs {work:.0f} units of work, and at utilisation {LOAD:g} "
        f"{work / LOAD - work:.1f} units are left for each. So transitions of 1 unit that took the processor's time "
        "would overload it under every policy, if tuples arrived as fast as before; that is why we add their cost to "
        "the response time of a run without them, as the paper's words say. Where they take time, and tuples arrive "
        "as much more slowly, PRB pays for its additional ones by queueing, and the order turns far below 50 units."
    )


register("prb-fig12", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
