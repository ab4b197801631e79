"""A thread for each box: the same results without a scheduler, and no wake-up is lost."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headway as hw
import headway.runner
from headway.checking import check
from headway.clock import SECOND, Clock, ManualClock, WallClock, stopwatch
from headway.engines.carrier import Given
from headway.engines.local.threads import BoxThreads, Threads
from headway.engines.process import run as runs
from headway.engines.process.runtime import Runtime
from headway.engines.runs import RunSettings
from headway.engines.signals import Stopping
from headway.errors import RunError
from headway.scheduling.schedule import Schedule
from headway.trains import Train
from tests.behaviour.running import fewer
from tests.engines.local.networks import COUNT, POSITIVE, network, rows
from tests.reference.compare import assert_same
from tests.streams import Case, networks

ALL_OPS: dict[str, Any] = {
    "x": {"op": "filter", "in": "s", "where": "v > 1"},
    "y": {"op": "map", "in": "x", "select": "a, v + 1 as v"},
    "u": {"op": "union", "in": ["s", "y", "r"]},
    "c": {**COUNT, "in": "u", "order": {"on": "a", "slack": 50}},
    "w": {"op": "union", "in": ["u", "x"]},
}


@pytest.fixture
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Threaded:
    """A run as the engine makes it, with everything at hand; sources are read by four tuples."""

    def __init__(
        self,
        mapping: Mapping[str, Any],
        inputs: Mapping[str, Any],
        train: int = 1,
        *,
        rates: Mapping[str, float] | None = None,
        clock: Clock | None = None,
        writer: Callable[[pa.RecordBatch], None] | None = None,
        chunk: int = 4,
        memory: int = 1 << 28,
    ) -> None:
        checked = check(hw.load(mapping))
        made = checked.network
        self.clock = clock or WallClock()
        self.control = hw.Control()
        self.statuses = 0
        run_settings = RunSettings(
            Schedule.parse(f"threads/box/{train}"),
            {source.name: inputs.get(source.name, []) for source in made.sources},
            {} if writer is None else {output.name: writer for output in made.outputs},
            rates or {},
            memory=memory,
            on_status=self.status,
        )
        self.stack = contextlib.ExitStack()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runs, "_LEAST_READ", chunk)
            patch.setattr(runs, "_MOST_READ", chunk)
            self.carrier = Threads(Given(checked, run_settings, self.clock, self.stack, Stopping(self.control)))
        self.runtime, self.feeds, self.ingest = self.carrier.runtime, self.carrier.feeds, self.carrier.sources
        self.threads = self.carrier._threads

    def status(self, status: hw.Status) -> None:
        self.statuses += 1

    def go(self) -> hw.RunResult:
        with self.stack:
            return self.carrier.go()

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        outlets = self.carrier.outlets.outlets
        return {name: one.table.to_pylist() for name, one in outlets.items() if one.table is not None}


def until_idle(threads: BoxThreads) -> None:
    """Wait until nobody is at work; a thread that never sleeps fails the test."""
    begun = stopwatch()
    while not threads.idle():
        assert stopwatch() - begun < 20 * SECOND, "the threads do not come to rest"
        threading.Event().wait(0.0005)


def push(runtime: Runtime, source: str, values: list[int], start: int) -> None:
    batch = pa.record_batch({"a": pa.array(values, pa.int64()), "v": pa.array([1] * len(values), pa.int32())})
    train = Train.from_batch(batch)
    last = start + len(values) - 1
    runtime.arcs[source].push(Train(train.columns, train.stamps, train.numbers + start, last))
    for name in ("s", "r"):
        runtime.arcs[name].queue.progress = max(runtime.arcs[name].queue.progress, last)


@contextlib.contextmanager
def started(run: Threaded) -> Iterator[BoxThreads]:
    run.threads.start()
    try:
        yield run.threads
    finally:
        run.threads.close()
        run.stack.close()


def test_every_box_has_a_thread_that_ends_with_the_run() -> None:
    run = Threaded(network(ALL_OPS, {"o": "w", "n": "c"}, ("s", "r")), {})
    names = {f"headway-box-{name}" for name in ALL_OPS}
    with started(run) as threads:
        assert names <= {thread.name for thread in threading.enumerate()}
        until_idle(threads)
        assert run.ingest.wake.is_set()
    assert not names & {thread.name for thread in threading.enumerate()}
    assert threads.failed is None


@pytest.mark.usefixtures("switching")
def test_a_union_is_woken_when_progress_moves_without_a_tuple() -> None:
    """y and z get nothing, because x drops all; what u and w hold is certain as soon as x has looked at it."""
    boxes = {
        "x": {"op": "filter", "in": "s", "where": "v > 1"},
        "y": {"op": "map", "in": "x", "select": "a, v"},
        "z": {"op": "map", "in": "y", "select": "a, v"},
        "u": {"op": "union", "in": ["z", "r"]},
        "w": {"op": "union", "in": ["u", "z"]},
    }
    run = Threaded(network(boxes, {"o": "u", "p": "w"}, ("s", "r")), {})
    with started(run) as threads:
        for turn in range(100):
            # r's tuple is queued and u is awake, waiting for s to be looked at.
            push(run.runtime, "r", [turn], 2 * turn)
            run.runtime.arcs["s"].queue.progress = 2 * turn - 1
            threads.notify()
            push(run.runtime, "s", [turn], 2 * turn + 1)
            threads.notify()
            until_idle(threads)
            assert [len(one) for one in run.rows().values()] == [turn + 1, turn + 1]
        assert [row["a"] for row in run.rows()["o"]] == list(range(100))


def test_nobody_is_idle_while_somebody_was_called() -> None:
    gate = threading.Event()
    run = Threaded(network({"x": POSITIVE}, {"o": "x"}), {}, writer=lambda batch: assert_(gate.wait(20)))
    with started(run) as threads:
        until_idle(threads)
        run.ingest.wake.clear()
        runtime = run.runtime
        batch = pa.record_batch({"a": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32())})
        runtime.arcs["s"].push(Train.from_batch(batch))
        threads.notify()
        assert not threads.idle()
        while not runtime.busy[0]:
            threading.Event().wait(0.0005)
        assert not threads.idle()
        assert not run.ingest.wake.is_set()
        gate.set()
        assert run.ingest.wake.wait(20)
        assert threads.idle()
        assert not runtime.busy[0]


def assert_(fact: bool) -> None:
    assert fact


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("train", [1, 3, 1000])
def test_results_and_counts_are_those_of_the_scheduler(train: int) -> None:
    made = network(ALL_OPS, {"o": "w", "n": "c", "raw": "s"}, ("s", "r"))
    inputs = {"s": [(at, at % 4) for at in range(120)], "r": [(at, 1) for at in range(50)]}
    wanted = hw.run(made, inputs, policy="round-robin/box", engine="local")
    for _ in range(5):
        run = Threaded(made, inputs, train)
        result = run.go()
        assert run.rows() == {name: table.to_pylist() for name, table in wanted.outputs.items()}
        readings = run.runtime.statistics.readings()
        counted = [(wanted.summary["boxes"][name]["tuples_in"]) for name in run.runtime.topology.boxes]
        assert readings.tuples_in.tolist() == counted
        assert run.runtime.board.bytes == 0
        assert not run.runtime.board.marks.any()
        assert not run.runtime.busy.any()
        assert run.runtime.storage > 0 < run.runtime.delivering
        assert result.summary["time"]["sources"] > 0 < result.summary["peak_queued_bytes"]
    if train == 1:
        assert int(readings.calls[0]) >= 120


@given(case=networks(), train=st.sampled_from((1, 1, 2, 3, 7)))
@settings(fewer, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("switching")
def test_random_networks(case: Case, train: int) -> None:
    expected = case.twin.expected(case.inputs)
    for _ in range(3):
        run = Threaded(case.twin.mapping(), case.inputs, train)
        run.go()
        for name, found in run.rows().items():
            assert_same(found, expected[name], f"output '{name}'")


@pytest.mark.usefixtures("switching")
def test_timed_sources_and_timeouts_in_virtual_time() -> None:
    """A window closes one second after its first tuple, which only a tick can tell it: the next comes 5 s later."""
    boxes = {"c": {**COUNT, "timeout": "1s"}, "u": {"op": "union", "in": ["c", "c"]}}
    inputs = {"s": [(at, 1) for at in range(30)]}

    run = Threaded(network(boxes, {"o": "u"}), inputs, clock=ManualClock(), rates={"s": 0.2})
    run.go()
    wanted = hw.run(network(boxes, {"o": "u"}), inputs, clock=ManualClock(), rates={"s": 0.2}, engine="local")
    assert run.rows()["o"] == wanted.outputs["o"].to_pylist()
    # Each window times out with its first tuple only, and comes through both inputs of the union.
    assert run.rows()["o"] == [{"a": a, "n": 1} for a in (0, 0, 10, 10, 20, 20)]
    assert run.clock.now() == 29 * 5 * SECOND
    assert run.statuses >= 29 * 5 * 4 - 60


def test_timed_sources_in_wall_time() -> None:
    made = network({"x": POSITIVE, "u": {"op": "union", "in": ["x", "r"]}}, {"o": "u"}, ("s", "r"))
    run = Threaded(made, {"s": rows(40), "r": rows(40)}, rates={"s": 400, "r": 200})
    begun = stopwatch()
    run.go()
    assert len(run.rows()["o"]) == 80
    assert 0.19 * SECOND < stopwatch() - begun < 10 * SECOND


def test_little_memory_holds_sources_back_but_not_up() -> None:
    run = Threaded(network(ALL_OPS, {"o": "w"}, ("s", "r")), {"s": rows(2000), "r": rows(500)}, 8, chunk=16, memory=1)
    result = run.go()
    assert len(run.rows()["o"]) == 2500  # v is 1: nothing passes x
    assert result.summary["peak_queued_bytes"] < 100_000


def test_an_interrupt_ends_the_inputs_and_nothing_is_lost() -> None:
    seen: list[int] = []

    def endless() -> Iterator[tuple[int, int]]:
        at = 0
        while True:
            yield at, 1
            at += 1

    def see(batch: pa.RecordBatch) -> None:
        seen.append(len(batch))
        if len(seen) > 20:
            run.control.stop()

    run = Threaded(network({"x": POSITIVE}, {"o": "x"}), {"s": endless()}, 10, writer=see)
    run.go()
    assert sum(seen) == run.feeds[0].tuples > 0


class Failing:
    """A kernel that fails."""

    def run(self, *given: object) -> Any:
        raise KeyError("full")


def test_a_box_that_fails_stops_the_run() -> None:
    run = Threaded(network(ALL_OPS, {"o": "y"}, ("s", "r")), {"s": [(1, 5)] * 50})

    at = run.runtime.index["y"]
    run.runtime.boxes[at].kernel = Failing()  # type: ignore[assignment]
    with pytest.raises(RunError, match=r"^'y' failed: KeyError: 'full'$"):
        run.go()
    assert run.threads.failed is not None
    at, error = run.threads.failed
    assert (run.runtime.boxes[at].name, type(error)) == ("y", KeyError)


def test_errors_of_ours_stay_as_they_are() -> None:
    def refuse(batch: pa.RecordBatch) -> None:
        raise RunError("the disk is full")

    run = Threaded(network({"x": POSITIVE}, {"o": "x"}), {"s": rows(5)}, writer=refuse)
    with pytest.raises(RunError, match=r"^the disk is full$"):
        run.go()


def test_a_system_without_threads_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Threaded(network(ALL_OPS, {"o": "w"}, ("s", "r")), {"s": rows(3)})
    begin = threading.Thread.start
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(begun) == 2:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RunError, match=r"a thread for each of 5 boxes, and the system started only 2: choose another"):
        run.go()
    assert not any(thread.is_alive() for thread in begun)
