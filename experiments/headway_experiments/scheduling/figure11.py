"""Figure 11 of the paper on operator scheduling: QoS-aware scheduling against round robin, over load."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.compare.figures import mean_over_outputs
from headway_experiments.checks import ABOUT, Check, all_of, given, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.intervals import Interval
from headway_experiments.plots import finish, line, panels
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure5 import overheads
from headway_experiments.scheduling.loads import TIGHT, chains
from headway_experiments.trees import run_for_summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

APPLICATIONS, DEPTH = 20, 5
QOS, TURNS = "QoS-aware", "round robin"
POLICIES = {QOS: "slope-slack/box", TURNS: "round-robin/box"}
GROUP = 20
"""Tuples that come together, where they come in groups."""
LOW, FULL = 0.4, 0.7
"""A load far below, and the one from which on the paper's system is overloaded."""
TOP, BEYOND = 1.0, 2.0
"""The highest load of the figure, and one at which the tight applications alone are too much."""
OVERLOADED = 20.0
"""By what costs and overheads are multiplied at loads above FULL.

What counts there is how many seconds late the system is in the end, and so how long it runs: so a twentieth of the
tuples is enough.
"""
SIGNIFICANT = 0.1
"""The least difference of mean utilities that we call significant; the paper's text gives no number."""


def tasks(quick: bool) -> Sequence[Task]:
    """Return all runs; the quick form has fewer loads and shorter streams."""
    below = (LOW, FULL) if quick else (0.2, LOW, 0.6, FULL)
    above = (TOP, BEYOND) if quick else (0.8, 0.9, TOP, BEYOND)
    grouped = (0.3, FULL) if quick else (0.3, 0.5, FULL)
    wanted = [(load, "single", 100 if quick else 400, seed) for load in below for seed in range(1, 3 if quick else 7)]
    wanted += [(load, "single", 300 if quick else 500, seed) for load in above for seed in range(1, 3 if quick else 7)]
    wanted += [
        (load, "groups", (2 if quick else 5) * GROUP * APPLICATIONS, seed)
        for load in grouped
        for seed in range(1, 4 if quick else 7)
    ]
    return [
        {"load": load, "arrivals": arrivals, "policy": policy, "tuples": tuples, "seed": seed}
        for load, arrivals, tuples, seed in wanted
        for policy in POLICIES
    ]


def measure(task: Task) -> Sequence[Row]:
    """Run one policy at one load."""
    in_groups, load = task["arrivals"] == "groups", task["load"]
    scale = OVERLOADED if load > FULL else 1.0
    loaded = chains(APPLICATIONS, DEPTH, load, task["tuples"], task["seed"], scale, GROUP if in_groups else 0)
    schedule = f"{POLICIES[task['policy']]}/{65_536 if in_groups else 1}"
    model = {"overheads": {name: scale * one for name, one in overheads("paper").items()}}
    summary = run_for_summary(loaded.network, "sim", schedule, inputs=loaded.inputs, model=model)
    tight = tight_outputs(loaded.network)
    return [
        {
            **task,
            "utility": mean_over_outputs(summary, "utility"),
            "tight": utility_of(summary, tight),
            "loose": utility_of(summary, summary["outputs"].keys() - tight),
            "latency": mean_over_outputs(summary, "mean"),
            "behind": summary["seconds"] / loaded.seconds - 1,
        }
    ]


def tight_outputs(network: Mapping[str, Any]) -> set[str]:
    """Return the outputs with the tight graph."""
    tight = [list(point) for point in TIGHT]
    return {name for name, output in network["outputs"].items() if output["qos"]["latency"] == tight}


def utility_of(summary: Mapping[str, Any], names: Collection[str]) -> float:
    """Return the mean utility of all results of these outputs; 1 if there is none."""
    found = [summary["outputs"][name] for name in sorted(names)]
    tuples = sum(one["tuples"] for one in found)
    return float(sum(one["tuples"] * one["utility"] for one in found if one["tuples"]) / tuples) if tuples else 1.0


def difference(rows: Rows) -> Interval:
    """Return by how much the mean utility of the QoS-aware policy is above that of round robin, pair by pair."""
    return rows.where(policy=QOS).paired("utility", rows.where(policy=TURNS), lambda mine, theirs: mine - theirs)


def check(rows: Rows) -> Sequence[Check]:
    """Judge all rows."""
    single, groups = rows.where(arrivals="single"), rows.where(arrivals="groups")
    up_to = [load for load in single.levels("load") if load <= FULL]
    gains = {load: difference(single.where(load=load)) for load in single.levels("load")}
    together = {load: difference(groups.where(load=load)) for load in groups.levels("load")}
    text = "difference of mean utilities"

    def halved(policy: str, load: float) -> Check:
        own = single.where(policy=policy)
        value = own.where(load=load).ratio("utility", own.where(load=FULL))
        return less("", "", value, 0.5, f"utility at {load} over that at {FULL}")

    return [
        all_of(
            "above",
            "At every load QoS-aware scheduling gives a higher mean utility than round robin.",
            {f"{load}": more("", "", gain, 0.0, text) for load, gain in gains.items()},
        ),
        all_of(
            "above-in-figure",
            f"At every load of the paper's figure, up to {TOP}, it does.",
            {f"{load}": more("", "", gain, 0.0, text) for load, gain in gains.items() if load <= TOP},
        ),
        all_of(
            "significant",
            f"Up to a load of {FULL} the difference is significant: at least {SIGNIFICANT}.",
            {f"{load}": more("", "", gains[load], SIGNIFICANT, text) for load in up_to},
        ),
        stable(
            "stable", f"Up to a load of {FULL} the difference hardly changes.", {load: gains[load] for load in up_to}
        ),
        all_of(
            "both-fall",
            f"Beyond {FULL} both fall drastically: at {TOP} each has less than half the utility it has at {FULL}.",
            {policy: halved(policy, TOP) for policy in POLICIES},
        ),
        more(
            "tight-kept",
            f"What keeps QoS-aware scheduling up at {TOP}: its tight applications still have more than half of theirs.",
            single.where(policy=QOS, load=TOP).mean("tight"),
            0.5,
            "mean utility of tight applications",
        ),
        all_of(
            "both-fall-later",
            f"At {BEYOND}, where the tight applications alone are too much, both have lost more than half.",
            {policy: halved(policy, BEYOND) for policy in POLICIES},
        ),
        less(
            "nothing-to-win",
            f"With tuples that come one by one, round robin loses less than {SIGNIFICANT} at a load of {LOW}, so "
            "that no policy could be significantly better.",
            lost(single.where(load=LOW, policy=TURNS)),
            SIGNIFICANT,
            "1 - mean utility of round robin",
        ),
        all_of(
            "groups-significant",
            f"With {GROUP} tuples at every source at the same moment, the difference is at least {SIGNIFICANT} at "
            f"every load up to {FULL}.",
            {f"{load}": more("", "", gain, SIGNIFICANT, text) for load, gain in together.items()},
        ),
        # Up to this load a group is done before the next one comes, so that the load has no influence.
        given(stable("groups-stable", f"And it hardly changes up to {FULL}.", together)),
        more(
            "overload-significant",
            f"With tuples that come one by one, the difference is significant in overload, at {TOP}.",
            gains[TOP],
            SIGNIFICANT,
            text,
        ),
    ]


def lost(rows: Rows) -> Interval:
    """Return the utility that is missing to 1."""
    utility = rows.mean("utility")
    return Interval(1 - utility.mean, utility.reach)


def stable(key: str, claim: str, gains: Mapping[float, Interval]) -> Check:
    """Check that the largest of some differences is less than ABOUT times the smallest."""
    means = [gain.mean for gain in gains.values()]
    holds = 0 < max(means) < ABOUT * min(means)
    evidence = "; ".join(f"{load}: {gain}" for load, gain in gains.items())
    return Check(key, f"{claim} (The largest is less than {ABOUT} times the smallest.)", holds, evidence)


def draw(rows: Rows, figure: Figure) -> None:
    """Plot utility over load: as the paper says, and with groups."""
    left, right = panels(figure, 2, sharey=True)
    _curves(left, Rows(row for row in rows.where(arrivals="single") if float(row["load"]) <= TOP))
    _curves(right, rows.where(arrivals="groups"))
    for axes, title in (
        (left, "Tuples one by one, trains of one"),
        (right, f"Groups of {GROUP} at every source, trains of all"),
    ):
        axes.axvline(FULL, color="#888888", linewidth=0.8, linestyle=":")
        axes.set_xlim(0.1, 1.05)
        axes.set_ylim(0, 1.05)
        finish(axes, "load (share of the capacity)", "mean utility", title, legend=axes is left)


def _curves(axes: Axes, rows: Rows) -> None:
    for at, policy in enumerate(POLICIES):
        own = rows.where(policy=policy)
        line(axes, at, policy, *own.curve("load", "utility"))
        xs, tight = own.curve("load", "tight")
        line(axes, at, f"{policy}, tight", xs, [one.mean for one in tight], alpha=0.45, markersize=3)


register("scheduling-fig11", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, size=(9, 3.6))
