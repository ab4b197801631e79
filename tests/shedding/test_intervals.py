"""What intervals are worth, what to drop first, and sets of values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.network.qos import Graph
from headway.shedding.intervals import (
    EVERYTHING,
    NOTHING,
    Bins,
    Domain,
    Linear,
    Monotone,
    Rounded,
    Truncated,
    below,
    bin_values,
    cuts_at,
    expected,
    loss_graph,
    lowest_first,
    upto,
    utilities,
)


def bins(*counts: float, unknown: float = 0.0) -> Bins:
    edges = np.arange(1.0, len(counts))
    return Bins(edges, np.array(counts, np.float64), np.arange(0.5, len(counts)), unknown)


def test_expected_utility_by_hand() -> None:
    graph = Graph(((0.0, 0.0), (4.0, 1.0)))
    given_ = bins(4, 2, 2, 2)  # at 0.5, 1.5, 2.5, 3.5
    assert utilities(given_, graph).tolist() == [0.125, 0.375, 0.625, 0.875]
    assert expected(given_, utilities(given_, graph)) == pytest.approx((4 * 0.125 + 2 * (0.375 + 0.625 + 0.875)) / 10)
    assert expected(bins(0, 0), np.ones(2)) == 0.0


def test_the_least_useful_go_first_and_the_last_in_part() -> None:
    shares = lowest_first(bins(10, 20, 30, 40), np.array([0.2, 1.0, 0.0, 0.5]), 0.5)
    assert shares.tolist() == [0.0, 1.0, 0.0, 0.75]  # 20 whole, 30 of 40


def test_the_same_utility_has_the_same_share() -> None:
    shares = lowest_first(bins(10, 20, 30), np.array([0.0, 1.0, 0.0]), 0.5)
    assert shares.tolist() == [0.25, 1.0, 0.25]


def test_what_was_never_seen_goes_by_its_utility() -> None:
    utility = np.array([1.0, 0.5, 0.4, 0.0, np.nan])
    assert lowest_first(bins(0, 10, 0, 10, 0), utility, 0.25).tolist() == [1.0, 0.5, 0.0, 0.0, 0.25]
    assert lowest_first(bins(0, 0, 0, 0, 0), utility, 0.5).tolist()[-1] == 0.5
    assert lowest_first(bins(0, 10, 0, 10, 0), utility, 1.0).tolist() == [1.0] * 5
    assert lowest_first(bins(0, 10, 0, 10, 0), utility, 0.0).tolist() == [0.0] * 5


def test_a_loss_graph_by_hand() -> None:
    graph = loss_graph(bins(50, 30, 20), np.array([0.0, 1.0, 0.5]))
    assert graph.points == ((0.0, 0.0), (30.0, 0.3), (50.0, 0.4), (100.0, 0.4))


def test_a_loss_graph_counts_the_unknown_as_worth_nothing() -> None:
    assert loss_graph(bins(50, unknown=50), np.array([1.0])).points == ((0.0, 0.0), (100.0, 0.5))
    assert loss_graph(bins(0, unknown=5), np.array([1.0])).value(100) == 0.0
    assert loss_graph(bins(0), np.array([1.0])).points == ((0.0, 0.0), (100.0, 1.0))


counted = st.lists(st.tuples(st.integers(0, 50), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), min_size=1, max_size=8)


@settings(deadline=None)
@given(counted, st.floats(0, 1), st.floats(0, 1))
def test_the_kept_share_is_exact_and_monotone(pairs: list[tuple[int, float]], one: float, two: float) -> None:
    counts, utility = np.array([n for n, _ in pairs], np.float64), np.array([u for _, u in pairs])
    less, more = (lowest_first(bins(*counts), utility, keep) for keep in sorted((one, two)))
    assert (less <= more + 1e-12).all()
    if counts.sum():
        assert counts @ more == pytest.approx(max(one, two) * counts.sum())
        # Whoever is dropped is worth no more than anybody who is kept.
        kept, dropped = utility[(more > 0) & (counts > 0)], utility[(more < 1) & (counts > 0)]
        assert not len(kept) or not len(dropped) or dropped.max() <= kept.min()


@settings(deadline=None)
@given(counted, st.floats(0.01, 0.99))
def test_the_loss_graph_is_what_lowest_first_keeps(pairs: list[tuple[int, float]], keep: float) -> None:
    counts, utility = np.array([n for n, _ in pairs], np.float64), np.array([u for _, u in pairs])
    if counts.sum():
        graph = loss_graph(bins(*counts), utility)
        kept = (counts * utility) @ lowest_first(bins(*counts), utility, keep) / counts.sum()
        assert graph.value(100 * keep) == pytest.approx(kept, abs=1e-9)
        assert graph.value(100) == pytest.approx(expected(bins(*counts), utility))


numbers = st.integers(-5, 5).map(float) | st.integers(-60, 60).map(lambda n: n / 10) | st.sampled_from([1 / 3, -2.25])
domains = st.recursive(
    numbers.map(below) | numbers.map(upto) | st.sampled_from([EVERYTHING, NOTHING]),
    lambda inner: inner.map(lambda one: ~one) | st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
    max_leaves=5,
)


@settings(deadline=None)
@given(domains, domains, st.lists(numbers, min_size=1))
def test_domains_are_sets(one: Domain, two: Domain, values: list[float]) -> None:
    array = np.array(values)
    assert ((one & two).has(array) == (one.has(array) & two.has(array))).all()
    assert ((one | two).has(array) == (one.has(array) | two.has(array))).all()
    assert ((~one).has(array) == ~one.has(array)).all()


def test_nan_belongs_to_no_set() -> None:
    assert not EVERYTHING.has(np.array([np.nan])).any()
    assert below(3.0).has(np.array([2.9, 3.0])).tolist() == [True, False]
    assert upto(3.0).has(np.array([3.0, 3.1])).tolist() == [True, False]


steps = (
    st.tuples(st.sampled_from([-3.0, -1.0, -0.5, 0.25, 1.0, 2.0]), st.integers(-4, 4).map(float)).map(
        lambda pair: Linear(*pair)
    )
    | st.just(Truncated())
    | st.sampled_from([Rounded(0), Rounded(1)])
)


@settings(deadline=None)
@given(steps, domains, st.lists(st.integers(-40, 40).map(lambda n: n / 4), min_size=1))
def test_what_is_before_a_step_is_what_becomes_it(step: Monotone, domain: Domain, values: list[float]) -> None:
    array = np.array(values)
    assert (domain.before(step).has(array) == domain.has(step.apply(array))).all()


@settings(deadline=None)
@given(steps, st.lists(numbers, min_size=1))
def test_an_inverse_leads_back(step: Monotone, values: list[float]) -> None:
    results = step.apply(np.array(values))
    assert np.allclose(step.apply(step.invert(results)), results)


def test_edges_off_by_rounding_are_whole() -> None:
    fahrenheit = Linear(9 / 5, 32.0)
    whole = np.arange(-50.0, 200.0)
    assert (fahrenheit.cut(cuts_at(fahrenheit.apply(whole))).edges == whole).all()


def test_intervals_of_many_values_drop_the_least_useful_half() -> None:
    values = np.random.default_rng(3).normal(0, 1, 4000)
    graph = Graph(((-1.0, 0.0), (1.0, 1.0)))
    found = bin_values(values, np.array([-1.0, 1.0]))
    shares = lowest_first(found, utilities(found, graph), 0.5)
    kept = shares[found.places(values)]
    assert kept.mean() == pytest.approx(0.5)
    assert kept[values > 0.1].min() == 1.0
    assert kept[values < -0.1].max() == 0.0
