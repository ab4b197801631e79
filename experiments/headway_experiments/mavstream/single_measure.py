"""Figures 5 and 6: with one measure, latency, the optimizer leaves the worst strategy and is as good as the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.mavstream.courses import Course, changes, courses, every, latency, looks, near, ratio
from headway_experiments.mavstream.drawing import LATENCY, draw_course, draw_target
from headway_experiments.mavstream.query import (
    HIGH_RATES,
    OPTIMIZER,
    PCS,
    QUERY,
    SEGMENT,
    SIMPLIFIED,
    STRATEGIES,
    THIN,
    bursts,
    follow,
    network,
    optimizer,
)
from headway_experiments.plots import finish, panels
from headway_experiments.rows import Row, Rows, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 1.0
INTERVAL = 3.0
BURST = 1.5
"""Seconds; an interval is a burst and a pause."""
COSTS = (1.0, 1.15)
LOW_COSTS = 0.85
"""How many times the costs of the query: for loads of 0.76 and 0.87, and of 0.65."""
QUERIES = {"plain": QUERY, "thin": THIN}


def list_tasks(quick: bool) -> list[Task]:
    """List the runs: the paper's setting with every strategy, and further settings with those that they are about."""
    seconds = 12.0 if quick else 24.0

    def some(
        strategies: Sequence[str], seeds: int, costs: float = 1.0, feed: str = "bursts", query: str = "plain"
    ) -> list[Task]:
        return [
            {"feed": feed, "query": query, "costs": costs, "strategy": strategy, "seed": seed, "seconds": seconds}
            for seed in range(1, seeds + 1)
            for strategy in strategies
        ]

    tasks = some((*STRATEGIES, OPTIMIZER), 2 if quick else 10)
    for costs in () if quick else COSTS[1:]:
        tasks += some((*STRATEGIES, OPTIMIZER), 5, costs)
    tasks += some((SEGMENT, OPTIMIZER), 1 if quick else 5, LOW_COSTS)
    tasks += some((SEGMENT, OPTIMIZER), 1 if quick else 3, feed="even")
    tasks += some((PCS, SIMPLIFIED), 2 if quick else 5, query="thin")
    return tasks


def measure(task: Task) -> list[Row]:
    """Carry out one run."""
    seconds = task["seconds"]
    feed = bursts(BURST, seconds) if task["feed"] == "bursts" else [(seconds, 1.0)]
    made = network(feed, task["seed"], HIGH_RATES, QUERIES[task["query"]].times(task["costs"]), tick=0.1)
    layer = task["strategy"]
    if layer == OPTIMIZER:
        layer = optimizer(INTERVAL, latency={"target": TARGET, "class": "best-effort"})
    columns = {key: task[key] for key in ("feed", "query", "costs", "strategy", "seed")}
    return follow(made, layer, BURST, **columns)


def check(rows: Rows) -> list[Check]:
    """Judge the claims at every cost of operators."""
    levels = [costs for costs in COSTS if costs in rows.where(feed="bursts", query="plain").levels("costs")]
    parts: dict[str, dict[str, Check]] = {}
    for costs in levels:
        for one in _check_at(rows, costs):
            parts.setdefault(one.key, {})[f"costs x {costs:g}"] = one
    found = [all_of(key, next(iter(some.values())).claim, some) for key, some in parts.items()]
    return [*found, *_check_quiet(rows), _check_thin(rows)]


def _check_at(rows: Rows, costs: float) -> list[Check]:
    by = {
        name: courses(rows, feed="bursts", query="plain", costs=costs, strategy=name)
        for name in (*STRATEGIES, OPTIMIZER)
    }
    own, alone = by[OPTIMIZER], by[SEGMENT]
    dry = {seed: _dry(alone[seed]) and not _dry(by[PCS][seed]) and not _dry(by[SIMPLIFIED][seed]) for seed in alone}
    firsts = {seed: _first_change(own[seed]) == (_first_miss(alone[seed]), SEGMENT, PCS) for seed in own}
    after = {seed: changes(course)[:1] for seed, course in own.items()}
    settled = max((some[0].moment for some in after.values() if some), default=0.0) + INTERVAL
    return [
        every("dry", "With segment no result comes during the first burst; with the others some do.", dry, "so it was"),
        less(
            "best",
            "PCS has the shortest latency: shorter than simplified segment.",
            ratio(by[PCS], by[SIMPLIFIED], latency),
            1.0,
            "latency of PCS over simplified segment's",
        ),
        more(
            "worst",
            "Segment has the longest latency: longer than simplified segment.",
            ratio(alone, by[SIMPLIFIED], latency),
            1.0,
            "latency of segment over simplified segment's",
        ),
        every(
            "first-look",
            "The optimizer changes from segment to PCS at the first look at which segment misses the target of 1 s.",
            firsts,
            "so it was",
        ),
        every(
            "no-more",
            "It changes nothing after that.",
            {seed: len(changes(course)) == 1 for seed, course in own.items()},
            "one change only",
        ),
        near(
            "as-best",
            "From one interval after the change on its latency is nearly PCS's (within 5 %).",
            ratio(own, by[PCS], latency, settled),
            "latency of the optimizer over PCS's, then",
        ),
        more(
            "not-better",
            "Over the whole run it is not better than the best strategy, because it drops nothing.",
            ratio(own, by[PCS], latency),
            1.0,
            "latency of the optimizer over PCS's, whole run",
        ),
    ]


def _dry(course: Course) -> bool:
    """Whether no result comes during the first burst."""
    return int(course[0]["results"]) == 0


def _first_change(course: Course) -> tuple[float, str, str] | None:
    return next(iter(changes(course)), None)


def _first_miss(course: Course) -> float:
    """Return the first look at which the target is missed."""
    return next((end for end, value, _ in looks(course, INTERVAL) if value > TARGET), float("inf"))


def _check_quiet(rows: Rows) -> list[Check]:
    """Varied: where segment is fast enough there is nothing to do."""
    claims = {
        "light": "Varied: with costs of 85 % even segment meets the target, and nothing changes.",
        "even": "Varied: where tuples come evenly, at the same rates, segment meets the target, and nothing changes.",
    }
    settings: dict[str, dict[str, Value]] = {"light": {"feed": "bursts", "costs": LOW_COSTS}, "even": {"feed": "even"}}
    found = []
    for key, claim in claims.items():
        alone, own = (courses(rows, **settings[key], strategy=name) for name in (SEGMENT, OPTIMIZER))
        quiet = {seed: _first_miss(alone[seed]) == float("inf") and not changes(own[seed]) for seed in own}
        found.append(every(key, claim, quiet, "so it was"))
    return found


def _check_thin(rows: Rows) -> Check:
    """Varied: PCS looks at what comes in, not at what comes out."""
    one, other = (courses(rows, query="thin", strategy=name) for name in (PCS, SIMPLIFIED))
    claim = (
        "Varied: PCS is not always best. Where the first join gives one result for ten tuples, the paths through it "
        "have the largest capacity but hardly any results, and simplified segment has the shorter latency."
    )
    return more("thin", claim, ratio(one, other, latency), 1.0, "latency of PCS over simplified segment's, thin query")


def draw(rows: Rows, figure: Figure) -> None:
    """Plot latency over time: by intervals, and burst by burst what happens at first."""
    base = rows.where(feed="bursts", query="plain", costs=1.0)
    end, early = float(max(base.levels("moment"))), 4 * INTERVAL
    left, right = panels(figure, 2)
    draw_course(left, base, LATENCY, INTERVAL)
    draw_target(left, TARGET, "target", 0.0, 1.05 * end)
    draw_course(right, Rows(row for row in base if float(row["moment"]) <= early), LATENCY, BURST)
    draw_target(right, TARGET, "target", 0.0, 1.13 * early)
    left.set_xticks([3 * at for at in range(int(end / 3) + 1)])
    right.set_xticks([3 * at for at in range(5)])
    finish(left, "time (s)", "mean latency (s)", "figure 5: intervals of 3 s")
    finish(right, "time (s)", "mean latency (s)", "figure 6: bursts and pauses of the first 12 s", legend=False)


register("mavstream-fig5", engine="sim", tasks=list_tasks, measure=measure, check=check, draw=draw, size=(9, 3.6))
