"""Drop boxes: what passes, what is counted, and how long a train is taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import Column
from headway.sieves import DropBox, Sieve
from headway.trains import Tick, Train

LOW_FIRST = Sieve(0.5, 0, 0, (50.0,), (0.0, 1.0))
"""Drops what is below 50."""


def train(first: int, count: int, **more: object) -> Train:
    numbers = np.arange(first, first + count)
    return Train((Column(numbers.astype(np.float64)),), numbers, numbers, first + count - 1, **more)  # type: ignore[arg-type]


def test_open_unless_told() -> None:
    box, some = DropBox(), train(0, 10)
    assert box.sift(some) is some
    assert (box.passed, box.dropped.total(), box.stretch(10)) == (10, 0, 10)


def test_every_tuple_is_counted_once_and_by_reason() -> None:
    box = DropBox(Sieve(0.5, 1))
    passed = len(box.sift(train(0, 1000)))
    assert 400 < passed < 600
    assert (box.passed, box.dropped) == (passed, {"random": 1000 - passed})
    box.sieve = LOW_FIRST
    assert box.sift(train(0, 100)).numbers.tolist() == list(range(50, 100))
    assert (box.passed, box.dropped) == (passed + 50, {"random": 1000 - passed, "value": 50})
    box.sieve = Sieve(1.0)
    box.sift(train(0, 7))
    assert (box.passed, box.dropped.total()) == (passed + 57, 1050 - passed), "what was dropped stays counted"


def test_marks_pass_whatever_is_dropped() -> None:
    box = DropBox(Sieve(0.0))
    found = box.sift(train(5, 10, ticks=(Tick(7, 3),), end=True))
    assert (len(found), found.ticks, found.end, found.progress) == (0, (Tick(7, 3),), True, 14)
    nothing = train(20, 0, ticks=(Tick(20, 4),))
    assert box.sift(nothing) is nothing
    assert (box.passed, box.dropped) == (0, {"random": 10})


def test_a_train_that_passes_whole_is_not_copied() -> None:
    some = train(60, 10)
    assert DropBox(LOW_FIRST).sift(some) is some


@pytest.mark.parametrize(("keep", "taken"), [(1.0, 100), (0.5, 200), (0.1, 1000), (0.001, 6400), (0.0, 6400)])
def test_more_is_taken_so_that_enough_is_left(keep: float, taken: int) -> None:
    assert DropBox(Sieve(keep)).stretch(100) == taken


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 30)), max_size=10))
def test_counts_add_up(steps: list[tuple[int, int]]) -> None:
    box, first, passed = DropBox(), 0, 0
    for keep, count in steps:
        box.sieve = Sieve(keep / 10, 0)
        passed += len(box.sift(train(first, count)))
        first += count
    assert box.passed == passed
    assert passed + box.dropped.total() == first
