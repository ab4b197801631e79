"""Figure 3: state-based execution against a thread for each box, over the number of operators.

Queries are chains of five filters, all with the same input rate, so that more operators mean more work. Which rate is
too high depends on the machine; so each repetition first measures what a tuple costs the state-based engine with the
largest number of operators, and sets the rate so that it is busy for most of the time there. All that is compared is
measured within a minute, and as ratios.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.compare.figures import mean_over_outputs
from headway_experiments import checks, plots
from headway_experiments.checks import ABOUT, Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.trees import run_for_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHAIN = 5
"""Filters in a query."""
AURORA, THREADS = "round-robin/superbox", "threads/1"
POLICIES = {
    THREADS: "thread per box, tuple by tuple",
    "threads": "thread per box, trains",
    "round-robin/box": "state-based, box at a time",
    AURORA: "state-based, superboxes",
}
LOAD = 0.7
"""How busy the state-based engine is at the largest number of operators, if it does not take longer trains."""
LEAD = 0.06
"""Seconds before the first tuples, in which threads are started."""


def chains(operators: int, arrivals: dict[str, Any]) -> dict[str, Any]:
    """Return a network of chains of filters, which let everything pass; all sources have the same arrivals."""
    sources: dict[str, Any] = {}
    boxes: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for query in range(operators // CHAIN):
        name = f"s{query}"
        made = {**arrivals, "seed": query + 1, "fields": {"a": {"uniform": [0, 999]}}}
        sources[name] = {"schema": {"a": "int"}, "source": {"generate": made}}
        for place in range(CHAIN):
            box = f"q{query}f{place}"
            boxes[box] = {"op": "filter", "in": name, "where": f"a >= {-place}"}
            name = box
        outputs[f"o{query}"] = {"from": name}
    return {"network": "chains", "sources": sources, "boxes": boxes, "outputs": outputs}


def _tasks(quick: bool) -> Sequence[Task]:
    # A repetition is one task: its points share a rate, and the minute in which they were measured.
    if quick:
        return [
            {"seed": seed, "operators": (50, 100, 200), "policies": (THREADS, AURORA), "seconds": 0.3}
            for seed in (1, 2)
        ]
    return [
        {"seed": seed, "operators": (50, 100, 200, 400), "policies": tuple(POLICIES), "seconds": 0.4}
        for seed in range(1, 6)
    ]


def _measure(task: Task) -> Sequence[Row]:
    most = max(task["operators"])
    rate = LOAD / _cost(most) / (most // CHAIN)
    rows: list[Row] = []
    for operators in task["operators"]:
        arrivals = {"phases": [[LEAD, 0.0], [task["seconds"], rate]]}
        for policy in task["policies"]:
            network = chains(operators, arrivals)
            summary = run_for_summary(network, "local", policy)
            rows.append(
                {
                    "seed": task["seed"],
                    "operators": operators,
                    "policy": policy,
                    "rate": rate,
                    "latency": mean_over_outputs(summary, "p50"),
                    "late": (summary["seconds"] - LEAD) / task["seconds"] - 1,
                }
            )
    return rows


def _cost(operators: int) -> float:
    """Return the seconds for which the state-based engine is busy for a tuple, where all queries get one at a time.

    Other work on the machine counts, as it will in what is compared. Enough tuples come for the start of sources not to
    count for much.
    """
    network = chains(operators, {"phases": [[LEAD, 0.0], [0.15, 150.0]]})
    tries = [run_for_summary(network, "local", AURORA) for _ in range(2)]
    return float(sum(sum(one["time"].values()) / one["tuples_in"] for one in tries) / len(tries))


def _growth(rows: Rows, policy: str, low: int, high: int) -> Interval:
    """Return how many times as long latency is with more operators."""
    own = rows.where(policy=policy)
    return own.where(operators=high).ratio("latency", own.where(operators=low))


def by_factor(low: Sequence[float], middle: Sequence[float], high: Sequence[float]) -> Interval:
    """Return by what the logarithm grows per operator from n to 2 n operators, over that from n / 2 to n.

    1 is an exponential: so many operators more always multiply latency by the same factor. A power of the number of
    operators gives a half. Each is the latency of several runs.
    """
    first = [math.log(after / before) for before, after in zip(low, middle, strict=True)]
    second = [math.log(after / before) for before, after in zip(middle, high, strict=True)]
    mean = sum(first) / len(first)
    if mean <= 0:
        return Interval(math.inf, 0.0)
    return Interval.of([one / (2 * mean) for one in second])


def _check(rows: Rows) -> Sequence[Check]:
    most = rows.levels("operators")[-1]
    few, half = most // 4, most // 2
    aurora, threads = rows.where(policy=AURORA), rows.where(policy=THREADS)
    latencies = [threads.where(operators=operators).values("latency") for operators in (few, half, most)]
    return [
        checks.all_of(
            "degrade",
            "Latency grows with the number of operators in both models.",
            {
                POLICIES[policy]: checks.more(
                    "", "", _growth(rows, policy, few, most), 1, f"{most} over {few} operators"
                )
                for policy in (THREADS, AURORA)
            },
        ),
        checks.all_of(
            "aurora-below",
            "The state-based model has the lower latency at every number of operators.",
            {
                f"{operators} operators": checks.more(
                    "",
                    "",
                    threads.where(operators=operators).ratio("latency", aurora.where(operators=operators)),
                    1,
                    "threads / state-based",
                )
                for operators in rows.levels("operators")
            },
        ),
        checks.less(
            "aurora-linear",
            f"State-based, it grows about linearly or less: with 4 times the operators less than {4 * ABOUT:g} times.",
            _growth(rows, AURORA, few, most),
            4 * ABOUT,
            f"{most} over {few} operators",
        ),
        checks.more(
            "threads-steep",
            "With threads it grows steeply: with 4 times the operators more than 16 times, more than the square.",
            _growth(rows, THREADS, few, most),
            16,
            f"{most} over {few} operators",
        ),
        checks.more(
            "threads-more",
            f"With threads it grows more than linearly: with 4 times the operators more than {4 * ABOUT:g} times.",
            _growth(rows, THREADS, few, most),
            4 * ABOUT,
            f"{most} over {few} operators",
        ),
        checks.about(
            "threads-exponential",
            "It does so exponentially: further operators multiply latency by about the same factor as those before.",
            by_factor(latencies[0], latencies[1], latencies[2]),
            1,
            "growth of the logarithm, second half over first",
        ),
        checks.more(
            "threads-behind",
            "At the largest number of operators threads fall behind: the last results come later than the last tuples "
            "by more than 10 % of the time for which tuples come.",
            threads.where(operators=most).mean("late"),
            0.1,
            "later by",
        ),
        checks.less(
            "aurora-keeps-up",
            "The state-based engine falls behind by less than half as much there.",
            aurora.where(operators=most).ratio("late", threads.where(operators=most)),
            0.5,
            "state-based / threads",
        ),
    ]


def _notes(rows: Rows) -> str:
    """Return all latencies."""
    numbers = rows.levels("operators")
    lines = [
        f"| median latency (ms) | {' | '.join(f'{one} operators' for one in numbers)} |",
        "|---" * (len(numbers) + 1) + "|",
    ]
    for policy in rows.levels("policy"):
        own = rows.where(policy=policy)
        means = [own.where(operators=one).mean("latency") for one in numbers]
        cells = " | ".join(str(Interval(one.mean * 1000, one.reach * 1000)) for one in means)
        lines.append(f"| {POLICIES[policy]} (`{policy}`) | {cells} |")
    return "\n".join(lines)


def _draw(rows: Rows, figure: Figure) -> None:
    left, right = plots.panels(figure, 2)
    right.set_yscale("log")
    for axes in (left, right):
        for at, policy in enumerate(one for one in POLICIES if one in rows.levels("policy")):
            operators, means = rows.where(policy=policy).curve("operators", "latency")
            plots.line(
                axes, at, POLICIES[policy], operators, [Interval(one.mean * 1000, one.reach * 1000) for one in means]
            )
    plots.finish(left, "operators", "median latency (ms)", "linear scale")
    plots.finish(right, "operators", "median latency (ms)", "logarithmic scale", legend=False)
    # Intervals of few repetitions may reach below 0, latencies do not.
    left.set_ylim(bottom=0)
    right.set_ylim(bottom=500 * min(rows.values("latency")))


EXPERIMENT = register(
    "scheduling-fig3",
    engine="local",
    tasks=_tasks,
    measure=_measure,
    check=_check,
    draw=_draw,
    notes=_notes,
    size=(9.0, 3.6),
)
