"""The QoS monitor at work: what it reads of a run, and when it says that there is too much to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.clock import SECOND
from headway.engines.local.steps import StepRunner
from headway.engines.monitor import Monitor
from headway.engines.traces import ChangeLog
from headway.scheduling.superboxes import box_units
from headway.shedding.diagnosis import Observation
from tests.engines.overloads import SOON, Bench, box, network, output

NOBODY: frozenset[int] = frozenset()


class Watched:
    """s -> m -> x -> ox (good until 1 s) and m -> y -> oy; 100 tuples a second, then 300, then 10."""

    def __init__(self, headroom: float = 0.9, workers: int = 1) -> None:
        made = network(
            {"m": box("s"), "x": box("m"), "y": box("m")},
            {"ox": output("x", SOON), "oy": output("y")},
            [["10s", 100], ["10s", 300], ["30s", 10]],
        )
        self.bench = Bench(made, workers)
        self.log = ChangeLog(0)
        self.monitor = Monitor(self.bench.reading, self.bench.drops, self.log, 0, headroom)
        self.keep = np.ones(len(self.bench.drops.sites))

    def look(self, seconds: float = 0.5, forced: frozenset[int] = NOBODY) -> Observation:
        """Let time go on, and look."""
        self.bench.arrive(seconds)
        return self.monitor.look(self.bench.clock.now(), self.keep, forced)

    def deliver(self, *latencies: float, output: int = 0) -> None:
        """Deliver results with these latencies."""
        now = self.bench.clock.now()
        stamps = np.array([now - round(latency * SECOND) for latency in latencies], np.int64)
        self.bench.deliveries[output].count(stamps, np.ones(len(stamps), np.int64))

    def cost(self, **seconds: float) -> None:
        """Let boxes have cost this much for each of 100 tuples."""
        for name, one in seconds.items():
            self.bench.report(name, 100, 100, 100 * one)


def test_rates_and_loads() -> None:
    watched = Watched()
    watched.cost(m=0.001, x=0.002, y=0.001)
    seen = watched.look()
    assert seen.now == SECOND // 2
    assert seen.source_rates.tolist() == pytest.approx([100], rel=0.03)
    assert seen.box_load.tolist() == pytest.approx([0.1, 0.2, 0.1], rel=0.03)
    assert seen.load == pytest.approx(0.4, rel=0.03)
    assert seen.kept == seen.load
    assert seen.box_backlog.tolist() == pytest.approx([51 * 0.004, 0, 0])
    assert seen.backlog == pytest.approx(51 * 0.004)
    watched.keep = np.array([0.5, 1, 1])
    assert watched.look().kept == pytest.approx(0.2, rel=0.03)


def test_a_rate_that_rises_is_seen_soon() -> None:
    watched = Watched()
    for _ in range(20):
        seen = watched.look()
    assert seen.source_rates[0] == pytest.approx(100, rel=0.03)
    for _ in range(4):
        seen = watched.look()
    assert seen.source_rates[0] > 240, "after two half-lives of a second"


def test_what_is_usual_is_known_after_a_while() -> None:
    watched = Watched()
    for _ in range(9):
        assert np.isnan(watched.look().usual).all()
    for _ in range(11):
        seen = watched.look()
    assert seen.usual[0] == pytest.approx(100, rel=0.03)
    for _ in range(6):
        seen = watched.look()
    assert seen.source_rates[0] > 2 * 0.8 * seen.usual[0]
    assert seen.usual[0] < 160


def test_what_was_late() -> None:
    watched = Watched()
    assert watched.look().late.tolist() == [0, 0]
    watched.deliver(0.5, 1.0, 1.5, 2.0)
    watched.deliver(100, output=1)  # it has no graph: never late
    seen = watched.look()
    assert seen.delivered.tolist() == [4, 1]
    assert seen.late.tolist() == [0.5, 0]
    assert seen.latency.tolist() == pytest.approx([1.25, 100])
    watched.deliver(0.1, 0.1)
    seen = watched.look()  # what was seen before counts half
    assert seen.delivered.tolist() == [4, 0.5]
    assert seen.late.tolist() == [0.25, 0]
    assert seen.latency[0] == pytest.approx((5 / 2 + 0.2) / 4)


def test_somebody_may_have_stricter_goals() -> None:
    watched = Watched()
    watched.deliver(0.1)
    assert watched.look(forced=frozenset({0, 1})).late.tolist() == [1, 1]
    assert watched.look().late.tolist() == [0, 0]


def test_how_old_is_what_waits() -> None:
    watched = Watched()
    watched.bench.arrive(0)  # the first tuple arrives at once
    assert watched.look(2).oldest.tolist() == [2, 2], "it waits on the way to both"
    watched.bench.runtime.boxes[0].cursors[0].take(101)
    assert watched.look(0).oldest.tolist() == pytest.approx([0.99, 0.99])
    watched.bench.runtime.boxes[0].cursors[0].take(1000)
    assert watched.look(0).oldest.tolist() == [0, 0]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_can_be_done(workers: int) -> None:
    """All work is one box's, which one worker at a time can run."""
    watched = Watched(workers=workers)
    watched.cost(m=0.01)
    seen = watched.look()
    assert (seen.capacity, seen.busy) == (1, 0), "nothing is known yet"
    watched.bench.report("m", 20, 20, 0.2)
    watched.bench.busy += SECOND // 4
    seen = watched.look()
    assert seen.capacity == pytest.approx(0.8), "the rest of its time the engine needs for itself"
    assert seen.busy == pytest.approx(0.5)
    watched.bench.report("m", 10, 10, 0.1)
    watched.bench.busy += SECOND // 4
    assert watched.look().capacity == pytest.approx((0.2 / 2 + 0.1) / (0.25 / 2 + 0.25))
    seen = watched.look()
    assert seen.busy == 0
    assert seen.capacity == pytest.approx(0.2 / 0.375), "who is idle shows nothing new"


def test_workers_count_as_far_as_they_can_be_of_use() -> None:
    watched = Watched(workers=3)
    watched.cost(m=0.02, x=0.01)
    watched.bench.arrive(1)
    assert watched.look().capacity == pytest.approx(1.5), "'m' has two thirds of the work, and one worker at a time"


def test_with_little_to_do_it_is_not_seen_what_could_be_done() -> None:
    watched = Watched()
    watched.cost(m=0.01)
    for _ in range(4):
        watched.bench.report("m", 1, 1, 0.01)
        watched.bench.busy += SECOND // 4
        watched.bench.arrive(0.5)
        watched.bench.runtime.boxes[0].cursors[0].take(1000)
        assert watched.look(0).capacity == 1.0


def test_an_engine_may_know_better_what_can_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    look = watched.bench.drops.look
    monkeypatch.setattr(watched.bench.drops, "look", lambda *what: replace(look(*what), capacity=0.7))
    assert watched.look().capacity == 0.7


def test_an_overload_begins_and_ends() -> None:
    watched = Watched()
    watched.cost(m=0.001, x=0.002, y=0.001)
    for _ in range(20):
        watched.look()
    assert watched.log.changes == []
    diagnosis = watched.monitor.diagnosis
    assert diagnosis is not None
    assert not diagnosis.overloaded
    for _ in range(40):  # ten seconds of 300 tuples at 4 ms, ten seconds of 10
        watched.look()
    begins, ends = watched.log.changes
    assert (begins.kind, begins.subject, begins.what) == ("overload", "run", "begins")
    assert 10 < begins.moment / SECOND < 13
    assert begins.reason.startswith("needs ")
    assert "cause: source 's'" in begins.reason
    assert ends.what == "ends"
    assert 20 < ends.moment / SECOND < 23
    told = watched.monitor.summary()
    assert told["spells"] == 1
    assert told["seconds"] == pytest.approx((ends.moment - begins.moment) / SECOND)
    assert [change["change"] for change in told["changes"]] == ["begins", "ends"]


def test_how_it_went_is_kept() -> None:
    watched = Watched()
    watched.cost(m=0.001)
    watched.deliver(0.5, 1.5)
    watched.look()
    watched.look()
    history = watched.monitor.summary()["history"]
    assert history["moment"] == [0.5, 1.0]
    assert history["load"] == pytest.approx([0.1, 0.1], rel=0.03)
    assert history["delivered"] == {"ox": [2, 0], "oy": [0, 0]}
    assert history["latency"] == {"ox": [pytest.approx(1.0), None], "oy": [None, None]}
    assert history["outside"] == {"ox": [0.5, None], "oy": [None, None]}


def test_the_cause_is_the_source_whose_tuples_make_the_work() -> None:
    """Of s a tenth meets t in u, which costs ten times as much as what the rest is for."""
    made = network(
        {"r": {"op": "filter", "in": "s", "where": "a % 10 = 0"}, "u": box(["r", "t"]), "x": box("r.else")},
        {"ou": output("u"), "ox": output("x")},
        [["10s", 50], ["30s", 100]],
        [["10s", 50], ["30s", 100]],
    )
    bench = Bench(made)
    monitor = Monitor(bench.reading, bench.drops, ChangeLog(0), 0, 0.9)
    bench.arrive(1)
    StepRunner(bench.runtime, box_units(bench.runtime.topology)).run(0, 1000)
    for name, cost in {"u": 0.01, "x": 0.001}.items():
        bench.report(name, 10_000, 10_000, 10_000 * cost)
    for _ in range(28):
        bench.arrive(0.5)
        monitor.look(bench.clock.now(), np.ones(len(bench.drops.sites)), NOBODY)
    assert monitor.diagnosis is not None
    assert monitor.diagnosis.culprit is not None
    assert monitor.diagnosis.culprit.name == "t"


def test_headroom_is_left() -> None:
    for headroom, overloaded in ((1.0, False), (0.3, True)):
        watched = Watched(headroom)
        watched.cost(m=0.001, x=0.002, y=0.001)
        watched.look()
        diagnosis = watched.monitor.diagnosis
        assert diagnosis is not None
        assert diagnosis.overloaded == overloaded
