"""What the paper's claims have in common: one policy below another at every level, reductions that rise or fall.

Reductions are taken run by run, over the same plan and the same arrivals, and so are their differences between levels:
a level's plans are those of the other levels, but for what is varied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.intervals import Interval
from headway_experiments.rows import Row, Rows, Value


def reductions(rows: Rows, x: str) -> Rows:
    """Return a row for each level of `x` and seed: by how many per cent PRB is below RB there."""
    found: list[Row] = []
    for level in rows.where(policy="PRB").levels(x):
        other = {row["seed"]: row for row in rows.where(policy="RB", **{x: level})}
        for row in rows.where(policy="PRB", **{x: level}):
            reduced = 100 * (1 - float(row["response"]) / float(other[row["seed"]]["response"]))
            found.append({x: level, "seed": row["seed"], "reduction": reduced})
    return Rows(found)


def difference(rows: Rows, column: str, first: Mapping[str, Value], second: Mapping[str, Value]) -> Interval:
    """Return how much larger a column is in the second setting, over the seeds that both have."""
    one, other = rows.where(**first), rows.where(**second)
    both = set(one.levels("seed")) & set(other.levels("seed"))
    kept = [Rows(row for row in some if row["seed"] in both) for some in (one, other)]
    return kept[1].paired(column, kept[0], lambda mine, theirs: mine - theirs)


def ratio(rows: Rows, better: Mapping[str, Value], worse: Mapping[str, Value]) -> Interval:
    """Return the response time in one setting as a part of that in another, over the seeds that both have."""
    one, other = rows.where(**better), rows.where(**worse)
    both = set(one.levels("seed")) & set(other.levels("seed"))
    kept = [Rows(row for row in some if row["seed"] in both) for some in (one, other)]
    return kept[0].ratio("response", kept[1])


def below(key: str, claim: str, rows: Rows, x: str, better: str, worse: str) -> Check:
    """Check that a policy's response time is below another's at every level at which both were run."""
    levels = [level for level in rows.where(policy=better).levels(x) if level in rows.where(policy=worse).levels(x)]
    parts = {
        f"at {level:g}": less(
            key, "", ratio(rows, {"policy": better, x: level}, {"policy": worse, x: level}), 1, f"{better}/{worse}"
        )
        for level in levels
    }
    return all_of(key, claim, parts)


def steps(key: str, claim: str, rows: Rows, column: str, x: str, levels: Sequence[float], up: bool = True) -> Check:
    """Check that a column grows (or falls) from each of these levels to the next, with two levels at least."""
    compare = more if up else less
    parts = {
        f"{low:g} to {high:g}": compare(key, "", difference(rows, column, {x: low}, {x: high}), 0, "change")
        for low, high in pairwise(levels)
    }
    return all_of(key, claim, parts)


def responses_steps(key: str, claim: str, rows: Rows, x: str, levels: Sequence[float], up: bool) -> Check:
    """Check that the response times of RB and of PRB grow (or fall) from each level to the next."""
    compare = more if up else less
    parts = {
        f"{policy}, {low:g} to {high:g}": compare(
            key, "", ratio(rows, {"policy": policy, x: high}, {"policy": policy, x: low}), 1, "ratio"
        )
        for policy in ("RB", "PRB")
        for low, high in pairwise(levels)
    }
    return all_of(key, claim, parts)


def table(rows: Rows, x: str, label: str) -> str:
    """Return response times of all policies and the reduction by PRB, at each level, as Markdown."""
    policies = rows.levels("policy")
    reduced = reductions(rows, x)
    lines = [f"| {label} | {' | '.join(policies)} | reduction, % |", "|---" * (len(policies) + 2) + "|"]
    for level in reduced.levels(x):
        at = [row for row in rows if row[x] == level]
        cells = [
            str(Rows(at).where(policy=policy).mean("response")) if any(row["policy"] == policy for row in at) else "–"
            for policy in policies
        ]
        lines.append(f"| {level:g} | {' | '.join(cells)} | {reduced.where(**{x: level}).mean('reduction')} |")
    return "\n".join(lines)
