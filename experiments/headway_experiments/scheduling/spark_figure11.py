"""Figure 11 of the paper on operator scheduling, on Spark: QoS-aware scheduling against round robin over queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.plots import finish, line, panels
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure11 import SIGNIFICANT, difference, stable
from headway_experiments.scheduling.loads import LOOSE, TIGHT
from headway_experiments.scheduling.spark_networks import applications, batch_cost, cost_in_run, plan_spells, run_spells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APPLICATIONS = 6
SLOWER = 9
"""By what the paper's latency graphs are stretched, for each second that a micro-batch costs on this machine.

A round over six queries takes six micro-batches; so the tight graph falls over the time of one round and a half.
"""
POLICIES = {"QoS-aware": "qos", "round robin": "round-robin"}
LOW, HIGH, TOO_MUCH = 0.4, 0.7, 2.0
SECONDS = 3.0
"""Of arrivals in a spell."""
PATIENCE = 14
"""Micro-batches for which nothing arrives after a spell, and so much longer as its work took too long."""


def graphs(stretch: float) -> list[tuple[tuple[float, float], ...]]:
    """Return the applications' latency graphs: tight and loose in turn, the paper's with this many times as long."""
    return [
        tuple((stretch * seconds, worth) for seconds, worth in (LOOSE if at % 2 else TIGHT))
        for at in range(APPLICATIONS)
    ]


def tasks(quick: bool) -> Sequence[Task]:
    """Return a run for each repetition, in which loads and policies follow each other."""
    return [{"seed": seed} for seed in range(1, 2 if quick else 6)]


def measure(task: Task) -> Sequence[Row]:
    """Run all spells."""
    names = {policy: name for name, policy in POLICIES.items()}
    batch = batch_cost()
    silences = {load: PATIENCE * batch + max(0.0, load - 1) * SECONDS for load in (LOW, HIGH, TOO_MUCH)}
    spells = plan_spells(silences, list(names), task["seed"], SECONDS, APPLICATIONS)
    summary, results = run_spells(applications(graphs(SLOWER * batch)), "output", spells)
    return [
        {
            "load": one.spell.load,
            "policy": names[one.spell.policy],
            "seed": one.spell.seed,
            "tuples": one.spell.tuples,
            "utility": one.seen.utility(),
            "tight": sum(one.seen.utility(at) for at in range(0, APPLICATIONS, 2)) / (APPLICATIONS // 2),
            "loose": sum(one.seen.utility(at) for at in range(1, APPLICATIONS, 2)) / (APPLICATIONS // 2),
            "latency": one.seen.latency(),
            "late": one.late,
            "expected_cost": batch,
            "cost": cost_in_run(summary),
        }
        for one in results
    ]


def check(rows: Rows) -> Sequence[Check]:
    """Judge all rows."""
    below = {load: difference(rows.where(load=load)) for load in (LOW, HIGH)}

    def fell(policy: str) -> Check:
        own = rows.where(policy=policy)
        value = own.where(load=TOO_MUCH).ratio("utility", own.where(load=HIGH))
        return less("", "", value, 1.0, f"utility at {TOO_MUCH} over that at {HIGH}")

    own, other = (rows.where(policy=policy, load=HIGH) for policy in POLICIES)
    tight = own.paired("tight", other, lambda mine, theirs: mine - theirs)
    text = "difference of mean utilities"
    return [
        all_of(
            "above",
            "At every load QoS-aware scheduling of queries gives a higher mean utility than round robin.",
            {f"{load}": more("", "", difference(rows.where(load=load)), 0.0, text) for load in (LOW, HIGH, TOO_MUCH)},
        ),
        all_of(
            "significant",
            f"Up to a load of {HIGH} QoS-aware scheduling of queries gives a mean utility that is higher by at least "
            f"{SIGNIFICANT}.",
            {f"{load}": more("", "", gain, SIGNIFICANT, text) for load, gain in below.items()},
        ),
        stable("stable", f"Up to a load of {HIGH} the difference hardly changes.", below),
        more(
            "by-the-tight",
            "It is the tight applications that gain: twice as much, because they are half of all.",
            tight,
            2 * SIGNIFICANT,
            f"difference of the tight applications' utilities at {HIGH}",
        ),
        all_of(
            "both-fall",
            f"Beyond the capacity, at a load of {TOO_MUCH}, both fall.",
            {policy: fell(policy) for policy in POLICIES},
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot utility over load, of all applications and by class."""
    left, right = panels(figure, 2, sharey=True)
    for at, policy in enumerate(POLICIES):
        own = rows.where(policy=policy)
        line(left, at, policy, *own.curve("load", "utility"))
        line(right, at, f"{policy}, tight", *own.curve("load", "tight"))
        line(right, at + 2, f"{policy}, loose", *own.curve("load", "loose"))
    for axes, title in ((left, "All applications"), (right, "By latency graph")):
        axes.axvline(1.0, color="#888888", linewidth=0.8, linestyle=":")
        axes.set_ylim(0, 1.05)
        finish(axes, "load (share of a core)", "mean utility", title, legend=False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2)


register("scheduling-fig11-spark", engine="spark", tasks=tasks, measure=measure, check=check, draw=draw, size=(9, 4.0))
