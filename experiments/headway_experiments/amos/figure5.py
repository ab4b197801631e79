"""Figures 5 and 6: AMoS with one requirement, delay or queue size, against each algorithm that it chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.amos.drawing import over_time
from headway_experiments.amos.judging import (
    below_each,
    learned,
    like_a_coin,
    of_mean,
    often_below_each,
    runs,
    shares_within,
)
from headway_experiments.amos.plans import (
    FREE,
    PUBLISHED,
    QUICK_SEEDS,
    SECONDS,
    SEEDS,
    SINGLES,
    SLICED,
    TAGS,
    measure,
    tasks_of,
    with_controls,
)
from headway_experiments.checks import Check, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ASKED = ("latency", "queue")
OTHERS = (SLICED, "fifo", "chain")
"""All but MTIQ, which is made for short queues."""
NEAR = 1.1
"""At most so much longer than MTIQ's is a queue near the shortest."""


def tasks(quick: bool) -> list[Task]:
    """Return the runs: all plans, and what explains them: calls that cost nothing."""
    asked = dict.fromkeys(PUBLISHED, (*SINGLES, *with_controls(ASKED)))
    varied = {FREE: ("fifo", "latency")}
    return tasks_of({**asked, **varied}, QUICK_SEEDS if quick else SEEDS, SECONDS)


def check(rows: Rows) -> list[Check]:
    """Judge AMoS against each algorithm."""
    found = []
    for plan in PUBLISHED:
        number = TAGS[plan]
        found += [
            below_each(
                f"latency-{number}",
                f"Asked for low latency, AMoS has a lower mean latency than each algorithm on {plan}.",
                rows,
                plan,
                "latency",
                "latency",
            ),
            often_below_each(
                f"queue-{number}",
                "Asked for short queues, AMoS often, in at least half of the spans of 5 s, has no longer a queue "
                f"than any one algorithm on {plan}.",
                rows,
                plan,
                "queue",
                "queue",
            ),
        ]
    calls = runs(rows, "plan 1", "latency").ratio("calls", runs(rows, "plan 1", "fifo"))
    free = runs(rows, FREE, "latency").ratio("latency", runs(rows, FREE, "fifo"))
    nearest = {plan: runs(rows, plan, "queue").ratio("queue", runs(rows, plan, "most-tuples")) for plan in PUBLISHED}
    return [
        *found,
        *learned(rows, PUBLISHED, ASKED),
        like_a_coin(rows, PUBLISHED, ASKED),
        shares_within(
            "wheel",
            "Evidence: the wheel gives each algorithm 15 to 35 % of the time, whatever it is asked for.",
            rows,
            [(plan, one) for plan in PUBLISHED for one in ASKED],
            0.15,
            0.35,
        ),
        less(
            "interaction",
            "Algorithms help each other: on plan 1 AMoS makes fewer calls than FIFO, because others gather tuples.",
            calls,
            1,
            "ratio of calls",
        ),
        all_of(
            "latency-mean",
            "Evidence: on plan 2, selective or not, the latency of AMoS is below the mean of the four algorithms.",
            {
                plan: less("", "", of_mean(rows, plan, "latency", "latency"), 1, "share of the mean")
                for plan in PUBLISHED[1:]
            },
        ),
        more(
            "latency-free",
            "Evidence: with calls that cost nothing, AMoS has a higher latency than FIFO on plan 1.",
            free,
            1,
            "ratio to FIFO",
        ),
        all_of(
            "queue-near",
            "Evidence: the queue of AMoS is at most 10 % longer than that of MTIQ on all plans.",
            {plan: less("queue-near", "", ratio, NEAR, "ratio to MTIQ") for plan, ratio in nearest.items()},
        ),
        *(
            below_each(
                f"queue-others-{plan[-1]}",
                f"Evidence: on {plan} the queue of AMoS is shorter than those of FIFO and Chain"
                f"{' and RR' if others is OTHERS else ''}.",
                rows,
                plan,
                "queue",
                "queue",
                others,
            )
            for plan, others in (("plan 1", OTHERS), ("plan 2", ("fifo", "chain")))
        ),
    ]


def draw(rows: Rows, figure: Figure) -> None:
    """Plot latency and queues over time, for all plans."""
    grid = figure.subplots(2, len(PUBLISHED), squeeze=False)
    for place, plan in enumerate(PUBLISHED):
        over_time(grid[0][place], rows, plan, "latency", {"latency": "AMoS"}, legend=place == 0)
        over_time(grid[1][place], rows, plan, "queue", {"queue": "AMoS"}, legend=False)


register("amos-fig5", engine="sim", tasks=tasks, measure=measure, check=check, draw=draw, size=(12, 6.4))
