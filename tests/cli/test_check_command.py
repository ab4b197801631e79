"""``headway check``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bad_networks.cases import CASES, Bad
from tests.cli.helpers import BORDER, assert_one_error, call

FUNCTIONS = """
import headway as hw

@hw.function("cli_half", args=["int"], returns="double")
def half(x):
    return x / 2
"""


def test_schemas_of_all_arcs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "check", "border.yaml")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.splitlines()[0] == "network 'border-watch' is well formed: 1 source, 4 boxes, 2 outputs"
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "positions source across sid int, time bigint, pos int" in lines
    assert "across.else filter - sid int, time bigint, pos int" in lines
    assert "crowded.2 filter output pairs time bigint, n bigint" in lines
    assert "ratio map output alarms time bigint, n bigint, ratio double" in lines


def test_mermaid_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "check", "border.yaml", "--mermaid")
    assert outcome.code == 0
    assert outcome.out.startswith("flowchart LR\n")
    assert "border-watch" not in outcome.out


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(call(capsys, "check", "border.yaml", "--json").out)
    assert found["network"] == "border-watch"
    assert found["arcs"]["ratio"] == {"time": "bigint", "n": "bigint", "ratio": "double"}
    assert found["outputs"] == {"alarms": "ratio", "pairs": "crowded.2"}
    assert found["boxes"]["counts"] == "aggregate"
    assert found["warnings"] == []


def test_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = BORDER.replace("pos: int}\n", "pos: int}\n    source: tomorrow.csv\n")
    text = text.replace("boxes:\n", 'boxes:\n  spare: {op: filter, in: positions, where: "pos = 1"}\n')
    (folder / "b.yaml").write_text(text + "schedule: {engine: warp}\n")
    outcome = call(capsys, "check", "b.yaml")
    assert outcome.code == 0
    warnings = [line for line in outcome.out.splitlines() if line.startswith("warning: ")]
    assert any("'spare'" in line for line in warnings)
    assert any("tomorrow.csv" in line for line in warnings)
    assert any("'warp'" in line and "local" in line for line in warnings)


def test_functions_of_a_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cli_mine.py").write_text(FUNCTIONS)
    (folder / "f.yaml").write_text(BORDER.replace('"pos >= 30"', '"cli_half(pos) >= 15"'))
    assert_one_error(call(capsys, "check", "f.yaml"), "box 'across'", "cli_half")
    assert call(capsys, "check", "f.yaml", "--functions", "cli_mine").code == 0


def test_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.yaml").write_text(
        "network: t\nsources: {s: {schema: {sid: int}}}\n"
        "boxes: {j: {op: join, in: [s, {table: people}], on: left.sid = right.sid}}\noutputs: {o: {from: j}}\n"
    )
    (folder / "people.csv").write_text("sid,name\n1,Ann\n")
    assert_one_error(call(capsys, "check", "t.yaml"), "box 'j'", "people")
    outcome = call(capsys, "check", "t.yaml", "--table", "people=people.csv")
    assert outcome.code == 0
    assert "sid bigint, name string" in outcome.out
    assert_one_error(
        call(capsys, "check", "t.yaml", "--table", "poeple=people.csv"), "'poeple'", "did you mean 'people'"
    )
    assert_one_error(call(capsys, "check", "t.yaml", "--table", "people=people.txt"), "people.txt", ".csv")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("pos: int}\n", "pos: int}\n    source: {csvv: x.csv}\n", ("source 'positions'", "csvv", "did you mean 'csv'")),
        ("pos: int}\n", "pos: int}\n    source: x.txt\n", ("source 'positions'", "x.txt", ".parquet")),
        ("pos: int}\n", "pos: int}\n    source: {generate: {fields: {sid: 1}}}\n", ("'positions'", "'time'")),
        ("pairs: {", "pairs: {sink: x.doc, ", ("output 'pairs'", "x.doc", ".jsonl")),
        ("outputs:", "schedule: {policy: round-robbin}\noutputs:", ("round-robbin", "did you mean 'round-robin'")),
    ],
)
def test_connectors_and_schedule(
    folder: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: tuple[str, ...]
) -> None:
    (folder / "bad.yaml").write_text(BORDER.replace(old, new))
    assert_one_error(call(capsys, "check", "bad.yaml"), *expected)


@pytest.mark.parametrize("bad", CASES, ids=[case.id for case in CASES])
def test_bad_networks(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: Bad) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(bad.text)
    outcome = call(capsys, "check", path)
    assert_one_error(outcome, *bad.expected)
    assert outcome.out == ""


@pytest.mark.parametrize("bad", CASES[::7], ids=[case.id for case in CASES[::7]])
def test_bad_networks_do_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: Bad) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(bad.text)
    assert_one_error(call(capsys, "run", path), *bad.expected)
