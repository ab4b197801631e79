"""Rate-based: the paper's example, the formula on random chains, and what a call's overhead does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from headway.costs import UnitCosts
from headway.errors import PolicyError
from headway.scheduling.policy import make_policy
from headway.scheduling.rate_based import RateBased, output_rates
from headway.scheduling.superboxes import superbox_units
from tests.scheduling.chains import Row, order, readings, row, rows, seen
from tests.scheduling.snapshots import measured, replace, topology

PAPER = topology({"O1": (), "O4": (), "O2": ("O1", "O4"), "O3": ("O2",)}, {"o": "O3"})
"""Figure 2 of the paper: two streams, O1 and O4 before O2 and O3."""
UNIT = 1e-6
COSTS = [(10 * UNIT, 1.0), (40 * UNIT, 1.0), (10 * UNIT, 1.0), (10 * UNIT, 1.0)]


def test_the_example_of_the_paper() -> None:
    at = seen(PAPER, readings(COSTS))
    (rate, _) = RateBased().terms(at, None)
    assert (rate.values * UNIT).tolist() == pytest.approx([1 / 30, 1 / 60, 1 / 20, 1 / 10])
    assert order(RateBased(), at) == ["O3", "O2", "O1", "O4"]
    # One tuple on each stream: the one that takes 30 units is through before the one that takes 60 begins.
    assert order(RateBased(), seen(PAPER, readings(COSTS), waiting=[1, 1, 0, 0])) == ["O1", "O4"]
    assert order(RateBased(), seen(PAPER, readings(COSTS), waiting=[0, 1, 1, 0])) == ["O2", "O4"]


def test_by_superbox_the_waiting_tuples_count() -> None:
    at = seen(PAPER, readings(COSTS), waiting=[1, 1, 0, 0], units=superbox_units(PAPER))
    assert (RateBased().terms(at, None)[0].values * UNIT).tolist() == pytest.approx([1 / 45])


def test_selectivity_counts_twice() -> None:
    # a: .5 * .5 / (2 + .5 * 4) = 1/16;  b: 1 / 20, although it yields more for a tuple.
    made = rows([(2 * UNIT, 0.5), (4 * UNIT, 0.5)], [(20 * UNIT, 1.0)])
    at = seen(made, readings([(2 * UNIT, 0.5), (4 * UNIT, 0.5), (20 * UNIT, 1.0)]))
    assert (RateBased().terms(at, None)[0].values * UNIT).tolist() == pytest.approx([1 / 16, 1 / 8, 1 / 20])
    assert order(RateBased(), at) == ["a1", "a0", "b0"]


def test_the_tuples_of_a_step_share_its_overhead() -> None:
    # 1 + 9 / 1 = 10, 1 + 9 / 3 = 4, and a train of 9 of the 100: 1 + 9 / 9 = 2; nothing waits: as for one tuple.
    at = measured([[]] * 4, [0] * 4, overhead=[9] * 4, cost=[1] * 4, waiting=[1, 3, 100, 0], train=9)
    assert RateBased().terms(at, None)[0].values.tolist() == [1 / 10, 1 / 4, 1 / 2, 1 / 10]


def test_equals_go_by_their_oldest_tuple() -> None:
    assert order(RateBased(), measured([[]] * 3, [0] * 3, cost=[1e-6] * 3, oldest=[7, 5, 6])) == ["b1", "b2", "b0"]


def test_never_measured_first_and_without_results_last() -> None:
    at = measured([[]] * 4, [0] * 4, cost=[1e-7, 0, 0, 1e-6], yields=[0, 1, 0, 1], oldest=[1, 9, 2, 9])
    assert order(RateBased(), at) == ["b1", "b3", "b0", "b2"]
    assert np.isfinite(RateBased().terms(at, None)[0].values).all()


@settings(deadline=None)
@given(row)
def test_the_formula_on_random_chains(boxes: Row) -> None:
    at = seen(rows(boxes), readings(boxes))
    found = RateBased().terms(at, None)[0].values
    for first in range(len(boxes)):
        path = boxes[first:]
        passed = [selectivity for _, selectivity in path]
        time = sum(cost * math.prod(passed[:place]) for place, (cost, _) in enumerate(path))
        assert found[first] == pytest.approx(math.prod(passed) / time, rel=1e-9)


def test_without_overhead_exactly_the_formula() -> None:
    costs = UnitCosts(np.zeros(3), np.array([0.3, 0.7, 1.1]), np.array([0.1, 1.3, 0.9]))
    assert output_rates(costs, np.array([3, 7, 0]), 0.0).tolist() == [0.1 / 0.3, 1.3 / 0.7, 0.9 / 1.1]


def test_busy_units_and_units_that_are_not_ready_are_left_out() -> None:
    at = measured([[]] * 3, [0] * 3, cost=[1e-6, 2e-6, 3e-6], ready=np.array([True, False, True]))
    assert order(RateBased(), at) == ["b0", "b2"]
    assert order(RateBased(), replace(at, busy=np.array([True, False, False]))) == ["b2"]


def test_no_argument() -> None:
    assert make_policy("rate-based") == RateBased()
    with pytest.raises(PolicyError, match="'rate-based' takes no argument, not '7'"):
        make_policy("rate-based:7")
