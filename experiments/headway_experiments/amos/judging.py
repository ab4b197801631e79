"""What the figures on AMoS have in common: it against each single algorithm, against their mean, and by weights.

Runs with the same seed have the same arrivals. So all ratios are taken seed by seed, and then their mean. The overall
cost of a run is the sum, over what is wanted, of weight x value / mean of the single algorithms; of throughput, the
inverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headway_experiments.amos.controls import COIN, CONTROLS, INVERTED
from headway_experiments.amos.plans import LABELS, OBJECTIVES, SINGLES, TAGS
from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows


def runs(rows: Rows, plan: str, policy: str) -> Rows:
    """Return the whole runs of a plan by a policy."""
    return rows.where(plan=plan, policy=policy, what="run")


def of_each(rows: Rows, plan: str, policy: str, column: str, singles: Sequence[str] = SINGLES) -> dict[str, Interval]:
    """Return by single algorithm the policy's value as a share of its value."""
    own = runs(rows, plan, policy)
    return {LABELS[single]: own.ratio(column, runs(rows, plan, single)) for single in singles}


def below_each(
    key: str, claim: str, rows: Rows, plan: str, policy: str, column: str, singles: Sequence[str] = SINGLES
) -> Check:
    """Check that a policy's value is below that of each single algorithm."""
    found = of_each(rows, plan, policy, column, singles)
    return all_of(key, claim, {name: less(key, "", ratio, 1, "ratio") for name, ratio in found.items()})


def means(rows: Rows, plan: str, column: str) -> dict[float, float]:
    """Return by seed the mean of a column over the single algorithms."""
    found: dict[float, list[float]] = {}
    for single in SINGLES:
        for row in runs(rows, plan, single):
            found.setdefault(float(row["seed"]), []).append(float(row[column]))
    return {seed: sum(values) / len(values) for seed, values in found.items()}


def of_mean(rows: Rows, plan: str, policy: str, column: str) -> Interval:
    """Return the policy's value as a share of the mean over the single algorithms."""
    mean = means(rows, plan, column)
    return Interval.of([float(row[column]) / mean[float(row["seed"])] for row in runs(rows, plan, policy)])


def gain(rows: Rows, plan: str, policy: str, less: str, more: str) -> Interval:
    """Return by how many percentage points more a policy is below the mean in one column than above it in another."""
    low, high = means(rows, plan, less), means(rows, plan, more)
    own = runs(rows, plan, policy)
    shares = [(float(row[less]) / low[float(row["seed"])], float(row[more]) / high[float(row["seed"])]) for row in own]
    return Interval.of([100 * ((1 - below) - (above - 1)) for below, above in shares])


def costs(rows: Rows, plan: str, policy: str, weights: Mapping[str, float]) -> Rows:
    """Return for each run its overall cost: about 1 is what single algorithms have in the mean."""
    mean = {metric: means(rows, plan, metric) for metric in weights}
    found: list[Row] = []
    for row in runs(rows, plan, policy):
        seed = float(row["seed"])
        shares = {metric: float(row[metric]) / mean[metric][seed] for metric in weights}
        parts = [weights[metric] * (1 / one if metric == "throughput" else one) for metric, one in shares.items()]
        found.append({"seed": seed, "cost": sum(parts) / sum(weights.values())})
    return Rows(found)


def better_overall(key: str, claim: str, rows: Rows, plan: str, objective: str) -> Check:
    """Check that AMoS, asked for an objective, costs less overall by its weights than each single algorithm."""
    weights = OBJECTIVES[objective]
    own = costs(rows, plan, objective, weights)
    parts = {
        LABELS[single]: less(key, "", own.ratio("cost", costs(rows, plan, single, weights)), 1, "ratio")
        for single in SINGLES
    }
    return all_of(key, claim, parts)


def wins(rows: Rows, plan: str, policy: str, single: str, column: str) -> Interval:
    """Return in what share of spans the policy's value is at most the single algorithm's, seed by seed."""
    theirs = {(row["seed"], row["time"]): row for row in rows.where(plan=plan, policy=single, what="span")}
    found: dict[float, list[bool]] = {}
    for row in rows.where(plan=plan, policy=policy, what="span"):
        other = theirs[row["seed"], row["time"]]
        found.setdefault(float(row["seed"]), []).append(float(row[column]) <= float(other[column]))
    return Interval.of([sum(won) / len(won) for won in found.values()])


def often_below_each(key: str, claim: str, rows: Rows, plan: str, policy: str, column: str) -> Check:
    """Check that against each single algorithm a policy's value is no larger in at least half of the spans."""
    parts = {}
    for single in SINGLES:
        share = wins(rows, plan, policy, single, column)
        inside = share.low >= 0.5 or share.high < 0.5
        parts[LABELS[single]] = Check(key, "", share.mean >= 0.5, f"share of spans: {share}", inside)
    return all_of(key, claim, parts)


def shares_within(key: str, claim: str, rows: Rows, cases: Sequence[tuple[str, str]], low: float, high: float) -> Check:
    """Check that under AMoS each algorithm has a share of the time within bounds, for each plan and objective."""
    parts = {}
    for plan, objective in cases:
        own = runs(rows, plan, objective)
        for single in SINGLES:
            share, name = own.mean(f"time of {single}"), f"{plan}, {objective}, {LABELS[single]}"
            parts[f"{name}, at least"] = more(key, "", share, low, "share of time")
            parts[f"{name}, at most"] = less(key, "", share, high, "share of time")
    found = all_of(key, claim, parts)
    if not found.holds:
        return found
    every = [runs(rows, plan, objective).mean(f"time of {single}") for plan, objective in cases for single in SINGLES]
    smallest, largest = min(every), max(every)
    return Check(key, claim, True, f"shares of time from {smallest} to {largest}", found.certain)


ALIKE = 0.1
"""Costs that differ by less are alike."""


def to_control(rows: Rows, plan: str, objective: str, control: str) -> Interval:
    """Return the overall cost of AMoS, asked for an objective, over that with a control in place of learning."""
    weights = OBJECTIVES[objective]
    return costs(rows, plan, objective, weights).ratio("cost", costs(rows, plan, f"{objective}, {control}", weights))


def learned(rows: Rows, plans: Sequence[str], objectives: Sequence[str]) -> list[Check]:
    """Check on each plan that learning pays: AMoS costs less than with each control, for all objectives."""
    found = []
    for control, key in ((COIN, "coin"), (INVERTED, "inverted")):
        for plan in plans:
            instead = f"with {CONTROLS[control]} in place of the wheel"
            claim = f"Learning pays: on {plan} AMoS is better by its weights than {instead}."
            parts = {
                objective: less("", "", to_control(rows, plan, objective, control), 1, "ratio of costs")
                for objective in objectives
            }
            found.append(all_of(f"{key}-{TAGS[plan]}", claim, parts))
    return found


def like_a_coin(rows: Rows, plans: Sequence[str], objectives: Sequence[str]) -> Check:
    """Check that the wheel and a fair coin cost about the same."""

    def apart(plan: str, objective: str) -> Interval:
        ratio = to_control(rows, plan, objective, COIN)
        return Interval(abs(ratio.mean - 1), ratio.reach)

    return all_of(
        "like-coin",
        f"Evidence: a fair coin in place of learning costs the same, up to {ALIKE:.0%}, on all plans.",
        {
            f"{plan}, {objective}": less("", "", apart(plan, objective), ALIKE, "off by")
            for plan in plans
            for objective in objectives
        },
    )
