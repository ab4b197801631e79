"""What policies see of a running network: read piece by piece, it is the same as read as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.checking import check
from headway.clock import SECOND, ManualClock
from headway.columns import NEVER
from headway.connectors import TableSink
from headway.engines.dead_letters import DeadLetters
from headway.engines.delivery import Delivery
from headway.engines.local.steps import StepRunner
from headway.engines.process import reading as module
from headway.engines.process.reading import RuntimeReading
from headway.engines.process.runtime import Runtime
from headway.errors import PolicyError
from headway.scheduling.snapshot import Snapshot
from headway.scheduling.superboxes import box_units, superbox_units
from headway.trains import Tick, Train
from tests.behaviour.running import run
from tests.engines.local.networks import COUNT, POSITIVE, network
from tests.searching import examples
from tests.streams import Case, networks
from tests.streams import Running as Way

BOXES: dict[str, Any] = {
    "x": POSITIVE,
    "y": {"op": "map", "in": "x", "select": "a, v"},
    "u": {"op": "union", "in": ["s", "y"]},
    "w": {"op": "filter", "in": "r", "where": "v > 1"},
    "j": {"op": "union", "in": ["u", "w", "r"]},
    "k": {"op": "union", "in": ["j", "x"]},
    "loose": {"op": "union", "in": ["w", "y"], "ordered": False},
    "c": {**COUNT, "in": "k"},
}
"""Boxes with several inputs above each other, of which some are seldom fed."""
OUTPUTS = {"o": "k", "p": "loose", "q": "c", "h": "w"}


class Running:
    """A runtime whose sources are fed by hand: numbers are given, and all sources' progress moves with them."""

    def __init__(self, boxes: dict[str, Any] = BOXES, outputs: dict[str, str] = OUTPUTS) -> None:
        self.clock = ManualClock()
        checked = self.checked = check(hw.load(network(boxes, outputs, ("s", "r"))))
        deliveries = {
            one.name: Delivery(
                one, checked.output_schema(one.name), TableSink(checked.output_schema(one.name)), self.clock
            )
            for one in checked.network.outputs
        }
        self.runtime = Runtime(checked, deliveries, None, DeadLetters(False, None), self.clock)
        self.issued = -1

    def push(self, source: str, values: list[int]) -> None:
        batch = pa.record_batch({"a": pa.array(values, pa.int64()), "v": pa.array(values, pa.int32())})
        numbers = np.arange(self.issued + 1, self.issued + 1 + len(values))
        self.issued = int(numbers[-1])
        stamps = np.full(len(values), self.clock.now(), np.int64)
        self.runtime.arcs[source].push(Train.from_batch(batch, stamps, numbers, self.issued))
        for one in ("s", "r"):
            queue = self.runtime.arcs[one].queue
            queue.progress = max(queue.progress, self.issued)

    def mark(self, end: bool = False) -> None:
        self.issued += 1
        for one in ("s", "r"):
            arc = self.runtime.arcs[one]
            ticks = () if end else (Tick(self.issued, self.clock.now()),)
            arc.push(Train.empty(arc.schema, self.issued, ticks, end))


ACTIONS = st.sampled_from(("s", "r", "step", "step", "step", "tick", "work", "ask"))


def _seen(readings: RuntimeReading) -> dict[str, list[Any]]:
    names = ("ready", "waiting", "oldest", "box_waiting", "box_oldest", "_box_ready")
    return {name: getattr(readings, name).tolist() for name in names}


def arrays(seen: Snapshot) -> list[Any]:
    return [seen.ready, seen.waiting, seen.oldest, seen.box_ready, seen.box_waiting, seen.box_oldest]


def _snapshot(readings: RuntimeReading, now: int = 0) -> Snapshot:
    return readings.snapshot(now, train=10, room=1, more=True, free=1, memory=readings.runtime.board.bytes)


@examples(150)
@given(data=st.data(), superboxes=st.booleans())
def test_piece_by_piece_is_as_a_whole(data: st.DataObject, superboxes: bool) -> None:
    """After any pushes, steps, ticks and while any boxes are at work; `changed` names every unit that differs."""
    running = Running()
    runtime = running.runtime
    units = superbox_units(runtime.topology) if superboxes else box_units(runtime.topology)
    steps = StepRunner(runtime, units)
    with pytest.MonkeyPatch.context() as patch:
        whole = RuntimeReading(running.checked, runtime, units)
        patch.setattr(module, "_FEW", 0)
        patch.setattr(module, "_MANY", 0)  # never as a whole, but for the first time
        pieces = RuntimeReading(running.checked, runtime, units)
        asked: dict[str, list[Any]] | None = None
        told = False
        for action in data.draw(st.lists(ACTIONS, min_size=10, max_size=40)):
            if action in ("s", "r"):
                running.push(action, data.draw(st.lists(st.integers(-1, 3), min_size=1, max_size=4)))
            elif action == "tick":
                running.mark()
            elif action == "work":
                at = data.draw(st.integers(0, len(runtime.boxes) - 1))
                runtime.busy[at] = not runtime.busy[at]
            elif action == "step":
                unit = data.draw(st.integers(0, len(units) - 1))
                if not runtime.busy[list(units[unit].boxes)].any():
                    steps.run(unit, data.draw(st.sampled_from((1, 2, 100))))
            pieces.refresh(told)
            whole.refresh()
            told = False
            seen = _seen(pieces)
            assert seen == _seen(whole)
            if action == "ask":
                changed = _snapshot(pieces).changed
                assert (changed is None) == (asked is None)
                for name, before in (asked or {}).items():
                    if not name.lstrip("_").startswith("box"):
                        assert {at for at, one in enumerate(before) if one != seen[name][at]} <= set(changed or ())
                told, asked = True, seen


@examples(25)
@given(
    case=networks(),
    policy=st.sampled_from(("round-robin", "fifo", "round-robin:2us", "preemptive-rate-based")),
    unit=st.sampled_from(("box", "superbox")),
    workers=st.integers(1, 3),
)
def test_piece_by_piece_is_as_a_whole_while_steps_are_under_way(
    case: Case, policy: str, unit: str, workers: int
) -> None:
    """In the simulator, where boxes take tuples at one moment and give results at another."""
    compared = 0

    def refresh(self: RuntimeReading, told: bool = False) -> None:
        nonlocal compared
        plain(self, told)
        whole = RuntimeReading(self.checked, self.runtime, self.units)
        whole._large = False
        plain(whole)
        assert _seen(self) == _seen(whole)
        compared += 1

    plain = RuntimeReading.refresh
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW", 0)
        patch.setattr(module, "_MANY", 0)
        patch.setattr(RuntimeReading, "refresh", refresh)
        run("sim", case.twin, case.inputs, Way(f"{policy}/{unit}", 2, workers))
    assert compared


def test_what_is_held_up_is_looked_at_again_when_its_holder_has_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 0)
    monkeypatch.setattr(module, "_MANY", 0)
    running = Running()
    runtime = running.runtime
    units = box_units(runtime.topology)
    names = [unit.name for unit in units]
    readings, steps = RuntimeReading(running.checked, runtime, units), StepRunner(runtime, units)
    looked: list[str] = []
    is_ready = Runtime.is_ready

    def watch(self: Runtime, box: Any, memo: dict[str, int]) -> bool:
        looked.append(box.name)
        return is_ready(self, box, memo)

    monkeypatch.setattr(Runtime, "is_ready", watch)

    def look() -> tuple[set[str], set[str]]:
        looked.clear()
        readings.refresh()
        return set(looked), {names[at] for at in np.flatnonzero(readings.ready)}

    running.push("s", [1, 2])  # at x, and at u, which has to wait for x
    assert look() == ({"u"}, {"x"})
    assert look() == (set(), {"x"})
    running.push("r", [3])  # at w, and at j, which has to wait for u or w
    assert look() == ({"j"}, {"x", "w"})
    assert look() == (set(), {"x", "w"})
    steps.run(names.index("w"), 10)  # j is fed, and still held up by u; the loose union is not
    assert look() == ({"j", "loose"}, {"x", "loose"})
    steps.run(names.index("x"), 10)  # now y holds u up, and j holds k up
    assert look() == ({"u", "k"}, {"y", "loose"})
    steps.run(names.index("y"), 10)
    assert look() == ({"u", "j", "loose"}, {"u", "loose"})  # j, because something has moved at u
    assert look() == (set(), {"u", "loose"})  # what is ready stays so


def test_large_networks_are_read_piece_by_piece_by_themselves() -> None:
    boxes = {f"b{at}": POSITIVE for at in range(1100)}
    running = Running({**boxes, "w": {**POSITIVE, "in": "r"}}, {"o": "b0", "p": "w"})
    units = box_units(running.runtime.topology)
    readings = RuntimeReading(running.checked, running.runtime, units)
    readings.refresh()
    assert _snapshot(readings).changed is None  # nobody was told of anything yet
    running.push("r", [1, 2, 3])
    readings.refresh(told=True)
    changed = _snapshot(readings).changed
    assert changed is not None
    assert [units[at].name for at in changed] == ["w"]
    assert int(readings.waiting.sum()) == 3
    running.push("s", [1])  # moves nearly all
    readings.refresh()
    assert _snapshot(readings).changed is None
    assert int(readings.waiting.sum()) == 1103


@pytest.mark.parametrize("superboxes", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_a_snapshot_never_changes(monkeypatch: pytest.MonkeyPatch, large: bool, superboxes: bool) -> None:
    if large:
        monkeypatch.setattr(module, "_FEW", 0)
        monkeypatch.setattr(module, "_MANY", 0)
    running = Running()
    topology = running.runtime.topology
    units = superbox_units(topology) if superboxes else box_units(topology)
    readings, steps = RuntimeReading(running.checked, running.runtime, units), StepRunner(running.runtime, units)
    taken = []
    for at in range(6):
        running.push("sr"[at % 2], [at, at + 1])
        if at:
            steps.run(at % len(units), 1)
        readings.refresh()
        seen = _snapshot(readings)
        latencies = seen.latencies
        taken.append((seen, [array.copy() for array in arrays(seen)], latencies, latencies.copy()))
    assert len({tuple(seen.box_waiting.tolist()) for seen, *_ in taken}) > 3
    for seen, before, latencies, copied in taken:
        assert [now.tolist() for now in arrays(seen)] == [one.tolist() for one in before]
        assert seen.latencies is latencies
        assert (latencies == copied).all()


def test_what_was_not_read_of_a_snapshot_is_gone_when_the_engine_goes_on() -> None:
    running = Running()
    readings = RuntimeReading(running.checked, running.runtime, box_units(running.runtime.topology))
    readings.refresh()
    seen = _snapshot(readings)
    assert seen.narrowed(seen.ready).costs is seen.costs
    readings.refresh()
    assert len(seen.costs.cost) == 8
    with pytest.raises(PolicyError, match="a snapshot is of the past"):
        _ = seen.queues


def test_nothing_waits() -> None:
    running = Running()
    readings = RuntimeReading(running.checked, running.runtime, box_units(running.runtime.topology))
    readings.refresh()
    seen = _snapshot(readings)
    assert not seen.ready.any()
    assert (seen.oldest == NEVER).all()
    assert seen.latencies.tolist() == [0.0] * 8
    assert seen.queues.oldest.tolist() == [0.0] * 8
    assert seen.latency_of(0) == 0.0


@pytest.mark.parametrize("superboxes", [False, True])
def test_latencies_are_means_of_what_waits(superboxes: bool) -> None:
    running = Running({"x": POSITIVE, "z": {**POSITIVE, "in": "r"}}, {"o": "x", "p": "z"})
    topology = running.runtime.topology
    readings = RuntimeReading(
        running.checked, running.runtime, superbox_units(topology) if superboxes else box_units(topology)
    )
    running.push("s", [1, 2])
    running.clock.advance(2 * SECOND)
    running.push("s", [3, 4])
    running.push("r", [5])
    readings.refresh()
    seen = _snapshot(readings, 5 * SECOND)
    assert seen.latencies.tolist() == [4.0, 3.0]
    assert [seen.latency_of(0), seen.latency_of(1)] == [4.0, 3.0]
    assert seen.queues.tuples.tolist() == [4, 1]
    assert seen.queues.latency.tolist() == [4.0, 3.0]
    assert seen.queues.oldest.tolist() == [5.0, 3.0]
    StepRunner(running.runtime, readings.units).run(0, 3)
    readings.refresh()
    assert _snapshot(readings, 5 * SECOND).latencies.tolist() == [3.0, 3.0]


def test_statistics_are_read_anew_when_they_have_grown_old(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    units = box_units(running.runtime.topology)
    readings, report = RuntimeReading(running.checked, running.runtime, units), running.runtime.statistics.report
    calls = 0

    def call(many: int) -> None:
        nonlocal calls
        for _ in range(many):
            report(calls % 8, 1, 1, 1000, -1)
            calls += 1

    call(1)
    assert readings.boxes(0).calls.sum() == 1
    call(1)
    assert readings.boxes(0).calls.sum() == 2  # first impressions count
    call(30)
    assert readings.boxes(0).calls.sum() == 32
    call(1)
    assert readings.boxes(module._FRESH - 1).calls.sum() == 32  # four calls a box are enough for a while
    assert readings.boxes(module._FRESH).calls.sum() == 33


def test_first_impressions_of_a_large_network_grow_by_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 0)
    running = Running({f"b{at}": POSITIVE for at in range(100)} | {"w": {**POSITIVE, "in": "r"}}, {"o": "b0", "p": "w"})
    readings = RuntimeReading(running.checked, running.runtime, box_units(running.runtime.topology))
    counts = []
    for _ in range(200):
        running.runtime.statistics.report(0, 1, 1, 1000, -1)
        counts.append(int(readings.boxes(0).calls.sum()))
    assert counts[:16] == list(range(1, 17))
    behind = [(at + 1 - count) / (at + 1) for at, count in enumerate(counts)]
    assert max(behind) < 1 / 8
    assert len(set(counts)) < 80


@pytest.mark.parametrize("large", [False, True])
def test_costs_follow_the_statistics(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    if large:
        monkeypatch.setattr(module, "_FEW", 0)
    running = Running({"x": POSITIVE, "y": {"op": "map", "in": "x", "select": "a, v"}}, {"o": "y"})
    readings = RuntimeReading(running.checked, running.runtime, box_units(running.runtime.topology))
    running.runtime.statistics.declare(cost=np.array([1e-3, 4e-3]), selectivity=np.array([0.5, 1]), exact=True)
    readings.refresh()
    costs = _snapshot(readings).costs
    assert costs.cost.tolist() == [3e-3, 4e-3]
    assert costs.yields.tolist() == [0.5, 1]
