"""Overheads and preemption, to the moment, and what policies see of steps under way."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.errors import RunError
from tests.engines.sim.moments import Moments
from tests.engines.sim.networks import arriving, at_once, box, every, network, simulate, steps

CHAIN = {"x": box("s", "1ms"), "y": box("x", "2ms")}


def _chain(unit: str = "box", **overheads: str) -> hw.RunResult:
    made = network(CHAIN, {"o": "y"}, s=at_once(1))
    return simulate(made, f"round-robin/{unit}/1", model={"overheads": overheads}, trace=True)


# Overheads


@pytest.mark.parametrize(
    ("unit", "overheads", "moment"),
    [
        ("box", {}, 3),
        ("box", {"call": "500us"}, 4),  # 0.5 + 1, 0.5 + 2
        ("box", {"scheduler": "250us"}, 3.5),  # 0.25, then 1; 0.25, then 2
        ("box", {"storage": "125us"}, 3.25),  # each of the two boxes takes from a queue
        ("box", {"preemption": "10ms"}, 3),
        ("box", {"call": "500us", "scheduler": "250us", "storage": "125us"}, 4.75),
        ("superbox", {"call": "500us"}, 4),
        ("superbox", {"scheduler": "250us"}, 3.25),  # one step
        ("superbox", {"storage": "125us"}, 3.125),  # what the step itself made is at hand
    ],
)
def test_each_overhead_shifts_moments(left: Moments, unit: str, overheads: dict[str, str], moment: float) -> None:
    _chain(unit, **overheads)
    assert left.of() == [moment]


def test_overheads_are_told_apart() -> None:
    summary = _chain(call="500us", scheduler="250us", storage="125us").summary
    assert summary["plans"] == 4  # for the tuple and for the end, at both boxes
    assert summary["time"]["scheduler"] == 4 * 250e-6
    assert summary["time"]["storage"] == 2 * 125e-6  # the end takes no tuples
    assert summary["time"]["boxes"] == 3e-3 + 2 * 500e-6  # and is no call
    assert summary["seconds"] == pytest.approx(1e-3 + 0.25e-3 + 4e-3)
    assert summary["boxes"]["x"]["cost_per_call"] == 500e-6


def test_what_other_steps_put_into_a_queue_comes_from_storage(left: Moments) -> None:
    boxes = {"x": box("s", "1ms"), "y": box("x", "1ms"), "z": box("x", "1ms")}
    made = network(boxes, {"o": "y", "p": "z"}, s=at_once(1))
    result = simulate(made, "round-robin/superbox/1", model={"overheads": {"storage": "1ms"}}, trace=True)
    assert left.of("o") == [3]  # x from storage, y at hand
    assert left.of("p") == [5]  # z from storage: the step of 'o' had made it
    assert steps(result) == [("o", 0, 3), ("p", 3, 5)]
    assert result.summary["time"]["storage"] == 0.002


def test_a_step_records_its_calls() -> None:
    result = _chain("superbox", call="500us", scheduler="250us")
    assert result.trace is not None
    step = result.trace.steps[0]
    assert (step.begin, step.end, step.tuples, step.plan) == (0, 4_250_000, 1, 1)
    calls = [(one.boxes, one.begin, one.end, one.tuples_in, one.tuples_out) for one in step.calls]
    assert calls == [((0,), 250_000, 1_750_000, 1, 1), ((1,), 1_750_000, 4_250_000, 1, 1)]


def test_each_processor_pays_for_its_own_step(left: Moments) -> None:
    made = network({"x": box("s", "3ms"), "y": box("s", "4ms")}, {"o": "x", "p": "y"}, s=at_once(1))
    simulate(made, workers=2, model={"overheads": {"scheduler": "1ms"}})
    assert (left.of("o"), left.of("p")) == ([4], [5])


# Slices of time


def _two(a: str, b: str, count: int = 1) -> dict[str, Any]:
    return network({"x": box("s", a), "y": box("s", b)}, {"o": "x", "p": "y"}, s=at_once(count))


def test_slices(left: Moments) -> None:
    result = simulate(_two("5ms", "4ms"), "round-robin:3ms/box/1", trace=True)
    assert steps(result) == [("x", 0, 3), ("y", 3, 6), ("x", 6, 8), ("y", 8, 9)]
    assert (left.of("o"), left.of("p")) == ([8], [9])
    assert result.summary["preemptions"] == 2
    assert result.trace is not None
    told = [(step.preempted, step.reason.rule) for step in result.trace.steps[:4]]
    assert told == [(True, "next in turn"), (True, "next in turn"), (False, "resumed"), (False, "resumed")]


def test_the_calls_of_a_slice_lie_within_it() -> None:
    result = simulate(_two("5ms", "4ms"), "round-robin:3ms/box/1", trace=True)
    assert result.trace is not None
    for step in result.trace.steps:
        assert all(step.begin <= call.begin <= call.end <= step.end for call in step.calls)
    # A call that was preempted is told of when it ends, from when it went on.
    assert [len(step.calls) for step in result.trace.steps[:4]] == [0, 0, 1, 1]
    assert result.trace.steps[2].calls[0].begin == 6_000_000


def test_a_slice_begins_when_overheads_are_over(left: Moments) -> None:
    overheads = {"overheads": {"scheduler": "1ms", "preemption": "500us"}}
    result = simulate(_two("5ms", "4ms"), "round-robin:3ms/box/1", model=overheads, trace=True)
    # x from 1 to 4; y from 5.5 to 8.5; x from 10 to 12, where it ends; y from 13 to 14.
    assert steps(result) == [("x", 0, 4), ("y", 4, 8.5), ("x", 8.5, 12), ("y", 12, 14)]
    assert (left.of("o"), left.of("p")) == ([12], [14])
    assert result.summary["time"]["preemption"] == 0.001


def test_slices_shorter_than_overheads_come_to_an_end(left: Moments) -> None:
    model = {"overheads": {"scheduler": "50us"}}
    simulate(_two("1ms", "1ms"), "round-robin:10us/box/1", model=model)
    assert left.of("o") == [pytest.approx(199 * 0.06)]  # every other of 200 slices of 10 us, after 50 us each
    assert left.of("p") == [pytest.approx(200 * 0.06)]


def test_slices_on_two_processors(left: Moments) -> None:
    boxes = {"x": box("s", "5ms"), "y": box("s", "5ms"), "z": box("s", "5ms")}
    result = simulate(
        network(boxes, {"o": "x", "p": "y", "q": "z"}, s=at_once(1)), "round-robin:3ms/box/1", workers=2, trace=True
    )
    # x and y; z and x; x ends at 5, and y goes on beside z for a slice that begins then.
    assert left.of("o") == [5]
    assert left.of("p") == [7]
    assert left.of("q") == [8]
    assert result.summary["preemptions"] == 1
    assert result.summary["seconds"] == 0.008


# Preempted for something better


def _cheap_and_dear(gap: float, dear: str = "20ms", tuples: int = 1, cheap: int = 2, **overheads: str) -> hw.RunResult:
    boxes = {"cheap": box("c", "1ms"), "dear": box("d", dear)}
    made = network(boxes, {"o": "cheap", "p": "dear"}, c=every(gap, cheap), d=at_once(tuples))
    return simulate(made, "preemptive-rate-based/box/1000", model={"overheads": overheads}, trace=True)


def test_a_cheap_tuple_comes_before_the_rest_of_a_dear_one(left: Moments) -> None:
    result = _cheap_and_dear(5)
    assert steps(result) == [("cheap", 0, 1), ("dear", 1, 5), ("cheap", 5, 6), ("dear", 6, 22)]
    assert (left.of("o"), left.of("p")) == ([1, 6], [22])
    assert result.summary["preemptions"] == 1
    assert result.trace is not None
    second, fourth = result.trace.steps[1], result.trace.steps[3]
    assert (second.preempted, fourth.preempted) == (True, False)
    assert fourth.reason.rule == "resumed"
    assert second.plan < fourth.plan


def test_a_dear_tuple_that_is_nearly_done_is_brought_to_its_end(left: Moments) -> None:
    result = _cheap_and_dear(20.5)  # the second arrives when half of what it costs itself is left
    assert (left.of("o"), left.of("p")) == ([1, 22], [21])
    assert result.summary["preemptions"] == 0


def test_preempting_costs_what_the_model_says(left: Moments) -> None:
    _cheap_and_dear(5, preemption="500us")
    assert (left.of("o"), left.of("p")) == ([1, 6.5], [22.5])
    _cheap_and_dear(5, scheduler="250us")
    # 0.25 to 1.25; from 1.5, of which 3.5 are done at 5; 5.25 to 6.25; from 6.5 the other 16.5
    assert (left.of("o"), left.of("p")) == ([1.25, 6.25], [23])


def test_asking_in_vain_takes_the_time_of_what_runs(left: Moments) -> None:
    _cheap_and_dear(20, dear="19ms", scheduler="250us")
    # from 1.5, to 20.5 if nobody had asked at 20
    assert (left.of("o"), left.of("p")) == ([1.25, 22], [20.75])


def test_what_was_done_before_a_preemption_has_left_before_it(left: Moments) -> None:
    _cheap_and_dear(15, dear="10ms", tuples=2)
    # both dear tuples in one call from 1 on: one is done at 11; preempted from 15 to 16
    assert (left.of("o"), left.of("p")) == ([1, 16], [11, 22])
    _cheap_and_dear(5, dear="10ms", tuples=2)
    # the first at 11, and 1 ms later because it was preempted from 5 to 6
    assert (left.of("o"), left.of("p")) == ([1, 6], [12, 22])
    _cheap_and_dear(11, dear="10ms", tuples=2)
    assert (left.of("o"), left.of("p")) == ([1, 12], [11, 22])  # just at the moment when it was done


def test_a_unit_whose_box_a_preempted_step_holds_brings_that_to_its_end(left: Moments) -> None:
    """Both superboxes begin with x, on which the first one is preempted; the second cannot begin without it."""
    boxes = {"x": box("s", "4ms"), "y": box("x", "1ms"), "z": box("x", "1ms")}
    made = network(boxes, {"o": "y", "p": "z"}, s=at_once(1))
    result = simulate(made, "round-robin:3ms/superbox/1", trace=True)
    assert sorted([*left.of("o"), *left.of("p")]) == [5, 6]
    assert result.summary["time"]["boxes"] == 0.006
    assert result.outputs["o"].num_rows == result.outputs["p"].num_rows == 1


@pytest.mark.parametrize("policy", ["preemptive-rate-based/box/1", "round-robin:500us/box/7"])
@pytest.mark.parametrize("workers", [1, 2])
def test_many_preemptions_lose_nothing(policy: str, workers: int) -> None:
    boxes = {"x": box("s", "7ms"), "y": box("r", "2ms"), "z": box(["x", "y"], "1ms", selectivity=2)}
    made = network(boxes, {"o": "z", "p": "x"}, s=every(9, 50), r=arriving(100, arrivals="poisson", rate=100))
    summary = simulate(made, policy, workers=workers).summary
    assert summary["preemptions"] > (5 if workers == 1 else 0)
    assert summary["tuples_out"] == 50 + 2 * 150
    assert summary["time"]["boxes"] == pytest.approx(0.7)  # 50 times 7 ms, 100 times 2 ms, 150 times 1 ms


# Failures


def test_a_box_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise ValueError("no good")

    monkeypatch.setattr("headway.kernels.universal.UniversalKernel.run", fail)
    with pytest.raises(RunError, match=r"^'y' failed: ValueError: no good$"):
        simulate(network({"y": box("s", "1ms")}, {"o": "y"}, s=at_once(1)))
