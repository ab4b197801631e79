"""Figures 3 and 4: what preemption is worth where the operators' costs are skewed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway_experiments.checks import Check, about, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.plots import line
from headway_experiments.prb.drawing import draw_pair
from headway_experiments.prb.judging import below, ratio, reductions, steps, table
from headway_experiments.prb.plans import LOAD, merged_streams, ranks, run_units, stream_draws
from headway_experiments.prb.theory import EXPECTED
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SKEWS = (0.0, 0.3, 0.5, 0.7, 0.9)
LEAST, MOST = SKEWS[0], SKEWS[-1]


def tasks(quick: bool) -> list[Task]:
    """Return all runs; round robin, which takes fifty times as many events, with fewer seeds and at fewer levels."""
    skews, sliced = ((LEAST, MOST), (LEAST, MOST)) if quick else (SKEWS, (LEAST, 0.5, MOST))
    seeds, few, tuples = (3, 2, 200) if quick else (10, 3, 1000)
    return [
        {"skew": skew, "policy": policy, "seed": seed, "tuples": tuples}
        for policy in ("RR", "FIFO", "RB", "PRB")
        for skew in (sliced if policy == "RR" else skews)
        for seed in range(1, 1 + (few if policy == "RR" else seeds))
    ]


def measure(task: Task) -> list[Row]:
    """Run one plan; beside its response time stands what queueing theory expects of it in the long run."""
    costs = ranks(stream_draws(task["seed"]), task["skew"])
    network = merged_streams(costs, [1] * len(costs), task["tuples"], task["seed"])
    row = {**task, **run_units(network, task["policy"])}
    if task["policy"] in EXPECTED:
        row["theory"] = EXPECTED[task["policy"]](costs, LOAD)
    return [row]


def check(rows: Rows) -> list[Check]:
    """Judge the paper's claims."""
    reduced = reductions(rows, "skew")
    first, last = (reduced.where(skew=skew).mean("reduction") for skew in (LEAST, MOST))
    fairness = {
        skew: ratio(rows, {"policy": "RR", "skew": skew}, {"policy": "FIFO", "skew": skew}) for skew in (LEAST, MOST)
    }
    return [
        about("even", "PRB is below RB by about 5 % at Zipf 0.0", first, 5, "reduction, %"),
        about("skewed", "PRB is below RB by about 20 % at Zipf 0.9", last, 20, "reduction, %"),
        steps("grows", "The reduction grows with the skew", reduced, "reduction", "skew", reduced.levels("skew")),
        below("rb", "PRB is below RB at every skew", rows, "skew", "PRB", "RB"),
        below("rr", "PRB is below RR at every skew", rows, "skew", "PRB", "RR"),
        below("fifo", "PRB is below FIFO at every skew", rows, "skew", "PRB", "FIFO"),
        less("rr-fifo-skewed", "RR is below FIFO at Zipf 0.9", fairness[MOST], 1, "RR/FIFO"),
        more("rr-fifo-even", "RR is above FIFO at Zipf 0.0: it needs the skew", fairness[LEAST], 1, "RR/FIFO"),
        all_of(
            "falls",
            "Every policy's response time is lower at Zipf 0.9 than at 0.0",
            {
                policy: less(
                    "",
                    "",
                    ratio(rows, {"policy": policy, "skew": MOST}, {"policy": policy, "skew": LEAST}),
                    1,
                    "ratio",
                )
                for policy in rows.levels("policy")
            },
        ),
    ]


def expected(rows: Rows) -> tuple[list[float], list[float]]:
    """Return the skews and the mean reduction by queueing theory at each, over the plans that were run."""
    skews: Sequence[float] = reductions(rows, "skew").levels("skew")
    wanted = []
    for skew in skews:
        prb, rb = (rows.where(policy=policy, skew=skew) for policy in ("PRB", "RB"))
        wanted.append(prb.reduction("theory", rb).mean)
    return list(skews), wanted


def draw(rows: Rows, figure: Figure) -> None:
    """Draw both figures, with the theory's reduction."""
    label = "skew of costs (Zipf parameter)"
    _, right = draw_pair(rows, figure, "skew", label)
    line(right, 6, "queueing theory", *expected(rows), marker="")
    right.legend()


def notes(rows: Rows) -> str:
    """Return the numbers, with those of theory."""
    wanted = ", ".join(f"{value:.1f} % at {skew:g}" for skew, value in zip(*expected(rows), strict=True))
    return (
        f"{table(rows, 'skew', 'Zipf')}\n\n"
        f"The reduction that queueing theory gives for the same plans in the long run: {wanted}. RB is an M/G/1 queue "
        "with priorities (Cobham's formula), PRB one that serves the shortest remaining time first (Schrage and "
        "Miller's)."
    )


register("prb-fig3", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, notes=notes, size=(9, 3.6))
