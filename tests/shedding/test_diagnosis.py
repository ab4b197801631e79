from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import Topology
from headway.network.qos import Graph, QoS
from headway.shedding.diagnosis import (
    Observation,
    diagnose,
    find_culprit,
    good_zones,
    outside_good_zone,
    work_by_source,
)

Floats = npt.NDArray[np.float64]

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
        now=0,
        delivered=np.array([10.0, 10.0]),
        late=np.zeros(2),
        latency=np.full(2, 0.1),
        oldest=np.zeros(2),
        rates=np.array([100.0, 300.0]),
        usual=np.array([100.0, 300.0]),
        rate_in=np.array([100.0, 400.0, 40.0]),
        box_load=np.array([0.1, 0.3, 0.1]),
        waiting=np.zeros(3, np.int64),
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


def test_work_by_source_by_hand() -> None:
    # What 'join' and 'report' need, 0.4, goes back by rates: a quarter to 'parse', hence 'calm', the rest to 'busy'.
    assert work_by_source(observed(), TOPOLOGY).tolist() == pytest.approx([0.1 + 0.1, 0.3])


def test_the_source_whose_rise_causes_most_work() -> None:
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
        rates=np.array([9.0]), usual=np.array([1.0]), rate_in=np.zeros(0), box_load=np.zeros(0), box_backlog=np.zeros(0)
    )
    assert find_culprit(nothing, empty) is None


@st.composite
def networks(draw: st.DrawFn) -> tuple[Topology, Observation]:
    boxes, sources = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    producers = [
        tuple(sorted(draw(st.sets(st.integers(0, box - 1), max_size=2)))) if box else () for box in range(boxes)
    ]
    readers: list[list[int]] = [[] for _ in range(sources)]
    for box in range(boxes):
        if not producers[box] or draw(st.booleans()):
            readers[draw(st.integers(0, sources - 1))].append(box)
    consumers = tuple(tuple(box for box in range(boxes) if one in producers[box]) for one in range(boxes))
    topology = Topology(
        tuple(f"b{box}" for box in range(boxes)),
        tuple(f"s{source}" for source in range(sources)),
        ("o",),
        (QoS(),),
        tuple(producers),
        consumers,
        tuple(map(tuple, readers)),
        (boxes - 1,),
    )
    positive = st.floats(0.1, 10)
    loads = np.array(draw(st.lists(st.floats(0, 1), min_size=boxes, max_size=boxes)))
    observation = observed(
        rates=np.array(draw(st.lists(positive, min_size=sources, max_size=sources))),
        usual=np.ones(sources),
        rate_in=np.array(draw(st.lists(positive, min_size=boxes, max_size=boxes))),
        box_load=loads,
        box_backlog=np.zeros(boxes),
        load=float(loads.sum()),
    )
    return topology, observation


@settings(deadline=None)
@given(networks())
def test_all_work_is_caused_by_sources(network: tuple[Topology, Observation]) -> None:
    topology, observation = network
    assert work_by_source(observation, topology).sum() == pytest.approx(observation.load)


@settings(deadline=None)
@given(networks())
def test_work_by_source_as_its_boxes_tell_it(network: tuple[Topology, Observation]) -> None:
    topology, observation = network

    def parts(box: int) -> Floats:
        """Return by source its part in what comes to a box."""
        flows = [(observation.rate_in[producer], parts(producer)) for producer in topology.producers[box]]
        for source, readers in enumerate(topology.readers):
            flows += [(observation.rates[source], np.eye(len(topology.sources))[source])] * readers.count(box)
        total = sum(flow for flow, _ in flows)
        mixed: Floats = sum((flow * part for flow, part in flows), np.zeros(len(topology.sources))) / total
        return mixed

    expected = sum(
        (observation.box_load[box] * parts(box) for box in range(len(topology.boxes))), np.zeros(len(topology.sources))
    )
    assert work_by_source(observation, topology) == pytest.approx(expected)
