"""Outputs at run time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import SECOND, ManualClock
from headway.columns import Column
from headway.connectors import TableSink
from headway.engines.delivery import Delivered, Delivery, LatencyHistogram
from headway.network import Output
from headway.network.qos import Graph, QoS, ValueGraph
from headway.network.schema import Schema
from headway.trains import Train, constant

SCHEMA = Schema.parse("a bigint")


@settings(deadline=None)
@given(
    values=st.lists(st.floats(2e-6, 1e5), min_size=1, max_size=60),
    share=st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]),
)
def test_quantiles_within_a_bucket(values: list[float], share: float) -> None:
    histogram = LatencyHistogram()
    histogram.add(np.array(values), np.ones(len(values), np.int64))
    exact = sorted(values)[max(0, int(np.ceil(share * len(values))) - 1)]
    found = histogram.quantile(share)
    assert found == pytest.approx(exact, rel=0.021)
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    assert histogram.largest == max(values)
    assert histogram.count == len(values)


def test_nothing_and_extremes() -> None:
    histogram = LatencyHistogram()
    assert (histogram.quantile(0.5), histogram.mean) == (None, None)
    histogram.add(np.array([0.0, 1e30]), np.array([1, 1]))
    assert histogram.quantile(0.4) == pytest.approx(1e-6, rel=0.1)
    assert histogram.quantile(1.0) is not None


def _train(stamps: list[int]) -> Train:
    at = np.array(stamps, np.int64)
    return Train((Column(at),), at, np.arange(len(at)))


def test_latency_and_utility() -> None:
    clock, sink = ManualClock(10 * SECOND), TableSink(SCHEMA)
    graph = Graph.parse([[0, 1], [10, 0]], "q")
    delivery = Delivery(Output("o", "b", QoS(latency=graph)), SCHEMA, sink, clock)
    delivery.deliver(_train([]))
    assert delivery.utility is None
    delivery.deliver(_train([10 * SECOND, 5 * SECOND]))
    clock.advance(SECOND)
    for _ in range(200):
        delivery.deliver(_train([11 * SECOND]))
    summary = delivery.summary()
    assert summary["tuples"] == delivery.tuples == sink.table.num_rows == 202
    assert summary["latency"]["max"] == 5
    assert summary["latency"]["mean"] == pytest.approx(5 / 202)
    assert summary["utility"] == pytest.approx((201 + 0.5) / 202)


def test_a_stamp_of_the_future_is_no_negative_latency() -> None:
    delivery = Delivery(Output("o", "b", QoS()), SCHEMA, TableSink(SCHEMA), ManualClock(0))
    delivery.deliver(_train([SECOND]))
    assert delivery.summary()["latency"]["max"] == 0
    assert delivery.utility == 1.0


def test_old_results_fade() -> None:
    clock = ManualClock(0)
    graph = Graph(((0.0, 1.0), (10.0, 0.0)))
    delivery = Delivery(Output("o", "b", QoS(latency=graph)), SCHEMA, TableSink(SCHEMA), clock, half_life=2.0)
    assert delivery.recent == 1.0
    delivery.count(np.array([0]), np.array([3]))  # three at once, of utility 1
    assert delivery.recent == 1.0
    clock.advance(2 * SECOND)
    delivery.count(np.array([clock.now() - 5 * SECOND]), np.array([1]))  # one of utility 0.5, when those count half
    assert delivery.recent == pytest.approx((1.5 * 1.0 + 0.5) / 2.5)
    assert delivery.utility == pytest.approx((3 * 1.0 + 0.5) / 4)


GRAPH = Graph(((0.0, 1.0), (2.0, 1.0), (10.0, 0.0)))
"""Good until 2 s, worth nothing from 10 s on."""


def test_what_was_delivered_and_what_of_it_was_late() -> None:
    clock = ManualClock(10 * SECOND)
    delivery = Delivery(Output("o", "b", QoS(latency=GRAPH)), SCHEMA, TableSink(SCHEMA), clock)
    assert delivery.delivered() == Delivered(0, 0.0, 0.0, 0)
    assert delivery.summary()["outside"] is None
    delivery.deliver(_train([10 * SECOND, 8 * SECOND, 4 * SECOND]))  # 0, 2 and 6 s: the good zone has its end, too
    assert delivery.delivered() == Delivered(3, 8.0, 2.5, 1)
    delivery.count(np.array([2 * SECOND, 9 * SECOND]), np.array([3, 2]))  # three after 8 s, two after 1 s
    assert delivery.delivered() == Delivered(8, 34.0, 2.5 + 3 * 0.25 + 2, 4)
    delivery.deliver(_train([0, 0]), np.array([3 * SECOND, SECOND]))  # they left before now, after 3 s and 1 s
    found = delivery.delivered()
    assert (found.tuples, found.latency, found.late) == (10, 38.0, 5)
    assert delivery.summary()["outside"] == 0.5


def test_tuples_that_come_together_are_late_together() -> None:
    clock = ManualClock(10 * SECOND)
    delivery = Delivery(Output("o", "b", QoS(latency=GRAPH)), SCHEMA, TableSink(SCHEMA), clock)
    for stamp in (9 * SECOND, 3 * SECOND):
        delivery.deliver(Train((Column(np.arange(4)),), constant(stamp, 4), np.arange(4)))
    assert delivery.delivered() == Delivered(8, 32.0, 4 + 4 * 0.375, 4)


def test_without_a_latency_graph_nothing_is_late() -> None:
    delivery = Delivery(Output("o", "b", QoS()), SCHEMA, TableSink(SCHEMA), ManualClock(100 * SECOND))
    delivery.deliver(_train([0, 50 * SECOND]))
    assert delivery.delivered() == Delivered(2, 150.0, 2.0, 0)
    endless = Graph(((0.0, 0.5), (2.0, 1.0)))
    delivery = Delivery(Output("o", "b", QoS(latency=endless)), SCHEMA, TableSink(SCHEMA), ManualClock(100 * SECOND))
    delivery.deliver(_train([0]))
    assert delivery.delivered().late == 0, "its good zone never ends"


def test_the_worth_of_values() -> None:
    graph = Graph(((0.0, 0.0), (10.0, 1.0)))
    schema = Schema.parse("x string, a bigint")
    value = ValueGraph("a", graph)
    delivery = Delivery(Output("o", "b", QoS(value=value)), schema, TableSink(schema), ManualClock(0))
    assert delivery.value_utility is None
    seen: list[float] = []
    delivery.watch = lambda values: seen.extend(values.tolist())
    text = Column(pa.array(["x"] * 3))
    column = Column(np.array([5, 20, 7]), np.array([True, True, False]))
    delivery.deliver(Train((text, column), np.zeros(3, np.int64), np.arange(3)))
    assert delivery.value_utility == pytest.approx(1.5 / 3), "NULL is worth nothing"
    assert seen[:2] == [5.0, 20.0]
    assert np.isnan(seen[2])
    delivery.deliver(Train((text.slice(0, 1), Column(np.array([10]))), np.zeros(1, np.int64), np.arange(1)))
    assert delivery.summary()["value_utility"] == pytest.approx(2.5 / 4)
    assert (delivery.utility, delivery.delivered().utility) == (1.0, 4.0), "values do not count in the other utility"


def test_without_a_value_graph_nobody_asks_for_values() -> None:
    delivery = Delivery(Output("o", "b", QoS()), SCHEMA, TableSink(SCHEMA), ManualClock(0))
    delivery.deliver(_train([1, 2]))
    assert delivery.value_utility is None
