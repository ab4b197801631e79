"""Figures 13 and 14: slope-slack in buckets against the exact order, over the number of partitions.

Buckets trade the quality of a decision for its cost. Both are taken apart here: every policy serves the same chains
(see `deciding`) once at a cost of decisions that is the same for all, which shows the quality, and once at its own,
which is measured and is what the paper's figure shows. Times are relative to those of the exact order, so that the
result does not depend on how fast the machine is.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from headway.clock import MICROSECOND, SECOND
from headway.compare.figures import mean_over_outputs
from headway.network.qos import Graph
from headway_experiments import checks, plots
from headway_experiments.checks import Check
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.deciding import Chains, draw_chains, serve
from headway_experiments.scheduling.loads import LOOSE, MEAN_COST, TIGHT, arrivals, draw_costs
from headway_experiments.trees import SCHEMA, run_for_summary, together, tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APPLICATIONS, DEPTH = 200, 5
SECONDS = 20.0
"""For how long tuples arrive, in virtual time."""
SCALE = 32
"""By how much boxes and decisions are slower than the paper's boxes and our decisions: all of it alike, so that a run
of seconds has a thousand decisions instead of many ten thousand."""
LOAD, LESS, OTHER = 1.2, 0.9, 1.1
SHARE = 1 / 16
"""What an exact decision costs, as a share of what a tuple costs a box on average."""
PARTITIONS = (1, 2, 5, 10, 20, 40, 100, 260, 500, 1000)
SOME = (1, 2, 5, 20, 100, 260, 1000)
"""Those of the quick form."""
BEST, CROSSING = 20, 260
PAPER_ONE, PAPER_EXACT, PAPER_BEST = 0.427, 0.796, 0.85
GROWN = 1.5
"""More than about the same."""
EXACT, TURNS = "slope-slack", "round-robin"

REAL_APPLICATIONS, REAL_LOAD, REAL_SCALE = 205, 0.75, 1 / 16


def tasks(quick: bool) -> list[Task]:
    """Return a run for each seed, kind of graphs, load and policy."""
    made: list[Task] = []
    partitions = SOME if quick else PARTITIONS
    for seed in range(1, 4 if quick else 7):
        plain = [EXACT, TURNS, *(f"bucketed:{count}" for count in partitions)]
        made += [_task("two", LOAD, policy, seed) for policy in plain]
        own = [EXACT, *(f"bucketed:{count}" for count in ((2, BEST, 100) if quick else partitions))]
        made += [_task("own", LOAD, policy, seed) for policy in own]
        made += [_task("two", LESS, policy, seed) for policy in (EXACT, f"bucketed:{CROSSING}")]
        made += [_task("two", OTHER, policy, seed) for policy in (EXACT, f"bucketed:{BEST}")]
    if not quick:
        real = (EXACT, "bucketed:1", f"bucketed:{BEST}", f"bucketed:{CROSSING}", "bucketed:1000")
        made += [_task("real", REAL_LOAD, policy, seed) for seed in (1, 2) for policy in real]
    return made


def _task(graphs: str, load: float, policy: str, seed: int) -> Task:
    return {"graphs": graphs, "load": load, "policy": policy, "seed": seed}


def measure(task: Task) -> list[Row]:
    """Carry out one run."""
    policy, seed, load = task["policy"], task["seed"], task["load"]
    name, _, count = policy.partition(":")
    setting = {**task, "policy": name, "partitions": int(count or 0)}
    if task["graphs"] == "real":
        return [{**setting, **_run_for_real(policy, load, seed)}]
    chains = _chains(task["graphs"], load, seed)
    flat = round(SHARE * SCALE * MEAN_COST * SECOND)
    if policy == EXACT:
        same = served = serve(chains, policy, flat)
        relative = 1.0
    else:
        same = serve(chains, policy, flat, beside=EXACT)
        relative = same.took / same.beside
        served = serve(chains, policy, round(relative * flat))
    return [
        {
            **setting,
            "planning": same.took / MICROSECOND,
            "relative": relative,
            "equal": same.utility,
            "utility": served.utility,
            "latency": served.latency,
            "ready": same.ready,
        }
    ]


@lru_cache(maxsize=2)
def _chains(graphs: str, load: float, seed: int) -> Chains:
    """Return the chains of a run: with the two graphs of figure 11, or with a graph of its own for each application."""
    chains = draw_chains(APPLICATIONS, DEPTH, load, SECONDS, seed, SCALE)
    if graphs == "two":
        return chains
    chance = random.Random(seed)
    return replace(chains, graphs=tuple(own_graph(chance) for _ in range(APPLICATIONS)))


def own_graph(chance: random.Random) -> Graph:
    """Return a graph that is good until a moment in the first 4 s, and falls to 0 within another 0.2 to 5 s."""
    good = chance.uniform(0.001, 4)
    return Graph(((0.0, 1.0), (good, 1.0), (good + chance.uniform(0.2, 5), 0.0)))


def _run_for_real(policy: str, load: float, seed: int) -> dict[str, float]:
    """Run the chains on the engine `local`, with boxes that burn time and graphs as much shorter as the run is."""
    chance = random.Random(seed)
    costs = [draw_costs(DEPTH, 1, 1000 * seed + at) for at in range(REAL_APPLICATIONS)]
    parts = []
    for at, own in enumerate(costs):
        graph = [(x * REAL_SCALE, y) for x, y in chance.choice((TIGHT, LOOSE))]
        parts.append(tree(DEPTH, 1, lambda level, place, own=own: {"cost": own[level, place]}, _leaf, f"q{at}", graph))  # type: ignore[misc]
    network = together("buckets", parts)
    seconds = SECONDS * REAL_SCALE
    work = sum(sum(one.values()) for one in costs) / REAL_APPLICATIONS
    inputs = arrivals(list(network["sources"]), round(load * seconds / work), seconds, seed)
    summary = run_for_summary(network, "local", f"{policy}/box/1/plan:1/wait:off", inputs=inputs)
    return {
        "planning": 1e6 * summary["time"]["scheduler"] / summary["plans"],
        "utility": mean_over_outputs(summary, "utility"),
        "latency": mean_over_outputs(summary, "mean"),
    }


def _leaf(_: int) -> Mapping[str, Any]:
    return {"schema": SCHEMA}


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims, and what explains where ours differs."""
    two = rows.where(graphs="two", load=LOAD)
    exact, turns = two.where(policy=EXACT), two.where(policy=TURNS)
    own = rows.where(graphs="own")

    def some(count: int, among: Rows = two) -> Rows:
        return among.where(policy="bucketed", partitions=count)

    best, far = some(BEST), some(1000)
    return [
        checks.less(
            "round-robin",
            "With one bucket the order is that of round robin: at the same cost of decisions the QoS differs by less "
            "than 0.01.",
            some(1).paired("equal", turns, lambda mine, theirs: abs(mine - theirs)),
            0.01,
            "difference of QoS",
        ),
        checks.about(
            "one-bucket",
            f"One bucket is far worse than the exact order: about {PAPER_ONE / PAPER_EXACT:.2f} of its QoS.",
            some(1).ratio("utility", exact),
            PAPER_ONE / PAPER_EXACT,
            "QoS with one bucket, of exact",
        ),
        checks.about(
            "rises",
            f"From one bucket to {BEST} partitions QoS rises sharply: about {PAPER_BEST / PAPER_ONE:.1f} times.",
            best.ratio("utility", some(1)),
            PAPER_BEST / PAPER_ONE,
            f"QoS with {BEST} partitions, of one bucket",
        ),
        checks.more(
            "beats-exact",
            f"With {BEST} partitions QoS is above that of the exact order.",
            best.ratio("utility", exact),
            1,
            f"QoS with {BEST} partitions, of exact",
        ),
        checks.less(
            "cheaper",
            f"The reason is the scheduler's overhead: with {BEST} partitions a decision costs less than an exact one.",
            best.mean("relative"),
            1,
            f"a decision with {BEST} partitions, of an exact one",
        ),
        _best(two),
        checks.less(
            "flat-before",
            f"Below some 30 partitions overhead does not grow: with {BEST} it is about that with 5.",
            best.ratio("relative", some(5)),
            GROWN,
            f"a decision with {BEST} partitions, of one with 5",
        ),
        checks.more(
            "grows-beyond",
            f"Beyond some 30 partitions overhead grows: with {CROSSING} it is no longer about that with {BEST}.",
            some(CROSSING).ratio("relative", best),
            GROWN,
            f"a decision with {CROSSING} partitions, of one with {BEST}",
        ),
        checks.less(
            "declines",
            f"QoS then declines: with {CROSSING} partitions it is below that with {BEST}.",
            some(CROSSING).ratio("utility", best),
            1,
            f"QoS with {CROSSING} partitions, of {BEST}",
        ),
        checks.less(
            "worse-far-beyond",
            "Far beyond, with 1,000 partitions, QoS is below that of the exact order.",
            far.ratio("utility", exact),
            1,
            "QoS with 1,000 partitions, of exact",
        ),
        checks.about(
            "crossing",
            f"QoS falls below that of the exact order at about {CROSSING} partitions.",
            _crossings(two),
            CROSSING,
            "partitions where it does",
        ),
        *_evidence(rows, two, own),
    ]


def _evidence(rows: Rows, two: Rows, own: Rows) -> list[Check]:
    exact = two.where(policy=EXACT)
    pair = own.where(policy="bucketed", partitions=2)
    several = own.where(policy="bucketed", partitions=BEST)
    fewer, other = (rows.where(graphs="two", load=load) for load in (LESS, OTHER))

    def relative(among: Rows) -> Interval:
        return among.where(policy="bucketed", partitions=CROSSING).mean("relative")

    return [
        checks.more(
            "two-suffice",
            "With the two graphs of figure 11 two partitions already give the right order: at the same cost of "
            "decisions they have more than 0.95 of the exact order's QoS.",
            two.where(policy="bucketed", partitions=2).ratio("equal", exact),
            0.95,
            "QoS with two partitions, of exact",
        ),
        checks.more(
            "own-graphs",
            f"Where each application has a graph of its own two partitions are too few: {BEST} have more QoS.",
            several.ratio("utility", pair),
            1,
            f"QoS with {BEST} partitions, of two",
        ),
        checks.more(
            "own-graphs-decline",
            f"There, too, 100 partitions are too many: {BEST} have more QoS.",
            several.ratio("utility", own.where(policy="bucketed", partitions=100)),
            1,
            f"QoS with {BEST} partitions, of 100",
        ),
        checks.less(
            "few-wait",
            f"Where few boxes wait, at load {LESS:g}, {CROSSING} partitions still cost less than the exact order.",
            relative(fewer),
            1,
            f"boxes waiting: {fewer.where(policy=EXACT).mean('ready')}; "
            f"a decision with {CROSSING} partitions, of an exact one",
        ),
        checks.more(
            "many-wait",
            f"Where many wait, at load {LOAD:g}, they cost more.",
            relative(two),
            1,
            f"boxes waiting: {exact.mean('ready')}; a decision with {CROSSING} partitions, of an exact one",
        ),
        checks.more(
            "other-load",
            f"Also at load {OTHER:g}, {BEST} partitions have more QoS than the exact order.",
            other.where(policy="bucketed", partitions=BEST).ratio("utility", other.where(policy=EXACT)),
            1,
            f"QoS with {BEST} partitions, of exact",
        ),
    ]


def _best(two: Rows) -> Check:
    """Check that no number of partitions that was tried is better than 20."""
    buckets = two.where(policy="bucketed")
    best = buckets.where(partitions=BEST)
    others = {
        count: buckets.where(partitions=count).paired("utility", best, lambda mine, theirs: mine - theirs)
        for count in buckets.levels("partitions")
        if count != BEST
    }
    count = max(others, key=lambda one: others[one].mean)
    return checks.less(
        "best-at-20",
        f"QoS is highest with {BEST} partitions: with any other number it is lower.",
        others[count],
        0,
        f"QoS with {count} partitions, less that with {BEST}",
    )


def _crossings(two: Rows) -> Interval:
    """Return at how many partitions QoS falls below the exact order's, seed by seed."""
    found = []
    for seed in two.levels("seed"):
        own = two.where(seed=seed)
        exact = own.where(policy=EXACT).mean("utility").mean
        xs, means = own.where(policy="bucketed").curve("partitions", "utility")
        found.append(crossing(xs, [mean.mean - exact for mean in means]))
    return Interval.of(found)


def crossing(xs: Sequence[float], ahead: Sequence[float]) -> float:
    """Return where a curve falls below 0 after its highest point, between two x by their logarithms.

    That is the last x if it does not, and the x of the highest point if it is nowhere above 0.
    """
    top = max(range(len(xs)), key=lambda at: ahead[at])
    if ahead[top] <= 0:
        return xs[top]
    for at in range(top + 1, len(xs)):
        if ahead[at] < 0:
            part = ahead[at - 1] / (ahead[at - 1] - ahead[at])
            return math.exp((1 - part) * math.log(xs[at - 1]) + part * math.log(xs[at]))
    return xs[-1]


def draw(rows: Rows, figure: Figure) -> None:
    """Draw QoS and the cost of decisions over partitions."""
    two, own = rows.where(graphs="two", load=LOAD), rows.where(graphs="own")
    left, right = plots.panels(figure, 2)
    for at, (label, some) in enumerate({"tight and loose graphs": two, "a graph for each application": own}.items()):
        xs, means = some.where(policy="bucketed").curve("partitions", "utility")
        plots.line(left, at, f"buckets, {label}", xs, means)
        exact = some.where(policy=EXACT).mean("utility").mean
        colour = plots.COLOURS[at]
        left.axhline(exact, color=colour, linewidth=1, linestyle=":", label=f"exact order, {label}")
    xs, means = two.where(policy="bucketed").curve("partitions", "relative")
    plots.line(right, 0, "buckets", xs, means)
    right.axhline(1, color=plots.COLOURS[0], linewidth=1, linestyle=":", label="exact order")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
        axes.set_ylim(bottom=0)
    plots.finish(left, "partitions of gradient and of slack", "QoS (mean utility of results)", "figure 13")
    plots.finish(right, "partitions of gradient and of slack", "cost of a decision, of an exact one", "figure 14")


def notes(rows: Rows) -> str:
    """Return what the runs on the engine `local` gave, where there are any."""
    if "real" not in rows.levels("graphs"):
        return ""
    real = rows.where(graphs="real")
    lines = [
        f"The same for real, on the engine `local`: {REAL_APPLICATIONS} applications at load {REAL_LOAD:g}, a decision "
        f"for each tuple and box (`plan:1`), boxes that burn the paper's 0.1 to 1 ms, graphs and run "
        f"{1 / REAL_SCALE:g} times shorter. The engine's own work is in the time of a decision. These runs are not "
        "judged: other processes disturb them.",
        "",
        "| order | QoS | a decision (µs) |",
        "|---|---:|---:|",
    ]
    for count in real.levels("partitions"):
        some = real.where(partitions=count)
        name = {0: "exact", 1: "one bucket"}.get(count, f"{count:,} partitions")
        lines.append(f"| {name} | {some.mean('utility')} | {some.mean('planning')} |")
    return "\n".join(lines)


EXPERIMENT = register(
    "scheduling-fig13", engine="local", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.8)
)
