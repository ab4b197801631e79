"""Figure 7: the checks see what contradicts them."""

from __future__ import annotations

import pytest

from headway.compare.plots import new_figure
from headway_experiments.aurora import figure7
from headway_experiments.aurora.consumers import ALONE, BOTH, TRAINS
from headway_experiments.aurora.figure7 import EXPERIMENT, check
from headway_experiments.rows import Rows

SCHEDULER = {ALONE: 10.0, TRAINS: 4.0, BOTH: 1.2}
SECONDS = {ALONE: 20.0, TRAINS: 9.0, BOTH: 4.0}


def made(**changed: tuple[float, float]) -> Rows:
    """Return rows with these times in the scheduler and in all, by the last word of a discipline."""
    rows = []
    for task in EXPERIMENT.tasks(True):
        name = task["discipline"]
        scheduler, seconds = changed.get(name.split()[-1], (SCHEDULER[name], SECONDS[name]))
        rows.append({**task, "scheduler": scheduler, "seconds": seconds})
    return Rows(rows)


def failing(rows: Rows) -> set[str]:
    return {one.key for one in check(rows) if not one.holds}


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        (made(), set()),
        (made(trains=(4.9, 9)), {"trains"}),
        (made(superboxes=(1.8, 4)), {"superboxes"}),
        (made(trains=(4, 21)), {"trains-in-all"}),
        (made(superboxes=(1.2, 9.5)), {"superboxes-in-all"}),
    ],
)
def test_checks_can_fail(rows: Rows, fails: set[str]) -> None:
    assert failing(rows) == fails


def test_the_full_form_varies_the_length_of_trains() -> None:
    full = {(task["discipline"], task["train"]) for task in EXPERIMENT.tasks(False)}
    assert full == {(ALONE, 1), *((one, train) for one in (TRAINS, BOTH) for train in figure7.LENGTHS)}


def test_the_least_disturbed_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([{"scheduler": 3.0}, {"scheduler": 1.0}, {"scheduler": 2.0}])
    monkeypatch.setattr(figure7, "run_reports", lambda *given: next(runs))
    (row,) = figure7.measure({"discipline": TRAINS, "train": 4, "tuples": 10, "seed": 1})
    assert row["scheduler"] == 1


def test_it_is_drawn() -> None:
    figure = new_figure(EXPERIMENT.size)
    EXPERIMENT.draw(made(), figure)
    left, right = figure.axes
    assert "ms" in left.get_ylabel()
    assert "tuples" in right.get_xlabel()
