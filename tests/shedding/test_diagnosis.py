from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.catalog import Topology
from headway.network.qos import Graph, QoS
from headway.shedding.diagnosis import (
    Observation,
    diagnose,
    find_culprit,
    good_zones,
    outside_good_zone,
)

# calm -> parse -> join -> alarms; busy -> join; join -> report -> reports
TOPOLOGY = Topology(
    boxes=("parse", "join", "report"),
    sources=("calm", "busy"),
    outputs=("alarms", "reports"),
    qos=(QoS(latency=Graph(((0.0, 1.0), (2.0, 1.0), (5.0, 0.0)))), QoS()),
    producers=((), (0,), (1,)),
    consumers=((1,), (2,), ()),
    readers=((0,), (1,)),
    roots=(1, 2),
)


def observed(**others: object) -> Observation:
    """Return a run that does well: 0.5 of one processor."""
    calm = Observation(
        sites=(),
        qos=TOPOLOGY.qos,
        rates=np.zeros(0),
        costs=np.zeros(0),
        nested=(),
        now=0,
        delivered=np.array([10.0, 10.0]),
        late=np.zeros(2),
        latency=np.full(2, 0.1),
        oldest=np.zeros(2),
        source_rates=np.array([100.0, 300.0]),
        usual=np.array([100.0, 300.0]),
        source_work=np.array([0.002, 0.001]),
        box_load=np.array([0.1, 0.3, 0.1]),
        box_backlog=np.zeros(3),
        load=0.5,
        kept=0.5,
        backlog=0.0,
        capacity=1.0,
        busy=0.5,
    )
    return replace(calm, **others)  # type: ignore[arg-type]


def test_a_run_that_does_well() -> None:
    found = diagnose(observed(), TOPOLOGY)
    assert not found.overloaded
    assert found.because == "what arrives can be done"
    assert found.culprit is None
    assert found.outside.tolist() == [0.0, 0.0]


def test_demand_against_capacity_and_headroom() -> None:
    assert not diagnose(observed(load=0.9), TOPOLOGY).overloaded
    found = diagnose(observed(load=0.91), TOPOLOGY)
    assert found.overloaded
    assert found.because == "needs 0.91 s/s of work; 1.00 × 0.9 can be done"
    assert not diagnose(observed(load=0.91), TOPOLOGY, headroom=1.0).overloaded
    assert not diagnose(observed(load=0.91, capacity=2.0), TOPOLOGY).overloaded


def test_late_outputs_of_an_engine_that_has_no_time() -> None:
    late = observed(late=np.array([0.4, 0.0]), busy=0.99, backlog=1.5, kept=1.0)
    found = diagnose(late, TOPOLOGY)
    assert found.overloaded
    assert found.because == "late: 'alarms'; never idle, and 1.5 s of work wait and do not get less"
    assert found.outside.tolist() == [0.4, 0.0]
    for other in [
        replace(late, busy=0.9),
        replace(late, backlog=0.0),
        replace(late, kept=0.8),  # less arrives than can be done
        replace(late, late=np.array([0.05, 0.0])),
    ]:
        assert not diagnose(other, TOPOLOGY).overloaded


def test_an_earlier_observation_says_whether_the_backlog_shrinks() -> None:
    late = observed(late=np.array([0.4, 0.0]), busy=0.99, backlog=1.5, kept=1.0)
    assert diagnose(late, TOPOLOGY, replace(late, backlog=1.4)).overloaded
    assert diagnose(late, TOPOLOGY, late).overloaded
    assert not diagnose(late, TOPOLOGY, replace(late, backlog=1.6)).overloaded


def test_what_waits_too_long_is_late_although_nothing_is_delivered() -> None:
    zones = good_zones(TOPOLOGY.qos)
    assert zones.tolist() == [2.0, float("inf")]
    waits = observed(delivered=np.array([0.0, 0.0]), oldest=np.array([2.1, 60.0]))
    assert outside_good_zone(waits, zones).tolist() == [1.0, 0.0]
    assert outside_good_zone(replace(waits, oldest=np.array([1.9, 60.0])), zones).tolist() == [0.0, 0.0]
    # While results come, they say it themselves.
    assert outside_good_zone(replace(waits, delivered=np.ones(2)), zones).tolist() == [0.0, 0.0]


def test_the_source_whose_rise_causes_most_work() -> None:
    # 'calm' causes 0.2 in all: 0.1 in 'parse', and a quarter of the 0.4 of 'join' and 'report'; 'busy' the other 0.3.
    # 'calm' has risen more, but 'busy' causes more by it: 0.2 × 50/100 = 0.1 against 0.3 × 150/300 = 0.15.
    culprit = find_culprit(observed(usual=np.array([50.0, 150.0]), load=1.0), TOPOLOGY)
    assert culprit is not None
    assert (culprit.kind, culprit.place, culprit.name) == ("source", 1, "busy")
    assert str(culprit) == "source 'busy' (2 times its usual rate)"
    # 0.2 × 90/100 = 0.18
    culprit = find_culprit(observed(usual=np.array([10.0, 150.0]), load=1.0), TOPOLOGY)
    assert str(culprit) == "source 'calm' (10 times its usual rate)"


def test_a_source_that_was_silent() -> None:
    culprit = find_culprit(observed(usual=np.array([100.0, 0.0]), load=1.0), TOPOLOGY)
    assert str(culprit) == "source 'busy' (300 tuples/s, usually none)"


@pytest.mark.parametrize("usual", [[100.0, 251.0], [100.0, np.nan], [200.0, 600.0]])
def test_a_little_more_than_usual_is_no_cause(usual: list[float]) -> None:
    culprit = find_culprit(observed(usual=np.array(usual), load=1.0), TOPOLOGY)
    assert str(culprit) == "box 'join' (needs 0.30 s/s of work, 30% of all)"


def test_the_longest_backlog_where_demand_fits() -> None:
    waits = observed(box_backlog=np.array([0.2, 0.1, 3.0]))
    assert str(find_culprit(waits, TOPOLOGY)) == "box 'report' (3 s of work wait there)"
    assert str(find_culprit(replace(waits, load=1.0), TOPOLOGY)) == "box 'join' (needs 0.30 s/s of work, 30% of all)"


def test_nobody_is_the_cause_of_nothing() -> None:
    assert find_culprit(observed(box_load=np.zeros(3)), TOPOLOGY) is None
    empty = Topology((), ("s",), ("o",), (QoS(),), (), (), ((),), (-1,))
    nothing = observed(
        source_rates=np.array([9.0]),
        usual=np.array([1.0]),
        source_work=np.zeros(1),
        box_load=np.zeros(0),
        box_backlog=np.zeros(0),
    )
    assert find_culprit(nothing, empty) is None
