"""Outputs at run time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import SECOND, ManualClock
from headway.columns import Column
from headway.connectors import TableSink
from headway.engines.delivery import Delivery, LatencyHistogram
from headway.network import Output
from headway.qos import Graph, QoS
from headway.schema import Schema
from headway.trains import Train

SCHEMA = Schema.parse("a bigint")


@settings(deadline=None)
@given(
    values=st.lists(st.floats(2e-6, 1e5), min_size=1, max_size=60),
    share=st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]),
)
def test_quantiles_within_a_bucket(values: list[float], share: float) -> None:
    histogram = LatencyHistogram()
    histogram.add(np.array(values))
    exact = sorted(values)[max(0, int(np.ceil(share * len(values))) - 1)]
    found = histogram.quantile(share)
    assert found == pytest.approx(exact, rel=0.021)
    assert histogram.mean == pytest.approx(sum(values) / len(values))
    assert histogram.largest == max(values)
    assert histogram.count == len(values)


def test_nothing_and_extremes() -> None:
    histogram = LatencyHistogram()
    assert (histogram.quantile(0.5), histogram.mean) == (None, None)
    histogram.add(np.array([0.0, 1e30]))
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
