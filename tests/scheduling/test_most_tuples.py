"""Most tuples in queue: the longest first, and the paper's example of bursts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import PolicyError
from headway.scheduling.most_tuples import MostTuples
from headway.scheduling.policy import make_policy
from headway.scheduling.snapshot import Snapshot
from tests.scheduling.snapshots import measured, replace

NEVER = int(np.iinfo(np.int64).max)


def order(seen: Snapshot) -> list[int]:
    plan, _ = MostTuples().plan(seen, MostTuples().start())
    return [step.unit for step in plan.steps]


def test_the_longest_queue_comes_first() -> None:
    assert order(measured([[]] * 4, [0] * 4, waiting=[3, 9, 1, 4])) == [1, 3, 0, 2]


def test_equals_come_in_the_order_of_the_network() -> None:
    assert order(measured([[]] * 3, [0] * 3, waiting=[5, 6, 5], oldest=[8, 9, 7])) == [1, 0, 2]


def test_where_only_marks_wait_comes_last() -> None:
    assert order(measured([[]] * 3, [0] * 3, waiting=[0, 1, 2], oldest=[NEVER, 7, 8])) == [2, 1, 0]


def test_results_wait_until_their_queue_is_the_longest() -> None:
    # Two boxes in a row, steps of two tuples; the first lets half of them through.
    plain = replace(measured([[]] * 2, [0] * 2), room=1)
    queues, steps = [8, 0], []
    while any(queues):
        waiting = np.array(queues)
        plan, _ = MostTuples().plan(replace(plain, ready=waiting > 0, waiting=waiting), None)
        unit = plan.steps[0].unit
        steps.append(unit)
        taken = min(2, queues[unit])
        queues[unit] -= taken
        if unit == 0:
            queues[1] += taken // 2
    # 8/0, 6/1, 4/2, 2/3 and only now the second: 2/1, 0/2, 0/0
    assert steps == [0, 0, 0, 1, 0, 1]


@settings(deadline=None)
@given(queues=st.lists(st.integers(1, 50), min_size=1, max_size=12))
def test_the_first_has_the_longest_queue(queues: list[int]) -> None:
    assert queues[order(measured([[]] * len(queues), [0] * len(queues), waiting=queues))[0]] == max(queues)


@pytest.mark.parametrize("argument", ["", "3"])
def test_it_takes_no_argument(argument: str) -> None:
    assert make_policy("most-tuples") == MostTuples()
    with pytest.raises(PolicyError, match=f"'most-tuples' takes no argument, not '{argument}'"):
        make_policy(f"most-tuples:{argument}")
