"""``headway run``: data in, data out, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from tests.cli.helpers import ALARMS, BORDER, LOCAL, ROWS, Outcome, assert_one_error, call, spawn, write_rows

DAY = ("--input", "positions=day.csv")


def run(capsys: pytest.CaptureFixture[str], *argv: object) -> Outcome:
    return call(capsys, "run", "border.yaml", *LOCAL, *DAY, *argv)


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "--output", "alarms=a.jsonl", "--output", "pairs=p.parquet")
    assert (outcome.code, outcome.err) == (0, "")
    assert lines((folder / "a.jsonl").read_text()) == ALARMS
    assert pyarrow.parquet.read_table(folder / "p.parquet").to_pydict() == {"time": [1, 4], "n": [2, 2]}


@pytest.mark.parametrize("policy", ["round-robin/box", "round-robin/superbox", "round-robin/superbox/mc/2"])
@pytest.mark.parametrize("train", ["1", "1000"])
def test_ways_to_run(folder: Path, capsys: pytest.CaptureFixture[str], policy: str, train: str) -> None:
    how = ("--policy", policy, "--train", train, "--workers", "2", "--memory", "64k")
    assert run(capsys, *how, "--output", "alarms=a.jsonl").code == 0
    assert lines((folder / "a.jsonl").read_text()) == ALARMS


def test_summary_and_previews_on_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.index("output 'alarms': 3 tuples") < outcome.out.index("output 'pairs': 2 tuples")
    assert outcome.out.index("output 'pairs'") < outcome.out.index("network 'border-watch'")
    assert f"{len(ROWS)} tuples in, 5 out" in outcome.out
    assert "division by zero" in outcome.out


def test_a_preview_is_cut(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(folder / "day.csv", [(sid, time, 40) for time in range(25) for sid in range(2)])
    outcome = run(capsys)
    assert "output 'alarms': 0 tuples" in outcome.out
    assert "output 'pairs': 25 tuples" in outcome.out
    assert "… and 15 more; --output pairs=PATH" in outcome.out
    table = outcome.out.partition("output 'pairs': 25 tuples\n")[2].partition("…")[0].splitlines()
    assert len(table) == 2 + 10


def test_standard_output_has_tuples_only(folder: Path) -> None:
    outcome = spawn(folder, "run", "border.yaml", *LOCAL, *DAY, "--output", "alarms=-")
    assert outcome.code == 0
    assert lines(outcome.out) == ALARMS
    assert "network 'border-watch'" in outcome.err
    assert "output 'pairs': 2 tuples" in outcome.err


def test_standard_input(folder: Path) -> None:
    rows = "".join(json.dumps({"sid": sid, "time": time, "pos": pos}) + "\n" for sid, time, pos in ROWS)
    outcome = spawn(
        folder, "run", "border.yaml", *LOCAL, "--input", "positions=-", "--output", "alarms=-", "--quiet", stdin=rows
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert lines(outcome.out) == ALARMS


def test_quiet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--quiet", "--summary", "s.json") == (0, "", "")
    assert json.loads((folder / "s.json").read_text())["tuples_in"] == len(ROWS)


def test_files_named_in_the_network(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = folder / "inner"
    inner.mkdir()
    text = BORDER.replace("pos: int}\n", "pos: int}\n    source: here.csv\n")
    (inner / "n.yaml").write_text(text.replace("pairs: {", "pairs: {sink: pairs.csv, "))
    write_rows(inner / "here.csv", ROWS)
    outcome = call(capsys, "run", "inner/n.yaml", *LOCAL, "--output", "alarms=alarms.csv")
    assert outcome.code == 0
    assert "output 'pairs'" not in outcome.out  # it has somewhere to go
    assert (inner / "pairs.csv").read_text() == "time,n\n1,2\n4,2\n"
    assert (folder / "alarms.csv").exists()


def test_rates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "--rate", "positions=100", "--summary", "s.json")
    assert outcome.code == 0
    assert json.loads((folder / "s.json").read_text())["seconds"] >= 0.9 * (len(ROWS) - 1) / 100


def test_dead_letters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "day.csv").open("a") as file:
        file.write("1,2,three\n")
    outcome = run(capsys, "--dead-letters", "dead.jsonl")
    assert outcome.code == 0
    assert "malformed rows: source 'positions' 1" in outcome.out
    letters = {letter["box"]: letter for letter in lines((folder / "dead.jsonl").read_text())}
    assert set(letters) == {"positions", "ratio"}
    assert f"line {len(ROWS) + 2}" in letters["positions"]["where"]
    assert json.loads(letters["ratio"]["tuple"])["n"] == 4


def test_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_one_error(run(capsys, "--strict", "--output", "pairs=p.csv"), "box 'ratio'", "division by zero")
    assert not (folder / "p.csv").exists()


def test_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.yaml").write_text(
        "network: t\nsources: {s: {schema: {sid: int, time: bigint, pos: int}}}\n"
        "boxes: {j: {op: join, in: [s, {table: people}], on: left.sid = right.sid}}\noutputs: {o: {from: j}}\n"
    )
    (folder / "people.csv").write_text("sid,name\n4,Ann\n")
    argv = ("run", "t.yaml", *LOCAL, "--input", "s=day.csv", "--table", "people=people.csv", "--output", "o=o.jsonl")
    assert call(capsys, *argv).code == 0
    assert [row["name"] for row in lines((folder / "o.jsonl").read_text())] == ["Ann"]


def test_nothing_in_nothing_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(folder / "day.csv", [])
    outcome = run(capsys, "--output", "alarms=a.csv", "--summary", "s.json")
    assert outcome.code == 0
    assert (folder / "a.csv").read_text() == "time,n,ratio\n"
    assert json.loads((folder / "s.json").read_text())["outputs"]["alarms"]["latency"]["mean"] is None


def test_data_cannot_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "n.yaml").write_text("network: n\nsources: {s: {schema: {a: string}}}\noutputs: {o: {from: s}}\n")
    (folder / "in.jsonl").write_text(json.dumps({"a": "\x1b[2J\nred"}) + "\n{\x1b[2J}\n")
    outcome = call(capsys, "run", "n.yaml", *LOCAL, "--input", "s=in.jsonl")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert r"\x1b[2J\nred" in outcome.out


def test_the_old_output_stays_when_a_run_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").write_text("old\n")
    assert run(capsys, "--strict", "--output", "alarms=a.csv").code == 2
    assert (folder / "a.csv").read_text() == "old\n"
    assert not list(folder.glob(".*partial"))


# Shedding and adaptive layers

LOADED = """network: loaded
sources:
  s:
    schema: {a: bigint, v: double}
    source: {generate: {phases: [[1s, 50], [3s, 200], [6s, 50]], fields: {a: {sequence: [0, 1]}, v: {uniform: [0, 9]}}}}
boxes:
  x: {op: universal, in: s, cost: 7ms}
  y: {op: universal, in: s, cost: 3ms}
outputs:
  charts: {from: x, qos: {latency: [[0, 1], [1, 1], [2, 0]], loss: [[100, 1], [0, 0.5]]}}
  alarms: {from: y, qos: {latency: [[0, 1], [1, 1], [2, 0]]}}
"""
"""950 tuples; for three seconds twice as many as it can do."""


def simulate(capsys: pytest.CaptureFixture[str], *argv: object) -> Outcome:
    Path("loaded.yaml").write_text(LOADED)
    how = ("--engine", "sim", "--policy", "round-robin/box/10", "--summary", "s.json")
    return call(capsys, "run", "loaded.yaml", *how, *argv)


def told(folder: Path) -> Any:
    return json.loads((folder / "s.json").read_text())


def test_an_overload_is_told_and_what_helps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = simulate(capsys)
    assert outcome.code == 0
    assert "overloaded 1 time, for " in outcome.out
    assert "--shed on" in outcome.out
    assert "dropped tuples" not in outcome.out
    assert told(folder)["outputs"]["charts"]["tuples"] == 950


@pytest.mark.parametrize("how", ["on", "loss", "{most: 0.9, headroom: 0.8}", "{outputs: {charts: 0.9}}"])
def test_shedding(folder: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    outcome = simulate(capsys, "--shed", how)
    assert outcome.code == 0
    found = told(folder)["outputs"]
    assert (found["alarms"]["tuples"], found["alarms"]["shed"]) == (950, 0)
    assert found["charts"]["shed"] > 100
    assert found["charts"]["tuples"] + found["charts"]["shed"] == 950
    assert f"dropped tuples: random {found['charts']['shed']}" in outcome.out
    assert "s -> x: inserted: keeps " in outcome.out
    (row,) = [line.split() for line in outcome.out.splitlines() if line.startswith("charts ")]
    assert str(found["charts"]["shed"]) in row


@pytest.mark.parametrize("how", ["off", "uniform"])
def test_other_ways_to_shed(folder: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    assert simulate(capsys, "--shed", how).code == 0
    assert told(folder)["shedding"]["strategy"] == (None if how == "off" else how)


@pytest.mark.parametrize("how", ["amos", "optimizer", "{use: amos, delay: 500ms, policies: [fifo, chain]}"])
def test_adaptive_layers(folder: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    outcome = simulate(capsys, "--adaptive", how)
    assert outcome.code == 0
    found = told(folder)
    layer = "optimizer" if how == "optimizer" else "amos"
    assert found["adaptive"]["layer"] == layer
    assert found["policy"].startswith(f"{layer}/box")
    assert f"{layer} switched {found['adaptive']['switches']} time" in outcome.out
    assert found["outputs"]["alarms"]["tuples"] == 950
    if "chain" in how:
        assert "all: fifo -> chain: chain has its first turn" in outcome.out


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--shed", "sometimes", ["'sometimes'", "loss", "uniform", "on", "off"]),
        ("--shed", "los", ["did you mean 'loss'"]),
        ("--shed", "{most: 2}", ["shed: most: must be a number from 0 to 1, not 2"]),
        ("--shed", "{limit: 2}", ["unknown key 'limit'", "headroom", "in_all", "most", "outputs"]),
        ("--shed", "{outputs: {pictures: 0.5}}", ["unknown output 'pictures'", "charts", "alarms"]),
        ("--shed", "{most: ", ["--shed"]),
        ("--adaptive", "amoss", ["unknown adaptive layer 'amoss'", "did you mean 'amos'", "optimizer"]),
        ("--adaptive", "{use: amos, delays: 1s}", ["amos: unknown setting 'delays'", "did you mean 'delay'"]),
        ("--adaptive", "{objectives: latency}", ["adaptive: must be a layer (amos, optimizer)"]),
        ("--adaptive", "{use: amos, objectives: {speed: 1}}", ["unknown metric 'speed'", "latency", "throughput"]),
        ("--adaptive", "{use: amos, policies: [best]}", ["unknown policy 'best'", "round-robin"]),
        ("--adaptive", "{use: optimizer, queries: {pictures: {}}}", ["unknown output 'pictures'", "alarms, charts"]),
    ],
)
def test_bad_ways_to_shed_and_adapt(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, expected: list[str]
) -> None:
    assert_one_error(simulate(capsys, option, value), *expected)
    assert not (folder / "s.json").exists()


def test_shedding_needs_a_scheduler(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_one_error(run(capsys, "--policy", "threads", "--shed", "on"), "'threads' runs without a scheduler")


WARNED = """network: warned
sources: {{s: {{schema: {{path: string}}}}}}
boxes: {{f: {{op: filter, in: s, where: "path > 500"}}{0}}}
outputs: {{o: {{from: f}}}}
"""


def test_what_check_warns_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody heard of it who did not call check: all tuples became dead letters."""
    (folder / "n.yaml").write_text(WARNED.format(""))
    (folder / "s.csv").write_text("path\n/a\n/b\n")
    (line,) = [one for one in call(capsys, "check", "n.yaml").out.splitlines() if one.startswith("warning: ")]
    assert "'path > 500': path is a string and is cast to a number" in line
    argv = ("run", "n.yaml", *LOCAL, "--input", "s=s.csv")
    outcome = call(capsys, *argv)
    assert (outcome.code, outcome.err) == (0, line + "\n")
    assert "dead letters: 2" in outcome.out
    assert call(capsys, *argv, "--quiet").err == ""


def test_many_warnings_are_cut(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unread = "".join(f", u{at}: {{op: map, in: s, select: path}}" for at in range(30))
    (folder / "n.yaml").write_text(WARNED.format(unread))
    (folder / "s.csv").write_text("path\n")
    said = call(capsys, "run", "n.yaml", *LOCAL, "--input", "s=s.csv").err.splitlines()
    assert len(said) == 11
    assert said[-1] == "… and 21 more warnings; 'headway check' shows all"
