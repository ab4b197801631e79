"""Figures 9 and 10: latency and memory, both must be satisfied. The optimizer helps whichever is missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway_experiments.checks import Check, all_of, less
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.mavstream.courses import (
    Change,
    Course,
    between,
    changes,
    courses,
    every,
    latency,
    looks,
    memory,
    near,
    ratio,
)
from headway_experiments.mavstream.drawing import LATENCY, MEMORY, draw_course, draw_target
from headway_experiments.mavstream.query import (
    HIGH_RATES,
    LABELS,
    OPTIMIZER,
    PCS,
    SEGMENT,
    SIMPLIFIED,
    STRATEGIES,
    Feed,
    bursts,
    follow,
    network,
    optimizer,
)
from headway_experiments.plots import finish, panels
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVAL = 0.5
LATENCY_TARGET = 0.5
MEMORY_TARGETS = (180.0, 18.0)
"""Kilobytes, before and after the fall: in the proportion of the paper's 10 MB and 1 MB."""
FALL = 12.0
"""Seconds after which the target for memory falls: the paper's 500 s."""
EARLY = 6.0
LONG, SHORT = 0.5, 0.25
"""Seconds of bursts (and of pauses): before the fall, and after it."""
NOTICEABLY = 0.8
"""How many times as much memory as before it takes at most, to be noticed in a plot."""


def list_tasks(quick: bool) -> list[Task]:
    """List the runs: the paper's setting with every strategy; the optimizer alone in three other settings."""

    def some(case: str, strategies: Sequence[str], seeds: int, seconds: float) -> list[Task]:
        return [
            {"case": case, "strategy": strategy, "seed": seed, "seconds": seconds}
            for seed in range(1, seeds + 1)
            for strategy in strategies
        ]

    few = 1 if quick else 5
    return [
        *some("paper", (*STRATEGIES, OPTIMIZER), 2 if quick else 10, 15.0 if quick else 24.0),
        *some("both", (OPTIMIZER,), few, FALL + 2),
        *some("early", (OPTIMIZER,), few, EARLY + 2),
        *some("steady", (OPTIMIZER,), few, FALL + 4),
    ]


def measure(task: Task) -> list[Row]:
    """Carry out one run."""
    case, seconds = task["case"], task["seconds"]
    fall = EARLY if case == "early" else FALL
    feed: Feed = bursts(LONG, seconds)
    if case != "steady":
        feed = [*bursts(LONG, fall), *bursts(SHORT, seconds - fall)]
    layer = task["strategy"]
    if layer == OPTIMIZER:
        before, after = (1000 * target for target in MEMORY_TARGETS)
        layer = optimizer(
            INTERVAL,
            latency={"target": 0.1 if case == "both" else LATENCY_TARGET, "class": "must-satisfy"},
            memory={"target": [[0, before], [fall, before], [fall, after]], "class": "must-satisfy"},
        )
    made = network(feed, task["seed"], HIGH_RATES)
    return follow(made, layer, INTERVAL, case=case, strategy=task["strategy"], seed=task["seed"])


def missed(course: Course) -> int:
    """Return how many targets are missed, over all looks and both measures."""
    return sum((slow > LATENCY_TARGET) + (used > _memory_target(end)) for end, slow, used in looks(course, INTERVAL))


def _memory_target(end: float) -> float:
    return MEMORY_TARGETS[end > FALL + 1e-6]


def check(rows: Rows) -> list[Check]:
    """Judge the claims in the paper's setting, and what happens in others."""
    by = {name: courses(rows, case="paper", strategy=name) for name in (*STRATEGIES, OPTIMIZER)}
    own = by[OPTIMIZER]
    first = {
        seed: _first(course) == Change(_first_miss(by[SEGMENT][seed]), SEGMENT, PCS) for seed, course in own.items()
    }
    second = {seed: _after_fall(course) for seed, course in own.items()}
    alone = {seed: change is not None and _alone(own[seed], change) for seed, change in second.items()}
    both = {seed: _at_both(course) for seed, course in courses(rows, case="both").items()}
    calm = {seed: _stays(course) for seed, course in own.items()}
    return [
        every(
            "pcs-first",
            "At the first look at which segment misses latency the optimizer changes to PCS; memory is met.",
            first,
            "so it was",
        ),
        _check_near(own, by[PCS]),
        every(
            "segment",
            "At the first look at which memory is missed, latency being met, it changes from PCS to segment.",
            alone,
            "so it was",
        ),
        every(
            "simplified",
            "Where both are missed then (latency must be 100 ms), it changes from PCS to simplified segment.",
            both,
            "so it was",
        ),
        less(
            "falls",
            f"After that its memory is noticeably below PCS's: at most {NOTICEABLY} times as much.",
            Interval.of([memory(between(own[seed], FALL)) / memory(between(by[PCS][seed], FALL)) for seed in own]),
            NOTICEABLY,
            "memory of the optimizer over PCS's, after the fall",
        ),
        every(
            "stays",
            "Latency stays within its target, and the optimizer stays with segment.",
            calm,
            "so it was",
        ),
        _check_better(by),
        every(
            "cycle",
            "Varied: where memory is missed within 20 looks of leaving segment, going back would be a cycle (section "
            "4.10), and simplified segment is taken instead.",
            {
                seed: _first_after(course, EARLY, PCS, SIMPLIFIED)
                for seed, course in courses(rows, case="early").items()
            },
            "so it was",
        ),
        every(
            "steady",
            "Varied: where bursts stay long, segment misses latency, and it ends with simplified segment.",
            {seed: course[-1]["using"] == SIMPLIFIED for seed, course in courses(rows, case="steady").items()},
            "so it was",
        ),
    ]


def _first(course: Course) -> Change | None:
    return next(iter(changes(course)), None)


def _first_miss(course: Course) -> float:
    """Return the first look at which latency is missed, infinite if memory is missed before."""
    for end, slow, used in looks(course, INTERVAL):
        if used > _memory_target(end):
            break
        if slow > LATENCY_TARGET:
            return end
    return float("inf")


def _after_fall(course: Course, fall: float = FALL) -> Change | None:
    """Return the first change when the target for memory has fallen."""
    return next((change for change in changes(course) if change.moment > fall - 1e-6), None)


def _at(course: Course, moment: float) -> tuple[float, float]:
    """Return latency and memory at the look of a moment."""
    return next((slow, used) for end, slow, used in looks(course, INTERVAL) if abs(end - moment) < 1e-6)


def _alone(course: Course, change: Change) -> bool:
    """Whether a change is from PCS to segment, at the first look that misses memory, with latency met."""
    over = [end for end, _, used in looks(course, INTERVAL) if end > FALL - 1e-6 and used > MEMORY_TARGETS[1]]
    slow, _ = _at(course, change.moment)
    return change[1:] == (PCS, SEGMENT) and over[:1] == [change.moment] and slow <= LATENCY_TARGET


def _at_both(course: Course) -> bool:
    """Whether the first change after the fall is from PCS to simplified segment, with both measures missed."""
    change = _after_fall(course)
    if change is None:
        return False
    slow, used = _at(course, change.moment)
    return change[1:] == (PCS, SIMPLIFIED) and slow > 0.1 and used > MEMORY_TARGETS[1]


def _first_after(course: Course, fall: float, before: str, after: str) -> bool:
    change = _after_fall(course, fall)
    return change is not None and change[1:] == (before, after)


def _stays(course: Course) -> bool:
    change = _after_fall(course)
    rest = [slow for end, slow, _ in looks(course, INTERVAL) if change is not None and end > change.moment]
    return bool(rest) and max(rest) <= LATENCY_TARGET and changes(course)[-1] == change


def _check_near(own: Mapping[Any, Course], best: Mapping[Any, Course]) -> Check:
    """Judge the time from two looks after the first change until the fall."""
    begin = max((change.moment for course in own.values() if (change := _first(course))), default=0.0) + 2 * INTERVAL
    mine, theirs = ({seed: between(course, 0.0, FALL) for seed, course in some.items()} for some in (own, best))
    parts = {
        "latency": near("latency", "", ratio(mine, theirs, latency, begin), "over PCS's"),
        "memory": near("memory", "", ratio(mine, theirs, memory, begin), "over PCS's"),
    }
    return all_of("near-pcs", "Until the target falls both measures are nearly PCS's (within 5 %).", parts)


def _check_better(by: Mapping[str, Mapping[Any, Course]]) -> Check:
    """Judge the claim that no single strategy does as well on both measures."""
    parts = {}
    for name in STRATEGIES:
        less_by = [missed(by[OPTIMIZER][seed]) - missed(course) for seed, course in by[name].items()]
        parts[LABELS[name]] = less("", "", Interval.of(less_by), 0.0, "missed targets, less those of this strategy")
    claim = "It misses fewer targets, of both measures together over all looks, than any single strategy."
    return all_of("better", claim, parts)


def draw(rows: Rows, figure: Figure) -> None:
    """Plot latency and memory over time, in means of a second."""
    base = rows.where(case="paper")
    end = float(max(base.levels("moment")))
    left, right = panels(figure, 2)
    draw_course(left, base, LATENCY, 2 * INTERVAL)
    draw_target(left, LATENCY_TARGET, "target", 0.0, end)
    draw_course(right, base, MEMORY, 2 * INTERVAL)
    draw_target(right, MEMORY_TARGETS[1], "target", FALL, end)
    left.set_ylim(0, 0.72)
    left.legend(ncols=2, loc="upper center")
    finish(left, "time (s)", "mean latency (s)", "figure 9: latency, means of 1 s", legend=False)
    finish(
        right, "time (s)", "mean memory in queues (kB)", "figure 10: memory (target before 12 s: 180 kB)", legend=False
    )


def notes(rows: Rows) -> str:
    """Say what else the runs show."""
    table = "".join(
        f"| {LABELS[name]} | {Interval.of([missed(one) for one in found.values()])} "
        f"| {Interval.of([latency(one) for one in found.values()])} "
        f"| {Interval.of([memory(one) for one in found.values()])} |\n"
        for name in (*STRATEGIES, OPTIMIZER)
        if (found := courses(rows, case="paper", strategy=name))
    )
    flips = [len(changes(course)) for course in courses(rows, case="both").values()]
    return (
        "| strategy | targets missed | latency (s) | memory (kB) |\n|---|---|---|---|\n" + table + "\n"
        f"Where latency must be 100 ms, which no strategy achieves, the optimizer changes {max(flips)} times in "
        f"{FALL + 2:g} s: between PCS (both missed) and simplified segment (latency missed), at every look. That is no "
        "cycle by section 4.10, because latency was missed under both.\n"
    )


register(
    "mavstream-fig9",
    engine="sim",
    tasks=list_tasks,
    measure=measure,
    check=check,
    draw=draw,
    notes=notes,
    size=(9, 3.8),
)
