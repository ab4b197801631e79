"""A toy experiment: two policies, whose latencies are known."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from headway.errors import RunError
from headway_experiments import checks, plots
from headway_experiments.checks import Check
from headway_experiments.experiment import REGISTRY, Experiment, Finding, Task, admit
from headway_experiments.rows import Row, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tasks(quick: bool) -> list[Task]:
    """Two seeds, or four."""
    return [{"policy": policy, "seed": seed} for seed in range(1, 3 if quick else 5) for policy in ("fast", "slow")]


def measure(task: Task) -> list[Row]:
    """The slow one takes twice as long; the process is told, too."""
    latency = (1.0 if task["policy"] == "fast" else 2.0) * (1 + 0.01 * task["seed"])
    return [{**task, "latency": latency, "process": os.getpid()}]


def check(rows: Rows) -> Sequence[Check]:
    """The second one does not hold: 2 is not above 3."""
    ratio = rows.where(policy="slow").ratio("latency", rows.where(policy="fast"))
    return [
        checks.more("slower", "slow | has a higher latency", ratio, 1, "slow / fast"),
        checks.more("far", "slow has more than 3 times the latency", ratio, 3, "slow / fast"),
        checks.about("twice", "slow has about twice the latency", ratio, 2, "slow / fast"),
    ]


def check_one(rows: Rows) -> Sequence[Check]:
    """Only the first, which holds."""
    return check(rows)[:1]


def draw(rows: Rows, figure: Figure) -> None:
    """Latency by seed."""
    [axes] = plots.panels(figure, 1)
    plots.curves(axes, rows, "seed", "latency", "policy")
    plots.finish(axes, "seed", "latency (s)")


def broken(task: Task) -> list[Row]:
    """Raise what is our own fault, in the middle."""
    if task["seed"] == 2:
        raise ZeroDivisionError("a bug")
    return measure(task)


def impossible(task: Task) -> list[Row]:
    """Raise what a user can mend."""
    raise RunError("there is no Java;\ninstall it")


def killed(task: Task) -> list[Row]:
    """End the process, as the system does when memory runs out."""
    os._exit(9)


def interrupted(task: Task) -> list[Row]:
    """Be the moment at which Ctrl-C comes."""
    signal.raise_signal(signal.SIGINT)
    return measure(task)


REASON = "It is twice, for each tuple\ncosts twice as much."

TOY = Experiment(
    name="prb-toy1",
    paper="prb",
    figures=("toy 1", "toy 2"),
    title="fast against slow",
    claim="Slow is slower than fast, by far.",
    setting=("There are two policies.",),
    chosen=("The paper leaves the seeds open; we took 1 to 4.",),
    engine="sim",
    tasks=tasks,
    measure=measure,
    check=check,
    draw=draw,
    findings=(Finding("far", REASON, ("twice",)),),
    aliases=("prb-toy2",),
)
"""Its verdict is 'differs, explained'."""

GOOD = replace(TOY, name="aurora-toy", paper="aurora", check=check_one, findings=(), aliases=())
"""Its verdict is 'confirmed'."""

BAD = replace(TOY, name="prb-toybad", findings=(), aliases=())
"""Its verdict is 'FAILED'."""


@contextmanager
def registered(*experiments: Experiment) -> Iterator[None]:
    """Have these experiments, and no others, for a while."""
    before = dict(REGISTRY)
    REGISTRY.clear()
    try:
        for one in experiments:
            admit(one)
        yield
    finally:
        REGISTRY.clear()
        REGISTRY.update(before)
