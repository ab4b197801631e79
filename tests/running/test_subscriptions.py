"""Subscriptions: batches for a reader who may be slow."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from headway.errors import OutputError, RunError
from headway.running.subscriptions import Subscription


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"a": value} for value in values], schema=pa.schema([("a", pa.int64())]))


def rest(one: Subscription) -> list[list[int]]:
    return [each.column(0).to_pylist() for each in one]


def test_batches_are_read_in_order_to_the_end() -> None:
    one = Subscription("o")
    one.hear(batch(1, 2))
    one.hear(batch(3))
    assert not one.over
    one.end("because")
    one.end("again")
    one.hear(batch(4))
    assert not one.over
    assert rest(one) == [[1, 2], [3]]
    assert (one.over, one.reason) == (True, "because")


def test_the_reader_waits_for_so_long() -> None:
    one = Subscription("o")
    assert one.next(0.01) is None
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(one.next, 20)
        one.hear(batch(1))
        assert reading.result(20) == batch(1)


def test_a_batch_above_the_limit_is_heard_if_nothing_waits() -> None:
    one = Subscription("o", limit=8)
    one.hear(batch(1, 2, 3))
    assert one.next() == batch(1, 2, 3)


def test_a_slow_reader_learns_what_to_do_after_what_was_heard() -> None:
    one = Subscription("o", limit=16)
    one.hear(batch(1, 2))
    one.hear(batch(3))
    assert one.next() == batch(1, 2)
    with pytest.raises(OutputError, match=r"output 'o'.*2 tuples wait \(16 bytes, the limit is 16\)"):
        one.next()


def test_the_oldest_are_dropped_and_counted() -> None:
    one = Subscription("o", limit=24, slow="drop")
    for at in range(5):
        one.hear(batch(at, at))
    one.end("")
    assert rest(one) == [[4, 4]]
    assert one.dropped == 8


def test_the_run_waits_until_there_is_room() -> None:
    one = Subscription("o", limit=8, slow="wait")
    one.hear(batch(1))
    with ThreadPoolExecutor(1) as pool:
        hearing = pool.submit(one.hear, batch(2))
        assert one.next() == batch(1)
        hearing.result(20)
        assert one.next() == batch(2)


def test_closing_frees_the_run_that_waits() -> None:
    one = Subscription("o", limit=8, slow="wait")
    left: list[bool] = []
    one.leave = lambda: left.append(True)
    one.hear(batch(1))
    with ThreadPoolExecutor(1) as pool:
        hearing = pool.submit(one.hear, batch(2))
        one.close()
        hearing.result(20)
    assert left == [True]
    assert rest(one) == [[1]]


def test_a_failed_run_is_an_error_after_what_was_heard() -> None:
    one = Subscription("o")
    one.hear(batch(1))
    one.fail(ValueError("boom"))
    assert one.next() == batch(1)
    with pytest.raises(RunError, match="output 'o': the run has failed: boom"):
        one.next()


def test_an_unknown_way_lists_the_choices() -> None:
    with pytest.raises(OutputError, match=r"fail, drop, wait|drop, fail, wait"):
        Subscription("o", slow="x")
