"""The overload scenario in a quick form: outputs give way by their loss graphs, and all is well again soon."""

from __future__ import annotations

import collections

import pytest

import headway as hw
from benchmarks.overload import IN_TURN, INTOLERANT, SHEDDING, TOLERANT, Phases, measure, report, verdicts

QUICK = Phases(8.0, 20.0, 15.0)


def test_in_virtual_time() -> None:
    outcomes = [measure("sim", shedding, IN_TURN, 40.0, QUICK) for shedding in SHEDDING]
    assert verdicts(outcomes) == []
    assert report(outcomes).count("| sim |") == 3
    without, evenly, by_loss = outcomes
    assert by_loss.total > 2 * without.total
    assert by_loss.total > 2 * evenly.total
    assert without.good_after is None, "without shedding, nobody is good"
    assert all(by_loss.kept[name] == 1.0 for name in INTOLERANT)
    assert all(by_loss.kept[name] < 0.8 for name in TOLERANT)


@pytest.mark.alone
def test_in_real_time() -> None:
    """In turn, so that all outputs would be late: the default policy serves the intolerant ones first.

    A turn over all boxes takes seconds by then, and a drop box acts when its box has a turn: the overload lasts longer.
    """
    outcome = measure("local", "loss", IN_TURN, 200.0, Phases(1.5, 8.0, 4.5))
    assert all(outcome.kept[name] == 1.0 for name in INTOLERANT)
    assert min(outcome.kept[name] for name in TOLERANT) < 0.9
    assert outcome.zero_after is not None


@pytest.mark.slow
def test_for_a_minute_in_real_time() -> None:
    outcomes = [measure("local", shedding, IN_TURN, 200.0, Phases()) for shedding in SHEDDING]
    assert verdicts(outcomes) == []


@pytest.mark.slow
def test_for_a_minute_in_virtual_time() -> None:
    assert verdicts([measure("sim", shedding, IN_TURN, 100.0, Phases()) for shedding in SHEDDING]) == []


@pytest.mark.parametrize("minutes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_load_that_sits_just_above_the_capacity_does_not_make_it_oscillate(minutes: int) -> None:
    rate = 20.0
    phases = [[10, 0.5 * rate], [60 * minutes, 1.05 * rate]]
    made = {"phases": phases, "arrivals": "poisson", "seed": 5, "fields": {"v": 1}}
    strict = {"latency": [[0, 1], [2, 1], [6, 0]], "loss": [[100, 1], [98, 0.1], [0, 0]]}
    lax = {"latency": [[0, 1], [4, 1], [10, 0]], "loss": [[100, 1], [10, 0.9], [0, 0]]}
    network = {
        "network": "steady",
        "sources": {"s": {"schema": {"v": "int"}, "source": {"generate": made}}},
        "boxes": {
            "a": {"op": "universal", "in": "s", "cost": 0.4 / rate},
            "b": {"op": "universal", "in": "s", "cost": 0.6 / rate},
        },
        "outputs": {"strict": {"from": "a", "qos": strict}, "lax": {"from": "b", "qos": lax}},
    }
    summary = hw.run(network, engine="sim", shed=True, outputs={"strict": None, "lax": None}).summary
    often = collections.Counter(int(change["moment"] // 60) for change in summary["shedding"]["changes"])
    assert 0 < summary["shedding"]["count"] <= 5 + 1.5 * minutes
    assert max(often.values()) <= 5
    assert summary["outputs"]["strict"]["kept"] == 1.0
    assert summary["outputs"]["strict"]["outside"] == 0
    assert 0 < summary["outputs"]["lax"]["kept"] < 1
