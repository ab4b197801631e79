"""Branches: a consumer's own part of an arc, without gap or duplicate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import NEVER
from headway.storage.branches import Branch, part_of
from headway.storage.queues import Board, Queue
from headway.trains import Tick, Train
from tests.storage.test_queues import SCHEMA, queue, train


def begun(main: Queue, after: int, live: bool = True) -> Branch:
    return Branch(main, Queue(SCHEMA, Board(1), [0]), after=after, live=live)


def taken(one: Branch | Queue) -> list[int]:
    cursor = one.cursor if isinstance(one, Branch) else one.cursors[0]
    found: list[int] = cursor.take(1 << 30).numbers.tolist()
    return found


@given(
    numbers=st.lists(st.integers(0, 30), max_size=12),
    rising=st.booleans(),
    after=st.integers(-1, 32),
    upto=st.integers(-1, 32),
    more=st.integers(0, 3),
    end=st.booleans(),
)
def test_a_part_has_what_is_above_and_up_to(
    numbers: list[int], rising: bool, after: int, upto: int, more: int, end: bool
) -> None:
    numbers = sorted(numbers) if rising else numbers
    progress = max(numbers, default=0) + more
    ticks = (Tick(progress, 7),)
    part = part_of(train(numbers, progress, ticks, end), after, upto, rising)
    assert part.numbers.tolist() == [number for number in numbers if after < number <= upto]
    assert part.columns[0].values.tolist() == [3 * number for number in part.numbers]
    assert part.progress == min(progress, upto)
    assert part.ticks == (ticks if after < progress <= upto else ())
    assert part.end == (end and progress <= upto)


def test_a_consumer_that_ends_gets_nothing_of_what_comes_after() -> None:
    board, main = queue(2)
    main.push(train([0, 1, 2]))
    leaving, staying = main.cursors
    leaving.take(1)
    branch = Branch(main, main.branch(leaving), upto=4)
    assert main.cursors == (staying,)
    main.push(train([3, 4, 5, 6], 8))
    assert (leaving.waiting, staying.waiting) == (4, 7)
    assert taken(branch) == [1, 2, 3, 4]
    assert taken(main) == [0, 1, 2, 3, 4, 5, 6]
    assert branch.progress(8) == 4
    assert board.bytes == 0
    branch.close()
    main.push(train([9]))
    assert leaving.idle


def test_a_consumer_that_begins_gets_only_what_comes_after() -> None:
    _, main = queue()
    main.push(train([0, 1]))
    branch = begun(main, after=3)
    main.push(train([2, 3, 4, 5], 5, (Tick(3, 1), Tick(5, 2))))
    got = branch.cursor.take(10)
    assert got.numbers.tolist() == [4, 5]
    assert [tick.number for tick in got.ticks] == [5]


def test_a_queue_that_descends_is_cut_by_number_too() -> None:
    _, main = queue()
    main.rising = False
    branch = Branch(main, main.branch(), after=3)
    branch.queue.cursors, branch.queue._numbers = begun(main, 0).queue.cursors, [0]
    assert not branch.queue.rising
    assert part_of(train([5, 2, 4, 3], 5), 3, NEVER, rising=False).numbers.tolist() == [5, 4]


@given(
    pushed=st.lists(st.lists(st.integers(1, 3), max_size=4), max_size=12),
    seam=st.integers(0, 40),
    takes=st.lists(st.integers(1, 5), max_size=12),
)
def test_two_branches_at_a_number_have_everything_between_them(
    pushed: list[list[int]], seam: int, takes: list[int]
) -> None:
    _, main = queue(2)
    old = main.cursors[0]
    for step in takes[:3]:
        old.take(step)
    before, after, sealed = None, None, len(pushed) // 2
    number, sent, got, gaining = 0, list[int](), list[int](), list[int]()
    for at, gaps in enumerate(pushed):
        numbers = [number := number + gap for gap in gaps]
        if at == sealed:
            seam = number + seam % 5 if numbers else number
            before, after = Branch(main, main.branch(old), upto=seam), begun(main, seam)
        main.push(train(numbers, max(number, 0)))
        sent += numbers
        if at < len(takes):
            got += old.take(takes[at]).numbers.tolist()
            gaining += [] if after is None else after.cursor.take(takes[at]).numbers.tolist()
    if before is None or after is None:
        return
    got += taken(before)
    gaining += taken(after)
    assert got == [one for one in sent if one <= seam]
    assert gaining == [one for one in sent if one > seam]


def test_history_and_what_comes_meet_without_gap_or_duplicate() -> None:
    _, main = queue()
    branch = begun(main, after=-1, live=False)
    main.push(train([0, 1, 2], 3))
    branch.queue.push(train([0, 1]))  # from the history
    assert branch.progress(3) == 1
    assert not branch.fold()
    branch.join(lambda: [train([2], 3)])
    main.push(train([4], 6))
    assert branch.progress(9) == 9
    got = branch.cursor.take(10)
    assert (got.numbers.tolist(), got.progress) == ([0, 1, 2, 4], 6)


def test_a_branch_that_ends() -> None:
    _, main = queue()
    branch = begun(main, after=-1, live=False)
    branch.queue.push(train([0, 1]))
    branch.end(5)
    got = branch.cursor.take(10)
    assert (got.numbers.tolist(), got.progress, got.end) == ([0, 1], 5, True)


def test_a_branch_is_folded_once_nothing_tells_it_apart() -> None:
    board = Board(2)
    main = Queue(SCHEMA, board, [0])
    main.push(train([0, 1]))
    own = Queue(SCHEMA, board, [1])
    branch = Branch(main, own, after=3)
    branch.cursor.apart = True
    assert not branch.fold()  # the arc may still get what is before it
    main.push(train([2, 3, 4], 4))
    assert not branch.fold()  # it has not taken all
    assert taken(branch) == [4]
    assert branch.fold()
    cursor = main.cursors[-1]
    assert not cursor.apart
    assert main.listeners == ()
    main.push(train([5, 6], 7))
    assert cursor.take(10).numbers.tolist() == [5, 6]
    assert taken(main) == [0, 1, 2, 3, 4, 5, 6]
    assert board.bytes == 0


def test_a_branch_that_ends_at_a_seam_is_not_folded() -> None:
    _, main = queue(2)
    branch = Branch(main, main.branch(main.cursors[0]), upto=5)
    main.push(train([1], 9))
    branch.cursor.take(10)
    assert not branch.fold()


# Moving to another network


def test_cursors_move_to_another_board_with_what_waits() -> None:
    _, main = queue(3)
    main.push(train([0, 1, 2, 3], stamp=10))
    kept, left, other = main.cursors
    kept.take(1)
    other.take(3)
    board = Board(5)
    main.move(board, [(4, kept), (2, other), (0, None)])
    assert left not in main.cursors
    assert (kept.waiting, other.waiting, main.cursors[2].waiting) == (3, 1, 0)
    assert board.oldest.tolist() == [NEVER, NEVER, 13, NEVER, 11]
    assert np.flatnonzero(board.moved).tolist() == [2, 4]
    assert board.bytes == 4 * 24
    main.push(train([4]))
    assert main.cursors[2].take(10).numbers.tolist() == [4]
    assert kept.take(10).numbers.tolist() == [1, 2, 3, 4]
    assert other.take(10).numbers.tolist() == [3, 4]
    assert (board.bytes, main.tuples) == (0, 0)


def test_what_nobody_needs_any_more_is_released_when_its_reader_is_left_behind() -> None:
    _, main = queue(2)
    main.push(train([0, 1]))
    main.cursors[0].take(5)
    board = Board(1)
    main.move(board, [(0, main.cursors[0])])
    assert (main.tuples, board.bytes) == (0, 0)


@pytest.mark.parametrize("cut", range(6))
def test_a_branch_begins_within_a_segment(cut: int) -> None:
    board, main = queue(2)
    main.push(Train.empty(SCHEMA, 0, (Tick(0, 1),)))
    main.push(train([1, 2, 3]))
    main.push(train([4, 5], 5, end=True))
    one = main.cursors[0]
    first = one.take(cut).numbers.tolist() if cut else []
    branch = Branch(main, main.branch(one))
    assert one.waiting == 5 - len(first)
    got = one.take(100)
    assert (first + got.numbers.tolist(), got.end) == ([1, 2, 3, 4, 5], True)
    assert branch.queue.tuples == 0
    assert board.bytes == 5 * 24  # the other's
