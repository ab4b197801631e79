"""Tables in memory that keep only what is new."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.clock import SECOND, ManualClock
from headway.connectors import TableSink, kept
from headway.network.keep import Keep
from headway.network.schema import Schema

SCHEMA = Schema.parse("a int")


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": list(values)}, SCHEMA.to_arrow())


def test_all_is_kept_unless_asked() -> None:
    for sink in (TableSink(SCHEMA), TableSink(SCHEMA, Keep())):
        sink.write(batch(1, 2))
        sink.write(batch(3))
        assert sink.table["a"].to_pylist() == [1, 2, 3]
        assert not sink.ageing


@pytest.fixture(autouse=True, params=[3, 256])
def together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches are merged, at once or only in long tests."""
    monkeypatch.setattr(kept, "TOGETHER", request.param)


FIXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@FIXED
@given(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=30), st.integers(1, 12))
def test_the_last_tuples(parts: list[list[int]], most: int) -> None:
    sink = TableSink(SCHEMA, Keep(tuples=most))
    values: list[int] = []
    for part in parts:
        sink.write(batch(*part))
        values += part
        assert sink.table["a"].to_pylist() == values[-most:]
        assert sink.count == len(values)
        assert sink.table.schema == SCHEMA.to_arrow()


@FIXED
@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=3), st.integers(0, 9))), st.integers(1, 12))
def test_the_tuples_of_the_last_duration(parts: list[tuple[list[int], int]], seconds: int) -> None:
    clock = ManualClock(100 * SECOND)
    sink = TableSink(SCHEMA, Keep.parse(f"{seconds}s"), clock)
    delivered: list[tuple[int, int]] = []
    for values, pause in parts:
        sink.write(batch(*values))
        delivered += [(clock.now(), value) for value in values]
        clock.advance(pause * SECOND)
        since = clock.now() - seconds * SECOND
        assert sink.table["a"].to_pylist() == [value for moment, value in delivered if moment >= since]


_keeps = st.none() | st.integers(1, 8).map(lambda tuples: Keep(tuples=tuples)) | st.just(Keep.parse("4s"))


@FIXED
@given(st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=4), st.integers(0, 3), st.just(0) | _keeps)))
def test_another_amount_is_kept_from_now_on(steps: list[tuple[list[int], int, Any]]) -> None:
    """What was dropped stays so; how old tuples are is noted only while it matters."""
    clock, keep = ManualClock(100 * SECOND), Keep()
    sink = TableSink(SCHEMA, None, clock)
    held: list[tuple[int, int]] = []
    for values, pause, other in steps:
        sink.write(batch(*values))
        held += [(clock.now(), value) for value in values]
        clock.advance(pause * SECOND)
        held = held[-keep.tuples :] if keep.tuples is not None else held
        if keep.span is not None:
            held = [one for one in held if one[0] >= clock.now() - keep.span.nanoseconds]
        if other != 0:
            other = other or Keep()
            sink.limit(other)
            if other.span is not None and keep.span is None:
                held = [(clock.now(), value) for _, value in held]
            keep = other
        held = held[-keep.tuples :] if keep.tuples is not None else held
        assert sink.table["a"].to_pylist() == [value for _, value in held]
        assert sink.ageing == (keep.span is not None)


def test_memory_is_given_back() -> None:
    clock = ManualClock(100 * SECOND)
    sink = TableSink(SCHEMA, Keep.parse("1s"), clock)
    assert sink.ageing
    before = pa.total_allocated_bytes()
    sink.write(batch(*range(100_000)))
    assert pa.total_allocated_bytes() >= before + 400_000
    clock.advance(2 * SECOND)
    sink.look()
    assert pa.total_allocated_bytes() < before + 100_000
    sink = TableSink(SCHEMA, Keep(tuples=10))
    sink.write(batch(*range(100_000)))  # of which a slice would hold all
    assert pa.total_allocated_bytes() < before + 100_000
    sink.abort()
    assert sink.table.num_rows == sink.count == 0


@pytest.mark.parametrize("keep", [Keep(tuples=2), Keep.parse("1h")], ids=str)
def test_a_table_that_was_read_stays(keep: Keep) -> None:
    sink = TableSink(SCHEMA, keep)
    sink.write(batch(1, 2))
    table = sink.table
    sink.write(batch(3, 4))
    sink.abort()
    assert table["a"].to_pylist() == [1, 2]


@pytest.mark.parametrize("keep", ["1000000", "1 hour"])
def test_many_small_batches_take_the_memory_of_few(keep: str) -> None:
    sink = TableSink(SCHEMA, Keep.parse(keep), ManualClock())
    before = pa.total_allocated_bytes()
    for at in range(5120):
        sink.write(batch(at))
    assert pa.total_allocated_bytes() - before < 5120 * 64  # one batch takes 64 bytes and more
    assert sink.table["a"].to_pylist() == list(range(5120))
    assert sink.table["a"].num_chunks <= 5120 // kept.TOGETHER + kept.TOGETHER
