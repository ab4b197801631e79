"""Predictions against measurements: what is promised, and that the benchmark runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import predictions
from benchmarks.predictions import CASES, Case, Outcome, Quiet, check, main, measure, prepared, table
from headway.experiments.comparing import Figures
from headway.experiments.predicting import PROCESSOR, Setting

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
    assert not setting.disturbed


def test_a_disturbed_run_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.5, 0.7, 0.6, 0.5, 0.97])
    monkeypatch.setattr(Setting, "run", lambda self, *args, **more: {PROCESSOR: next(shares)})
    setting = Quiet(prepared(CASES[0]).network, {})
    assert setting.run("local", "fifo")[PROCESSOR] == 0.7
    assert setting.run("local", "qos")[PROCESSOR] == 0.97
    assert setting.disturbed == ["fifo had a processor for 70% of its time"]


def _short(network: dict[str, Any]) -> None:
    network["sources"]["orders"]["source"]["generate"]["phases"] = [["100ms", 100]]


SHORT = Case("short", "unequal/unequal.yaml", 0.1, ("round-robin/superbox/20", "qos/superbox/20"), _short)


def test_it_measures_and_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "QUIET", 0.0)
    said: list[str] = []
    found = measure(SHORT, 3, said.append)
    assert [one.policy for one in found.predicted] == [one.policy for one in found.measured] == list(SHORT.policies)
    assert len([text for text in said if text.startswith("short: ")]) == 6
    assert all(ratio > 0 for ratio in found.ratios().values())


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(predictions, "CASES", (SHORT,))
    monkeypatch.setattr(predictions, "QUIET", 2.0)  # no run is quiet enough
    monkeypatch.setattr(predictions, "TRIES", 1)
    code = main(["--json", str(tmp_path / "found.json")])
    text = capsys.readouterr().out
    assert ("All within 25%" in text) == (code == 0)
    assert ("NOT KEPT" in text) == (code == 1)
    assert "Disturbed by other programs: short: qos/superbox/20 had a processor for " in text
    [found] = json.loads((tmp_path / "found.json").read_text())
    assert found["case"] == "short"
