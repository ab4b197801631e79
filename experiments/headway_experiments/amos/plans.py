"""The two query plans of the paper on AMoS, their arrivals, and what is measured of a run.

Plan 1 is a chain of four operators; plan 2 joins two streams within 200 ms, and has an operator on each stream and one
above the join. Arrivals are Poisson; their mean changes every 5 s, of both streams at once: calm, a burst, calm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from headway.adaptive.layer import Interval
from headway.clock import SECOND
from headway_experiments.amos.controls import CONTROLS
from headway_experiments.experiment import Task
from headway_experiments.rows import Row
from headway_experiments.watching import run_watched

SLICED = "round-robin:25ms"
"""Round robin with a time slice, as in the paper's section 2.1. With trains instead it decides as FIFO does on a chain.
A round of all four operators is as long as a turn of AMoS."""
SINGLES = (SLICED, "fifo", "most-tuples", "chain")
"""The algorithms that AMoS chooses from; most-tuples is MTIQ."""
LABELS = {SLICED: "RR", "fifo": "FIFO", "most-tuples": "MTIQ", "chain": "Chain"}
OBJECTIVES: dict[str, dict[str, float]] = {
    "latency": {"latency": 1.0},
    "queue": {"queue": 1.0},
    "70/30": {"latency": 0.7, "throughput": 0.3},
    "30/70": {"latency": 0.3, "throughput": 0.7},
    "thirds": {"latency": 1.0, "throughput": 1.0, "queue": 1.0},
}
"""By name: what AMoS is asked for."""
WHEEL: dict[str, Any] = {
    **{"use": "amos", "learning": "roulette", "decay": 0.25, "memory": "forever", "settle": 0, "waiting": 0},
    **{"delay": "100ms", "samples": 1, "window": len(SINGLES), "policies": list(SINGLES)},
}
"""AMoS as its paper has it, with turns of 100 ms. The window is for other ways of learning; a short one is quick."""
LEARNING = ("upper-confidence", "thompson")
"""Other ways of learning than the paper's roulette wheel."""

LOOK = 0.1
"""Seconds, as long as a turn of AMoS: queues are sampled 16 times from look to look, of whoever looks, and means of
fewer samples are too large where queues are short. So all runs have as many."""
SPAN = 5
"""Seconds after which the mean of arrivals changes."""
GROUP = 3
"""Of so many spans the middle one is a burst."""


class Box(NamedTuple):
    """An operator: milliseconds for a tuple, and tuples out per tuple in."""

    cost: float
    selectivity: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan, what it costs to call an operator, and how loads change."""

    boxes: tuple[Box, ...]
    call: float
    """Milliseconds for each call of an operator, besides its tuples."""
    train: int
    """The most tuples of one call."""
    calm: float
    burst: float
    """Tuples per second of each stream."""
    keys: int = 0
    """Of a plan that joins two streams: how many different keys tuples have."""


PLAN_1 = Plan((Box(4, 0.4), Box(4, 0.9), Box(4, 0.9), Box(10, 0.9)), 12, 4, 28, 86)
PLAN_2 = Plan((Box(4, 0.8), Box(8, 0.5), Box(8, 1.0), Box(10, 0.9)), 8, 4, 10, 34, 6)
"""An operator on each stream, the join (its selectivity follows from the keys), and one above it."""
FREE, SELECTIVE = "plan 1, free calls", "plan 2, selective"
PLANS = {
    "plan 1": PLAN_1,
    "plan 2": PLAN_2,
    FREE: replace(PLAN_1, call=0, calm=40, burst=130),
    SELECTIVE: replace(PLAN_2, boxes=(Box(4, 0.25), Box(4, 0.25), *PLAN_2.boxes[2:]), call=2, calm=20, burst=80),
}
"""The plans, and what was varied. Rates go with calls, so that bursts are more than the processor can do."""
PUBLISHED = ("plan 1", "plan 2", SELECTIVE)
"""Those on which every claim is judged."""
TAGS = dict(zip(PUBLISHED, ("1", "2", "selective"), strict=True))
"""How a plan is named in the keys of checks."""


def with_controls(objectives: Sequence[str]) -> tuple[str, ...]:
    """Return what to run: AMoS asked for objectives, and the same with controls in place of its learning."""
    return (*objectives, *(f"{one}, {control}" for one in objectives for control in CONTROLS))


def rates_of(plan: Plan, spans: int) -> list[float]:
    """Return the mean arrival rate of each span."""
    return [plan.burst if at % GROUP == GROUP // 2 else plan.calm for at in range(spans)]


def network_of(plan: Plan, seed: int, seconds: int) -> dict[str, Any]:
    """Return the network of a plan, with the arrivals that a seed gives."""

    def source(number: int) -> dict[str, Any]:
        rates = rates_of(plan, max(1, seconds // SPAN))
        fields: dict[str, Any] = {"key": {"uniform": [1, max(1, plan.keys)]}, "time": "t"}
        made = {"phases": [[SPAN, rate] for rate in rates], "arrivals": "poisson", "seed": 10 * seed + number}
        return {"schema": {"key": "int", "time": "double"}, "source": {"generate": {**made, "fields": fields}}}

    def universal(at: int, reads: str) -> dict[str, Any]:
        cost, selectivity = plan.boxes[at]
        return {"op": "universal", "in": reads, "cost": cost / 1000, "selectivity": selectivity, "seed": seed}

    if not plan.keys:
        sources = {"s": source(0)}
        reads = ["s", *[f"op{at}" for at in range(1, len(plan.boxes))]]
        boxes = {f"op{at + 1}": universal(at, reads[at]) for at in range(len(plan.boxes))}
    else:
        sources = {"s": source(0), "t": source(1)}
        join = {"op": "join", "in": ["op1", "op2"], "on": "left.key = right.key", "size": 0.2, "ordered": False}
        boxes = {
            "op1": universal(0, "s"),
            "op2": universal(1, "t"),
            "op3": {**join, "order": [{"on": "time"}, {"on": "time"}], "select": "left.key as key, left.time as time"},
            "op4": universal(3, "op3"),
        }
    return {
        "network": "amos",
        "sources": sources,
        "boxes": boxes,
        "outputs": {"results": {"from": f"op{len(plan.boxes)}"}},
    }


def layer_of(policy: str, seed: int) -> str | dict[str, Any]:
    """Return what to run: a single algorithm, or AMoS by a name of OBJECTIVES, with how it learns after a comma."""
    if policy in SINGLES:
        return policy
    objective, _, learning = policy.partition(", ")
    return {**WHEEL, "objectives": OBJECTIVES[objective], "learning": learning or WHEEL["learning"], "seed": seed}


def run_plan(plan: Plan, policy: str, seed: int, seconds: int) -> list[dict[str, Any]]:
    """Run a plan; return what came of the whole run, of each span, and of each second: `what`, and `time`, its end.

    Queue is the mean number of waiting tuples and throughput the results per second, both while there is input;
    latency is the mean of all results of the run, or of the span. Of the whole run there are also the latency of what
    is delivered in the last third of the input's time, the number of calls, and the share of time of each algorithm.
    """
    summary, seen = run_watched(
        network_of(plan, seed, seconds),
        f"fifo/box/{plan.train}/wait:off",
        layer_of(policy, seed),
        every=LOOK,
        model={
            "costs": {"op3": plan.boxes[2].cost / 1000} if plan.keys else {},
            "overheads": {"call": plan.call / 1000},
        },
    )
    at = {totals.now // SECOND: totals for totals in reversed(seen)}
    for end in range(1, seconds + 1):
        at.setdefault(end, at[end - 1])  # all was delivered before this moment, and nobody looked any more

    def told(begin: int, end: int) -> dict[str, float]:
        interval = Interval(at[begin], at[end])
        return {"queue": interval.queued(), "latency": interval.latency(), "throughput": interval.throughput()}

    shares = summary["adaptive"]["time"]
    whole = {
        **told(0, seconds),
        "latency": float(summary["outputs"]["results"]["latency"]["mean"]),
        "late latency": told(seconds - seconds // 3, seconds)["latency"],
        "calls": int(summary["box_calls"]),
        **{f"time of {name}": float(shares.get(name, 0.0)) for name in SINGLES},
    }
    return [
        {"what": "run", "time": seconds, **whole},
        *({"what": "span", "time": end, **told(end - SPAN, end)} for end in range(SPAN, seconds + 1, SPAN)),
        *({"what": "second", "time": end, **told(end - 1, end)} for end in range(1, seconds + 1)),
    ]


def measure(task: Task) -> list[Row]:
    """Carry out one run: a row for the whole of it, one for each span, and one for each second."""
    return [{**task, **row} for row in _run(task["plan"], task["policy"], task["seed"], task["seconds"])]


@cache
def _run(plan: str, policy: str, seed: int, seconds: int) -> Sequence[Mapping[str, float]]:
    """Run a plan once for all figures: they share the single algorithms' runs."""
    return run_plan(PLANS[plan], policy, seed, seconds)


def tasks_of(policies: Mapping[str, Sequence[str]], seeds: Sequence[int], seconds: int) -> list[Task]:
    """Return the runs: by plan, the policies."""
    return [
        {"plan": plan, "policy": policy, "seed": seed, "seconds": seconds}
        for plan, names in policies.items()
        for policy in names
        for seed in seeds
    ]


SECONDS = 15
"""Of input in a run: three spans, one of which is a burst."""
SEEDS, QUICK_SEEDS = range(1, 11), range(1, 4)
TURNS = (
    "Round robin has a time slice, as in the paper; the paper does not say how long it is. Ours is 25 ms, so that a "
    "round of four operators is as long as a turn of AMoS.",
    "AMoS is as in the paper (no fading history, decay 0.25); its turns last 100 ms, for the paper does not say how "
    "long. Algorithms then work on what others leave, which is where its gain comes from.",
)
