"""Queues with drop boxes between them and their consumers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.columns import NEVER
from headway.sieves import DropBox, Sieve, chances
from headway.trains import NOTHING, Tick, Train
from tests.storage.test_queues import pushes, queue, takes, train


def test_a_drop_box_thins_out_for_one_consumer_only() -> None:
    board, arc = queue(2)
    one, other = arc.cursors
    arc.push(train(list(range(50)), 60, (Tick(20, 7), Tick(55, 8)), end=True))
    one.drop = box = DropBox(Sieve(0.5, 3))
    passing = [number for number in range(50) if chances(np.array([number]), 3)[0] < 0.5]
    assert 10 < len(passing) < 40
    taken = one.take(1000)
    assert taken.numbers.tolist() == passing
    assert taken.columns[0].values.tolist() == [3 * number for number in passing]
    assert (taken.ticks, taken.end, taken.progress) == ((Tick(20, 7), Tick(55, 8)), True, 60)
    assert (box.passed, box.dropped) == (len(passing), {"random": 50 - len(passing)})
    assert (int(board.taken[0]), one.waiting, one.idle) == (50, 0, True), "what is dropped was taken, too"
    assert other.take(1000).numbers.tolist() == list(range(50))
    assert arc.tuples == 0


def test_what_is_dropped_is_never_put_together() -> None:
    """A train over many segments is copied; that costs more than most boxes, so it is sifted before."""
    _, arc = queue()
    (cursor,), seen = arc.cursors, list[int]()

    class Watched(DropBox):
        def sift(self, train: Train) -> Train:
            seen.append(len(train))
            return super().sift(train)

    cursor.drop = Watched(Sieve(0.25))
    for at in range(20):
        arc.push(train(list(range(10 * at, 10 * at + 10))))
    taken = cursor.take(50)
    assert seen == [10] * 20
    assert taken.numbers.tolist() == np.flatnonzero(chances(np.arange(200), 0) < 0.25).tolist()


def test_a_limit_is_about_what_passes_a_drop_box() -> None:
    _, arc = queue()
    [cursor] = arc.cursors
    arc.push(train(list(range(4000))))
    cursor.drop = DropBox(Sieve(0.1, 0))
    assert len(cursor.take(100)) == pytest.approx(100, abs=30)
    assert 4000 - cursor.waiting == 1000
    cursor.drop = DropBox(Sieve(0.0, 0))
    assert len(cursor.take(10)) == 0
    assert 3000 - cursor.waiting == 640, "nothing passes, and still it does not take for ever"
    cursor.drop = None
    assert len(cursor.take(100)) == 100


def test_up_to_a_number_a_drop_box_takes_no_more() -> None:
    _, arc = queue()
    [cursor] = arc.cursors
    arc.push(train(list(range(100)), 120))
    cursor.drop = DropBox(Sieve(0.01, 0))
    taken = cursor.take(1 << 62, 49, 49)
    assert (taken.progress, cursor.waiting, cursor.next_number()) == (49, 50, 50)
    assert all(number <= 49 for number in taken.numbers.tolist())


drops = st.tuples(st.just("drop"), st.integers(0, 10), st.integers(0, 3))


@settings(deadline=None)
@given(events=st.lists(st.one_of(pushes, takes, takes, drops), max_size=40))
def test_drop_boxes_that_come_and_go(events: list[tuple[str, int, int]]) -> None:
    """What is taken passes the sieve of the moment, in order; every tuple is passed, dropped or waits."""
    _, arc = queue(2)
    thinned, whole = arc.cursors
    box = DropBox()
    issued, free, came, promised = 0, 0, 0, NOTHING
    seen: tuple[list[int], list[int]] = ([], [])
    for kind, amount, which in events:
        if kind == "push":
            numbers = list(range(issued, issued + amount))
            issued += amount + which
            arc.push(train(numbers, issued - 1, (Tick(issued - 1, 0),) if which else ()))
            came += amount
        elif kind == "drop":
            box.sieve = Sieve(amount / 10, which)
            thinned.drop = box if amount < 10 else None
        elif which:
            seen[1].extend(whole.take(amount).numbers.tolist())
        else:
            before = thinned.peek(10_000).numbers
            taken = thinned.take(amount)
            gone = before[: len(before) - thinned.waiting]
            passing = gone if thinned.drop is None else gone[chances(gone, box.sieve.seed) < box.sieve.keep]
            free += len(passing) if thinned.drop is None else 0
            assert taken.numbers.tolist() == passing.tolist()
            assert promised <= taken.progress < min(thinned.peek(1).numbers.tolist(), default=NEVER)
            promised = taken.progress
            seen[0].extend(taken.numbers.tolist())
    assert seen[0] == sorted(set(seen[0])), "arrival numbers ascend"
    assert len(seen[0]) == box.passed + free
    assert len(seen[0]) + box.dropped.total() + thinned.waiting == came
    assert len(seen[1]) + whole.waiting == came
    assert set(seen[0]) <= {*seen[1], *whole.peek(10_000).numbers.tolist()}
