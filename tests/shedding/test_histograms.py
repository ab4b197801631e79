"""Histograms of observed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.network.qos import Graph
from headway.shedding.intervals import CAPACITY, INTERVALS, Bins, Histogram, bin_values

GRAPH = Graph(((0.0, 0.0), (10.0, 1.0)))


def test_values_are_counted_between_the_points_of_a_graph() -> None:
    histogram = Histogram()
    histogram.add(np.array([-1.0, 4.0, 6.0, 10.0, 30.0]))
    bins = histogram.bins(GRAPH)
    assert bins.edges.tolist() == [0.0, 10.0]
    assert bins.counts.tolist() == [1.0, 2.0, 2.0]  # an edge belongs to the interval above it
    assert bins.means.tolist() == [-1.0, 5.0, 20.0]
    assert (bins.total, bins.unknown) == (5.0, 0.0)


def test_null_and_nan_are_unknown() -> None:
    histogram = Histogram()
    histogram.add(np.array([1, 2, 3]), np.array([True, False, True]))
    histogram.add(np.array([np.nan, 4.0]))
    bins = histogram.bins(GRAPH)
    assert (len(histogram), bins.unknown, bins.counts.tolist()) == (5, 2.0, [0.0, 3.0, 0.0])


def test_an_interval_without_values_has_one_of_its_own() -> None:
    bins = Histogram().bins(GRAPH)
    assert bins.counts.tolist() == [0.0, 0.0, 0.0]
    assert bins.places(bins.means).tolist() == [0, 1, 2]


def test_old_values_are_forgotten() -> None:
    histogram = Histogram(capacity=8)
    histogram.add(np.arange(6.0))
    histogram.add(np.arange(100.0, 105.0))
    assert sorted(histogram.values) == [3.0, 4.0, 5.0, 100.0, 101.0, 102.0, 103.0, 104.0]
    histogram.add(np.arange(80.0))
    assert sorted(histogram.values) == [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
    histogram.add(np.array([7.0]))
    assert len(histogram) == 8
    assert 7.0 in histogram.values


def test_a_paused_histogram_stays_as_it_is() -> None:
    histogram = Histogram()
    histogram.add(np.array([1.0]))
    histogram.paused = True
    histogram.add(np.array([2.0]))
    assert histogram.values.tolist() == [1.0]
    histogram.paused = False
    histogram.add(np.array([3.0]))
    assert histogram.values.tolist() == [1.0, 3.0]


def test_many_values_are_cut_into_even_intervals() -> None:
    values = np.random.default_rng(1).exponential(5.0, CAPACITY)
    bins = bin_values(values)
    assert len(bins.counts) == INTERVALS
    assert bins.counts.min() >= CAPACITY / INTERVALS - 1


def test_a_frequent_value_stands_alone() -> None:
    rng = np.random.default_rng(2)
    values = np.where(rng.random(2000) < 0.6, 0.0, rng.random(2000))
    bins = bin_values(values)
    alone = int(bins.places(np.zeros(1))[0])
    assert bins.counts[alone] == (values == 0.0).sum()


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e308])
def test_infinite_values_do_no_harm(value: float) -> None:
    bins = bin_values(np.append(np.full(100, value), [1.0, -np.inf, np.inf]), np.array([0.0]))
    assert np.isfinite(bins.edges).all()
    assert np.isfinite(bins.means).all()
    assert bins.counts.sum() == 103


@settings(deadline=None)
@given(
    st.lists(st.floats(-50, 50) | st.integers(-5, 5).map(float) | st.just(float("nan")), max_size=300),
    st.lists(st.integers(-20, 20), min_size=1, max_size=4, unique=True),
)
def test_the_utility_of_the_mean_is_the_mean_utility(values: list[float], points: list[int]) -> None:
    xs = sorted(points)
    graph = Graph(tuple((float(x), (at % 3) / 2) for at, x in enumerate(xs)))
    array = np.array(values, np.float64)
    bins: Bins = bin_values(array, np.array(xs, np.float64))
    assert bins.total == len(values)
    assert (np.diff(bins.edges) > 0).all()
    assert bins.places(bins.means).tolist() == list(range(len(bins.counts)))
    truth = bins.average(array, graph.values(array))
    filled = bins.counts > 0
    assert np.allclose(graph.values(bins.means)[filled], truth[filled], atol=1e-9)
    assert (np.isnan(truth) == ~filled).all()
