"""Figure 6: min-cost against min-latency traversals over what a tuple costs a box.

Min-latency brings results out one branch after the other and pays for it with calls: in a tree of fan-out f and depth d
it makes d calls for each of the f^(d-1) leaves, min-cost one for each box. With a tuple at every leaf, costs c and
overheads o, the mean latency within a run is (n tuples, m boxes)

    min-cost:     m o + (d - 1) n c + (n + 1) / 2 c
    min-latency:  (n + 1) / 2 d (o + c)

so that they cross where c / o is a number that follows from the tree alone, as long as each run ends before the next
tuples come.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from headway_experiments import checks, plots
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.application_trees import CALL, groups, latency_of, run_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAN_OUT, DEPTH = 3, 5
CAPACITY = 0.5
"""The paper's."""
LIGHT = 0.2
"""Another one, at which both traversals end a run before the next tuples come, at all costs."""
COSTS = {
    CAPACITY: (0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0),
    LIGHT: (0.06, 0.1, 0.15, 0.5),
}
QUICK_COSTS = {CAPACITY: (0.06, 0.2, 1.0), LIGHT: (0.06, 0.15)}
"""By capacity: milliseconds per tuple and box."""
TRAVERSALS = {"mc": "min-cost (MC)", "ml": "min-latency (ML)"}


def leaves(depth: int, fan_out: int) -> int:
    """Return how many boxes of a tree read a source."""
    return int(fan_out ** (depth - 1))


def boxes(depth: int, fan_out: int) -> int:
    """Return how many boxes a tree has."""
    return sum(leaves(level, fan_out) for level in range(1, depth + 1))


def predicted(traversal: str, depth: int, fan_out: int, cost: float, call: float) -> float:
    """Return the mean latency of a run that begins with a tuple at every leaf, all boxes costing the same."""
    tuples = leaves(depth, fan_out)
    if traversal == "ml":
        return (tuples + 1) / 2 * depth * (call + cost)
    return boxes(depth, fan_out) * call + (depth - 1) * tuples * cost + (tuples + 1) / 2 * cost


def predicted_crossing(depth: int, fan_out: int) -> float:
    """Return the cost, in overheads of a call, at which both traversals have the same mean latency."""
    fixed = {name: predicted(name, depth, fan_out, 0.0, 1.0) for name in TRAVERSALS}
    by_cost = {name: predicted(name, depth, fan_out, 1.0, 0.0) for name in TRAVERSALS}
    return (fixed["ml"] - fixed["mc"]) / (by_cost["mc"] - by_cost["ml"])


def _tasks(quick: bool) -> Sequence[Task]:
    seeds = range(1, 3 if quick else 7)
    costs = QUICK_COSTS if quick else COSTS
    # A run that cannot keep up needs time to show it; runs of cheap tuples are short.
    tasks: list[Task] = [
        {
            "part": "cost",
            "capacity": capacity,
            "cost": cost,
            "traversal": name,
            "seed": seed,
            "rounds": (5 if quick else 15) if cost < CALL * 1000 else (2 if quick else 5),
        }
        for capacity, some in costs.items()
        for cost in some
        for seed in seeds
        for name in TRAVERSALS
    ]
    tasks += [{"part": "depth", "depth": depth, "traversal": name} for depth in (3, 4, 5) for name in TRAVERSALS]
    return tasks


def _measure(task: Task) -> Sequence[Row]:
    return [_calls(task) if task["part"] == "depth" else _run(task)]


def _run(task: Task) -> Row:
    """Let a tuple come to every leaf at once, again and again, at the rate that follows from the capacity."""
    cost, seed = task["cost"] / 1000, task["seed"]
    every = leaves(DEPTH, FAN_OUT) * DEPTH * cost / task["capacity"]
    spread = {"cost": {"uniform": [0.5 * cost, 1.5 * cost]}, "seed": seed}
    result = run_tree(
        DEPTH,
        FAN_OUT,
        lambda level, place: spread,
        lambda place: groups(1, every, task["rounds"]),
        "sim",
        f"round-robin/superbox/{task['traversal']}",
        model={"overheads": {"call": CALL}},
    )
    busy = result.summary["time"]["boxes"] / result.summary["seconds"]
    return {**task, "latency": latency_of(result), "busy": busy}


def _calls(task: Task) -> Row:
    """Count the calls of one run: the time that is no tuple's, in overheads of a call."""
    cost, tuples = 0.0001, leaves(task["depth"], FAN_OUT)
    result = run_tree(
        task["depth"],
        FAN_OUT,
        lambda level, place: {"cost": cost},
        lambda place: groups(1, 1.0, 1),
        "sim",
        f"round-robin/superbox/{task['traversal']}",
        model={"overheads": {"call": CALL}},
    )
    calls = (result.summary["time"]["boxes"] - cost * tuples * task["depth"]) / CALL
    return {**task, "calls": round(calls), "tuples": tuples}


def crossings(costs: Sequence[float], differences: Sequence[float]) -> list[float]:
    """Return the costs at which a difference, straight between its points, changes its sign."""
    pairs = list(zip(costs, differences, strict=True))
    return [
        low + (high - low) * before / (before - after)
        for (low, before), (high, after) in pairwise(pairs)
        if (before > 0) != (after > 0)
    ]


def _crossings(rows: Rows) -> list[float]:
    """Return the costs at which both traversals have the same mean latency."""
    costs, quick = rows.where(traversal="ml").curve("cost", "latency")
    _, plain = rows.where(traversal="mc").curve("cost", "latency")
    return crossings(costs, [one.mean - other.mean for one, other in zip(quick, plain, strict=True)])


def _ratio(rows: Rows, cost: float) -> Interval:
    """Return min-latency's latency over min-cost's."""
    return rows.where(cost=cost, traversal="ml").ratio("latency", rows.where(cost=cost, traversal="mc"))


def _rises(key: str, claim: str, rows: Rows, traversal: str) -> Check:
    """Check that latency is larger at every next cost."""
    own = rows.where(traversal=traversal)
    costs = own.levels("cost")
    parts = {
        f"from {low:g} to {high:g} ms": checks.more(
            key, claim, own.where(cost=high).ratio("latency", own.where(cost=low)), 1.0, "times as long"
        )
        for low, high in pairwise(costs)
    }
    return checks.all_of(key, claim, parts)


def _check(rows: Rows) -> Sequence[Check]:
    full, light = rows.where(part="cost", capacity=CAPACITY), rows.where(part="cost", capacity=LIGHT)
    costs, crossed = full.levels("cost"), _crossings(full)
    small, large = _ratio(full, costs[0]), _ratio(full, costs[-1])
    one = Check(
        "one-crossing",
        "The curves cross once.",
        len(crossed) == 1,
        "at " + (", ".join(f"{cost:.3f} ms" for cost in crossed) or "no cost"),
    )
    share = (costs[-1] - crossed[-1]) / (costs[-1] - costs[0]) if crossed else 0.0
    most = Check(
        "ml-mostly",
        "Min-latency has the lower latency over most (more than half) of the range of costs.",
        share > 0.5 and large.mean < 1,
        f"{share:.0%} of the range from {costs[0]:g} to {costs[-1]:g} ms",
    )
    return [
        checks.more("mc-small", "At the smallest cost min-cost wins.", small, 1, f"ML / MC at {costs[0]:g} ms"),
        checks.less("ml-large", "At the largest cost min-latency wins.", large, 1, f"ML / MC at {costs[-1]:g} ms"),
        one,
        most,
        _rises("mc-rises", "Min-cost gets worse with every step of the cost.", full, "mc"),
        _rises("ml-rises", "Min-latency gets worse with every step of the cost.", full, "ml"),
        *_light(full, light),
        *_depths(rows.where(part="depth")),
    ]


def _light(full: Rows, light: Rows) -> list[Check]:
    """Return the evidence on what the capacity does."""
    cheap = [cost for cost in full.levels("cost") if cost < CALL * 1000]
    saturated = checks.all_of(
        "ml-saturated",
        "Where tuples cost less than a call, a nominal capacity of 0.5 leaves min-latency without any idle time "
        "(more than 95 % busy).",
        {
            f"{cost:g} ms": checks.more("", "", full.where(cost=cost, traversal="ml").mean("busy"), 0.95, "busy")
            for cost in cheap
        },
    )
    crossed = _crossings(light)
    wanted = predicted_crossing(DEPTH, FAN_OUT)
    found = crossed[0] / (CALL * 1000) if crossed else float("nan")
    return [
        saturated,
        _rises("ml-rises-light", "At a capacity of 0.2 min-latency gets worse with every step, too.", light, "ml"),
        _rises("mc-rises-light", "At a capacity of 0.2 min-cost gets worse with every step, too.", light, "mc"),
        Check(
            "crossing-light",
            f"There the curves cross where theory says, at a cost of {wanted:.2f} overheads (within 5 %).",
            len(crossed) == 1 and abs(found / wanted - 1) < 0.05,
            f"at {found:.3f} overheads",
        ),
    ]


def _depths(rows: Rows) -> list[Check]:
    """Return the checks on the number of calls, which is certain: no chance is in it."""
    calls = {
        (row["depth"], row["traversal"]): float(row["calls"]) / float(row["tuples"])  # per tuple that comes in
        for row in rows
    }
    extra = {depth: calls[depth, "ml"] - calls[depth, "mc"] for depth in rows.levels("depth")}
    low, high = min(extra), max(extra)
    growth = Interval(extra[high] / extra[low], 0.0)
    return [
        Check(
            "fewer-calls",
            "Min-cost makes fewer calls, the more so the deeper the tree is.",
            0 < extra[low] < extra[4] < extra[high],
            "more calls of ML per tuple: " + ", ".join(f"{extra[at]:.2f} at depth {at}" for at in extra),
        ),
        checks.about(
            "by-depth",
            f"The difference is in proportion to the depth: from {low} to {high} about {high / low:.2f} times.",
            growth,
            high / low,
            "times as many",
        ),
    ]


def _draw(rows: Rows, figure: Figure) -> None:
    for axes, capacity in zip(plots.panels(figure, 2), (CAPACITY, LIGHT), strict=True):
        own = rows.where(part="cost", capacity=capacity)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plots.curves(axes, own, "cost", "latency", "traversal", TRAVERSALS)
        for cost in _crossings(own):
            axes.axvline(cost, color="#888888", linewidth=0.8, linestyle=":")
        ticks = [0.06, 0.1, 0.2, 0.5, 1.0] if capacity == CAPACITY else [0.06, 0.1, 0.15, 0.5]
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        seconds = [0.05, 0.1, 0.2, 0.5]
        axes.set_yticks(seconds, [f"{tick:g}" for tick in seconds])
        name = "the paper's" if capacity == CAPACITY else "lighter"
        plots.finish(axes, "cost per tuple and box (ms)", "mean latency (s)", f"capacity {capacity:g} ({name})")


EXPERIMENT = register(
    "scheduling-fig6", engine="sim", tasks=_tasks, measure=_measure, check=_check, draw=_draw, size=(9.0, 3.6)
)
