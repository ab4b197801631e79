"""``headway check --engine spark``: how a network is cut, and why, without starting Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.check import default_shards
from tests.cli.helpers import BORDER, Outcome, assert_one_error, call, environment

WIDE = """network: wide
sources:
  s: {schema: {sid: int, time: bigint, pos: int}}
boxes:
  far:    {op: filter, in: s, where: "pos >= 30"}
  twice:  {op: map, in: s, select: "sid, pos * 2 as pos"}
  counts: {op: aggregate, in: far, select: "count(*) as n", order: {on: time, by: [sid]}, size: 10}
  means:  {op: aggregate, in: s, select: "avg(pos) as mean", order: {on: time}, size: 10}
outputs:
  far:    {from: far, qos: {latency: [[0, 1], [1, 1], [2, 0]]}}
  twice:  {from: twice, qos: {latency: [[0, 1], [5, 1], [9, 0]]}}
  counts: {from: counts}
  means:  {from: means}
"""


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "wide.yaml"
    path.write_text(WIDE)
    return path


def check(capsys: pytest.CaptureFixture[str], *argv: object) -> Outcome:
    return call(capsys, "check", "wide.yaml", "--engine", "spark", *argv)


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_text(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = check(capsys, "--shards", 2)
    assert (outcome.code, outcome.err) == (0, "")
    found = rows(outcome.out)
    assert found[0].startswith("network 'wide' is well formed")
    assert "on Spark: 3 streaming queries, 2 shards" in found
    assert "1 far s good until 1 s, reading s" in found
    assert "3 counts, means s no latency graph, reading s" in found
    assert "1 far in the front needs neither state nor order" in found
    assert "3 counts spread over 2 by sid partitions told apart by sid" in found
    assert any(line.startswith("3 means shard 1 of 2 keeps state") for line in found)
    assert "unit 1 is run by Spark's own operations" in found
    assert "unit 2 is run by kernels (box 'twice': 'pos * 2' may overflow)" in found
    assert any(line.startswith("unit 3 is run by kernels (") for line in found)


def test_only_when_asked(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "on Spark" not in call(capsys, "check", "wide.yaml").out
    assert "on Spark" not in call(capsys, "check", "wide.yaml", "--engine", "local").out
    assert "spark" not in json.loads(call(capsys, "check", "wide.yaml", "--json").out)


def spark(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(check(capsys, "--json", *argv).out)["spark"]
    return made


def test_json(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = spark(capsys, "--shards", 2)
    assert made["shards"] == 2
    assert [unit["outputs"] for unit in made["units"]] == [["far"], ["twice"], ["counts", "means"]]
    assert [unit["native"] for unit in made["units"]] == [True, False, False]
    assert made["units"][0]["why_kernels"] is None
    assert made["units"][2]["boxes"]["counts"]["by"] == ["sid"]
    assert made["units"][2]["boxes"]["means"]["runs"] == "shard"


def test_overrides(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark(capsys)["shards"] == default_shards()
    assert len(spark(capsys, "--units", "one")["units"]) == 1
    assert len(spark(capsys, "--units", "output")["units"]) == 4
    for argv in (("--spread", "none"), ("--shards", 1)):
        boxes = spark(capsys, "--shards", 4, *argv)["units"][2]["boxes"]
        assert boxes["counts"]["runs"] == "shard"
    assert spark(capsys, "--front", "kernels")["units"][0]["why_kernels"] == "as asked"
    assert_one_error(check(capsys, "--front", "native"), "schedule: front", "'twice' cannot be native", "overflow")
    wide.write_text(WIDE + "schedule: {units: [[far, means], [twice]], spread: none, shards: 3}\n")
    made = spark(capsys)
    assert [unit["outputs"] for unit in made["units"]] == [["far", "means"], ["twice"], ["counts"]]
    assert made["shards"] == 3
    assert made["units"][2]["boxes"]["counts"]["runs"] == "shard"
    again = spark(capsys, "--shards", 2, "--spread", "counts")
    assert again["units"][2]["boxes"]["counts"]["runs"] == "spread"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--engine", "spark", "--spread", "means"), ("'means'", "counts")),
        (("--engine", "spark", "--spread", "count"), ("did you mean 'counts'",)),
        (("--engine", "sprak"), ("unknown engine 'sprak'", "did you mean 'spark'")),
        (("--engine", "local", "--shards", "2"), ("--shards", "'spark'", "'local'")),
        (("--shards", "2"), ("--shards", "--engine spark")),
    ],
)
def test_mistakes(
    wide: Path, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    outcome = call(capsys, "check", "wide.yaml", *argv)
    assert_one_error(outcome, *expected)
    assert outcome.out == ""


def test_a_cut_that_cannot_be_is_found_without_asking_for_it(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide.write_text(WIDE + "schedule: {spread: [means]}\n")
    assert_one_error(call(capsys, "check", "wide.yaml"), "schedule: spread", "'means'", "counts")
    assert call(capsys, "check", "wide.yaml", "--engine", "local").code == 0


def test_no_spark_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "border.yaml").write_text(BORDER)
    program = (
        "import sys; from headway.cli.main import main; code = main(['check', 'border.yaml', '--engine', 'spark']); "
        "sys.exit(code or 'pyspark' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
