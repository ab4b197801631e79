"""Preemption at the boundaries of parts of a train, traversals, threads and traces in the local engine."""

from __future__ import annotations

from typing import Any

import pytest

import headway as hw
from headway.errors import RunError

RATES = {"slow": 10_000.0, "quick": 100.0}


def two_paths() -> dict[str, Any]:
    """Return a network with a dear path that is flooded at the start and a cheap one that tuples trickle into."""
    boxes = {
        "dear": {"op": "universal", "in": "slow", "cost": "500us"},
        "cheap": {"op": "universal", "in": "quick", "cost": "10us"},
    }
    return {
        "network": "two",
        "sources": {name: {"schema": {"a": "int"}} for name in RATES},
        "boxes": boxes,
        "outputs": {"d": {"from": "dear"}, "c": {"from": "cheap"}},
    }


INPUTS = {"slow": [(at,) for at in range(600)], "quick": [(at,) for at in range(20)]}


@pytest.mark.alone
@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_step_is_cut_when_something_better_arrives(workers: int) -> None:
    made = {
        policy: hw.run(
            two_paths(), INPUTS, engine="local", policy=f"{policy}/box/1000", rates=RATES, workers=workers, trace=True
        )
        for policy in ("preemptive-rate-based", "rate-based")
    }
    cut, whole = made["preemptive-rate-based"], made["rate-based"]
    assert cut.outputs["d"].equals(whole.outputs["d"])
    assert cut.outputs["c"].equals(whole.outputs["c"])
    assert whole.summary["preemptions"] == 0
    if workers == 1:
        assert cut.summary["preemptions"] > 0
        assert cut.trace is not None
        assert any(step.preempted for step in cut.trace.steps)
        late = {name: run.summary["outputs"]["c"]["latency"]["mean"] for name, run in made.items()}
        # Dear steps take up to 0.3 s, and parts of them a millisecond: some 2 ms against 70.
        assert late["preemptive-rate-based"] < late["rate-based"] / 4


@pytest.mark.alone
def test_slices_end_steps_too() -> None:
    result = hw.run(two_paths(), INPUTS, engine="local", policy="round-robin:5ms/box/1000", rates=RATES)
    assert result.summary["outputs"]["c"]["latency"]["max"] < 0.05
    assert result.outputs["d"].num_rows == 600


@pytest.mark.parametrize("unit", ["superbox/mc", "superbox/ml", "superbox/mm", "superbox/best", "spanner:2/mc"])
@pytest.mark.parametrize("train", ["1", "3", "50%", "2ms", "1kB", "spread:1ms", "overhead:20%", "auto"])
def test_every_traversal_and_train_gives_the_same(unit: str, train: str) -> None:
    network = hw.Network("tree")
    left, right = network.source("l", "a int"), network.source("r", "a int")
    low = left.filter("a % 2 = 0", name="low").map("a + 1 as a", name="more")
    both = low.union(right.universal(selectivity=0.5, mode="even", name="half"), name="both")
    both.aggregate("count(*) as n, sum(a) as total", order={"on": "#"}, size=3, name="threes").output("o")
    both.output("all")
    inputs = {"l": [(at,) for at in range(40)], "r": [(at,) for at in range(25)]}
    expected = hw.run(network, inputs, engine="local", policy="round-robin/box/1")
    found = hw.run(network, inputs, engine="local", policy=f"qos/{unit}/{train}", trace=True)
    assert found.outputs == expected.outputs
    assert found.trace is not None
    assert sum(len(step.calls) for step in found.trace.steps) > 0


def test_without_a_scheduler_results_are_the_same() -> None:
    network = hw.load("examples/query1/network.yaml")
    expected = hw.run(network, engine="local")
    found = hw.run(network, engine="local", policy="threads")
    assert found.outputs == expected.outputs
    assert found.summary["plans"] == 0
    with pytest.raises(RunError, match="policy 'threads' is for the engine 'local'; the engine of this run is 'sim'"):
        hw.run(network, engine="sim", policy="threads")
    with pytest.raises(RunError, match="has no steps that could be recorded"):
        hw.run(network, engine="local", policy="threads", trace=True)


def test_nobody_is_asked_where_there_is_nothing_to_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    network = hw.Network("one")
    network.source("s", "a int").filter("a > 2").map("a * 2 as a").output("o")
    inputs = {"s": [(at,) for at in range(50)]}
    asked = hw.run(network, inputs, engine="local", policy="round-robin/7", trace=True)  # a trace needs reasons

    def refuse(*given: object) -> None:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("headway.scheduling.round_robin.RoundRobin.plan", refuse)
    alone = hw.run(network, inputs, engine="local", policy="round-robin/7")
    assert alone.outputs == asked.outputs
    assert alone.summary["plans"] == asked.summary["plans"]
    with pytest.raises(hw.HeadwayError, match="AssertionError: somebody was asked"):
        hw.run(two_paths(), INPUTS, engine="local", policy="round-robin/7")
