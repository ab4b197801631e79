"""`like: local` in virtual time: whole plans, arrivals between them, and results that leave together."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.clock import SECOND
from headway.compare.figures import overhead
from tests.engines.sim.moments import Moments
from tests.engines.sim.networks import arriving, at_once, box, every, network, replayed, simulate, steps

TWO = {"x": box("s", "3ms"), "y": box("s", "4ms")}
OUTPUTS = {"o": "x", "p": "y"}


def like(**overheads: str) -> dict[str, Any]:
    return {"like": "local", "overheads": overheads}


def taken(result: hw.RunResult) -> list[int]:
    assert result.trace is not None
    return [step.tuples for step in result.trace.steps if any(call.tuples_in for call in step.calls)]


def test_results_of_a_call_leave_together(left: Moments) -> None:
    made = network({"b": box("s", "2ms")}, {"o": "b"}, s=at_once(3))
    simulate(made, train=3, model=like())
    assert left.of() == [6, 6, 6]


def test_what_arrives_during_a_plan_waits_for_its_end() -> None:
    made = network(TWO, OUTPUTS, s=every(1, 10))
    result = simulate(made, "round-robin/box/100", model=like(), trace=True)
    # The first plan has a step for each box, on the one tuple that was there; the second on the seven that came since.
    assert steps(result)[:4] == [("x", 0, 3), ("y", 3, 7), ("x", 7, 28), ("y", 28, 56)]
    assert taken(result) == [1, 1, 7, 7, 2, 2]
    exact = simulate(made, "round-robin/box/100", trace=True)
    assert taken(exact)[:2] == [1, 4]


def test_a_plan_costs_once_however_many_steps_it_has() -> None:
    made = network(TWO, OUTPUTS, s=at_once(1))
    result = simulate(made, "round-robin/box/100", model=like(scheduler="1ms"), trace=True)
    assert steps(result) == [("x", 0, 4), ("y", 4, 8)]
    assert result.summary["time"]["scheduler"] == pytest.approx(0.001 * result.summary["plans"])
    short = simulate(made, "round-robin/box/100/plan:1", model=like(scheduler="1ms"), trace=True)
    assert steps(short) == [("x", 0, 4), ("y", 4, 9)]


def test_rounds_and_arrivals_take_time() -> None:
    made = network(TWO, OUTPUTS, s=at_once(2))
    result = simulate(made, "round-robin/box/1", model=like(round="2ms", arrival="1ms"), trace=True)
    # Two tuples are let in for the first round; in the second nothing is.
    assert steps(result) == [("x", 0, 7), ("y", 7, 11), ("x", 11, 16), ("y", 16, 20)]
    assert result.summary["time"]["sources"] == pytest.approx(0.006, abs=0.0041)  # the end of the input is a round, too


def test_who_sleeps_wakes_up_late(left: Moments) -> None:
    made = network({"b": box("s", "1ms")}, {"o": "b"}, s=every(10, 3))
    result = simulate(made, train=10, model=like(wake="2ms"))
    assert left.latencies() == [1, 3, 3]
    assert result.summary["idle"] == pytest.approx(0.02)


def test_nobody_sleeps_while_there_is_work(left: Moments) -> None:
    simulate(network({"b": box("s", "4ms")}, {"o": "b"}, s=every(1, 3)), train=10, model=like(wake="2ms"))
    assert left.of() == [4, 12, 12]


def test_rounds_in_which_nothing_begins_take_time() -> None:
    """A policy that lets tuples wait is asked at each arrival: that takes the time, and more arrives meanwhile."""
    made = network({"b": box("s", "1us")}, {"o": "b"}, s=every(1, 300))
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [0.1, 1], [0.2, 0]]}
    result = simulate(made, "qos/superbox/mc/auto", model=like(scheduler="3ms", round="2ms"))
    summary = result.summary
    assert summary["plans"] < 100, "not one for each tuple: a round takes as long as five of them"
    assert sum(summary["time"].values()) + summary["idle"] == pytest.approx(summary["seconds"])
    assert overhead(summary) <= 1


def test_nobody_waits_for_more_than_there_is() -> None:
    made = network({"b": box("s", "1us")}, {"o": "b"}, s=every(1, 300))
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [10, 1], [20, 0]]}
    assert simulate(made, "qos/superbox/mc/auto", model=like(scheduler="1ms")).summary["seconds"] < 0.5


def test_steps_are_not_cut_before_load_is_shed(left: Moments) -> None:
    made = network({"b": box("s", "50ms")}, {"o": "b"}, s=at_once(50))
    simulate(made, train=50, model=like(), shed="on")
    assert left.of() == [2500] * 50


def test_long_steps_are_cut_while_load_is_shed() -> None:
    phases = {"generate": {"phases": [["12s", 300]], "seed": 1, "fields": {"a": {"sequence": [0, 1]}}}}
    made = network({"b": box("s", "10ms")}, {"o": "b"}, s=phases)
    made["outputs"]["o"]["qos"] = {"latency": [[0, 1], [0.5, 1], [1, 0]], "loss": [[100, 1], [10, 0.9], [0, 0]]}
    result = simulate(made, train=1000, model=like(), shed="on", trace=True)
    assert result.trace is not None
    begins = next(change.moment for change in result.trace.changes if change.kind == "shed")
    later = [step.end - step.begin for step in result.trace.steps if step.begin > begins + 3 * SECOND]
    assert len(later) > 5
    assert max(later) < SECOND


def test_what_has_nothing_to_do_is_passed_over() -> None:
    # The second unit shares its only box with the first, which leaves it nothing.
    made = network({"b": box("s", "1ms")}, {"o": "b", "p": "b"}, s=at_once(2))
    result = simulate(made, "round-robin/superbox/100", model=like())
    assert result.summary["outputs"]["p"]["tuples"] == 2


@pytest.mark.parametrize("policy", ["preemptive-rate-based/box/100", "round-robin:1ms/box/100"])
def test_preemptive_policies_stay_exact(policy: str) -> None:
    made = network(TWO, OUTPUTS, s=every(1, 10))
    exact, followed = (simulate(made, policy, model=model, trace=True) for model in ({}, like()))
    assert steps(exact) == steps(followed)


def test_several_processors_stay_exact() -> None:
    made = network(TWO, OUTPUTS, s=every(1, 10))
    exact, followed = (
        simulate(made, "round-robin/box/2", model=model, workers=2, trace=True) for model in ({}, like())
    )
    assert steps(exact) == steps(followed)


@pytest.mark.parametrize("policy", ["round-robin/superbox", "qos/box/3", "chain/superbox/ml/2", "fifo/box/auto"])
def test_results_do_not_depend_on_it(policy: str) -> None:
    boxes = {"x": box("s", "1ms", selectivity=0.5), "y": box(["x", "r"], "2ms"), "z": box("y", "100us", selectivity=2)}
    poisson = arriving(100, arrivals="poisson", rate=300, seed=5)
    made = network(boxes, {"o": "z", "p": "x"}, s=poisson, r=every(4, 40))
    overheads = {"scheduler": "50us", "round": "30us", "arrival": "5us", "wake": "100us", "storage": "10us"}
    exact, followed = (simulate(made, policy, model=model) for model in ({}, like(**overheads)))
    assert exact.outputs == followed.outputs


def test_turns_and_live_sources_come_to_their_end() -> None:
    made = network({"b": box("s", "1us")}, {"o": "b"}, s=arriving(5000))
    assert simulate(made, "round-robin/box/100", model=like()).summary["tuples_out"] == 5000
    lively = hw.run(
        made, {"s": ({"a": at} for at in range(500))}, engine="sim", policy="round-robin/box/100", model=like()
    )
    assert lively.summary["tuples_out"] == 500


def test_windows_time_out(tmp_path: Any) -> None:
    window = {
        "op": "aggregate",
        "in": "s",
        "select": "count(*) as n",
        "order": {"on": "a"},
        "size": 100,
        "timeout": "20ms",
    }
    made = network({"b": window}, {"o": "b"}, {"a": "bigint", "t": "double"}, s=replayed(tmp_path, [0, 1, 100]))
    result = simulate(made, train=10, model=like())
    assert result.outputs["o"]["n"].to_pylist()[0] == 2


def test_memory_is_the_mean_over_time() -> None:
    made = network({"b": box("s", "10ms")}, {"o": "b"}, s=at_once(2))
    summary = simulate(made, train=1).summary
    # Two tuples of 24 bytes, which came together and are let go together, are held for half of the time.
    assert summary["mean_queued_bytes"] == pytest.approx(24)
    assert summary["idle"] == 0
