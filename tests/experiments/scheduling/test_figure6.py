"""Figure 6: min-cost against min-latency."""

from __future__ import annotations

import pytest

from headway_experiments.experiment import CONFIRMED, DIFFERS, judge
from headway_experiments.rows import Row, Rows
from headway_experiments.scheduling.application_trees import CALL, groups, latency_of, run_tree
from headway_experiments.scheduling.figure6 import (
    CAPACITY,
    EXPERIMENT,
    LIGHT,
    boxes,
    crossings,
    leaves,
    predicted,
    predicted_crossing,
)


def test_theory_by_hand() -> None:
    """Two leaves: min-cost delivers after 3 o + 3 c and 3 o + 4 c, min-latency after 2 (o + c) and 4 (o + c)."""
    assert (leaves(5, 3), boxes(5, 3)) == (81, 121)
    assert predicted("mc", 2, 2, cost=1, call=10) == 33.5
    assert predicted("ml", 2, 2, cost=1, call=10) == 33
    assert predicted_crossing(5, 3) == pytest.approx((205 - 121) / (365 - 205))


@pytest.mark.parametrize("traversal", ["mc", "ml"])
def test_the_simulator_does_what_theory_says(traversal: str) -> None:
    result = run_tree(
        3,
        3,
        lambda level, place: {"cost": 0.001},
        lambda place: groups(1, 1.0, 1),
        "sim",
        f"round-robin/superbox/{traversal}",
        model={"overheads": {"call": 0.002}},
    )
    assert latency_of(result) == pytest.approx(predicted(traversal, 3, 3, 0.001, 0.002))


def test_crossings() -> None:
    assert crossings([1, 2, 4], [1, -1, -1]) == [1.5]
    assert crossings([1, 2, 4], [1, 2, 3]) == []
    assert crossings([0, 2, 4], [1, -1, 1]) == [1, 3]


def _rows(swapped: bool = False, saturated: float = 1.0, deep: int = 1) -> Rows:
    """Return rows as theory has them; with swapped names, or min-latency longer at small costs, or with more calls."""
    made: list[Row] = []
    names = ("ml", "mc") if swapped else ("mc", "ml")
    for capacity, costs in ((CAPACITY, (0.06, 0.15, 0.2, 1.0)), (LIGHT, (0.06, 0.15))):
        for cost in costs:
            for name, traversal in zip(names, ("mc", "ml"), strict=True):
                latency = predicted(traversal, 5, 3, cost / 1000, CALL)
                heavy = traversal == "ml" and capacity == CAPACITY and cost < 0.2
                made += [
                    {
                        "part": "cost",
                        "capacity": capacity,
                        "cost": cost,
                        "traversal": name,
                        "seed": seed,
                        "latency": latency * (saturated if heavy else 1),
                        "busy": 1.0,
                    }
                    for seed in (1, 2)
                ]
    for depth in (3, 4, 5):
        tuples = leaves(depth, 3)
        for name, calls in zip(names, (boxes(depth, 3), depth * tuples * (deep if depth == 5 else 1)), strict=True):
            made.append({"part": "depth", "depth": depth, "traversal": name, "calls": calls, "tuples": tuples})
    return Rows(made)


def _wrong(rows: Rows) -> set[str]:
    return {check.key for check in EXPERIMENT.check(rows) if not check.holds}


def test_claims_hold_by_theory() -> None:
    assert _wrong(_rows()) == set()
    assert judge(EXPERIMENT, EXPERIMENT.check(_rows())) == CONFIRMED


def test_min_latency_that_cannot_keep_up_is_a_finding() -> None:
    assert _wrong(_rows(saturated=2.0)) == {"ml-rises"}
    assert judge(EXPERIMENT, EXPERIMENT.check(_rows(saturated=2.0))) == DIFFERS


def test_claims_can_fail() -> None:
    assert _wrong(_rows(swapped=True)) >= {"mc-small", "ml-large", "ml-mostly", "fewer-calls"}
    assert _wrong(_rows(saturated=0.5)) >= {"mc-small", "one-crossing", "ml-mostly"}
    assert _wrong(_rows(deep=2)) == {"by-depth"}
