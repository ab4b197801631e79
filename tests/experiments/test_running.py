"""Carrying experiments out: here and in processes, to the end and not."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headway.errors import RunError
from headway_experiments import running
from headway_experiments.checks import Check
from headway_experiments.experiment import CONFIRMED, DIFFERS, Experiment, Task
from headway_experiments.rows import Row, Rows
from headway_experiments.running import Failure, Outcome, carry_out, carry_out_each, processes
from tests.experiments.toys import GOOD, TOY, broken, impossible, interrupted, killed, measure, tasks


def _twice_the_same(rows: Rows) -> Sequence[Check]:
    return [Check("same", "a", True, ""), Check("same", "b", True, "")]


def test_here() -> None:
    told: list[tuple[str, int, int]] = []
    outcome = carry_out(TOY, True, on_progress=lambda one, done, total: told.append((one.name, done, total)))
    assert outcome.verdict == DIFFERS
    assert [check.holds for check in outcome.checks] == [True, False, True]
    assert (outcome.runs, len(outcome.rows), outcome.quick) == (4, 4, True)
    assert 0 < outcome.seconds < 60
    assert told == [("prb-toy1", done, 4) for done in range(5)]
    assert len(carry_out(TOY).rows) == 8


def test_in_processes() -> None:
    """Rows come back in the order of the tasks; what is not simulated stays here."""
    waited: list[bool] = []
    real = replace(GOOD, name="aurora-real", engine="local")
    wrong = replace(GOOD, name="aurora-wrong", measure=broken)
    with processes(2) as pool:
        assert pool is not None
        results = list(carry_out_each([real, wrong, TOY, GOOD], False, pool, on_wait=lambda: waited.append(True)))
        again = carry_out(TOY, False, pool)
    found = {result.experiment.name: result for result in results}
    assert list(found)[-1] == "aurora-real"
    assert set(found) == {"aurora-real", "aurora-wrong", "prb-toy1", "aurora-toy"}
    here = carry_out(TOY)
    toy, local, failure = found["prb-toy1"], found["aurora-real"], found["aurora-wrong"]
    assert isinstance(toy, Outcome)
    assert isinstance(local, Outcome)
    assert isinstance(failure, Failure)
    for outcome in (toy, again):
        assert _without_process(outcome.rows) == _without_process(here.rows)
        assert outcome.checks == here.checks
        assert os.getpid() not in outcome.rows.levels("process")
    assert local.rows.levels("process") == [os.getpid()]
    assert local.verdict == CONFIRMED
    assert isinstance(failure.error, ZeroDivisionError)
    assert failure.where.startswith("toys.py:")  # also from another process


def test_a_process_that_dies() -> None:
    """What was to run in processes fails; what runs here goes on."""
    local = replace(GOOD, name="aurora-real", engine="local")
    with processes(2) as pool:
        results = list(carry_out_each([local, replace(TOY, measure=killed), GOOD], False, pool))
    assert [isinstance(result, Failure) for result in results] == [True, True, False]
    assert {result.experiment.name for result in results[:2]} == {"prb-toy1", "aurora-toy"}


def _without_process(rows: Rows) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != "process"} for row in rows]


def test_one_process_is_this_one() -> None:
    with processes(1) as pool:
        assert pool is None


def test_real_ones_come_last_and_an_error_ends_its_experiment_only() -> None:
    order: list[str] = []

    def noted(task: Task) -> list[Row]:
        order.append(str(task["engine"]))
        return [{**task, "latency": 1.0}]

    def of(engine: str) -> Experiment:
        def own(quick: bool) -> list[Task]:
            return [{**task, "engine": engine} for task in tasks(quick)]

        return replace(GOOD, name=engine, engine=engine, tasks=own, measure=noted)

    wrong = replace(GOOD, name="wrong", measure=broken)
    results = list(carry_out_each([of("spark"), of("local"), wrong, of("sim")], True))
    assert [result.experiment.name for result in results] == ["wrong", "sim", "local", "spark"]
    assert order == ["sim"] * 4 + ["local"] * 4 + ["spark"] * 4
    assert [isinstance(result, Failure) for result in results] == [True, False, False, False]


@pytest.mark.parametrize(
    ("experiment", "error", "message"),
    [
        (replace(TOY, measure=impossible), RunError, "Java"),
        (replace(TOY, measure=broken), ZeroDivisionError, "a bug"),
        (replace(TOY, check=_twice_the_same), ValueError, "two checks have the same key"),
        (replace(TOY, tasks=lambda quick: []), ValueError, "there are no runs"),
        (replace(TOY, tasks=lambda quick: 1 / 0), ZeroDivisionError, "division"),  # type: ignore[arg-type,return-value]
    ],
)
def test_what_raises(experiment: Experiment, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        carry_out(experiment, True)
    [failure] = carry_out_each([experiment], True)
    assert isinstance(failure, Failure)
    assert failure.where.endswith(".py:" + failure.where.rpartition(":")[2])


def test_ctrl_c_ends_a_run_at_once() -> None:
    """Engines take the first Ctrl-C as the end of the inputs only if nobody else handles it."""
    handlers: list[object] = []

    def look(task: Task) -> list[Row]:
        handlers.append(signal.getsignal(signal.SIGINT))
        return measure(task)

    carry_out(replace(TOY, measure=look), True)
    assert signal.default_int_handler not in handlers
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        carry_out(replace(TOY, measure=interrupted), True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_processes_are_busy_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "TICK", 0.01)
    waited: list[bool] = []
    with processes(2) as pool:  # starting them takes longer than a tick
        list(carry_out_each([TOY], True, pool, on_wait=lambda: waited.append(True)))
    assert waited


def disturbed(monkeypatch: pytest.MonkeyPatch, *shares: float) -> None:
    """Let others take these shares of the time of one run after the other."""
    left = iter(shares)
    monkeypatch.setattr(running, "share", lambda before, after: next(left))


def test_a_disturbed_run_in_real_time_is_made_again_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Task] = []

    def numbered(task: Task) -> Sequence[Row]:
        made.append(task)
        return [{**row, "number": len(made)} for row in measure(task)]

    first, *between, last = all_tasks = list(tasks(False))
    disturbed(monkeypatch, 0.5, *[0.02] * len(between), 0.3, 0.04, 0.1, 0.2, 0.15, 0.3)
    outcome = carry_out(replace(TOY, engine="local", measure=numbered))
    assert made == [*all_tasks, first, last, last, last, last]
    count = len(all_tasks)
    assert [row["number"] for row in outcome.rows] == [count + 1, *range(2, count), count + 2]
    assert outcome.runs == count
    assert 0.02 <= outcome.stolen <= 0.1


def test_quick_forms_and_simulated_experiments_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed(monkeypatch, *[0.5] * len(tasks(True)))
    assert carry_out(replace(TOY, engine="local"), quick=True).stolen == pytest.approx(0.5)
    assert carry_out(TOY).stolen == 0.0
