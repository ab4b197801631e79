"""Queues against a model that holds plain lists."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.clock import MILLISECOND, WallClock
from headway.columns import NEVER, Column
from headway.network.schema import Schema
from headway.storage.ages import Ages
from headway.storage.queues import Board, Queue
from headway.trains import NOTHING, Tick, Train
from tests.searching import examples

SCHEMA = Schema.parse("a bigint")


def train(
    numbers: list[int], progress: int | None = None, ticks: tuple[Tick, ...] = (), end: bool = False, stamp: int = 0
) -> Train:
    at = np.array(numbers, np.int64)
    last = progress if progress is not None else (numbers[-1] if numbers else NOTHING)
    return Train((Column(at * 3),), at + stamp, at, last, ticks, end)


def queue(consumers: int = 1) -> tuple[Board, Queue]:
    board = Board(consumers)
    return board, Queue(SCHEMA, board, range(consumers))


def test_every_consumer_sees_every_tuple_once() -> None:
    board, arc = queue(2)
    arc.push(train([0, 1, 2]))
    arc.push(train([5, 6], 9))
    one, other = arc.cursors
    assert one.take(100).numbers.tolist() == [0, 1, 2, 5, 6]
    assert (one.waiting, other.waiting) == (0, 5)
    assert (arc.tuples, board.bytes) == (5, 5 * 24)
    assert other.take(2).numbers.tolist() == [0, 1]
    assert other.take(2).numbers.tolist() == [2, 5]
    assert (arc.tuples, board.bytes) == (2, 48)  # segments go as a whole
    assert other.take(2).progress == 9
    assert (arc.tuples, board.bytes) == (0, 0)
    assert one.idle
    assert other.idle


def test_nobody_listens() -> None:
    _, arc = queue(0)
    arc.push(train([1, 2], 5))
    assert (arc.tuples, arc.progress) == (0, 5)


def test_a_train_without_anything_brings_progress() -> None:
    _, arc = queue()
    arc.push(train([], 8))
    assert arc.cursors[0].idle
    assert arc.cursors[0].take(10).progress == 8
    arc.push(train([], 3))
    assert arc.progress == 8


def test_ticks_and_the_end_keep_their_places() -> None:
    board, arc = queue()
    cursor = arc.cursors[0]
    arc.push(train([0, 1, 3, 4], 6, (Tick(2, 70), Tick(6, 90)), end=True))
    assert (board.arrived[0], board.marks[0]) == (4, 3)
    first = cursor.take(1)
    assert (first.numbers.tolist(), first.ticks, first.progress) == ([0], (), 0)
    second = cursor.take(1)
    assert (second.numbers.tolist(), second.ticks, second.end) == ([1], (Tick(2, 70),), False)
    assert second.progress == 2
    third = cursor.take(1)
    assert (third.numbers.tolist(), third.ticks, third.end) == ([3], (), False)
    last = cursor.take(1)
    assert (last.numbers.tolist(), last.ticks, last.end, last.progress) == ([4], (Tick(6, 90),), True, 6)
    assert board.marks[0] == 0
    assert cursor.idle


def test_taking_up_to_a_number() -> None:
    _, arc = queue()
    cursor = arc.cursors[0]
    arc.push(train([0, 2, 2, 4], 7, (Tick(5, 1),)))
    assert cursor.next_number() == 0
    assert cursor.numbers(100, 3).tolist() == [0, 2, 2]
    assert cursor.numbers(2, 3).tolist() == [0, 2]
    assert cursor.take(100, 2, 2).numbers.tolist() == [0, 2, 2]
    assert cursor.take(100, 3, 3).numbers.tolist() == []
    assert cursor.next_number() == 4
    assert cursor.take(100, 4, 4).ticks == ()
    assert cursor.next_number() == 5
    assert cursor.take(100, 5, 5).ticks == (Tick(5, 1),)
    assert cursor.next_number() == NEVER
    assert cursor.numbers(5, 100).tolist() == []


def test_a_limit_and_a_number_together() -> None:
    _, arc = queue()
    for number in range(4):
        arc.push(train([2 * number, 2 * number + 1]))
    cursor = arc.cursors[0]
    assert cursor.take(2, 2).numbers.tolist() == [0, 1]
    assert cursor.take(2, 2).numbers.tolist() == [2]


@given(
    numbers=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=5),
    bounds=st.lists(st.integers(0, 9), max_size=5),
)
def test_where_numbers_go_down_a_tuple_counts_with_the_largest_up_to_it(
    numbers: list[list[int]], bounds: list[int]
) -> None:
    _, arc = queue()
    arc.rising = False
    for some in numbers:
        arc.push(train(some))
    (cursor,), left = arc.cursors, [one for some in numbers for one in some]
    for upto in (*bounds, 9):
        count = next((at for at, one in enumerate(left) if one > upto), len(left))
        reached = [max(left[: at + 1]) for at in range(count)]
        assert cursor.numbers(100, upto).tolist() == reached
        assert cursor.numbers(2, upto).tolist() == reached[:2]
        assert cursor.take(100, upto, upto).numbers.tolist() == left[:count]
        del left[:count]
    assert cursor.idle


def test_ticks_that_go_down_double_nothing() -> None:
    _, arc = queue()
    arc.rising = False
    ticks = (Tick(6, 0), Tick(10, 0), Tick(6, 0), Tick(10, 0))
    arc.push(train([0, 1, 2, 7, 8], 10, ticks))
    (cursor,) = arc.cursors
    taken = cursor.take(100)
    assert (taken.numbers.tolist(), taken.ticks) == ([0, 1, 2, 7, 8], ticks)


def test_a_tuple_behind_a_mark_counts_with_it_where_numbers_go_down() -> None:
    _, arc = queue()
    arc.rising = False
    arc.push(train([], 9, (Tick(9, 0),)))
    arc.push(train([6, 7], 9))
    (cursor,) = arc.cursors
    assert cursor.numbers(100, NEVER).tolist() == [9, 9]
    assert cursor.numbers(100, 8).tolist() == []
    assert len(cursor.take(100, 8, 8)) == 0
    assert cursor.take(100, 9, 9).numbers.tolist() == [6, 7]


def test_equal_numbers_that_are_cut_apart_do_not_claim_progress() -> None:
    _, arc = queue()
    arc.push(train([4, 4, 4], 4))
    assert arc.cursors[0].take(2).progress == 3
    assert arc.cursors[0].take(2).progress == 4


def test_the_oldest_stamp_is_known() -> None:
    board, arc = queue()
    assert board.oldest[0] == NEVER
    arc.push(train([1, 2], stamp=100))
    arc.push(train([3], stamp=200))
    assert board.oldest[0] == 101
    arc.cursors[0].take(2)
    assert board.oldest[0] == 203
    arc.cursors[0].take(2)
    assert board.oldest[0] == NEVER


def test_the_oldest_stamp_behind_a_tick() -> None:
    board, arc = queue()
    arc.push(train([1], stamp=100))
    arc.push(train([], 2, (Tick(2, 0),)))
    arc.push(train([3], stamp=200))
    arc.cursors[0].take(100, 1, 1)
    assert arc.cursors[0].waiting == 1
    assert board.oldest[0] == 203


@dataclass
class Reader:
    """What a consumer should see: items are ("t", number), ("k", tick), ("e",)."""

    at: int = 0
    seen_progress: int = NOTHING


@dataclass
class Model:
    items: list[tuple[str, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Tuples by segment; 0 is a mark."""
    released: int = 0


@examples(100)
@given(data=st.data(), consumers=st.integers(1, 3))
def test_random_interleavings(data: st.DataObject, consumers: int) -> None:
    board, arc = queue(consumers)
    model = Model()
    readers = [Reader() for _ in range(consumers)]
    number, ended = 0, False
    for _ in range(data.draw(st.integers(1, 25))):
        action = data.draw(st.sampled_from(["push", "take", "take"]))
        if action == "push" and not ended:
            gaps = data.draw(st.lists(st.integers(0, 2), max_size=5))
            numbers = [number + int(sum(gaps[: at + 1])) for at in range(len(gaps))]
            last = (numbers[-1] if numbers else number) + data.draw(st.integers(0, 2))
            ticks = tuple(Tick(at, at) for at in sorted(data.draw(st.sets(st.integers(number, last), max_size=2))))
            ended = data.draw(st.sampled_from([False] * 6 + [True]))
            arc.push(train(numbers, last, ticks, ended))
            rest = list(numbers)
            for tick in ticks:
                part = [one for one in rest if one <= tick.number]
                _extend(model, part)
                model.items.append(("tick", tick.number))
                model.sizes.append(0)
                rest = rest[len(part) :]
            _extend(model, rest)
            if ended:
                model.items.append(("end", last))
                model.sizes.append(0)
            number = last + 1
        else:
            _take(data, model, readers, arc, data.draw(st.integers(0, consumers - 1)))
        for at, reader in enumerate(readers):
            left = model.items[reader.at :]
            assert arc.cursors[at].waiting == sum(kind == "tuple" for kind, _ in left)
            assert board.marks[at] == sum(kind != "tuple" for kind, _ in left)
            assert arc.cursors[at].idle == (not left)
            coming = [number for kind, number in left if kind == "tuple"]
            many = 1 + len(left) % 6
            assert arc.cursors[at].peek(many).numbers.tolist() == coming[:many]
        assert board.bytes == 24 * arc.tuples
        assert arc.tuples >= _needed(model, readers)


def _extend(model: Model, numbers: list[int]) -> None:
    if numbers:
        model.items += [("tuple", one) for one in numbers]
        model.sizes.append(len(numbers))


def _take(data: st.DataObject, model: Model, readers: list[Reader], arc: Queue, who: int) -> None:
    reader, cursor = readers[who], arc.cursors[who]
    limit = data.draw(st.integers(1, 6))
    left = model.items[reader.at :]
    upto = data.draw(st.none() | st.integers(0, 40))
    taken = cursor.take(limit, upto)
    expected: list[tuple[str, int]] = []
    for kind, number in left:
        if (upto is not None and number > upto) or (
            kind == "tuple" and sum(one == "tuple" for one, _ in expected) == limit
        ):
            break
        expected.append((kind, number))
    assert taken.numbers.tolist() == [number for kind, number in expected if kind == "tuple"]
    assert taken.columns[0].values.tolist() == [3 * number for kind, number in expected if kind == "tuple"]
    assert [tick.number for tick in taken.ticks] == [number for kind, number in expected if kind == "tick"]
    assert taken.end == any(kind == "end" for kind, _ in model.items[: reader.at + len(expected)])
    reader.at += len(expected)
    later = [number for kind, number in model.items[reader.at :] if kind == "tuple"]
    assert all(number > taken.progress for number in later), "progress lied"
    assert taken.progress >= reader.seen_progress, "progress went back"
    reader.seen_progress = taken.progress
    _check_released(model, readers, arc)


def _check_released(model: Model, readers: list[Reader], arc: Queue) -> None:
    """Released is everything before the segment in which the last cursor lies; what is released stays so."""
    model.released = max(model.released, _behind(model, readers))
    assert arc.tuples == sum(model.sizes) - model.released


def _needed(model: Model, readers: list[Reader]) -> int:
    oldest = min(reader.at for reader in readers)
    return sum(kind == "tuple" for kind, _ in model.items[oldest:])


def _behind(model: Model, readers: list[Reader]) -> int:
    """Return the tuples of the segments that lie behind all cursors."""
    oldest = min(reader.at for reader in readers)
    passed, behind = 0, 0
    for size in model.sizes:
        passed += max(size, 1)
        if passed > oldest:
            break
        behind += size
    return behind


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_threads_may_push_and_take(limit: int) -> None:
    board, arc = queue(2)
    clock = WallClock()
    seen: list[list[int]] = [[], []]

    def consume(who: int) -> None:
        cursor = arc.cursors[who]
        while not cursor.ended:
            if cursor.idle:
                clock.sleep(MILLISECOND)
            else:
                seen[who] += cursor.take(limit).numbers.tolist()

    threads = [threading.Thread(target=consume, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for start in range(0, 600, 3):
        arc.push(train([start, start + 1, start + 2]))
    arc.push(train([], 600, end=True))
    for thread in threads:
        thread.join(20)
    assert seen == [list(range(600))] * 2
    assert (arc.tuples, board.bytes) == (0, 0)


def test_the_stamps_of_waiting_tuples_do_not_overflow() -> None:
    today = 1_800_000_000 * 10**9
    _, arc = queue()
    arc.push(train(list(range(50)), stamp=today))
    [cursor] = arc.cursors
    assert cursor.stamps() == (50, 50 * today + sum(range(50)))
    cursor.take(10)
    assert cursor.stamps() == (40, 40 * today + sum(range(10, 50)))


pushes = st.tuples(st.just("push"), st.integers(0, 6), st.integers(0, 1))
takes = st.tuples(st.just("take"), st.integers(1, 9), st.integers(0, 1))
asks = st.tuples(st.just("ask"), st.just(0), st.integers(0, 1))


@given(events=st.lists(st.one_of(pushes, takes, asks), max_size=40))
def test_ages_are_those_of_the_waiting_tuples(events: list[tuple[str, int, int]]) -> None:
    """Whenever they are asked for, and however seldom."""
    board, arc = queue(2)
    ages, issued = Ages(board, arc.cursors), 0
    waiting: tuple[list[int], list[int]] = ([], [])
    for kind, amount, which in events:
        if kind == "push":
            numbers = list(range(issued, issued + amount))
            issued += amount
            ticks = (Tick(issued, 0),) if which else ()
            arc.push(train(numbers, issued, ticks))
            for some in waiting:
                some += numbers
        elif kind == "take":
            taken = arc.cursors[which].take(amount).numbers.tolist()
            assert taken == waiting[which][: len(taken)]
            del waiting[which][: len(taken)]
        else:
            for cursor, some in zip(arc.cursors, waiting, strict=True):
                assert cursor.stamps() == (len(some), sum(some))
            seconds, counts = ages.read(1000 * MILLISECOND)
            assert counts.tolist() == [len(some) for some in waiting]
            wanted = [sum(1.0 - one / 1e9 for one in some) for some in waiting]
            assert seconds.tolist() == pytest.approx(wanted, abs=1e-7)


def test_peeking_takes_nothing() -> None:
    board, arc = queue(2)
    cursor = arc.cursors[0]
    assert len(cursor.peek(5)) == 0
    assert len(cursor.peek(5).columns) == 1
    arc.push(train([0, 1, 2], 3, (Tick(1, 70),)))
    arc.push(train([4, 5], 6, end=True))
    assert cursor.peek(2).numbers.tolist() == [0, 1]
    assert cursor.peek(4).numbers.tolist() == [0, 1, 2, 4]
    whole = cursor.peek(100)
    assert (whole.numbers.tolist(), whole.columns[0].values.tolist()) == ([0, 1, 2, 4, 5], [0, 3, 6, 12, 15])
    assert (cursor.waiting, int(board.taken[0]), int(board.marks[0])) == (5, 0, 2)
    cursor.take(1)
    assert cursor.peek(1).numbers.tolist() == [1], "from within a train"
    assert cursor.peek(100).numbers.tolist() == [1, 2, 4, 5]
    taken = cursor.take(100)
    assert (taken.numbers.tolist(), taken.ticks, taken.end) == ([1, 2, 4, 5], (Tick(1, 70),), True)
    assert len(cursor.peek(5)) == 0
    assert arc.cursors[1].peek(9).numbers.tolist() == [0, 1, 2, 4, 5], "each consumer has its own place"
