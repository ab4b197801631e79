"""Predictions: repeatable by a model, and measured where there is none; costs from two runs, worked out by hand."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.boxes.costs import Constant, Uniform
from headway.compare import predicting
from headway.compare.inputs import hold
from headway.compare.predicting import PROCESSOR, Line, Predictor, Setting, Total, fit, fused, lateness, model_of_runs
from headway.engines.models import LOCAL, Model, parse_model
from tests.engines.sim.networks import arriving, box, network

BOXES = {
    "u": box("s", "100us"),
    "f": {"op": "filter", "in": "s", "where": "a >= 0"},
    "m": {"op": "map", "in": "f", "select": "a"},
}


def setting(seconds: float = 0.2) -> Setting:
    made = hw.load(network(BOXES, {"o": "u", "p": "m"}, s=arriving(None, rate=500, arrivals="poisson")))
    return Setting(made, hold(hw.check(made), {}, {}, seconds))


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("qos/superbox", True), ("qos", True), ("qos/box", False), ("qos/superbox/ml", False), ("qos/spanner:2", False)],
)
def test_which_schedules_call_boxes_as_one(policy: str, expected: bool) -> None:
    assert fused(policy) is expected


def test_a_model_is_followed_and_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    engines: list[str] = []

    def watched(*args: Any, **settings: Any) -> hw.RunResult:
        engines.append(settings["engine"])
        return hw.run(*args, **settings)

    monkeypatch.setattr(predicting, "run", watched)
    predictor = Predictor(setting(), said.append, parse_model({"default": "10us"}))
    first, again = (predictor.predict("round-robin/box/100") for _ in range(2))
    unequal = {"real_seconds", "real_planning"}
    assert {key: first[key] for key in first.keys() - unequal} == {key: again[key] for key in again.keys() - unequal}
    assert engines == ["sim", "sim"]
    assert said == ["simulating round-robin/box/100"] * 2
    assert predictor.model("qos").like == LOCAL
    assert predictor.processor == 1.0


def test_plans_of_what_cannot_be_run_are_timed() -> None:
    predictor = Predictor(setting(), lambda text: None, Model(), virtual=True)
    assert 0 < predictor.model("qos/box").overheads.scheduler < 1


def test_without_a_model_it_is_measured() -> None:
    said: list[str] = []
    predictor = Predictor(setting(), said.append)
    for policy in ("round-robin/superbox", "qos/superbox", "fifo/box/10"):
        predictor.predict(policy)
    real = [text.partition(",")[0] for text in said if "for real" in text]
    assert real == [
        "measuring what boxes cost",
        "measuring round-robin/superbox for real",
        "measuring qos/superbox for real",
        "measuring what boxes cost",  # boxes one by one cost something else
        "measuring fifo/box/10 for real",
    ]
    model = predictor.model("round-robin/superbox")
    assert model.like == LOCAL
    assert set(model.calls) == set(model.costs) == {"u", "f", "m"}
    assert model.costs["u"].mean >= 100e-6
    assert model.overheads.scheduler > 0
    assert 0 < predictor.processor <= 1


def test_a_disturbed_look_is_repeated_and_the_least_disturbed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"round-robin/superbox/1000": [1.0], "fifo/superbox": [0.5, 0.8, 0.7], "qos/superbox": [0.9, 0.96]}
    real, runs = Setting.run, []

    def run(self: Setting, engine: str, policy: str, *args: Any, **more: Any) -> dict[str, Any]:
        runs.append(policy)
        return {**real(self, engine, policy, *args, **more), PROCESSOR: shares[policy].pop(0)}

    monkeypatch.setattr(Setting, "run", run)
    predictor = Predictor(setting(), lambda text: None)
    predictor.model("qos/superbox")
    assert predictor.processor == 0.96
    predictor.model("fifo/superbox")
    assert predictor.processor == 0.8
    assert runs == ["round-robin/superbox/1000", *["qos/superbox"] * 2, *["fifo/superbox"] * 3]


def test_real_runs_tell_whether_they_had_a_processor() -> None:
    summary = setting().run("local", "round-robin")
    assert 0 < summary[PROCESSOR] <= 1
    assert 0 < summary["idle"] < summary["seconds"]
    assert 0 <= summary["mean_queued_bytes"] <= summary["peak_queued_bytes"]
    assert setting().run("sim", "round-robin")[PROCESSOR] == 1
    assert summary["outputs"]["o"]["tuples"] == summary["tuples_in"]


def test_an_interrupted_run_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    half = hw.RunResult({}, {"interrupted": True}, pa.table({}))
    monkeypatch.setattr(predicting, "run", lambda *args, **more: half)
    with pytest.raises(KeyboardInterrupt):
        setting().run("sim", "round-robin")


def test_an_adaptive_layer_is_left_out() -> None:
    made = setting()
    mapping = {**made.network.to_mapping(), "schedule": {"adaptive": "amos"}}
    changed = Setting(hw.load(mapping), made.held)
    assert "adaptive" not in changed.run("sim", "fifo/box")


def test_two_totals_tell_two_costs() -> None:
    # 1 ms a call and 10 µs a tuple, in trains of one and of a hundred.
    short, long = Total(100 * 0.00101, 100, 100), Total(2 * 0.002, 2, 200)
    assert fit([short, long]) == pytest.approx(Line(0.001, 0.00001))
    assert fit([long, short]) == pytest.approx(Line(0.001, 0.00001))


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        ([Total(1, 10, 100), Total(2, 20, 200)], Line(0, 0.01)),  # trains alike: cannot be told apart
        ([Total(0, 0, 0), Total(0, 0, 0)], Line(0, 0)),
        ([Total(1, 10, 0), Total(3, 30, 0)], Line(0.1, 0)),  # calls without tuples
        ([Total(1, 100, 100), Total(9, 2, 200)], Line(0, 10 / 300)),  # a call would cost less than nothing
        ([Total(1, 10, 10), Total(0.05, 2, 200)], Line(1.05 / 12, 0)),  # a tuple would
        ([Total(0, 0, 0), Total(1, 2, 100)], Line(0, 0.01)),  # seen in one run only
    ],
)
def test_what_cannot_be_told(totals: list[Total], expected: Line) -> None:
    assert fit(totals) == pytest.approx(expected)


NETWORK = hw.load(
    {
        "network": "n",
        "sources": {"s": {"schema": {"a": "bigint"}}},
        "boxes": {
            "m": {"op": "map", "in": "s", "select": "a"},
            "u": {"op": "universal", "in": "m", "cost": "1ms"},
            "d": {"op": "universal", "in": "m", "cost": {"uniform": ["1ms", "3ms"]}},
        },
        "outputs": {"o": {"from": "u"}, "p": {"from": "d"}},
    }
)


def summary(calls: int, tuples: int, idle: float, **seconds: float) -> dict[str, Any]:
    """Return a summary in which all boxes were called alike; the loop itself took 0.2 s."""
    time = {"scheduler": 0.1, "boxes": sum(seconds.values()), "storage": 0.04, "sources": 0.1, "sinks": 0.02}
    return {
        "boxes": {name: {"calls": calls, "tuples_in": tuples, "seconds": spent} for name, spent in seconds.items()},
        "time": time,
        "seconds": sum(time.values()) + idle + 0.2,
        "idle": idle,
        "plans": calls,
        "box_calls": 3 * calls,
        "tuples_in": tuples,
    }


def test_the_model_of_two_runs() -> None:
    timed = summary(100, 100, 5, m=100 * 20e-6, u=100 * 0.0011, d=0.2)
    at_once = summary(2, 200, 0, m=2 * 10e-6 + 200 * 10e-6, u=2 * 0.0001 + 0.2, d=0.4)
    model = model_of_runs(NETWORK, timed, at_once, 0.0003)
    assert model.like == LOCAL
    assert model.calls == pytest.approx({"m": 10e-6, "u": 0.0001, "d": 0})
    assert model.costs == {"m": Constant(pytest.approx(10e-6)), "u": Constant(pytest.approx(0.001))}  # type: ignore[arg-type]
    overheads = model.overheads
    assert overheads.scheduler == pytest.approx(0.001)
    assert overheads.storage == pytest.approx(0.06 / 300)
    assert overheads.wake == 0.0003
    # 100 rounds and 100 tuples took as long as 2 rounds and 200 tuples; the loop itself 0.2 s of 100 rounds.
    assert (overheads.round, overheads.arrival) == pytest.approx((0.1 / 198 + 0.002, 0.1 * 98 / 19800))


def test_what_is_drawn_for_each_tuple_stays_as_it_is() -> None:
    timed, at_once = (summary(*sizes, 0, m=0.1, u=0.5, d=0.5) for sizes in ((100, 100), (2, 200)))
    model = model_of_runs(NETWORK, timed, at_once, 0)
    assert "d" not in model.costs
    assert isinstance(NETWORK.box("d").spec.cost, Uniform)  # type: ignore[attr-defined]


def test_boxes_that_cost_less_than_they_say_cost_what_they_say() -> None:
    timed, at_once = (summary(*sizes, 0, m=0.1, u=0.0, d=0.0) for sizes in ((100, 100), (2, 200)))
    model = model_of_runs(NETWORK, timed, at_once, 0)
    assert model.costs["u"] == Constant(0.001)
    assert model.calls["u"] == 0


def test_nobody_wakes_up_before_the_time() -> None:
    assert 0 <= lateness(3) < 1
