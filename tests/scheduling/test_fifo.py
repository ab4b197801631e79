"""First in, first out: by age in the network, and through the whole path first."""

from __future__ import annotations

import numpy as np
import pytest

from headway.errors import PolicyError
from headway.scheduling.fifo import Fifo
from headway.scheduling.policy import make_policy
from headway.scheduling.snapshot import Snapshot, Unit
from tests.scheduling.snapshots import measured, replace, topology

NEVER = int(np.iinfo(np.int64).max)


def order(seen: Snapshot) -> list[int]:
    plan, _ = Fifo().plan(seen, Fifo().start())
    return [step.unit for step in plan.steps]


def test_the_oldest_tuple_comes_first() -> None:
    assert order(measured([[]] * 4, [0] * 4, oldest=[30, 10, 40, 20])) == [1, 3, 0, 2]


def test_the_number_of_tuples_does_not_matter() -> None:
    assert order(measured([[]] * 2, [0] * 2, oldest=[30, 29], waiting=[1000, 1])) == [1, 0]


def test_among_equals_the_one_furthest_downstream() -> None:
    assert order(measured([[]] * 4, [0] * 4, oldest=[5, 5, 9, 5])) == [3, 1, 0, 2]


def test_units_stand_where_their_last_box_does_whatever_their_number() -> None:
    seen = measured([[]] * 3, [0] * 3, oldest=[5, 5, 5])
    units = (Unit("a", (0, 4), ()), Unit("b", (5,), ()), Unit("c", (3, 1), ()))
    assert order(replace(seen, units=units)) == [1, 0, 2]


def test_where_only_marks_wait_comes_last() -> None:
    assert order(measured([[]] * 3, [0] * 3, oldest=[NEVER, 7, 8], waiting=[0, 1, 1])) == [1, 2, 0]


def test_a_tuple_is_pushed_through_before_a_newer_one_starts() -> None:
    # Four tuples, stamped 1 to 4, before the first of three boxes in a row; each step moves one tuple on.
    policy, memory = Fifo(), Fifo().start()
    plain = replace(
        measured([[]] * 3, [0] * 3),
        topology=topology({"a": (), "b": ("a",), "c": ("b",)}, {"out": "c"}),
        room=1,
        train=1,
    )
    queues: list[list[int]] = [[1, 2, 3, 4], [], []]
    steps: list[int] = []
    out: list[int] = []
    while any(queues):
        waiting = np.array([len(queue) for queue in queues])
        oldest = np.array([min(queue, default=NEVER) for queue in queues])
        plan, memory = policy.plan(replace(plain, ready=waiting > 0, waiting=waiting, oldest=oldest), memory)
        ((unit, _),) = plan.steps
        steps.append(unit)
        (out if unit == 2 else queues[unit + 1]).append(queues[unit].pop(0))
    assert steps == [0, 1, 2] * 4
    assert out == [1, 2, 3, 4]


def test_equally_old_tuples_are_pushed_through_one_after_the_other() -> None:
    policy, memory = Fifo(), Fifo().start()
    plain = replace(measured([[]] * 2, [0] * 2), room=1, train=1)
    queues, steps = [3, 0], []
    while any(queues):
        waiting = np.array(queues)
        oldest = np.where(waiting > 0, 7, NEVER)
        plan, memory = policy.plan(replace(plain, ready=waiting > 0, waiting=waiting, oldest=oldest), memory)
        unit = plan.steps[0].unit
        steps.append(unit)
        queues[unit] -= 1
        if unit == 0:
            queues[1] += 1
    assert steps == [0, 1] * 3


def test_places_are_looked_up_once_for_a_network() -> None:
    first = measured([[]] * 2, [0] * 2, oldest=[5, 5])
    _, memory = Fifo().plan(first, Fifo().start())
    assert Fifo().plan(first, memory)[1] is memory
    other = replace(first, units=(Unit("x", (1,), ()), Unit("y", (0,), ())))
    plan, _ = Fifo().plan(other, memory)
    assert [step.unit for step in plan.steps] == [0, 1]


def test_its_terms_tell_the_order() -> None:
    seen = measured([[]] * 2, [0] * 2, oldest=[8, 5])
    terms = Fifo().terms(seen, Fifo().prepare(seen, None))
    assert [(term.name, term.values.tolist(), term.largest) for term in terms] == [
        ("oldest", [8, 5], False),
        ("place", [0, 1], True),
    ]


@pytest.mark.parametrize("argument", ["", "3", "oldest"])
def test_it_takes_no_argument(argument: str) -> None:
    assert make_policy("fifo") == Fifo()
    with pytest.raises(PolicyError, match=f"'fifo' takes no argument, not '{argument}'"):
        make_policy(f"fifo:{argument}")


def test_a_unit_without_boxes_is_served_too() -> None:
    seen = measured([[]] * 2, [0] * 2, oldest=[5, 5])
    units = (Unit("an output of a source", (), ()), Unit("b", (1,), ()))
    assert order(replace(seen, units=units)) == [1, 0]
