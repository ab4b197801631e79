"""Trains as text, and how many tuples they let a step take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.clock import MILLISECOND, SECOND
from headway.durations import Duration
from headway.errors import PolicyError
from headway.scheduling.policy import Plan, Policy, Step, terms_of
from headway.scheduling.round_robin import RoundRobin
from headway.scheduling.slope_slack import SlopeSlack
from headway.scheduling.snapshot import QueueReadings, Snapshot, Unit
from headway.scheduling.trains import (
    FIRST,
    MOST,
    TRAINS,
    Auto,
    Budget,
    Bytes,
    LatencySpread,
    Overhead,
    Patient,
    Share,
    Sized,
    Tuples,
    parse_train,
)
from tests.policies import RandomPolicy
from tests.scheduling.snapshots import measured, replace

NOW = 100 * SECOND


def size(text: str, seen: Snapshot, unit: int = 0) -> int:
    return parse_train(text).size(seen, unit)


def united(waiting: Sequence[int], **more: Any) -> Snapshot:
    """Return a snapshot of one unit with several boxes."""
    seen = measured([[]] * len(waiting), [0.0] * len(waiting), waiting=waiting)
    total = sum(waiting)
    return replace(
        seen,
        units=(Unit("all", tuple(range(len(waiting))), ()),),
        ready=np.array([True]),
        busy=np.array([False]),
        waiting=np.array([total], np.int64),
        oldest=seen.oldest[:1],
        **more,
    )


@pytest.mark.parametrize(
    ("text", "rule", "canonical"),
    [
        (1000, Tuples(1000), "1000"),
        ("1000", Tuples(1000), "1000"),
        ("007", Tuples(7), "7"),
        ("50%", Share(50), "50%"),
        ("12.50 %", Share(12.5), "12.5%"),
        ("0.00001%", Share(0.00001), "0.00001%"),
        ("100%", Share(100), "100%"),
        ("5ms", Budget(Duration(5_000)), "5ms"),
        ("200us", Budget(Duration(200)), "200us"),
        ("0.2 s", Budget(Duration(200_000)), "200ms"),
        ("64kB", Bytes(64_000), "64kB"),
        ("64KB", Bytes(64_000), "64kB"),
        ("1MB", Bytes(1_000_000), "1MB"),
        ("1.5MB", Bytes(1_500_000), "1500kB"),
        ("2GB", Bytes(2_000_000_000), "2GB"),
        ("100 B", Bytes(100), "100B"),
        ("spread:10ms", LatencySpread(Duration(10_000)), "spread:10ms"),
        ("overhead:5%", Overhead(5), "overhead:5%"),
        ("overhead:0.5%", Overhead(0.5), "overhead:0.5%"),
        ("auto", Auto(), "auto"),
    ],
)
def test_texts(text: int | str, rule: Any, canonical: str) -> None:
    made = parse_train(text)
    assert made == rule
    assert str(made) == canonical
    assert parse_train(canonical) == rule


def test_every_listed_form_is_one() -> None:
    assert {str(parse_train(form)) for form in TRAINS} == set(TRAINS)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, True, 1.5, None, "", "0", "-5", "1e3", "0%", "101%", "-1%", "%", "0ms", "5 bananas"),
        *("0kB", "0.5B", "1.0005kB", "spread:", "spread:10%", "spread:0s"),
        *("overhead:100%", "overhead:0%", "overhead:5ms", "what:5ms"),
    ],
)
def test_what_is_no_train(value: Any) -> None:
    with pytest.raises(PolicyError) as error:
        parse_train(value)
    assert repr(value) in str(error.value)
    for form in TRAINS:
        assert form in str(error.value)


@given(
    rule=st.one_of(
        st.integers(1, 10**12).map(Tuples),
        st.integers(1, 10**12).map(Bytes),
        st.floats(0, 100, exclude_min=True, allow_subnormal=False).map(Share),
        st.floats(0, 100, exclude_min=True, exclude_max=True, allow_subnormal=False).map(Overhead),
        st.integers(1, 10**15).map(lambda one: Budget(Duration(one))),
        st.integers(1, 10**15).map(lambda one: LatencySpread(Duration(one))),
    )
)
@settings(deadline=None)
def test_text_goes_both_ways(rule: Any) -> None:
    assert parse_train(str(rule)) == rule
    assert "/" not in str(rule), "it stands between slashes in a schedule"


def test_numbers_leave_the_policy_alone() -> None:
    policy = RoundRobin()
    assert parse_train(7).wrap(policy) is policy
    assert (parse_train(7).most, parse_train("5ms").most, parse_train("auto").most) == (7, MOST, FIRST)
    assert parse_train("auto").wrap(policy) == Patient(policy)
    assert parse_train("5ms").wrap(policy) == Sized(policy, Budget(Duration(5_000)))


def test_a_share() -> None:
    seen = measured([[]] * 4, [0.0] * 4, waiting=[7, 100, 1, 0])
    assert [size("50%", seen, unit) for unit in range(4)] == [4, 50, 1, 1]
    assert [size("7%", seen, unit) for unit in range(4)] == [1, 7, 1, 1]  # 0.07 * 100 is above 7 in binary


def test_a_share_of_a_unit_with_several_queues() -> None:
    assert size("50%", united([100, 100, 100])) == 50
    # Half of 111: 10 and 1 from the short queues, 45 from the long one, all with a number of 45 for each.
    assert size("50%", united([10, 100, 1])) == 45
    assert size("1%", united([10, 100, 1])) == 1
    assert size("100%", united([10, 100, 1])) == 111


def test_a_time() -> None:
    seen = measured(
        [[]] * 5, [0.0] * 5, overhead=[0.001, 0.009, 0, 0.001, 0], cost=[0.001, 0.001, 0.0001, 0, 0], waiting=[999] * 5
    )
    assert [size("5ms", seen, unit) for unit in range(5)] == [4, 1, 50, MOST, FIRST]


def test_a_memory() -> None:
    seen = united([10, 30])
    queues = QueueReadings(np.array([10, 30]), np.array([1000, 600]), np.zeros(2), np.zeros(2))
    # 1,600 bytes in 40 tuples: 40 each, so that 25 fit: 10 and 15.
    assert size("1kB", replace(seen, read_queues=lambda: queues)) == 15
    assert size("10B", replace(seen, read_queues=lambda: queues)) == 1
    assert size("1MB", replace(seen, read_queues=lambda: queues)) == 25_000
    unknown = QueueReadings(np.array([10, 30]), np.array([0, 0]), np.zeros(2), np.zeros(2))
    assert size("10B", replace(seen, read_queues=lambda: unknown)) == FIRST


def spread(text: str, waiting: int, oldest: float, mean: float) -> int:
    return size(text, measured([[]], [mean], waiting=[waiting], oldest=[NOW - round(oldest * SECOND)]))


def test_a_spread() -> None:
    # 11 tuples, the oldest 20 ms old, 15 ms on average: one each millisecond from 20 to 10.
    assert spread("spread:3ms", 11, 0.020, 0.015) == 4
    assert spread("spread:9999us", 11, 0.020, 0.015) == 10
    assert spread("spread:10ms", 11, 0.020, 0.015) >= 11
    assert spread("spread:11ms", 11, 0.020, 0.015) == MOST
    assert spread("spread:1us", 11, 0.020, 0.015) == 1
    assert spread("spread:1us", 11, 0.020, 0.020) == MOST, "all of one age"
    assert spread("spread:1us", 1, 0.020, 0.020) == MOST


def test_a_share_of_overhead() -> None:
    seen = measured([[]] * 4, [0.0] * 4, overhead=[0.001, 0, 0.001, 0], cost=[0.0001, 0.0001, 0, 0], waiting=[9999] * 4)
    # 1 ms is 10 % of 10 ms, 9 ms are 90 tuples.
    assert [size("overhead:10%", seen, unit) for unit in range(4)] == [99, 99, MOST, FIRST]
    seen = replace(seen, waiting=np.full(4, 16))
    assert [size("overhead:10%", seen, unit) for unit in range(4)] == [90, 4, MOST, FIRST]
    assert size("overhead:1%", seen) == 990
    assert size("overhead:10%", replace(seen, planning=0.001)) == 180, "planning counts, too"
    cheap = measured([[]], [0.0], overhead=[10.0], cost=[1e-12])
    assert size("overhead:1%", cheap) == MOST


def test_overhead_takes_enough_where_there_are_several_queues() -> None:
    readings = measured([[]], [0.0], overhead=[0.001], cost=[0.0001]).costs
    seen = united([10, 100, 100], read_costs=lambda: readings)
    assert size("overhead:10%", seen) == 40  # 10 + 40 + 40 = 90
    assert size("overhead:11%", seen) == 36  # 81 needed: 10 + 36 + 36 = 82, and 35 would give 80


@given(
    queued=st.lists(st.integers(0, 20), min_size=2, max_size=5),
    total=st.integers(0, 60),
)
@settings(deadline=None)
def test_the_number_for_each_queue_is_the_largest_that_fits_or_the_smallest_that_is_enough(
    queued: list[int], total: int
) -> None:
    def taken(number: int) -> int:
        return sum(min(number, one) for one in queued)

    readings = measured([[]], [0.0], overhead=[1.0], cost=[1.0]).costs
    seen = united(queued, read_costs=lambda: readings)
    most = size(f"{total + 1}s", seen)  # a second for the call and one for each tuple
    assert taken(most) <= total or most == 1
    assert taken(most + 1) > total or taken(most) == sum(queued)
    # overhead of 1 s at most a share 1/(n + 1): n tuples.
    total = max(total, math.isqrt(sum(queued)))
    least = Overhead(100 / (total + 1)).size(seen, 0) if total else 1
    assert taken(least) >= min(total, sum(queued))
    assert taken(least - 1) < total or least == 1


class _Fixed(Policy):
    preemptive = True

    def rule(self, snapshot: Snapshot, memory: Any, unit: int) -> str:
        return "as fixed"

    def start(self) -> int:
        return 5

    def plan(self, snapshot: Snapshot, memory: int) -> tuple[Plan, int]:
        return Plan((Step(1, 3), Step(0, 1000)), NOW + 9), memory + 1


def test_steps_are_cut_and_everything_else_stays() -> None:
    seen = measured([[]] * 2, [0.0] * 2, waiting=[100, 100])
    policy = parse_train("10%").wrap(_Fixed())
    assert policy.start() == 5
    assert policy.plan(seen, 5) == (Plan((Step(1, 3), Step(0, 10)), NOW + 9), 6)


WRAPPED: list[Policy] = [
    Sized(SlopeSlack(), Share(50)),
    Patient(SlopeSlack()),
]


@pytest.mark.parametrize("policy", WRAPPED)
def test_terms_come_from_the_inner_policy(policy: Policy) -> None:
    graph = ((0.0, 1.0), (1.0, 1.0), (3.0, 0.0))
    seen = measured([[graph]] * 2, [0.5, 2.0], oldest=[NOW - SECOND // 2, NOW - 2 * SECOND], train=MOST)
    told = terms_of(policy, seen, policy.start())  # before its first plan
    assert [(term.name, term.values.tolist(), term.largest) for term in told] == [
        ("utility", [0, 0.5], True),
        ("slack", [0.5, np.inf], False),
        ("oldest", [NOW - 500 * MILLISECOND, NOW - 2000 * MILLISECOND], False),
    ]


@pytest.mark.parametrize("wrap", [lambda policy: Sized(policy, Share(50)), Patient])
def test_what_else_comes_from_the_inner_policy(wrap: Any) -> None:
    seen = measured([[]], [0.0])
    policy = wrap(_Fixed())
    assert policy.preemptive
    assert policy.rule(seen, policy.start(), 0) == "as fixed"
    plain = wrap(RandomPolicy(1))
    assert not plain.preemptive
    assert terms_of(plain, seen, plain.start()) == ()
    assert plain.rule(seen, plain.start(), 0) is None


rules = st.sampled_from(["50%", "1%", "5ms", "1s", "10B", "1MB", "spread:10ms", "overhead:5%", "overhead:99%"])


@given(text=rules, data=st.data())
@settings(deadline=None)
def test_a_step_is_never_empty_and_never_larger_than_the_policys(text: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))

    def each(values: st.SearchStrategy[Any]) -> list[Any]:
        return [data.draw(values) for _ in range(count)]

    seen = measured(
        [[]] * count,
        each(st.floats(0, 12)),
        overhead=each(st.sampled_from([0.0, 0.0001, 0.3])),
        cost=each(st.sampled_from([0.0, 1e-9, 1e-3])),
        waiting=each(st.sampled_from([0, 1, 100, MOST])),
        oldest=each(st.integers(0, NOW)),
        train=data.draw(st.sampled_from([1, 50, MOST])),
    )
    inner, _ = RoundRobin().plan(seen, RoundRobin().start())
    policy = parse_train(text).wrap(RoundRobin())
    plan, memory = policy.plan(seen, policy.start())
    assert policy.plan(seen, policy.start()) == (plan, memory)
    assert [step.unit for step in plan.steps] == [step.unit for step in inner.steps]
    for step, one in zip(plan.steps, inner.steps, strict=True):
        assert 1 <= step.tuples <= one.tuples
