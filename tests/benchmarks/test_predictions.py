"""Predictions against measurements: what is promised, and that the benchmark runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from benchmarks import predictions
from benchmarks.predictions import CASES, Case, Outcome, check, main, measure, prepared, slower, table
from headway.boxes.costs import Constant
from headway.compare.figures import Figures
from headway.compare.predicting import PROCESSOR, Predictor, Setting
from headway.engines.models import Model, Overheads
from tests.engines.sim.networks import arriving, box, network

MODEL = Model(like="local")
PLAIN = Figures("a", 0.5, 0.2, "o", 0.1, 0.5, 1000.0, 2000.0, 100.0, 0.1, 10)
OTHER = replace(PLAIN, policy="b", utility=0.9, latency=0.2)


def outcome(*measured: Figures) -> Outcome:
    return Outcome("case", (PLAIN, OTHER), measured, (1.5, 1.0), (replace(PLAIN, latency=0.15), OTHER))


def test_promises() -> None:
    assert check([outcome(PLAIN, OTHER)]) == []
    assert check([outcome(replace(PLAIN, latency=0.08), replace(OTHER, latency=0.16))]) == []  # by a quarter
    assert check([outcome(replace(PLAIN, latency=0.07), OTHER)]) == [
        "case: a: the predicted latency is 1.43 times the measured one (2.14 at the speed that the machine had)"
    ]
    assert check([outcome(replace(PLAIN, latency=0.2), OTHER)]) == [
        "case: a: the predicted latency is 0.50 times the measured one (0.75 at the speed that the machine had)"
    ]
    assert check([outcome(replace(PLAIN, utility=1.0), OTHER)]) == ["case: b was predicted to be best, and a is"]


def test_the_table_says_by_how_much_the_best_is_better() -> None:
    text = table(outcome(PLAIN, replace(OTHER, latency=0.25)))
    assert "| a | 100.0 | 100.0 | 1.00 | 1.50 times as long | 1.50 | 0.500 | 0.500 |" in text
    assert "| b | 200.0 | 250.0 | 0.80 | 1.00 times as long | 0.80 | 0.900 | 0.900 |" in text
    assert "Best as predicted: b, by a factor of 1.80 (its results are worth most, 0.9" in text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cases_can_be_read(case: Case) -> None:
    setting = prepared(case)
    assert all(held.timed and held.tuples >= 500 for held in setting.held.values())
    assert len(case.policies) == 4


def _short(network: dict[str, Any]) -> None:
    network["sources"]["orders"]["source"]["generate"]["phases"] = [["100ms", 100]]


BASE, QOS = "round-robin/superbox/20", "qos/superbox/20"
SHORT = Case("short", "unequal/unequal.yaml", 0.1, (BASE, QOS), _short)


def test_a_disturbed_policy_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {BASE: iter([0.5, 1.0]), QOS: iter([0.5, 0.7, 0.6])}
    real = Setting.run

    def run(self: Setting, engine: str, policy: str, *args: Any, **more: Any) -> dict[str, Any]:
        summary = real(self, engine, policy, *args, **more)
        return {**summary, PROCESSOR: next(shares[policy])} if engine == "local" else summary

    monkeypatch.setattr(Setting, "run", run)
    monkeypatch.setattr(Predictor, "model", lambda self, policy: MODEL)
    said: list[str] = []
    found = measure(SHORT, 3, said.append)
    assert [one.policy for one in found.predicted] == [one.policy for one in found.measured] == [BASE, QOS]
    assert found.disturbed == {QOS: 0.7}
    assert len([text for text in said if "for real" in text]) == 5
    assert all(ratio > 0 for ratio in (*found.ratios().values(), *found.ratios_at_speed().values(), *found.speeds))


def test_what_is_measured_takes_longer_on_a_slower_machine_and_what_is_said_does_not() -> None:
    boxes = {"u": box("s", "100us"), "f": {"op": "filter", "in": "s", "where": "a >= 0"}}
    mapping = network(boxes, {"o": "u", "p": "f"}, s=arriving(None, rate=500))
    costs = {"u": Constant(110e-6), "f": Constant(5e-6)}
    before = Model(costs, {"u": 1e-6, "f": 2e-6}, overheads=Overheads(scheduler=1e-5), like="local")
    made = slower(hw.load(mapping), before, 2.0)
    assert made.costs["u"].mean == pytest.approx(120e-6)
    assert made.costs["f"].mean == pytest.approx(10e-6)
    assert made.calls == {"u": 2e-6, "f": 4e-6}
    assert made.overheads == Overheads(scheduler=2e-5)
    assert made.like == "local"


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(predictions, "CASES", (SHORT,))
    monkeypatch.setattr(predictions, "QUIET", 2.0)  # no run is quiet enough
    code = main(["--json", str(tmp_path / "found.json"), "--tries", "1"])
    text = capsys.readouterr().out
    assert ("All within 25%" in text) == (code == 0)
    assert ("NOT KEPT" in text) == (code == 1)
    assert "Disturbed by others: short: qos/superbox/20 had a processor for " in text
    [found] = json.loads((tmp_path / "found.json").read_text())
    assert found["case"] == "short"
    assert set(found["disturbed"]) == set(SHORT.policies)
