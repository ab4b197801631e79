"""Topology and running statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.catalog import Statistics, Topology, members
from headway.clock import SECOND
from headway.engines.steering import summarise_boxes
from headway.errors import HeadwayError
from headway.network.qos import QoS

NAN = float("nan")

# a → b → d (out x), a → c → d, c (out y), e (no output)
TOPOLOGY = Topology(
    ("a", "b", "c", "d", "e"),
    ("s",),
    ("x", "y", "z"),
    (QoS(), QoS(), QoS()),
    ((), (0,), (0,), (1, 2), ()),
    ((1, 2), (3,), (3,), (), ()),
    ((0, 4),),
    (3, 2, -1),
)


def test_outputs_that_boxes_lead_to() -> None:
    assert [members(reach) for reach in TOPOLOGY.reach()] == [(0, 1), (0,), (0, 1), (0,), ()]


def test_sums_and_selectivity() -> None:
    statistics = Statistics(3, remember=float("inf"))
    statistics.report(0, 10, 5, 1000, 80)
    statistics.report(0, 30, 5, 3000, -1)
    statistics.report(2, 0, 0, 500, 0)
    readings = statistics.readings()
    assert readings.calls.tolist() == [2, 0, 1]
    assert readings.tuples_in.tolist() == [40, 0, 0]
    assert readings.tuples_out.tolist() == [10, 0, 0]
    assert readings.busy.tolist() == [4000, 0, 500]
    assert readings.tuple_size.tolist() == [8, 0, 0]
    assert readings.selectivity.tolist() == [0.25, 1, 1]
    statistics.report(0, 1, 1, 1, 8)
    assert readings.calls.tolist() == [2, 0, 1]
    assert statistics.readings().calls.tolist() == [3, 0, 1]


@pytest.mark.parametrize("fold_every", [1, 7, 1000])
def test_the_cost_model_finds_overhead_and_cost(fold_every: int) -> None:
    statistics = Statistics(2)
    chance = np.random.default_rng(1)
    for at in range(1000):
        tuples = int(chance.integers(1, 1000))
        statistics.report(0, tuples, 0, 20_000 + 150 * tuples, 0)
        statistics.report(1, 100, 0, 5_000, 0)
        if at % fold_every == 0:
            statistics.fold()
    readings = statistics.readings()
    assert readings.overhead[0] == pytest.approx(20e-6, rel=1e-3)
    assert readings.cost[0] == pytest.approx(150e-9, rel=1e-3)
    # Trains of one size cannot tell the two apart; together they still give the cost of a call.
    assert readings.overhead[1] + 100 * readings.cost[1] == pytest.approx(5e-6, rel=1e-3)


def test_no_calls_cost_nothing() -> None:
    readings = Statistics(1).readings()
    assert (readings.overhead[0], readings.cost[0], readings.tuple_size[0]) == (0, 0, 0)


Call = tuple[int, int, int, int, int]
calls = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 50), st.integers(1, 10**9), st.integers(-1, 999)),
    max_size=40,
)


@given(made=calls, cuts=st.sets(st.integers(0, 40)), remember=st.sampled_from((1.0, 2.0, 10.0, 1000.0)))
@settings(deadline=None)
def test_when_calls_are_folded_in_does_not_matter(made: Sequence[Call], cuts: set[int], remember: float) -> None:
    often, once = Statistics(4, remember), Statistics(4, remember)
    for at, call in enumerate(made):
        often.report(*call)
        once.report(*call)
        if at in cuts:
            often.fold()
    one, other = often.readings(), once.readings()
    for name in ("calls", "tuples_in", "tuples_out", "busy", "tuple_size", "selectivity"):
        assert getattr(one, name) == pytest.approx(getattr(other, name)), name
    for some in (one, other):
        assert (some.overhead >= 0).all()
        assert (some.cost >= 0).all()


@given(made=calls, remember=st.sampled_from((1.0, 2.0, 10.0, 1000.0)))
@settings(deadline=None)
def test_calls_fade_by_the_calls_of_their_box(made: Sequence[Call], remember: float) -> None:
    """The definition, call by call: 1 - 1/remember of a call's weight is left after the next."""
    statistics = Statistics(4, remember)
    sums = np.zeros((4, 4))
    for box, n_in, n_out, spent, size in made:
        statistics.report(box, n_in, n_out, spent, size)
        sums[box] *= max(1 - 1 / remember, 1e-9)
        sums[box] += (n_in, n_out, n_in if size >= 0 else 0, max(size, 0))
    readings = statistics.readings()
    for box, (n_in, n_out, sized, size) in enumerate(sums):
        if n_in > 1e-50:
            assert readings.selectivity[box] == pytest.approx(n_out / n_in)
        if sized > 1e-50:
            assert readings.tuple_size[box] == pytest.approx(size / sized)


def test_selectivity_follows_the_box_but_the_summary_counts_all() -> None:
    # With remember = 2 a call weighs half as much after the next: (0 * 1/2 + 10) / (10 * 1/2 + 10) = 2/3.
    statistics = Statistics(1, remember=2)
    statistics.report(0, 10, 0, 1000, 80)
    statistics.report(0, 10, 10, 1000, 200)
    readings = statistics.readings()
    assert readings.selectivity[0] == pytest.approx(2 / 3)
    assert readings.tuple_size[0] == pytest.approx((40 + 200) / 15)
    assert readings.overall[0] == 0.5
    assert summarise_boxes(("b",), readings, {}, {})["b"]["selectivity"] == 0.5


@pytest.mark.parametrize(("remember", "expected"), [(1, 3e-6), (2, (1 + 2 * 3) / 3 * 1e-6), (float("inf"), 2e-6)])
def test_the_cost_model_forgets(remember: float, expected: float) -> None:
    statistics = Statistics(1, remember)
    statistics.report(0, 1, 1, 1000, -1)
    statistics.readings()
    statistics.report(0, 1, 1, 3000, -1)
    readings = statistics.readings()
    assert readings.overhead[0] + readings.cost[0] == pytest.approx(expected)


def test_after_remember_calls_about_a_third_of_the_weight_is_left() -> None:
    statistics = Statistics(1, remember=50)
    for _ in range(2000):
        statistics.report(0, 1, 0, 1000, -1)
    for _ in range(50):
        statistics.report(0, 1, 1, 1000, -1)
    assert 1 - statistics.readings().selectivity[0] == pytest.approx(np.exp(-1), rel=0.02)


def test_what_was_known_stays_when_only_empty_trains_come() -> None:
    statistics = Statistics(1, remember=1)
    statistics.report(0, 10, 5, 10_000, 80)
    statistics.report(0, 0, 0, 500, -1)
    readings = statistics.readings()
    assert (readings.selectivity[0], readings.tuple_size[0]) == pytest.approx((0.5, 8))
    # 10 tuples took 10 us, none 0.5 us.
    assert (readings.cost[0], readings.overhead[0]) == pytest.approx((0.95e-6, 0.5e-6))
    for _ in range(100):  # until nothing is left of the sums
        statistics.report(0, 0, 0, 500, -1)
        readings = statistics.readings()
    assert (readings.selectivity[0], readings.tuple_size[0]) == pytest.approx((0.5, 8))
    assert (readings.cost[0], readings.overhead[0]) == pytest.approx((0.95e-6, 0.5e-6))


@pytest.mark.parametrize("remember", [0, 0.5, -1, NAN])
def test_one_call_at_least_is_remembered(remember: float) -> None:
    with pytest.raises(HeadwayError, match="remember 1 call or more"):
        Statistics(1, remember)


def test_seconds_to_remember_are_positive() -> None:
    with pytest.raises(HeadwayError, match="more than 0 seconds, not 0"):
        Statistics(1, half_life=0)


def test_readings_are_the_same_until_something_is_reported() -> None:
    statistics = Statistics(2)
    first = statistics.readings()
    assert statistics.readings() is first
    statistics.report(0, 1, 1, 1, 8)
    second = statistics.readings(now=5)
    assert second is not first
    assert statistics.readings() is second
    assert statistics.readings(5) is second
    statistics.report(0, 1, 1, 1, 8)
    statistics.fold()
    assert statistics.readings(5) is not second
    with pytest.raises(ValueError, match="read-only"):
        second.calls[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        second.rate_in[0] = 7


@given(moments=st.lists(st.integers(1, 20), min_size=1, max_size=20))
@settings(deadline=None)
def test_a_steady_rate_is_found_whenever_one_looks(moments: Sequence[int]) -> None:
    statistics = Statistics(2, half_life=3)
    now = 7 * SECOND
    statistics.report(1, 1000, 0, 1, -1)  # before the first look: of unknown age
    assert statistics.readings(now).rate_in.tolist() == [0, 0]
    for passed in moments:
        now += passed * SECOND // 4
        statistics.report(0, 10 * passed, 0, 1, -1)
        readings = statistics.readings(now)
        assert readings.rate_in == pytest.approx(np.array([40, 0]))
    assert statistics.readings().rate_in is readings.rate_in
    assert statistics.readings(now - 1) is readings  # time does not go back


def test_rates_fade_by_half() -> None:
    statistics = Statistics(1, half_life=5)
    statistics.readings(0)
    statistics.report(0, 200 * 1000, 0, 1, -1)
    assert statistics.readings(1000 * SECOND).rate_in[0] == pytest.approx(200)
    kept = statistics.readings()
    assert statistics.readings(1005 * SECOND).rate_in[0] == pytest.approx(100)
    assert statistics.readings(1015 * SECOND).rate_in[0] == pytest.approx(25)
    assert kept.rate_in[0] == pytest.approx(200)
    # 5 s at 100 per second: half of the time that counts, and 25 for the other half.
    statistics.report(0, 500, 0, 1, -1)
    assert statistics.readings(1020 * SECOND).rate_in[0] == pytest.approx(100 / 2 + 25 / 2)


def test_looking_at_the_same_moment_loses_no_tuples() -> None:
    statistics = Statistics(1)
    statistics.readings(0)
    statistics.report(0, 10, 0, 1, -1)
    statistics.readings(0)
    assert statistics.readings(SECOND).rate_in[0] == pytest.approx(10)


def declared(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values)


@pytest.mark.parametrize("exact", [False, True])
def test_what_is_declared_stands_in_for_what_is_not_measured(exact: bool) -> None:
    statistics = Statistics(3)
    before = statistics.readings()
    cost = declared(5, NAN, 7)
    statistics.declare(cost, declared(1, 2, NAN), declared(0.5, NAN, NAN), exact=exact)
    cost[:] = 99  # the caller's own array
    readings = statistics.readings()
    assert readings is not before
    assert (readings.cost.tolist(), readings.overhead.tolist()) == ([5, 0, 7], [1, 2, 0])
    assert readings.selectivity.tolist() == [0.5, 1, 1]
    for _ in range(Statistics.PRIOR - 1):
        statistics.report(0, 100, 100, 100_000, -1)
    assert statistics.readings().cost.tolist() == [5, 0, 7]
    assert statistics.readings().tuples_out[0] == 700
    statistics.report(0, 100, 100, 100_000, -1)
    found = statistics.readings()
    assert (found.cost[0], found.overhead[0], found.selectivity[0]) == pytest.approx(
        (5, 1, 0.5) if exact else (1e-6, 0, 1)
    )
    assert (found.cost[2], found.overhead[1]) == (7, 2)


def test_a_later_declaration_replaces_the_earlier() -> None:
    statistics = Statistics(1)
    statistics.declare(declared(5), declared(6))
    statistics.declare(selectivity=declared(0.25), exact=True)
    readings = statistics.readings()
    assert (readings.cost[0], readings.overhead[0], readings.selectivity[0]) == (0, 0, 0.25)


def test_bad_declarations_are_named() -> None:
    with pytest.raises(
        HeadwayError, match=r"declared overhead has the shape \(1,\); it is one number for each of 2 boxes"
    ):
        Statistics(2).declare(declared(1, 2), declared(1))
    with pytest.raises(HeadwayError, match="declared selectivity of box 1 is below 0"):
        Statistics(2).declare(selectivity=declared(NAN, -1))


def test_statistics_go_on_in_another_network() -> None:
    before, after = Statistics(3), Statistics(2)
    before.report(2, 40, 10, 8_000, 400)
    before.report(0, 7, 7, 70, 7)
    after.take_over(before, [(1, 2)])
    was, now = before.readings(), after.readings()
    for name in ("tuples_in", "tuples_out", "busy", "cost", "selectivity"):
        one, other = getattr(was, name), getattr(now, name)
        assert other[1] == one[2], name
    assert now.tuples_in[0] == 0
    after.report(1, 40, 10, 8_000, 400)
    assert after.readings().tuples_in[1] == 80
    assert before.readings().tuples_in[2] == 40


def test_nothing_goes_on_if_all_is_new() -> None:
    before, after = Statistics(1), Statistics(1)
    before.report(0, 40, 10, 8_000, 400)
    after.take_over(before, [])
    assert after.readings().tuples_in.tolist() == [0]
