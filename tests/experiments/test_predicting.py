"""Predictions: repeatable by a model, and measured where there is none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headway as hw
from headway.engines.models import LOCAL, Model, parse_model
from headway.experiments import predicting
from headway.experiments.inputs import hold
from headway.experiments.predicting import PROCESSOR, Predictor, Setting, fused
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
