"""What claims have in common: reductions, and checks over levels."""

from __future__ import annotations

import pytest

from headway_experiments.prb import judging
from headway_experiments.rows import Rows
from tests.experiments.prb.made import runs

ROWS = Rows(runs("x", (1, 2, 4), {"RB": (10, 10, 20), "PRB": (9, 8, 18)}))


def test_reductions_run_by_run() -> None:
    reduced = judging.reductions(ROWS, "x")
    assert [row["seed"] for row in reduced] == [1, 2, 1, 2, 1, 2]
    assert [reduced.where(x=level).mean("reduction").mean for level in (1, 2, 4)] == pytest.approx([10, 20, 10])


def test_differences_over_the_seeds_that_both_have() -> None:
    rows = Rows([*judging.reductions(ROWS, "x"), {"x": 8, "seed": 2, "reduction": 50.0}])
    assert judging.difference(rows, "reduction", {"x": 1}, {"x": 2}).mean == pytest.approx(10)
    assert judging.difference(rows, "reduction", {"x": 2}, {"x": 8}).mean == pytest.approx(30)  # seed 2 alone


def test_ratios_over_the_seeds_that_both_have() -> None:
    rows = Rows([*ROWS, {"x": 1, "policy": "RR", "seed": 2, "response": 22.0}])
    assert judging.ratio(rows, {"policy": "RR", "x": 1}, {"policy": "RB", "x": 1}).mean == pytest.approx(2)


def test_below() -> None:
    check = judging.below("k", "claim", ROWS, "x", "PRB", "RB")
    assert check.holds
    assert "at 4: PRB/RB: 0.9" in check.evidence
    check = judging.below("k", "claim", ROWS, "x", "RB", "PRB")
    assert not check.holds
    worse = Rows([*ROWS.where(policy="RB"), *runs("x", (1, 2, 4), {"PRB": (9, 11, 18)})])
    check = judging.below("k", "claim", worse, "x", "PRB", "RB")
    assert not check.holds
    assert check.evidence.startswith("not for at 2")


def test_steps() -> None:
    reduced = judging.reductions(ROWS, "x")
    assert judging.steps("k", "", reduced, "reduction", "x", (1, 2)).holds
    assert judging.steps("k", "", reduced, "reduction", "x", (2, 4), up=False).holds
    check = judging.steps("k", "", reduced, "reduction", "x", (1, 2, 4))
    assert not check.holds
    assert check.evidence.startswith("not for 2 to 4")


def test_steps_of_response_times_are_those_of_both() -> None:
    assert judging.responses_steps("k", "", ROWS, "x", (2, 4), up=True).holds
    check = judging.responses_steps("k", "", ROWS, "x", (1, 2, 4), up=True)
    assert not check.holds  # RB's are the same at 1 and 2, PRB's fall
    assert check.evidence.startswith("not for RB, 1 to 2")


def test_the_table() -> None:
    rows = Rows([*ROWS, {"x": 1, "policy": "RR", "seed": 1, "response": 30.0}])
    lines = judging.table(rows, "x", "level").splitlines()
    assert lines[0] == "| level | RB | PRB | RR | reduction, % |"
    assert lines[1] == "|---|---|---|---|---|"
    assert lines[2].endswith("| 30 (one run) | 10.000 ± 0.000 |")
    assert "| – |" in lines[3]
