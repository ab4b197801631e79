"""Figure 7: memory over the time of a superbox run, by min-cost, min-latency and min-memory traversals.

A run begins with some tuples at every leaf and ends when the tree is empty. How many tuples the tree holds follows
exactly from the calls of the run, in their order; tuples that a call works on count until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headway.clock import SECOND
from headway.engines.traces import Trace
from headway_experiments import checks, plots
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.application_trees import CALL, ROOT, groups, run_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAN_OUT, DEPTH = 3, 5
TUPLES = 5
"""Waiting at each leaf when the run begins."""
TRAVERSALS = {"mc": "min-cost (MC)", "ml": "min-latency (ML)", "mm": "min-memory (MM)"}
BASE = "as chosen"
VARIANTS = {
    BASE: (CALL, 0.0, 1.0),
    "no overhead of calls": (0.0, 0.0, 1.0),
    "calls of 1 ms": (0.001, 0.0, 1.0),
    "selectivities of 0.5 to 1": (CALL, 0.5, 1.0),
}
"""By name: seconds per call, and between what selectivities are drawn."""
GRID = (*(at / 20 for at in range(20)), 0.97, 0.98, 0.99)
"""Moments at which memory is compared, as shares of the time that min-memory takes; close together at its end."""


class Curve(NamedTuple):
    """How many tuples a tree holds: from each moment (seconds) on, and none after the last one."""

    moments: tuple[float, ...]
    tuples: tuple[int, ...]

    @property
    def end(self) -> float:
        """When the run ended."""
        return self.moments[-1]

    def at(self, moment: float) -> int:
        """Return the tuples at a moment, not before the first."""
        return self.tuples[int(np.searchsorted(self.moments, moment, side="right")) - 1]

    def total(self) -> float:
        """Return tuples times seconds, over the run."""
        return float(np.dot(np.diff(self.moments), self.tuples[:-1]))


def memory(calls: Iterable[tuple[float, int, int]], start: int) -> Curve:
    """Return the curve that calls make, each (its end, tuples that it takes, tuples that it leaves in the tree)."""
    moments, tuples = [0.0], [start]
    for end, taken, left in calls:
        if taken:
            moments.append(end)
            tuples.append(tuples[-1] - taken + left)
    return Curve(tuple(moments), tuple(tuples))


def last_above(one: Curve, other: Curve) -> float:
    """Return the last moment at which a curve is above another one; 0 if it never is."""
    moments = sorted({*one.moments, *other.moments})
    above = [
        after
        for moment, after in zip(moments, [*moments[1:], moments[-1]], strict=True)
        if one.at(moment) > other.at(moment)
    ]
    return max(above, default=0.0)


def _curve(trace: Trace, start: int) -> Curve:
    root = trace.boxes.index(ROOT)
    calls = (call for step in trace.steps for call in step.calls)
    return memory(
        ((call.end / SECOND, call.tuples_in, 0 if root in call.boxes else call.tuples_out) for call in calls), start
    )


def _run(traversal: str, variant: str, seed: int) -> Curve:
    call, low, high = VARIANTS[variant]
    # By box: the same for all traversals.
    count = sum(FAN_OUT**level for level in range(DEPTH))
    drawn = np.random.default_rng(seed).uniform([0.0001, low], [0.001, high], (count, 2)).round(6).tolist()

    def box(level: int, place: int) -> dict[str, float | int]:
        cost, selectivity = drawn[sum(FAN_OUT**above for above in range(level)) + place]
        return {"cost": cost, "selectivity": selectivity, "seed": seed}

    result = run_tree(
        DEPTH,
        FAN_OUT,
        box,
        lambda place: groups(TUPLES, 1.0, 1),
        "sim",
        f"round-robin/superbox/{traversal}",
        model={"overheads": {"call": call}},
        trace=True,
    )
    assert result.trace is not None
    return _curve(result.trace, TUPLES * FAN_OUT ** (DEPTH - 1))


def _tasks(quick: bool) -> Sequence[Task]:
    seeds, variants = range(1, 5 if quick else 21), [BASE] if quick else list(VARIANTS)
    return [{"variant": variant, "seed": seed} for variant in variants for seed in seeds]


def _measure(task: Task) -> Sequence[Row]:
    curves = {name: _run(name, task["variant"], task["seed"]) for name in TRAVERSALS}
    return rows_of(task, curves)


def rows_of(task: Task, curves: dict[str, Curve]) -> list[Row]:
    """Return what is compared: a row for each traversal, and one for each of its moments."""
    best = curves["mm"]
    rows: list[Row] = []
    for name, curve in curves.items():
        rows.append(
            {
                **task,
                "part": "run",
                "traversal": name,
                "seconds": curve.end,
                "memory": curve.total(),
                "until": last_above(curve, best) / best.end,
            }
        )
        for share in GRID:
            now, least = curve.at(share * best.end), best.at(share * best.end)
            relative = now / least
            rows.append(
                {**task, "part": "moment", "traversal": name, "time": share, "tuples": now, "relative": relative}
            )
    return rows


def _share(rows: Rows, name: str, other: str) -> list[float]:
    """Return by run the share of moments, the first apart, at which one traversal holds more than another."""
    shares = []
    for seed in rows.levels("seed"):
        own, theirs = (rows.where(seed=seed, traversal=one).values("tuples")[1:] for one in (name, other))
        shares.append(sum(mine > its for mine, its in zip(own, theirs, strict=True)) / len(own))
    return shares


def _check(rows: Rows) -> Sequence[Check]:
    base = rows.where(variant=BASE)
    runs, moments = base.where(part="run"), base.where(part="moment")
    mc, ml, mm = (runs.where(traversal=name) for name in TRAVERSALS)
    most = "over most (more than half) of the run"
    return [
        checks.more("ml-most", "Min-latency needs the most memory over the run.", ml.ratio("memory", mc), 1, "ML / MC"),
        checks.more("mc-second", "Min-cost needs more than min-memory.", mc.ratio("memory", mm), 1, "MC / MM"),
        *(
            checks.more(
                f"{one}-above-{other}",
                f"{one.upper()} holds more tuples than {other.upper()} {most}.",
                Interval.of(_share(moments, one, other)),
                0.5,
                "share of moments",
            )
            for one, other in (("ml", "mc"), ("ml", "mm"), ("mc", "mm"))
        ),
        checks.all_of(
            "mc-shortest",
            "Min-cost has the smallest execution time.",
            {
                f"against {name.upper()}": checks.less("", "", mc.ratio("seconds", other), 1, "seconds")
                for name, other in (("ml", ml), ("mm", mm))
            },
        ),
        checks.less(
            "mc-catches-up", "Min-cost catches up with min-memory before the end.", mc.mean("until"), 1, "at share"
        ),
        checks.more(
            "mc-late", "It does so towards the end, in the second half of the run.", mc.mean("until"), 0.5, "at share"
        ),
    ]


def _notes(rows: Rows) -> str:
    """Return how the order depends on what was chosen."""
    lines = ["| variant | memory of MC / MM | of ML / MM | of ML / MC |", "|---|---|---|---|"]
    for variant in rows.levels("variant"):
        mc, ml, mm = (rows.where(variant=variant, part="run", traversal=name) for name in TRAVERSALS)
        ratios = [mc.ratio("memory", mm), ml.ratio("memory", mm), ml.ratio("memory", mc)]
        lines.append(f"| {variant} | {' | '.join(str(one) for one in ratios)} |")
    table = "\n".join(lines)
    why = (
        "Min-latency needs most because it makes more calls, and because it goes by the cost of results, not by what a "
        "call frees. Where boxes let most tuples pass, it needs less than min-cost: then memory becomes free at the "
        "output, and min-latency is the one that delivers early."
    )
    return f"{table}\n\n{why}" if len(lines) > 3 else table


def _draw(rows: Rows, figure: Figure) -> None:
    moments = rows.where(variant=BASE, part="moment")
    left, right = plots.panels(figure, 2)
    plots.curves(left, moments, "time", "relative", "traversal", TRAVERSALS)
    plots.finish(left, "time (share of MM's run)", "tuples held / MM's", "normalised, as in the paper")
    plots.curves(right, moments, "time", "tuples", "traversal", TRAVERSALS)
    plots.finish(right, "time (share of MM's run)", "tuples held", "as they are")


EXPERIMENT = register(
    "scheduling-fig7",
    engine="sim",
    tasks=_tasks,
    measure=_measure,
    check=_check,
    draw=_draw,
    notes=_notes,
    size=(9.0, 3.6),
)
