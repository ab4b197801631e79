"""Sources at run time: in turn, by due moment, live, and timeouts by the clock."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.clock import MILLISECOND, SECOND, ManualClock
from headway.connectors.protocol import Chunk, Malformed
from headway.engines.ingest import Feed, Ingest
from headway.network.schema import Schema
from headway.trains import Train
from tests.engines.local.networks import COUNT, network, rows
from tests.searching import examples

SCHEMA = Schema.parse("a bigint")


class Listed:
    """A source of chunks given beforehand."""

    finite, live = True, False

    def __init__(self, chunks: list[tuple[list[int], list[int] | None]], timed: bool) -> None:
        self.timed = timed
        self._chunks = list(chunks)

    def read(self, limit: int) -> Chunk | None:
        if not self._chunks:
            return None
        values, due = self._chunks.pop(0)
        batch = pa.record_batch([pa.array(values, pa.int64())], names=["a"])
        return Chunk(batch, None if due is None else np.array(due, np.int64))

    def malformed(self) -> list[Malformed]:
        return []

    def close(self) -> None:
        return


Pushed = list[tuple[int, int, int, int]]
"""Number, source, value, stamp."""


def _ingest(
    readers: list[Listed], clock: ManualClock, full: Callable[[], bool] = lambda: True
) -> tuple[Ingest, Pushed, list[int]]:
    pushed: Pushed = []
    promised = [-1] * len(readers)
    feeds = []
    for at, reader in enumerate(readers):

        def push(train: Train, at: int = at) -> None:
            values = train.columns[0].values.tolist()
            for number, value, stamp in zip(train.numbers.tolist(), values, train.stamps.tolist(), strict=True):
                assert number > promised[at], "a tuple came after its number was promised away"
                pushed.append((number, at, value, stamp))
            promised[at] = max(promised[at], train.progress)

        def promise(number: int, at: int = at) -> None:
            promised[at] = max(promised[at], number)

        feeds.append(Feed(f"s{at}", reader, push, promise, Train.empty(SCHEMA)))
    return Ingest(feeds, clock, 1000, lambda rows: None, full=full), pushed, promised


def test_finite_sources_arrive_in_turn() -> None:
    readers = [Listed([([1, 2], None), ([3], None)], False), Listed([([11], None), ([12, 13, 14, 15], None)], False)]
    ingest, pushed, promised = _ingest(readers, ManualClock(5))
    while not ingest.ended:
        ingest.pull(True)
    assert [value for _, _, value, _ in sorted(pushed)] == [1, 11, 2, 12, 3, 13, 14, 15]
    assert sorted(number for number, *_ in pushed) == list(range(8))
    assert promised == [7, 7]
    assert all(stamp == 5 for *_, stamp in pushed)


def test_nothing_arrives_in_turn_unless_the_network_is_hungry() -> None:
    ingest, pushed, _ = _ingest([Listed([([1], None)], False)], ManualClock())
    assert ingest.pull(False) == 0
    assert ingest.pull(True) == 1
    assert len(pushed) == 1


@pytest.mark.parametrize(("room", "there"), [(100, 6), (4, 4), (0, 1)])
def test_all_that_is_due_arrives_at_once_while_there_is_room(room: int, there: int) -> None:
    clock, pushed = ManualClock(), Pushed()
    ingest, pushed, _ = _ingest([Listed([([at], [at]) for at in range(9)], True)], clock, lambda: len(pushed) >= room)
    clock.advance(5)
    assert ingest.pull(False) == there
    assert ingest.pull(False) == (there < 6)  # who asks although it is full gets more


def test_a_pull_does_not_go_on_for_ever() -> None:
    """A source that is due far beyond what can be read must not keep everybody else waiting."""
    clock = ManualClock()

    def full() -> bool:
        clock.advance(10 * MILLISECOND)  # so long a read took
        return False

    ingest, _, _ = _ingest([Listed([([at], [at]) for at in range(100)], True)], clock, full)
    clock.advance(200)
    assert 3 <= ingest.pull(False) <= 6


@examples(60)
@given(data=st.data())
def test_timed_sources_are_merged_by_due_moment(data: st.DataObject) -> None:
    clock = ManualClock(1000)
    readers, expected = [], []
    for at in range(data.draw(st.integers(1, 3))):
        due = sorted(data.draw(st.lists(st.integers(0, 12), max_size=10)))
        expected += [(moment, at, place) for place, moment in enumerate(due)]
        cuts = sorted(data.draw(st.sets(st.integers(1, 9), max_size=3)))
        edges = [0, *[cut for cut in cuts if cut < len(due)], len(due)]
        chunks: list[tuple[list[int], list[int] | None]] = [
            (list(range(a, b)), due[a:b]) for a, b in itertools.pairwise(edges) if b > a
        ]
        readers.append(Listed(chunks, True))
    ingest, pushed, _ = _ingest(readers, clock)
    while not ingest.ended:
        while ingest.pull(True):
            pass
        now = clock.now()
        due_moments = {(at, value): moment for moment, at, value in expected}
        assert all(due_moments[at, value] + 1000 <= now for _, at, value, _ in pushed)
        clock.advance(data.draw(st.sampled_from([1, 1, 2, 20])))
    assert [(stamp - 1000, at, value) for _, at, value, stamp in sorted(pushed)] == sorted(expected)


def test_rates_on_a_manual_clock() -> None:
    clock = ManualClock()
    made = network({"u": {"op": "union", "in": ["s", "r"]}}, {"o": "u"}, ("s", "r"))
    slow, fast = [(at, 0) for at in range(3)], [(at, 1) for at in range(6)]
    result = hw.run(made, {"s": slow, "r": fast}, rates={"s": 1, "r": 2.5}, clock=clock, engine="local")
    arrived = [(row["a"] * (1.0 if row["v"] == 0 else 0.4), row["v"]) for row in result.outputs["o"].to_pylist()]
    assert arrived == sorted(arrived)
    assert len(arrived) == 9
    assert clock.now() >= 2 * SECOND


def test_a_timeout_fires_by_the_clock() -> None:
    clock = ManualClock()
    made = network({"b": {**COUNT, "timeout": "2s"}}, {"o": "b"})
    result = hw.run(
        made, {"s": [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (25, 0)]}, rates={"s": 1}, clock=clock, engine="local"
    )
    assert result.outputs["o"].to_pylist() == [{"a": 0, "n": 2}, {"a": 20, "n": 1}]
    assert result.summary["boxes"]["b"]["ignored"] == 3


def test_a_live_iterator_is_read_as_it_comes() -> None:
    moments: list[float] = []

    def live() -> Iterator[dict[str, int]]:
        for at in range(4):
            time.sleep(0.03)
            yield {"a": at, "v": 1}

    def note(batch: pa.RecordBatch) -> None:
        moments.extend([time.monotonic()] * batch.num_rows)

    hw.run(network({}, {"o": "s"}), {"s": live()}, outputs={"o": note}, engine="local")
    assert len(moments) == 4
    assert moments[-1] - moments[0] > 0.05


def test_a_live_iterator_that_raises_stops_the_run() -> None:
    def live() -> Iterator[tuple[int, int]]:
        yield (1, 1)
        raise ValueError("the line is dead")

    with pytest.raises(hw.HeadwayError, match=r"source 's': .*the line is dead"):
        hw.run(network({}, {"o": "s"}), {"s": live()}, engine="local")


def test_live_and_finite_sources_together() -> None:
    def live() -> Iterator[tuple[int, int]]:
        for at in range(50):
            yield (at, 0)

    made = network({"u": {"op": "union", "in": ["s", "r"]}}, {"o": "u"}, ("s", "r"))
    result = hw.run(made, {"s": live(), "r": rows(50)}, engine="local")
    seen = result.outputs["o"].to_pylist()
    assert [row["a"] for row in seen if row["v"] == 0] == list(range(50))
    assert [row["a"] for row in seen if row["v"] == 1] == list(range(50))


def test_a_timeout_on_a_live_source() -> None:
    def live() -> Iterator[tuple[int, int]]:
        yield (1, 1)
        time.sleep(0.3)
        yield (2, 1)
        yield (12, 1)

    made = network({"b": {**COUNT, "timeout": "50ms"}}, {"o": "b"})
    result = hw.run(made, {"s": live()}, engine="local")
    assert result.outputs["o"].to_pylist() == [{"a": 0, "n": 1}, {"a": 10, "n": 1}]
    assert result.summary["outputs"]["o"]["latency"]["max"] < 0.3 - 5 * MILLISECOND / SECOND


def test_a_missing_file_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(hw.HeadwayError, match="source 's'"):
        hw.run(network({}, {"o": "s"}), {"s": tmp_path / "none.csv"}, outputs={"o": tmp_path / "o.csv"}, engine="local")
    assert list(tmp_path.iterdir()) == []
