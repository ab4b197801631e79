"""Steering in runs: adaptive layers on both engines, wishes from other threads, and settings that are refused."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.errors import HeadwayError, PolicyError, RunError
from tests.engines.overloads import CALM, SOON, TOLERANT, box, network, output, simulate

BOXES = {"x": box("s", "4ms"), "y": box("s", "2ms"), "z": box("y", "2ms")}
OUTPUTS = {"ox": output("x", SOON), "oz": output("z", {"latency": [[0, 1], [0.1, 1], [2, 0]]})}
BUSY = network(BOXES, OUTPUTS, [["1500ms", 120]])
"""Nearly as much as can be done."""
SHORT = network({"x": box("s", "2ms"), "y": box("s", "1ms"), "z": box("y", "1ms")}, OUTPUTS, [["800ms", 200]])
"""The same for less than a second."""
AMOS: dict[str, Any] = {"use": "amos", "delay": "200ms", "policies": ["round-robin", "fifo", "chain"]}
OPTIMIZER: dict[str, Any] = {
    "use": "optimizer",
    "interval": "300ms",
    "queries": {"ox": {"latency": "1ms"}, "oz": {"latency": "1s"}},
}
"""ox has a target that it cannot meet, oz one that it does."""
LAYERS = pytest.mark.parametrize("layer", [AMOS, OPTIMIZER], ids=["amos", "optimizer"])


def local(made: Mapping[str, Any], **settings: Any) -> hw.RunResult:
    return hw.run(made, engine="local", **{"policy": "round-robin/box/10", **settings})


def changes(result: hw.RunResult) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.summary["adaptive"]["changes"]
    return found


@pytest.fixture(scope="module")
def plain() -> hw.RunResult:
    return simulate(BUSY)


def test_without_a_layer_nothing_is_said_of_one(plain: hw.RunResult) -> None:
    assert "adaptive" not in plain.summary
    assert "adaptive" not in simulate(BUSY, adaptive="off").summary
    assert plain.summary["policy"] == "round-robin/box/10"


@LAYERS
@pytest.mark.parametrize("policy", ["round-robin/box/10", "fifo/superbox/mc/auto"])
def test_results_are_the_same(plain: hw.RunResult, layer: Mapping[str, Any], policy: str) -> None:
    result = simulate(BUSY, adaptive=layer, policy=policy, trace=True)
    for name, table in plain.outputs.items():
        assert result.outputs[name] == table
    told = result.summary["adaptive"]
    assert told["layer"] == layer["use"]
    assert result.summary["policy"].startswith(f"{layer['use']}/")
    assert told["switches"] == len(changes(result)) > 0
    assert sum(told["time"].values()) == pytest.approx(1.0)
    assert set(told["now"]) == {"ox", "oz"}
    assert set(told["now"].values()) <= set(told["policies"])
    assert result.summary["shedding"]["dropped"] == {}
    assert result.trace is not None
    recorded = [change for change in result.trace.changes if change.kind == "switch"]
    assert [(one.subject, one.what, one.reason) for one in recorded] == [
        (one["subject"], one["change"], one["reason"]) for one in changes(result)
    ]
    assert all(one.reason for one in recorded)
    assert result.trace.policy == result.summary["policy"]


@pytest.mark.parametrize(("layer", "workers"), [(AMOS, 1), (OPTIMIZER, 1), (AMOS, 2)])
def test_results_are_the_same_on_the_local_engine(layer: Mapping[str, Any], workers: int) -> None:
    result = local(SHORT, adaptive=layer, workers=workers, trace=True)
    for name, table in simulate(SHORT).outputs.items():
        assert result.outputs[name] == table
    assert result.summary["adaptive"]["switches"] > 0
    assert result.trace is not None
    assert [one.reason for one in result.trace.changes if one.kind == "switch"] == [
        one["reason"] for one in changes(result)
    ]


def test_amos_gives_every_policy_its_first_turn() -> None:
    result = simulate(BUSY, adaptive=AMOS)
    assert result.summary["adaptive"]["policies"] == ["round-robin", "fifo", "chain"]
    first, second = changes(result)[:2]
    assert (first["moment"], first["subject"], first["change"]) == (0.2, "all", "round-robin -> fifo")
    assert first["reason"] == "fifo has its first turn"
    assert (second["moment"], second["change"]) == (0.4, "fifo -> chain")
    assert all(0.1 < share < 0.8 for share in result.summary["adaptive"]["time"].values())


def test_the_optimizer_leaves_alone_who_meets_its_target() -> None:
    result = simulate(BUSY, adaptive=OPTIMIZER)
    assert {change["subject"] for change in changes(result)} == {"ox"}
    assert "over its target 0.001 s (best-effort)" in changes(result)[0]["reason"]
    assert result.summary["adaptive"]["now"]["oz"] == "round-robin"
    assert result.summary["adaptive"]["now"]["ox"] != "round-robin"


def test_a_network_may_ask_for_a_layer_and_a_run_for_another() -> None:
    made = {**BUSY, "schedule": {"adaptive": AMOS}}
    assert simulate(made).summary["adaptive"]["layer"] == "amos"
    assert simulate(made, adaptive="optimizer").summary["adaptive"]["layer"] == "optimizer"
    assert "adaptive" not in simulate(made, adaptive="off").summary


def test_a_layer_and_shedding_together() -> None:
    made = network({"x": box("s", "7ms"), "y": box("s", "3ms")}, {"ox": output("x", TOLERANT), "oy": output("y", SOON)})
    result = simulate(made, shed=True, adaptive=AMOS)
    outputs = result.summary["outputs"]
    assert outputs["oy"]["tuples"] == 1300
    assert outputs["ox"]["tuples"] + outputs["ox"]["shed"] == 1300
    assert outputs["ox"]["shed"] > 200
    assert result.summary["shedding"]["active"] == {}
    assert result.summary["adaptive"]["switches"] > 5


def test_a_layer_may_let_an_output_be_shed_that_must_be_in_time() -> None:
    made = network({"b": box("s"), "y": box("s", "10us")}, {"o": output("b"), "oy": output("y")})
    goal = {"latency": {"target": "1s", "class": "must-satisfy"}}
    result = simulate(made, adaptive={"use": "optimizer", "interval": "500ms", "queries": {"o": goal}}, trace=True)
    outputs = result.summary["outputs"]
    assert outputs["o"]["tuples"] + outputs["o"]["shed"] == 1300
    assert outputs["o"]["shed"] > 100, "although nobody said --shed"
    assert outputs["oy"]["shed"] == 0
    assert result.summary["shedding"]["active"] == {}
    assert result.trace is not None
    told = [(one.subject, one.what.partition(":")[0]) for one in result.trace.changes if one.kind in ("allow", "shed")]
    assert told[:2] == [("o", "may be shed"), ("s -> b", "inserted")]
    assert ("o", "no longer shed") in told
    assert ("s -> b", "removed") in told
    without = simulate(made)
    assert without.summary["outputs"]["o"]["latency"]["p99"] > 1.5 * outputs["o"]["latency"]["p99"]


# Wishes


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    """What layers change if nobody wishes anything."""
    return {layer["use"]: changes(simulate(BUSY, adaptive=layer)) for layer in (AMOS, OPTIMIZER)}


def test_another_specification_before_the_run() -> None:
    control = hw.Control()
    control.specify({"objectives": {"queue": 1}})
    plain, changed = simulate(BUSY, adaptive=AMOS), simulate(BUSY, adaptive=AMOS, control=control)
    assert changes(changed)[0]["change"] == "another specification: objectives: {'queue': 1}"
    assert changes(changed)[0]["subject"] == "run"
    later = [one["reason"] for one in changes(changed)[3:]]
    assert later
    assert all("(queue " in reason for reason in later)
    assert not any("queue" in one["reason"] for one in changes(plain))
    assert changed.outputs["ox"] == plain.outputs["ox"]
    assert changed.summary["adaptive"]["switches"] == len(changes(changed)) - 1, "a wish is no switch"


def test_another_specification_from_another_thread() -> None:
    control, seen = hw.Control(), list[int]()
    thread = threading.Thread(target=control.specify, args=[{"objectives": {"queue": 1}}])

    def see(batch: pa.RecordBatch) -> None:
        if not seen:
            thread.start()
        seen.append(batch.num_rows)

    result = local(SHORT, adaptive=AMOS, control=control, outputs={"ox": see})
    thread.join(10)
    wishes = [one for one in changes(result) if one["change"].startswith("another specification")]
    assert len(wishes) == 1
    assert wishes[0]["moment"] > 0
    assert sum(seen) == 160


def test_other_targets_for_the_optimizer() -> None:
    control = hw.Control()
    control.specify({"queries": {"ox": {"latency": "1s"}, "oz": {"latency": "1ms"}}})
    result = simulate(BUSY, adaptive=OPTIMIZER, control=control)
    assert {change["subject"] for change in changes(result)} == {"run", "oz"}


@pytest.mark.parametrize(
    ("layer", "wish", "reason"),
    [
        (AMOS, {"objectives": {"speed": 1}}, "unknown metric 'speed'; choices: latency, memory"),
        (AMOS, {"objectives": None}, "objectives: None will not do"),
        (AMOS, {"objectives": {"latency": -1}}, "a weight is a number above 0, not -1"),
        (AMOS, {"delay": "3s"}, "unknown setting to change 'delay'; choices: objectives"),
        (OPTIMIZER, {"queries": {"o": {"latency": "1s"}}}, "unknown output 'o'.*choices: ox, oz"),
        (OPTIMIZER, {"queries": {"ox": {"latency": "soon"}}}, "soon"),
        (OPTIMIZER, {"queries": 3}, "must be a mapping"),
    ],
)
def test_a_wish_that_cannot_be_read_changes_nothing(
    undisturbed: dict[str, Any], layer: Mapping[str, Any], wish: Any, reason: str
) -> None:
    control = hw.Control()
    control.specify(wish)
    result = simulate(BUSY, adaptive=layer, control=control, trace=True)
    refused, *rest = changes(result)
    assert (refused["subject"], refused["change"]) == ("run", "specification refused")
    assert re.search(reason, refused["reason"])
    assert rest == undisturbed[layer["use"]]
    assert result.trace is not None
    assert result.trace.changes[0].what == "specification refused"


def test_wishes_without_a_layer_are_nobodys() -> None:
    control = hw.Control()
    control.specify({"objectives": "latency"})
    calm = network({"b": box("s")}, {"o": output("b")}, CALM)
    assert simulate(calm, control=control).outputs["o"].num_rows == 200


# What a run refuses


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"policy": "threads", "shed": True}, RunError, "'threads' runs without a scheduler"),
        ({"policy": "threads", "adaptive": "amos"}, RunError, "'threads' runs without a scheduler"),
        ({"shed": {"outputs": {"o": 0.5}}}, PolicyError, "shed: unknown output 'o'.*choices: ox, oz"),
        ({"shed": {"allowed": ["ox", "no"]}}, PolicyError, "shed: unknown output 'no'.*choices: ox, oz"),
        ({"shed": "best"}, PolicyError, "shed: no strategy is called 'best'.*loss, uniform"),
        ({"shed": {"by": "lost"}}, PolicyError, "shed: by: unknown strategy 'lost'; did you mean 'loss'"),
        ({"shed": {"mots": 1}}, PolicyError, "shed: unknown key 'mots'; did you mean 'most'"),
        ({"shed": 3}, PolicyError, "shed: must be off, on, a strategy, or a mapping.*loss, uniform"),
        ({"adaptive": "amso"}, PolicyError, "unknown adaptive layer 'amso'; did you mean 'amos'.*amos, optimizer"),
        ({"adaptive": {"use": "none"}}, PolicyError, "unknown adaptive layer 'none'.*amos, optimizer"),
        ({"adaptive": {"delay": "1s"}}, PolicyError, "adaptive: must be a layer .amos, optimizer."),
        ({"adaptive": 3}, PolicyError, "adaptive: must be a layer .amos, optimizer."),
        (
            {"adaptive": {"use": "amos", "dealy": "1s"}},
            PolicyError,
            "amos: unknown setting 'dealy'; did you mean 'delay'",
        ),
        ({"adaptive": {"use": "optimizer", "queries": {"o": {}}}}, PolicyError, "unknown output 'o'.*choices: ox, oz"),
    ],
)
@pytest.mark.parametrize("engine", ["local", "sim"])
def test_what_does_not_fit(engine: str, settings: dict[str, Any], error: type[HeadwayError], message: str) -> None:
    if engine == "sim" and settings.get("policy") == "threads":
        message = "policy 'threads' is for the engine 'local'"
    with pytest.raises(error, match=message):
        hw.run(SHORT, engine=engine, **settings)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ({"shed": 3}, "shed: must be off, on, a strategy or a mapping, not 3"),
        ({"adaptive": ["amos"]}, "adaptive: must be a layer or a mapping"),
    ],
)
def test_what_does_not_fit_in_a_file(schedule: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadwayError, match=message):
        hw.load({**SHORT, "schedule": schedule})
