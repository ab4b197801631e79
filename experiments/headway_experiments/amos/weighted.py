"""Figures 7, 8 and 9: AMoS with several requirements by weights, against each algorithm that it chooses from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headway_experiments.amos.drawing import side_by_side
from headway_experiments.amos.judging import (
    below_each,
    better_overall,
    costs,
    gain,
    learned,
    like_a_coin,
    of_mean,
    runs,
    shares_within,
)
from headway_experiments.amos.plans import (
    LABELS,
    LEARNING,
    OBJECTIVES,
    PUBLISHED,
    QUICK_SEEDS,
    SECONDS,
    SEEDS,
    SELECTIVE,
    SINGLES,
    TAGS,
    WHEEL,
    measure,
    tasks_of,
    with_controls,
)
from headway_experiments.checks import Check, about, all_of, less, more
from headway_experiments.experiment import Task, register
from headway_experiments.plots import panels
from headway_experiments.rows import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELAY, RATE, THIRDS = "70/30", "30/70", "thirds"
LEARNERS = tuple(f"{THIRDS}, {learning}" for learning in LEARNING)
SIGNIFICANT = 1.01
"""The least rise that could be called significant; the paper gives no number."""
ROOM = 0.97
"""Who has this share of the best output rate cannot gain much more."""


def tasks_two(quick: bool) -> list[Task]:
    """Return the runs of figures 7 and 8."""
    asked = dict.fromkeys(PUBLISHED, (*SINGLES, *with_controls((DELAY, RATE))))
    return tasks_of(asked, QUICK_SEEDS if quick else SEEDS, SECONDS)


def tasks_three(quick: bool) -> list[Task]:
    """Return the runs of figure 9."""
    asked = dict.fromkeys(PUBLISHED, (*SINGLES, *with_controls((THIRDS,)), *(() if quick else LEARNERS)))
    return tasks_of(asked, QUICK_SEEDS if quick else SEEDS, SECONDS)


def below_mean(key: str, claim: str, rows: Rows, plan: str, objective: str) -> Check:
    """Check that AMoS costs less overall than single algorithms in the mean."""
    own = costs(rows, plan, objective, OBJECTIVES[objective]).mean("cost")
    return less(key, claim, own, 1, "share of the mean")


def check_two(rows: Rows) -> list[Check]:
    """Judge figures 7 and 8."""
    found = []
    for plan in PUBLISHED:
        number = TAGS[plan]
        improves = runs(rows, plan, RATE).ratio("throughput", runs(rows, plan, DELAY))
        found += [
            below_each(
                f"delay-{number}",
                f"With 70 % on latency, AMoS has a lower latency than each algorithm on {plan}.",
                rows,
                plan,
                DELAY,
                "latency",
            ),
            about(
                f"average-{number}",
                f"Its output rate is then about the average of the four on {plan}.",
                of_mean(rows, plan, DELAY, "throughput"),
                1,
                "share of the mean",
            ),
            better_overall(
                f"overall-{number}",
                f"By these weights it is better overall than each algorithm on {plan}.",
                rows,
                plan,
                DELAY,
            ),
            below_each(
                f"still-{number}",
                f"With 70 % on the output rate, AMoS still has a lower latency than each algorithm on {plan}.",
                rows,
                plan,
                RATE,
                "latency",
            ),
            more(
                f"improves-{number}",
                f"Its output rate is then significantly (by 1 % at least) higher than with 30 % on it, on {plan}.",
                improves,
                SIGNIFICANT,
                "ratio of output rates",
            ),
        ]
    fifo = {plan: runs(rows, plan, DELAY).mean("time of fifo") for plan in PUBLISHED}
    return [
        *found,
        all_of(
            "fifo-most",
            "With 70 % on latency, AMoS uses FIFO for most of the time on all plans.",
            {plan: more("fifo-most", "", share, 0.5, "share of time") for plan, share in fifo.items()},
        ),
        *learned(rows, PUBLISHED, (DELAY, RATE)),
        like_a_coin(rows, PUBLISHED, (DELAY, RATE)),
        *evidence_two(rows),
    ]


def evidence_two(rows: Rows) -> list[Check]:
    """Judge what explains figures 7 and 8."""
    room = {plan: runs(rows, plan, DELAY).ratio("throughput", best_rates(rows, plan)) for plan in PUBLISHED}
    return [
        all_of(
            "mean",
            "Evidence: on plan 2, selective or not, AMoS costs less than the mean of the four, by both weights.",
            {
                f"{plan}, {one}": below_mean("mean", "", rows, plan, one)
                for plan in PUBLISHED[1:]
                for one in (DELAY, RATE)
            },
        ),
        shares_within(
            "wheel",
            "Evidence: the wheel gives each algorithm 15 to 35 % of the time, whatever the weights.",
            rows,
            [(plan, one) for plan in PUBLISHED for one in (DELAY, RATE)],
            0.15,
            0.35,
        ),
        all_of(
            "room",
            "Evidence: with 70 % on latency AMoS already has more than 97 % of the best algorithm's output rate.",
            {plan: more("room", "", share, ROOM, "share of the best") for plan, share in room.items()},
        ),
    ]


def best_rates(rows: Rows, plan: str) -> Rows:
    """Return for each seed the highest output rate of the single algorithms."""
    best: dict[float, float] = {}
    for single in SINGLES:
        for row in runs(rows, plan, single):
            seed = float(row["seed"])
            best[seed] = max(best.get(seed, 0.0), float(row["throughput"]))
    return Rows({"seed": seed, "throughput": rate} for seed, rate in best.items())


def check_three(rows: Rows) -> list[Check]:
    """Judge figure 9."""
    found = []
    for plan in PUBLISHED:
        number = TAGS[plan]
        shares = {column: of_mean(rows, plan, THIRDS, column) for column in ("latency", "queue", "throughput")}
        apart = {column: gain(rows, plan, THIRDS, column, "throughput") for column in ("latency", "queue")}
        found += [
            all_of(
                f"well-{number}",
                f"On {plan} AMoS does well in all three: better than the mean of the four in latency, queues and "
                "output rate.",
                {
                    name: (more if name == "throughput" else less)("", "", share, 1, "share of the mean")
                    for name, share in shares.items()
                },
            ),
            all_of(
                f"most-{number}",
                f"On {plan} it gains most in latency and in queues: more there than in the output rate.",
                {
                    name: more("", "", ahead, 0, "percentage points more than in the output rate")
                    for name, ahead in apart.items()
                },
            ),
            better_overall(
                f"overall-{number}",
                f"With equal weights it is better overall than each algorithm on {plan}.",
                rows,
                plan,
                THIRDS,
            ),
        ]
    return [
        *found,
        *learned(rows, PUBLISHED, (THIRDS,)),
        like_a_coin(rows, PUBLISHED, (THIRDS,)),
        *evidence_three(rows),
    ]


def evidence_three(rows: Rows) -> list[Check]:
    """Judge what explains figure 9: on plan 2, selective or not, there is no output rate to gain."""
    plans = PUBLISHED[1:]
    best = {plan: best_rates(rows, plan) for plan in plans}
    rates = {plan: runs(rows, plan, THIRDS).ratio("throughput", best[plan]) for plan in plans}
    singles = {
        f"{plan}, {LABELS[one]}": runs(rows, plan, one).ratio("throughput", best[plan])
        for plan in plans
        for one in SINGLES
    }
    return [
        shares_within(
            "wheel",
            "Evidence: the wheel gives each algorithm 15 to 35 % of the time.",
            rows,
            [(plan, THIRDS) for plan in PUBLISHED],
            0.15,
            0.35,
        ),
        below_mean(
            "mean-selective",
            "Evidence: on plan 2, selective AMoS costs less overall than the mean of the four.",
            rows,
            SELECTIVE,
            THIRDS,
        ),
        all_of(
            "nearly",
            f"Evidence: on plan 2, selective or not, AMoS has more than {ROOM:.0%} of the best output rate.",
            {plan: more("", "", share, ROOM, "share of the best") for plan, share in rates.items()},
        ),
        all_of(
            "alike",
            f"Evidence: so has each algorithm there, more than {ROOM:.0%} of the best one's.",
            {name: more("", "", share, ROOM, "share of the best") for name, share in singles.items()},
        ),
    ]


def draw_two(rows: Rows, figure: Figure) -> None:
    """Plot figures 7 and 8 for both plans."""
    _draw(rows, figure, ("latency", "throughput"), (DELAY, RATE), {DELAY: "AMoS, 70/30", RATE: "AMoS, 30/70"})


def draw_three(rows: Rows, figure: Figure) -> None:
    """Plot figure 9 for both plans."""
    _draw(rows, figure, ("latency", "queue", "throughput"), (THIRDS,), {THIRDS: "AMoS"})


def _draw(
    rows: Rows, figure: Figure, columns: Sequence[str], objectives: Sequence[str], amos: Mapping[str, str]
) -> None:
    axes = panels(figure, len(PUBLISHED), sharey=True)
    for one, plan in zip(axes, PUBLISHED, strict=True):
        side_by_side(one, rows, plan, columns, objectives, amos)
    for one in axes[1:]:
        one.set_ylabel("")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def notes_three(rows: Rows) -> str:
    """Return what this and other ways of learning give."""
    weights = OBJECTIVES[THIRDS]
    names = {THIRDS: WHEEL["learning"], **dict(zip(LEARNERS, LEARNING, strict=True))}
    ran = {name: learning for name, learning in names.items() if name in rows.levels("policy")}
    lines = [f"| overall cost over the best algorithm's | {' | '.join(ran.values())} |", "|---" * (1 + len(ran)) + "|"]
    for plan in PUBLISHED:
        best = min((costs(rows, plan, single, weights) for single in SINGLES), key=lambda one: one.mean("cost").mean)
        ratios = [costs(rows, plan, name, weights).ratio("cost", best) for name in ran]
        lines.append(f"| {plan} | {' | '.join(map(str, ratios))} |")
    return "\n".join(lines)


register("amos-fig7", engine="sim", tasks=tasks_two, measure=measure, check=check_two, draw=draw_two, size=(12, 4.0))
register(
    "amos-fig9",
    engine="sim",
    tasks=tasks_three,
    measure=measure,
    check=check_three,
    draw=draw_three,
    notes=notes_three,
    size=(12, 4.0),
)
