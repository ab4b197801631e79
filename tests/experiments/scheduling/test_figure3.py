"""Figure 3: thread per box against state-based."""

from __future__ import annotations

import math

import pytest

from headway_experiments.experiment import CONFIRMED, DIFFERS, FAILED, judge
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.figure3 import AURORA, EXPERIMENT, THREADS, by_factor, chains


def test_chains_of_five() -> None:
    network = chains(15, {"count": 1})
    assert len(network["sources"]) == len(network["outputs"]) == 3
    assert len(network["boxes"]) == 15
    assert network["boxes"]["q2f0"]["in"] == "s2"
    assert network["boxes"]["q2f4"]["in"] == "q2f3"
    assert network["outputs"]["o2"] == {"from": "q2f4"}


def test_an_exponential_grows_by_the_same_factor_per_operator() -> None:
    exponential = [[math.exp(n / 50)] * 2 for n in (50, 100, 200)]
    assert by_factor(*exponential).mean == pytest.approx(1)
    power = [[float(n**3)] * 2 for n in (50, 100, 200)]
    assert by_factor(*power).mean == pytest.approx(0.5)
    assert by_factor([2.0], [1.0], [3.0]).mean == math.inf


def _rows(threads: tuple[float, ...], aurora: tuple[float, ...], late: float = 0.5, share: float = 0.2) -> Rows:
    made: list[Row] = [
        {"seed": seed, "operators": operators, "policy": policy, "latency": latency, "late": behind}
        for policy, latencies, behind in ((THREADS, threads, late), (AURORA, aurora, late * share))
        for operators, latency in zip((50, 100, 200), latencies, strict=True)
        for seed in (1, 2)
    ]
    return Rows(made)


def _wrong(rows: Rows) -> set[str]:
    return {check.key for check in EXPERIMENT.check(rows) if not check.holds}


def test_claims_hold_where_they_should() -> None:
    good = _rows((2, 6, 54), (1, 2, 4))
    assert _wrong(good) == set()
    assert judge(EXPERIMENT, EXPERIMENT.check(good)) == CONFIRMED


def test_a_sudden_rise_is_a_finding() -> None:
    sudden = _rows((2, 4, 400), (1, 2, 4))
    assert _wrong(sudden) == {"threads-exponential"}
    assert judge(EXPERIMENT, EXPERIMENT.check(sudden)) == DIFFERS


def test_less_steep_than_the_square_is_a_finding() -> None:
    flatter = _rows((2, 6, 20), (1, 2, 4))
    assert _wrong(flatter) == {"threads-exponential", "threads-steep"}
    assert judge(EXPERIMENT, EXPERIMENT.check(flatter)) == DIFFERS


def test_a_state_based_engine_that_is_late_too_is_a_finding_while_it_is_below() -> None:
    late = _rows((2, 6, 54), (1, 2, 4), share=0.7)
    assert _wrong(late) == {"aurora-keeps-up"}
    assert judge(EXPERIMENT, EXPERIMENT.check(late)) == DIFFERS


def test_claims_can_fail() -> None:
    assert _wrong(_rows((1, 2, 4), (2, 6, 54))) == {
        "aurora-below",
        "aurora-linear",
        "threads-more",
        "threads-steep",
        "threads-exponential",
    }
    assert "degrade" in _wrong(_rows((2, 6, 54), (4, 3, 2)))
    assert "threads-behind" in _wrong(_rows((2, 6, 54), (1, 2, 4), late=0.01))
    assert judge(EXPERIMENT, EXPERIMENT.check(_rows((2, 4, 8), (1, 2, 4)))) == FAILED
