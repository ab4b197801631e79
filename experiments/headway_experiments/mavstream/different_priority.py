"""Figures 7 and 8: latency must be satisfied, memory does not matter much. The optimizer acts for latency only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway_experiments.checks import Check, all_of, less
from headway_experiments.experiment import Task, register
from headway_experiments.mavstream.courses import Change, Course, changes, courses, every, latency, looks, near, ratio
from headway_experiments.mavstream.drawing import LATENCY, MEMORY, draw_course, draw_target
from headway_experiments.mavstream.query import (
    LABELS,
    LOW_RATES,
    OPTIMIZER,
    PCS,
    QUERY,
    SEGMENT,
    SIMPLIFIED,
    STRATEGIES,
    follow,
    network,
    optimizer,
)
from headway_experiments.plots import finish, panels
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL = 3.0
LATENCY_TARGET = 0.5
MEMORY_TARGETS = (180.0, 18.0)
"""Kilobytes, before and after the fall."""
FALL = 0.8
"""After which share of the rounds the target for memory falls."""
CALM, DOUBLED = 3.0, 3.0
"""Seconds at the given rates, and then at twice these rates; and so on."""
COSTS = 2.0
"""How many times the costs of figure 5."""
WITH_MEMORY, WITHOUT, BEST_EFFORT = "memory: don't care", "memory: no target", "memory: best effort"
"""What is wanted besides latency."""


def list_tasks(quick: bool) -> list[Task]:
    """List the runs: every strategy, and the optimizer with memory in the paper's class, in none and in another."""
    seeds, rounds = (2, 2) if quick else (10, 4)
    runs = [*((strategy, "") for strategy in STRATEGIES), *((OPTIMIZER, one) for one in (WITH_MEMORY, WITHOUT))]
    tasks: list[Task] = [
        {"strategy": strategy, "goals": goals, "seed": seed, "rounds": rounds}
        for seed in range(1, seeds + 1)
        for strategy, goals in runs
    ]
    others = range(1, 2 if quick else 6)
    return [*tasks, *({**tasks[0], "strategy": OPTIMIZER, "goals": BEST_EFFORT, "seed": seed} for seed in others)]


def measure(task: Task) -> list[Row]:
    """Carry out one run."""
    feed = [*[(CALM, 1.0), (DOUBLED, 2.0)] * task["rounds"], (INTERVAL + 0.5, 1.0)]
    fall = FALL * task["rounds"] * (CALM + DOUBLED)
    layer = task["strategy"]
    if layer == OPTIMIZER:
        goals: dict[str, Any] = {"latency": {"target": LATENCY_TARGET, "class": "must-satisfy"}}
        if task["goals"] != WITHOUT:
            before, after = (1000 * target for target in MEMORY_TARGETS)
            priority = "dont-care" if task["goals"] == WITH_MEMORY else "best-effort"
            goals["memory"] = {"target": [[0, before], [fall, before], [fall, after]], "class": priority}
        layer = optimizer(INTERVAL, **goals)
    made = network(feed, task["seed"], LOW_RATES, QUERY.times(COSTS), tick=0.1)
    columns = {key: task[key] for key in ("strategy", "goals", "seed")}
    return follow(made, layer, INTERVAL, **columns, fall=fall)


def check(rows: Rows) -> list[Check]:
    """Judge the claims."""
    by = {name: courses(rows, strategy=name) for name in STRATEGIES}
    own, without = (courses(rows, goals=goals) for goals in (WITH_MEMORY, WITHOUT))
    other = courses(rows, goals=BEST_EFFORT)
    first = {seed: changes(course)[:1] == [_expected(by[SEGMENT][seed])] for seed, course in own.items()}
    settled = max((some[0].moment for course in own.values() if (some := changes(course))), default=0.0) + INTERVAL
    parts = {
        LABELS[name]: less("", "", ratio(own, by[name], latency, settled), 1.0, "latency of the optimizer over its")
        for name in (SEGMENT, SIMPLIFIED)
    }
    return [
        every(
            "pcs",
            "At the first look at which segment misses latency (500 ms) the optimizer changes to PCS.",
            first,
            "so it was",
        ),
        every(
            "stays",
            "It stays with PCS, also when memory misses its target.",
            {seed: len(changes(course)) == 1 and _over(course) > 0 for seed, course in own.items()},
            "one change, and memory over its target at some look,",
        ),
        every(
            "no-difference",
            "The target for memory makes no difference: without it every run is the same.",
            {seed: _numbers(course) == _numbers(without[seed]) for seed, course in own.items()},
            "the same",
        ),
        near(
            "as-pcs",
            "From one interval after the change on its latency is nearly PCS's (within 5 %).",
            ratio(own, by[PCS], latency, settled),
            "latency of the optimizer over PCS's, then",
        ),
        all_of("shorter", "From then on it is shorter than with segment or simplified segment alone.", parts),
        every(
            "weight",
            "Varied: it is the low weight that does it. With memory as best effort the optimizer leaves PCS when "
            "memory misses its target.",
            {seed: any(change.before == PCS for change in changes(course)) for seed, course in other.items()},
            "so it was",
        ),
    ]


def _expected(alone: Course) -> Change:
    """Return the change to PCS that must come, by the course of segment alone."""
    moment = next((end for end, slow, _ in looks(alone, INTERVAL) if slow > LATENCY_TARGET), float("inf"))
    return Change(moment, SEGMENT, PCS)


def _over(course: Course) -> int:
    """Return at how many looks after the target's fall memory misses its target under PCS."""
    return sum(
        row["using"] == PCS and float(row["moment"]) > float(row["fall"]) and float(row["memory"]) > MEMORY_TARGETS[1]
        for row in course
    )


def _numbers(course: Course) -> Sequence[tuple[Any, ...]]:
    return [tuple(row[key] for key in ("moment", "latency", "memory", "results", "using")) for row in course]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot latency and memory over time."""
    base = Rows(row for row in rows if row["goals"] in ("", WITH_MEMORY))
    end, fall = float(max(base.levels("moment"))), float(base[0]["fall"])
    left, right = panels(figure, 2)
    draw_course(left, base, LATENCY, INTERVAL)
    draw_target(left, LATENCY_TARGET, "target", 0.0, 1.14 * end)
    draw_course(right, base, MEMORY, INTERVAL)
    draw_target(right, MEMORY_TARGETS[1], "target", fall, 1.14 * end)
    left.legend(ncols=2, loc="upper left")
    left.set_ylim(0, 1.25 * left.get_ylim()[1])
    finish(left, "time (s)", "mean latency (s)", "figure 7: latency", legend=False)
    finish(
        right,
        "time (s)",
        "mean memory in queues (kB)",
        f"figure 8: memory (target before {fall:g} s: 180 kB)",
        legend=False,
    )


register("mavstream-fig7", engine="sim", tasks=list_tasks, measure=measure, check=check, draw=draw, size=(9, 3.8))
