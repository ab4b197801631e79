"""Carry experiments out: tasks in processes side by side where they are simulated, one after the other where not."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from headway.clock import SECOND, stopwatch
from headway.experiments.base import Experiment, Task, find, judge
from headway.experiments.checks import Check
from headway.experiments.rows import Row, Rows


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an experiment."""

    experiment: Experiment
    quick: bool
    rows: Rows
    checks: tuple[Check, ...]
    verdict: str
    seconds: float


Progress = Callable[[Experiment, int, int], None]
"""Told after each task: the experiment, how many of its tasks are done, and of how many."""


def carry_out(
    experiment: Experiment,
    quick: bool = False,
    pool: ProcessPoolExecutor | None = None,
    on_progress: Progress | None = None,
) -> Outcome:
    """Run all tasks of an experiment and judge them.

    With a pool, tasks of simulated experiments are spread over its processes; those that measure real time always
    run here, alone. An exception of a task ends the experiment and is raised.
    """
    began = stopwatch()
    tasks = list(experiment.tasks(quick))
    found: dict[int, Sequence[Row]] = {}
    for at, rows in _measured(experiment, tasks, pool):
        found[at] = rows
        if on_progress is not None:
            on_progress(experiment, len(found), len(tasks))
    rows = Rows(row for at in sorted(found) for row in found[at])
    checks = tuple(experiment.check(rows))
    keys = [check.key for check in checks]
    if len(set(keys)) < len(keys):
        raise ValueError(f"{experiment.name}: two checks have the same key: {keys}")
    seconds = (stopwatch() - began) / SECOND
    return Outcome(experiment, quick, rows, checks, judge(experiment, checks), seconds)


def _measured(
    experiment: Experiment, tasks: Sequence[Task], pool: ProcessPoolExecutor | None
) -> Iterator[tuple[int, Sequence[Row]]]:
    if pool is None or experiment.engine != "sim":
        for at, task in enumerate(tasks):
            yield at, experiment.measure(task)
        return
    futures: dict[Future[Sequence[Row]], int] = {
        pool.submit(_measure, experiment.name, task): at for at, task in enumerate(tasks)
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:  # what is left has no use after an error or Ctrl-C
        for future in futures:
            future.cancel()


def _measure(name: str, task: Task) -> Sequence[Row]:
    import headway.experiments.catalogue  # noqa: F401  (a new process knows no experiment yet)

    return [dict(row) for row in find(name).measure(task)]


@contextmanager
def processes(count: int | None = None) -> Iterator[ProcessPoolExecutor | None]:
    """Provide so many processes (default: one for each core), or none at all if that is one."""
    count = count or os.cpu_count() or 1
    if count == 1:
        yield None
        return
    # Spawned, not forked: Arrow's threads do not survive a fork.
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
