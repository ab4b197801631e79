"""Weighted round robin: in turn, by quanta, and fair by weight."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.policy import Policy, Step, make_policy
from headway.scheduling.round_robin import LONGEST
from headway.scheduling.snapshot import Snapshot, Unit
from headway.scheduling.superboxes import box_units, superbox_units
from headway.scheduling.weighted_round_robin import WeightedRoundRobin, box_weights
from tests.scheduling.snapshots import replace, snapshot, topology

NETWORK = topology(
    {"left": (), "right": (), "joined": ("left", "right"), "shown": ("joined",), "counted": ("left",)},
    {"show": "shown", "count": "counted"},
)


def steps(seen: Snapshot, policy: Policy | None = None) -> list[Step]:
    policy = policy or WeightedRoundRobin()
    return list(policy.plan(seen, policy.start())[0].steps)


def test_sources_and_joins_weigh_more() -> None:
    assert box_weights(NETWORK).tolist() == [2, 2, 2, 1, 1]
    seen = replace(snapshot([True] * 5, train=10), topology=NETWORK, units=box_units(NETWORK))
    assert steps(seen) == [(0, 20), (1, 20), (2, 20), (3, 10), (4, 10)]


def test_a_box_that_joins_sources_weighs_four() -> None:
    two = replace(NETWORK, sources=("s", "t"), readers=((0, 1), (1, 4)))
    # right reads both sources, counted reads a source and a box.
    assert box_weights(two).tolist() == [2, 4, 2, 1, 4]


def test_a_superbox_weighs_as_much_as_its_heaviest_box() -> None:
    three = topology({"a": (), "b": ("a",), "c": ("b",)}, {"out": "c"})
    assert [tuples for _, tuples in steps(replace(snapshot([True]), topology=three, units=superbox_units(three)))] == [
        20
    ]
    # No box of this unit reads a source or has several inputs.
    late = (Unit("late", (1, 2), (0,)),)
    assert [tuples for _, tuples in steps(replace(snapshot([True]), topology=three, units=late))] == [10]
    both = replace(three, sources=("s", "t"), readers=((0, 2), (2,)))
    assert [tuples for _, tuples in steps(replace(snapshot([True]), topology=both, units=late))] == [40]


def test_weights_by_name_and_one_for_all_others() -> None:
    policy = make_policy("weighted-round-robin:b0=3, b2=0.25")
    assert policy == WeightedRoundRobin((("b0", 3.0), ("b2", 0.25)))
    assert steps(snapshot([True] * 4, train=10), policy) == [(0, 30), (1, 10), (2, 2), (3, 10)]


def test_a_quantum_is_at_least_one_tuple() -> None:
    assert steps(snapshot([True], train=10), WeightedRoundRobin((("b0", 0.001),))) == [(0, 1)]
    assert steps(snapshot([True], train=1), WeightedRoundRobin((("b0", 0.5),))) == [(0, 1)]


def test_a_fraction_is_what_it_says() -> None:
    # 0.29 * 100 is a little less than 29 in binary.
    assert steps(snapshot([True], train=100), WeightedRoundRobin((("b0", 0.29),))) == [(0, 29)]


def test_a_name_that_is_no_unit_is_named_with_the_choices() -> None:
    policy = make_policy("weighted-round-robin:b1=2,bx=3")
    with pytest.raises(PolicyError, match=r"unknown unit 'bx'.*choices: b0, b1"):
        policy.plan(snapshot([True, True]), policy.start())
    seen = replace(snapshot([True, True]), topology=NETWORK, units=superbox_units(NETWORK))
    with pytest.raises(PolicyError, match=r"unknown unit 'joined'.*choices: count, show"):
        steps(seen, WeightedRoundRobin((("joined", 2.0),)))


@pytest.mark.parametrize(
    "argument", ["", "a", "a=", "=2", "a=0", "a=-1", "a=x", "a=nan", "a=inf", "a=2,", "a=2;b=3", "a=1e7"]
)
def test_its_argument_is_weights_above_zero(argument: str) -> None:
    with pytest.raises(PolicyError, match=r"numbers above 0 and up to 1000000, such as 'joined=3,across=0\.5'"):
        make_policy(f"weighted-round-robin:{argument}")


def test_a_unit_has_one_weight() -> None:
    with pytest.raises(PolicyError, match="unit 'a' has two weights"):
        make_policy("weighted-round-robin:a=2,a=3")


def test_the_turn_goes_on_where_it_ended() -> None:
    policy, memory = WeightedRoundRobin(), WeightedRoundRobin().start()
    seen = replace(snapshot([True] * 5), room=2)
    turns = []
    for _ in range(4):
        plan, memory = policy.plan(seen, memory)
        turns.append([unit for unit, _ in plan.steps])
    assert turns == [[0, 1], [2, 3], [4, 0], [1, 2]]
    idle, after = policy.plan(replace(seen, ready=np.zeros(5, np.bool_)), memory)
    assert idle.steps == ()
    assert after.first == memory.first == 3


def test_the_room_and_the_longest_plan_are_kept() -> None:
    assert len(steps(replace(snapshot([True] * 9), room=4))) == 4
    assert len(steps(replace(snapshot([True] * 900), room=900))) == LONGEST


def test_another_network_begins_anew() -> None:
    policy, memory = WeightedRoundRobin((("b0", 2.0),)), WeightedRoundRobin().start()
    _, memory = policy.plan(replace(snapshot([True] * 5), room=4), memory)
    plan, _ = policy.plan(snapshot([True] * 2), memory)
    assert plan.steps == ((0, 20), (1, 10))


@settings(deadline=None)
@given(weights=st.lists(st.integers(1, 9), min_size=1, max_size=8), room=st.integers(1, 10))
def test_units_that_always_have_work_get_tuples_by_weight(weights: list[int], room: int) -> None:
    count = len(weights)
    policy = WeightedRoundRobin(tuple((f"b{at}", float(weight)) for at, weight in enumerate(weights)))
    seen, memory = replace(snapshot([True] * count), room=room), policy.start()
    taken: Counter[int] = Counter()
    for _ in range(3 * count):
        plan, memory = policy.plan(seen, memory)
        for unit, tuples in plan.steps:
            taken[unit] += tuples
    rounds = [taken[at] / (10 * weight) for at, weight in enumerate(weights)]
    assert max(rounds) - min(rounds) <= 1
    assert min(rounds) >= 3
