"""Predictions against measurements: what is promised, and that the benchmark runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import predictions
from benchmarks.predictions import CASES, Case, Outcome, check, main, measure, prepared, table
from headway.experiments.comparing import Figures
from headway.experiments.predicting import PROCESSOR, Predictor, Setting

PLAIN = Figures("a", 0.5, 0.2, "o", 0.1, 0.5, 1000.0, 2000.0, 100.0, 0.1, 10)
OTHER = replace(PLAIN, policy="b", utility=0.9, latency=0.2)


def outcome(*measured: Figures) -> Outcome:
    return Outcome("case", (PLAIN, OTHER), measured)


def test_promises() -> None:
    assert check([outcome(PLAIN, OTHER)]) == []
    assert check([outcome(replace(PLAIN, latency=0.08), replace(OTHER, latency=0.16))]) == []  # by a quarter
    assert check([outcome(replace(PLAIN, latency=0.07), OTHER)]) == [
        "case: a: the predicted latency is 1.43 times the measured one"
    ]
    assert check([outcome(replace(PLAIN, latency=0.2), OTHER)]) == [
        "case: a: the predicted latency is 0.50 times the measured one"
    ]
    assert check([outcome(replace(PLAIN, utility=1.0), OTHER)]) == ["case: b was predicted to be best, and a is"]


def test_the_table_says_by_how_much_the_best_is_better() -> None:
    text = table(outcome(PLAIN, replace(OTHER, latency=0.25)))
    assert "| b | 200.0 | 250.0 | 0.80 | 0.900 | 0.900 |" in text
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


def test_medians_count_of_runs_that_were_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {BASE: iter([0.5, 1.0, 0.96, 0.97]), QOS: iter([0.5, 0.7, 0.6, 0.3])}
    latencies = {BASE: iter([5.0, 0.3, 0.1, 0.2]), QOS: iter([0.9, 0.5, 0.1, 0.3])}
    expected = iter([3.0, 4.0, 1.0, 2.0, 2.0, 3.0, 5.0, 1.0])
    real = Setting.run

    def late(summary: dict[str, Any], seconds: float) -> dict[str, Any]:
        outputs = {
            name: {**one, "latency": {**one["latency"], "mean": seconds}} for name, one in summary["outputs"].items()
        }
        return {**summary, "outputs": outputs}

    def run(self: Setting, engine: str, policy: str, *args: Any, **more: Any) -> dict[str, Any]:
        summary = late(real(self, "sim", policy), next(latencies[policy]))
        return {**summary, PROCESSOR: next(shares[policy])}

    monkeypatch.setattr(Setting, "run", run)
    monkeypatch.setattr(
        Predictor, "predict", lambda self, policy: late(real(prepared(SHORT), "sim", policy), next(expected))
    )
    said: list[str] = []
    found = measure(SHORT, 4, said.append)
    assert [one.policy for one in found.predicted] == [one.policy for one in found.measured] == [BASE, QOS]
    assert [one.latency for one in found.measured] == pytest.approx([0.2, 0.5])
    assert [one.latency for one in found.predicted] == pytest.approx([2.0, 2.0])
    assert found.disturbed == {QOS: 0.7}
    assert said[:2] == [f"short (1 of 4): running {policy} for real" for policy in (BASE, QOS)]
    assert len(said) == 8


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(predictions, "CASES", (SHORT,))
    monkeypatch.setattr(predictions, "QUIET", 2.0)  # no run is quiet enough
    code = main(["--json", str(tmp_path / "found.json"), "--rounds", "1"])
    text = capsys.readouterr().out
    assert ("All within 25%" in text) == (code == 0)
    assert ("NOT KEPT" in text) == (code == 1)
    assert "Disturbed by others: short: qos/superbox/20 had a processor for " in text
    [found] = json.loads((tmp_path / "found.json").read_text())
    assert found["case"] == "short"
    assert set(found["disturbed"]) == set(SHORT.policies)
