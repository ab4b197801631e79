"""Figures 5 and 6: AMoS with one requirement, delay or queue size, against each algorithm that it chooses from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway_experiments.amos.drawing import over_time
from headway_experiments.amos.judging import (
    MIXED,
    below_each,
    findings_on_learning,
    learned,
    like_a_coin,
    of_mean,
    often_below_each,
    runs,
    shares_within,
)
from headway_experiments.amos.plans import (
    CONTROLLED,
    FREE,
    PLANNED,
    PUBLISHED,
    QUICK_SEEDS,
    SECONDS,
    SEEDS,
    SELECTED,
    SETTING,
    SINGLES,
    SLICED,
    TAGS,
    TURNS,
    measure,
    tasks_of,
    with_controls,
)
from headway_experiments.base import Experiment, Finding, Task, register
from headway_experiments.checks import Check, all_of, less, more
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


register(
    Experiment(
        name="amos-fig5",
        paper="amos",
        figures=("figure 5", "figure 6"),
        title="AMoS with one requirement against single algorithms",
        claim="Asked for low tuple delay, AMoS is better than each algorithm that it chooses from, because they "
        "help each other; asked for short queues, it often is.",
        setting=SETTING,
        chosen=(
            *PLANNED,
            *SELECTED,
            *TURNS,
            *CONTROLLED,
            "Latency is the mean of all results, queue the mean number of waiting tuples while there is input. "
            "Which plan the paper's figures are of is lost, too: all are run.",
            "Varied, on plan 1: calls that cost nothing, with 40 tuples/s and 130 in bursts.",
        ),
        engine="sim",
        label=MIXED,
        tasks=tasks,
        measure=measure,
        check=check,
        draw=draw,
        size=(12, 6.4),
        aliases=("amos-fig6",),
        findings=(
            *(
                Finding(
                    f"latency-{TAGS[plan]}",
                    "What helps on plan 1 is that MTIQ gathers full trains and FIFO pushes them out. That saves calls, "
                    "and so it needs calls that cost much: where they cost nothing, AMoS is worse than FIFO on plan 1, "
                    "too. On plan 2 they cost less, least with selective operators, and FIFO alone has the lowest "
                    "latency; the wheel gives three quarters of the time to others. AMoS is between them.",
                    ("latency-mean", "latency-free", "wheel"),
                )
                for plan in PUBLISHED[1:]
            ),
            Finding(
                "queue-1",
                "MTIQ alone has the shortest queue in most spans, and turns of others can only lengthen it. The "
                "wheel gives them three quarters of the time and is still near it, and far from the rest.",
                ("queue-near", "queue-others-1"),
            ),
            Finding(
                "queue-2",
                "MTIQ has the shortest queues. AMoS comes near them, with shorter queues than FIFO and Chain, to which "
                "it gives half of the time.",
                ("queue-near", "queue-others-2"),
            ),
            Finding(
                "queue-selective",
                "Chain and MTIQ alone have the shortest queues, and turns of others can only lengthen them.",
                ("queue-near", "wheel"),
            ),
            *findings_on_learning(PUBLISHED),
        ),
    )
)
