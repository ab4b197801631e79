"""Sources that are pushed to: what callers give, and what the run gets."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa
import pytest

from headway.connectors.pushed import Inbox, Planned
from headway.errors import InputError, RunError
from headway.network.schema import Schema

SCHEMA = Schema.parse("a bigint")


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"a": value} for value in values], schema=SCHEMA.to_arrow())


def let_in(inbox: Inbox, first: int) -> list[int]:
    """Read one batch, and confirm it from a number on; return its values."""
    chunk = inbox.read(0)
    assert chunk is not None
    for number, arrived in inbox.numbered(first):
        arrived.set_result(number)
    values: list[int] = chunk.batch.column(0).to_pylist()
    return values


def test_batches_come_in_order_and_learn_their_numbers() -> None:
    inbox = Inbox("s", SCHEMA)
    one, two = inbox.offer(batch(1, 2)), inbox.offer(batch(3))
    assert let_in(inbox, 5) == [1, 2]
    assert (one.result(0), two.done()) == (6, False)
    assert let_in(inbox, 9) == [3]
    assert two.result(0) == 9
    empty = inbox.read(0)
    assert empty is not None
    assert len(empty) == 0
    assert inbox.malformed() == []


def test_several_reads_are_numbered_together() -> None:
    inbox = Inbox("s", SCHEMA)
    given = [inbox.offer(batch(*range(count))) for count in (2, 1, 3)]
    for _ in given:
        inbox.read(0)
    assert [(number, given.index(arrived)) for number, arrived in inbox.numbered(10)] == [(11, 0), (12, 1), (15, 2)]
    assert inbox.numbered(16) == []


def test_the_run_is_woken() -> None:
    inbox = Inbox("s", SCHEMA)
    inbox.offer(batch(1))
    inbox.wake = threading.Event()
    inbox.offer(batch(1))
    assert inbox.wake.is_set()
    inbox.wake.clear()
    inbox.end()
    assert inbox.wake.is_set()


def test_without_room_it_refuses_or_waits() -> None:
    inbox = Inbox("s", SCHEMA, limit=3)
    inbox.offer(batch(1, 2))
    with pytest.raises(InputError, match="source 's': there is no room for 2 tuples, as 2 wait"):
        inbox.offer(batch(3, 4), wait=False)
    with pytest.raises(InputError, match="no room"):
        inbox.offer(batch(3, 4), timeout=0.01)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(inbox.offer, batch(3, 4), True, 20)
        assert let_in(inbox, 0) == [1, 2]
        waiting.result(20)
    assert let_in(inbox, 2) == [3, 4]


def test_what_is_larger_than_the_limit_fits_when_nothing_waits() -> None:
    inbox = Inbox("s", SCHEMA, limit=2)
    inbox.offer(batch(1, 2, 3), wait=False)
    with pytest.raises(InputError):
        inbox.offer(batch(1, 2, 3), wait=False)
    assert let_in(inbox, 0) == [1, 2, 3]


def test_a_sequence_counts_once() -> None:
    inbox = Inbox("s", SCHEMA)
    first = inbox.offer(batch(1), client="a", sequence=4)
    assert inbox.offer(batch(1), client="a", sequence=4) is first
    assert inbox.offer(batch(1), client="a", sequence=2) is first
    assert inbox.offer(batch(2), client="b", sequence=4) is not first
    assert inbox.offer(batch(3), client="a", sequence=5) is not first
    assert [let_in(inbox, at) for at in range(3)] == [[1], [2], [3]]


def test_a_sequence_that_waited_twice_counts_once() -> None:
    inbox = Inbox("s", SCHEMA, limit=1)
    inbox.offer(batch(0))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(inbox.offer, batch(1), True, 20, "a", 1) for _ in range(2)]
        let_in(inbox, 0)
        assert both[0].result(20) is both[1].result(20)
    assert let_in(inbox, 1) == [1]
    assert len(inbox.read(0) or []) == 0


def test_what_was_not_let_in_may_be_taken_back() -> None:
    inbox = Inbox("s", SCHEMA, limit=3)
    entered = inbox.offer(batch(0))
    inbox.read(0)
    one, two = inbox.offer(batch(1, 2), client="a", sequence=1), inbox.offer(batch(3))
    inbox.withdraw(one)
    inbox.withdraw(entered)
    with pytest.raises(InputError, match="was not let in"):
        one.result(0)
    assert not entered.done()
    again = inbox.offer(batch(1, 2), wait=False, client="a", sequence=1)
    assert [number for number, _ in inbox.numbered(0)] == [0]
    assert let_in(inbox, 1) == [3]
    assert let_in(inbox, 2) == [1, 2]
    assert (two.result(0), again.result(0)) == (1, 3)


def test_what_was_taken_back_leaves_what_the_client_had_sent_before() -> None:
    inbox = Inbox("s", SCHEMA)
    first = inbox.offer(batch(1), client="a", sequence=1)
    inbox.read(0)
    inbox.withdraw(inbox.offer(batch(2), client="a", sequence=2))
    assert inbox.offer(batch(1), client="a", sequence=1) is first
    assert inbox.offer(batch(2), client="a", sequence=2) is not first


def test_after_the_end_what_was_pushed_still_comes() -> None:
    inbox = Inbox("s", SCHEMA)
    inbox.offer(batch(1))
    inbox.end()
    with pytest.raises(InputError, match="has ended"):
        inbox.offer(batch(2))
    assert let_in(inbox, 0) == [1]
    assert inbox.read(0) is None


def test_the_end_wakes_who_waits_for_room() -> None:
    inbox = Inbox("s", SCHEMA, limit=1)
    inbox.offer(batch(1))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(inbox.offer, batch(2), True, 20)
        inbox.end()
        with pytest.raises(InputError, match="has ended"):
            waiting.result(20)


def test_nobody_waits_for_a_run_that_is_over() -> None:
    inbox = Inbox("s", SCHEMA)
    read, waiting = inbox.offer(batch(1)), inbox.offer(batch(2))
    inbox.read(0)
    inbox.close()
    inbox.close()
    for arrived in (read, waiting):
        with pytest.raises(RunError, match="ended before this was let in"):
            arrived.result(0)
    with pytest.raises(RunError, match="the run has ended"):
        inbox.offer(batch(3))
    assert inbox.read(0) is None


def test_many_threads_push() -> None:
    inbox, count = Inbox("s", SCHEMA, limit=10), 200
    with ThreadPoolExecutor(4) as pool:
        given: list[Future[Future[int]]] = [pool.submit(inbox.offer, batch(at), True, 20) for at in range(count)]
        seen: list[int] = []
        while len(seen) < count:
            seen += let_in(inbox, len(seen))
        numbers = [one.result(20).result(20) for one in given]
    assert sorted(seen) == list(range(count))
    assert [seen[number] for number in numbers] == list(range(count))


def test_planned_tuples_come_at_their_moments_in_portions() -> None:
    planned = Planned("s", SCHEMA)
    planned.plan(5, batch(1, 2, 3))
    planned.plan(9, batch(4))
    assert planned.latest == 9
    read = []
    while (chunk := planned.read(2)) is not None:
        assert chunk.due is not None
        read.append((chunk.batch.column(0).to_pylist(), chunk.due.tolist()))
    assert read == [([1, 2], [5, 5]), ([3], [5]), ([4], [9])]
    assert planned.malformed() == []
    planned.close()
