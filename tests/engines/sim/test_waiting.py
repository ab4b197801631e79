"""The simulator with policies that let units wait, what its snapshots say, and policies that never serve anybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.clock import MILLISECOND
from headway.engines.sim import engine
from headway.errors import RunError
from headway.scheduling import Plan, Policy, Snapshot, Step
from tests.engines.sim.moments import Moments
from tests.engines.sim.networks import arriving, at_once, box, every, network, simulate, steps

ONE = network({"b": box("s", "1ms")}, {"o": "b"}, s=every(1, 3))


@dataclass(frozen=True)
class Scripted(Policy):
    """Does what a function of the snapshot says, and keeps copies of what it saw."""

    decide: Callable[[Snapshot], Plan]
    preemptive: bool = False
    seen: list[Snapshot] = field(default_factory=list)

    def start(self) -> None:
        return None

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        self.seen.append(snapshot)
        return self.decide(snapshot), None


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_STUCK", 500)  # nobody here is asked so often for nothing, but those who never stop


def _run(made: dict[str, Any], policy: Scripted, **more: Any) -> hw.RunResult:
    schedule = {"policy": policy, "unit": "box", "train": 1, "wait": "off"}
    return simulate(made, schedule, trace=True, **more)


def _first(snapshot: Snapshot) -> Plan:
    able = np.flatnonzero(snapshot.ready & ~snapshot.busy)
    return Plan(tuple(Step(int(unit), 1) for unit in able[:1]))


# Waiting


def test_until_is_kept(left: Moments) -> None:
    policy = Scripted(lambda seen: _first(seen) if seen.now >= 7 * MILLISECOND else Plan((), 7 * MILLISECOND))
    _run(network({"b": box("s", "1ms")}, {"o": "b"}, s=every(5, 2)), policy)
    assert left.of() == [8, 9]
    # At an arrival, when it said, and when there was a processor; then for the end.
    assert [seen.now // MILLISECOND for seen in policy.seen] == [0, 5, 7, 8, 9]
    assert [seen.more for seen in policy.seen] == [True, False, False, False, False]


def test_until_means_nothing_while_all_processors_are_busy(left: Moments) -> None:
    policy = Scripted(lambda seen: _first(seen)._replace(until=seen.now + MILLISECOND // 2))
    _run(ONE, policy)
    assert left.of() == [1, 2, 3]
    assert [seen.now // MILLISECOND for seen in policy.seen] == [0, 1, 2, 3]


def test_a_policy_that_waits_gets_more_of_what_comes_in_turn() -> None:
    """It wants 3,000 tuples at least, more than are read at a time."""
    policy = Scripted(lambda seen: _first(seen) if seen.waiting[0] >= 3000 or not seen.more else Plan((), seen.now + 1))
    result = _run(network({"b": box("s")}, {"o": "b"}, s=arriving(3500)), policy)
    assert result.summary["tuples_out"] == 3500
    assert any(seen.waiting[0] < 3000 and seen.more for seen in policy.seen)
    served = next(at for at, seen in enumerate(policy.seen) if seen.waiting[0] >= 3000)
    assert all(seen.now == 0 for seen in policy.seen[:served])


def test_a_policy_is_told_when_sources_are_held_back() -> None:
    """It waits for as long as more may come, and above the memory nothing does."""
    policy = Scripted(lambda seen: Plan((), seen.now + 50 * MILLISECOND) if seen.more else _first(seen))
    result = _run(network({"b": box("s", "1ms")}, {"o": "b"}, s=every(1, 30)), policy, memory=100)
    assert result.summary["tuples_out"] == 30
    assert [seen.more for seen in policy.seen[:6]] == [True] * 4 + [False] * 2
    assert policy.seen[4].now == 4 * MILLISECOND  # when more than 4 tuples of 24 bytes waited


# Policies that never come to an end


@pytest.mark.parametrize("source", [every(1, 3), arriving(3), arriving(300_000)], ids=["timed", "few", "many"])
@pytest.mark.parametrize("until", [None, 0, 1, MILLISECOND])
def test_a_policy_that_serves_nobody_is_said_so(source: Any, until: int | None) -> None:
    policy = Scripted(lambda seen: Plan((), None if until is None else seen.now + until))
    made = network({"b": box("s", "1ms"), "c": box("s", "1ms")}, {"o": "b", "p": "c"}, s=source)
    with pytest.raises(RunError, match=r"^policy 'Scripted/box/1/wait:off' serves none .* ready: 'b', 'c'$"):
        _run(made, policy)


def test_a_policy_that_serves_nobody_under_a_memory_bound() -> None:
    policy = Scripted(lambda seen: Plan(()))
    with pytest.raises(RunError, match="serves none of the units that are ready"):
        _run(network({"b": box("s", "1ms")}, {"o": "b"}, s=arriving(None)), policy, memory=100_000)


def test_a_step_with_nothing_to_do_is_no_step() -> None:
    policy = Scripted(lambda seen: Plan((Step(1, 1),)))  # 'c' never has anything, because nobody serves 'b'
    with pytest.raises(RunError, match=r"ready: 'b'$"):
        _run(network({"b": box("s", "1ms"), "c": box("b", "1ms")}, {"o": "c"}, s=every(1, 3)), policy)


def test_a_moment_that_has_passed_is_no_moment_to_be_asked_again() -> None:
    policy = Scripted(lambda seen: Plan((Step(0, 1),), seen.now), preemptive=True)
    with pytest.raises(RunError, match="wants to be asked again at a moment that has passed"):
        _run(ONE, policy)


def test_many_short_slices_are_no_standstill() -> None:
    result = simulate(network({"b": box("s", "20ms")}, {"o": "b"}, s=at_once(1)), "round-robin:1us/box/1")
    assert result.summary["seconds"] == 0.02
    assert result.summary["plans"] > 15_000


# What policies see


def test_what_is_under_way_is_busy() -> None:
    policy = Scripted(_first)
    made = network({"x": box("s", "3ms"), "y": box("x", "4ms")}, {"o": "y"}, s=at_once(3))
    _run(made, policy, workers=2)
    assert all(int(seen.busy.sum()) == 2 - seen.free for seen in policy.seen)
    second = policy.seen[1]  # after the first step has begun
    assert (second.now, second.free, second.ready.tolist(), second.busy.tolist()) == (
        3 * MILLISECOND,
        2,
        [True, True],
        [False, False],
    )
    third = policy.seen[2]  # at the same moment, for the second processor
    assert (third.now, third.free, third.room, third.busy.tolist()) == (3 * MILLISECOND, 1, 1, [True, False])
    assert (third.held.tolist(), third.spent.tolist()) == ([1, 0], [0, 0])


def test_a_preemptive_policy_sees_what_is_done() -> None:
    """Unit 1 as soon as it has something; at 5 ms it has."""
    policy = Scripted(lambda seen: Plan((Step(1 if seen.ready[1] else 0, 1),)), preemptive=True)
    made = network({"x": box("s", "20ms"), "y": box("r", "2ms")}, {"o": "x", "p": "y"}, s=at_once(2), r=every(5, 2))
    result = _run(made, policy)
    assert steps(result)[:4] == [("y", 0, 2), ("x", 2, 5), ("y", 5, 7), ("x", 7, 24)]
    asked = {seen.now // MILLISECOND: seen for seen in policy.seen}
    before, preempted = asked[5], asked[7]
    assert (before.busy.tolist(), before.spent.tolist()) == ([True, False], [0.003, 0])
    assert (before.held.tolist(), before.waiting.tolist()) == ([1, 0], [1, 1])
    assert (preempted.busy.tolist(), preempted.spent.tolist()) == ([False, False], [0.003, 0])
    assert (preempted.held.tolist(), preempted.waiting.tolist()) == ([1, 0], [2, 0])  # it waits, too
    assert preempted.ready.tolist() == [True, False]
    assert preempted.oldest[0] == 0


def test_boxes_of_preempted_steps_are_not_at_work() -> None:
    """Both superboxes share x: while 'o' is preempted on it, neither is busy, and 'p' can be asked for."""

    def decide(seen: Snapshot) -> Plan:
        return Plan((Step(2 if seen.ready[2] else 0 if seen.ready[0] else 1, 1),))

    policy = Scripted(decide, preemptive=True)
    boxes = {"x": box("s", "9ms"), "y": box("x"), "z": box("x"), "w": box("r", "2ms")}
    made = network(boxes, {"o": "y", "p": "z", "q": "w"}, s=at_once(1), r=every(5, 2))
    result = simulate(made, {"policy": policy, "unit": "superbox", "train": 1, "wait": "off"})
    asked = {seen.now // MILLISECOND: seen for seen in policy.seen}
    assert asked[5].busy.tolist() == [True, True, False]
    assert asked[7].busy.tolist() == [False, False, False]
    assert result.summary["seconds"] == 0.013


def test_planning_is_what_the_model_says() -> None:
    policy = Scripted(_first)
    _run(ONE, policy, model={"overheads": {"scheduler": "20us"}})
    assert {seen.planning for seen in policy.seen} == {20e-6}
