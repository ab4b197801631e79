from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.network.qos import Graph, QoS
from headway.shedding.diagnosis import Observation
from headway.shedding.forecasts import Outlook
from headway.shedding.losses import LINEAR
from headway.shedding.sites import Site

LATE = Graph(((0.0, 1.0), (1.0, 1.0), (2.0, 0.0)))
CHEAP = Graph(((0.0, 0.8), (100.0, 1.0)))


def outlook(
    backlog: float, load: float = 2.0, age: float | None = None, loss: Graph = CHEAP, past: float = 5.0
) -> Outlook:
    """Return how one output stands that has a site of its own, where all that arrives and waits passes."""
    in_turn = backlog * min(1.0, 1.0 / load)
    one = np.ones(1)
    ages = one * (in_turn if age is None else age)
    seen = Observation(
        sites=(Site("s -> b", (0,), ()),),
        qos=(QoS(latency=LATE, loss=loss),),
        rates=one * load,
        costs=one,
        nested=((),),
        load=load,
        capacity=1.0,
        waiting=one * backlog,
        kept=load,
        backlog=backlog,
        busy=1.0,
        source_work=one,
        box_load=one * load,
        box_backlog=one * backlog,
        now=0,
        delivered=one,
        latency=0 * one,
        oldest=ages,
        source_rates=one * load,
        usual=one,
    )
    return Outlook(seen, 1.0, backlog, ages, past, one, 1.0)


def gain(found: Outlook, keep: float) -> float:
    return found.gain(np.array([keep]))


def test_while_results_are_in_time_dropping_only_costs() -> None:
    found = outlook(0.0, 0.8)
    assert found.worth(np.ones(1)) == pytest.approx(1.0)
    assert gain(found, 0.5) < 0


def test_when_lateness_is_near_it_pays() -> None:
    assert gain(outlook(1.5), 0.5) > 0


def test_not_if_what_is_lost_is_worth_more() -> None:
    steep = Graph(((0.0, 0.0), (98.0, 0.1), (100.0, 1.0)))
    assert gain(outlook(1.2, 1.2, loss=steep), 0.8) < 0


def test_an_output_that_a_policy_serves_first_is_not_late() -> None:
    assert gain(outlook(1.5, age=0.0), 0.5) < 0


def test_without_outputs_or_capacity_there_is_nothing_to_tell() -> None:
    some = outlook(1.0)
    nobody = replace(some, seen=replace(some.seen, qos=()))
    assert nobody.worth(np.ones(1)) == replace(some, capacity=0.0).worth(np.ones(1)) == 0.0


def test_what_a_share_is_worth() -> None:
    some = outlook(0.0, 0.8)  # in time, so that only what is lost counts: 5 of 6 seconds are past
    other = replace(some, seen=replace(some.seen, losses={0: LINEAR}))
    assert some.worth(np.array([0.4])) == pytest.approx(0.8 + 0.2 * 0.9)
    assert other.worth(np.array([0.4])) == pytest.approx(0.9), "the graph to use instead of its own"
    assert other.worth(np.array([0.4]), free=True) == pytest.approx(1.0)
