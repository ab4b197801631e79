"""Boxes and results in a second: the checks see what contradicts them."""

from __future__ import annotations

import pytest

from headway.compare.plots import new_figure
from headway_experiments.aurora.boxes import EXPERIMENT, LONG, STEPWISE, check, measure, notes
from headway_experiments.rows import Rows


def made(calls: float = 50_000, results: float = 13_000, ratio: float = 0.26) -> Rows:
    """Return rows with so many calls and results in a second where each step is decided; ten times that otherwise."""
    return Rows(
        {
            **task,
            "calls_per_second": calls * (10 if task["plans"] == LONG else 1),
            "results_per_second": results * (10 if task["plans"] == LONG else 1),
            "results_per_call": ratio,
        }
        for task in EXPERIMENT.tasks(True)
    )


@pytest.mark.parametrize(
    ("rows", "fails"),
    [
        (made(), set()),
        (made(calls=3100), {"boxes"}),
        (made(results=800), {"results"}),
        (made(ratio=0.99), {"ratio"}),
        (made(ratio=0.1), {"ratio"}),
    ],
)
def test_checks_can_fail(rows: Rows, fails: set[str]) -> None:
    assert {one.key for one in check(rows) if not one.holds} == fails


def test_a_run_counts_calls_and_results() -> None:
    (row,) = measure({"plans": STEPWISE, "tuples": 40, "seed": 1})
    assert row["calls"] == pytest.approx(40 / 4 * 40, rel=0.2)
    assert float(row["results_per_second"]) > 0


def test_notes_tell_of_long_plans() -> None:
    assert "500,000" in notes(made())
    assert "156 times" in notes(made())


def test_it_is_drawn() -> None:
    figure = new_figure(EXPERIMENT.size)
    EXPERIMENT.draw(made(), figure)
    assert figure.axes[0].get_yscale() == "log"
