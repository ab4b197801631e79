"""Costs from two runs: worked out by hand, and from real runs."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.boxes.costs import Constant, Uniform
from headway.engines.models import LOCAL
from headway.experiments.measuring import Line, Total, fit, lateness, model_of_runs


def test_two_totals_tell_two_costs() -> None:
    # 1 ms a call and 10 µs a tuple, in trains of one and of a hundred.
    short, long = Total(100 * 0.00101, 100, 100), Total(2 * 0.002, 2, 200)
    assert fit([short, long]) == pytest.approx(Line(0.001, 0.00001))
    assert fit([long, short]) == pytest.approx(Line(0.001, 0.00001))


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ([Total(1, 10, 100), Total(2, 20, 200)], Line(0, 0.01)),  # trains alike: cannot be told apart
        ([Total(0, 0, 0), Total(0, 0, 0)], Line(0, 0)),
        ([Total(1, 10, 0), Total(3, 30, 0)], Line(0.1, 0)),  # calls without tuples
        ([Total(1, 100, 100), Total(9, 2, 200)], Line(0, 10 / 300)),  # a call would cost less than nothing
        ([Total(1, 10, 10), Total(0.05, 2, 200)], Line(1.05 / 12, 0)),  # a tuple would
        ([Total(0, 0, 0), Total(1, 2, 100)], Line(0, 0.01)),  # seen in one run only
    ],
)
def test_what_cannot_be_told(totals: list[Total], expected: Line) -> None:
    assert fit(totals) == pytest.approx(expected)


NETWORK = hw.load(
    {
        "network": "n",
        "sources": {"s": {"schema": {"a": "bigint"}}},
        "boxes": {
            "m": {"op": "map", "in": "s", "select": "a"},
            "u": {"op": "universal", "in": "m", "cost": "1ms"},
            "d": {"op": "universal", "in": "m", "cost": {"uniform": ["1ms", "3ms"]}},
        },
        "outputs": {"o": {"from": "u"}, "p": {"from": "d"}},
    }
)


def summary(calls: int, tuples: int, idle: float, **seconds: float) -> dict[str, Any]:
    """Return a summary in which all boxes were called alike; the loop itself took 0.2 s."""
    time = {"scheduler": 0.1, "boxes": sum(seconds.values()), "storage": 0.04, "sources": 0.1, "sinks": 0.02}
    return {
        "boxes": {name: {"calls": calls, "tuples_in": tuples, "seconds": spent} for name, spent in seconds.items()},
        "time": time,
        "seconds": sum(time.values()) + idle + 0.2,
        "idle": idle,
        "plans": calls,
        "box_calls": 3 * calls,
        "tuples_in": tuples,
    }


def test_the_model_of_two_runs() -> None:
    timed = summary(100, 100, 5, m=100 * 20e-6, u=100 * 0.0011, d=0.2)
    at_once = summary(2, 200, 0, m=2 * 10e-6 + 200 * 10e-6, u=2 * 0.0001 + 0.2, d=0.4)
    model = model_of_runs(NETWORK, timed, at_once, 0.0003)
    assert model.like == LOCAL
    assert model.calls == pytest.approx({"m": 10e-6, "u": 0.0001, "d": 0})
    assert model.costs == {"m": Constant(pytest.approx(10e-6)), "u": Constant(pytest.approx(0.001))}  # type: ignore[arg-type]
    overheads = model.overheads
    assert overheads.scheduler == pytest.approx(0.001)
    assert overheads.storage == pytest.approx(0.06 / 300)
    assert overheads.wake == 0.0003
    # 100 rounds and 100 tuples took as long as 2 rounds and 200 tuples; the loop itself 0.2 s of 100 rounds.
    assert (overheads.round, overheads.arrival) == pytest.approx((0.1 / 198 + 0.002, 0.1 * 98 / 19800))


def test_what_is_drawn_for_each_tuple_stays_as_it_is() -> None:
    timed, at_once = (summary(*sizes, 0, m=0.1, u=0.5, d=0.5) for sizes in ((100, 100), (2, 200)))
    model = model_of_runs(NETWORK, timed, at_once, 0)
    assert "d" not in model.costs
    assert isinstance(NETWORK.box("d").spec.cost, Uniform)  # type: ignore[attr-defined]


def test_boxes_that_cost_less_than_they_say_cost_what_they_say() -> None:
    timed, at_once = (summary(*sizes, 0, m=0.1, u=0.0, d=0.0) for sizes in ((100, 100), (2, 200)))
    model = model_of_runs(NETWORK, timed, at_once, 0)
    assert model.costs["u"] == Constant(0.001)
    assert model.calls["u"] == 0


def test_nobody_wakes_up_before_the_time() -> None:
    assert 0 <= lateness(3) < 1
