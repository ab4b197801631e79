"""``headway compare``: the table, the advice, the files, recorded runs, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import headway as hw
from headway.cli import compare
from headway.cli.compare import bytes_text
from headway.compare.predicting import Predictor
from headway.scheduling.schedule import HANDFUL
from tests.cli.helpers import BORDER, assert_one_error, call

CALLS = """network: calls
sources:
  calls:
    schema: {id: bigint}
    source: {generate: {rate: 1000, arrivals: poisson, count: 300, fields: {id: "i"}}}
boxes:
  check:  {op: universal, in: calls, cost: 0.2ms, selectivity: 0.1}
  charge: {op: universal, in: calls, cost: 1.2ms}
outputs:
  alarms: {from: check,  qos: {latency: [[0, 1], [0.02, 1], [0.05, 0]]}}
  bills:  {from: charge, qos: {latency: [[0, 1], [5, 1], [60, 0]]}, sink: bills.csv}
schedule: {model: {overheads: {call: 20us, scheduler: 20us}}}
"""
POLICIES = "round-robin/box/100,qos/box/20"


@pytest.fixture
def calls(folder: Path) -> Path:
    """Return a folder with a network whose costs are known."""
    (folder / "calls.yaml").write_text(CALLS)
    return folder


def test_policies_side_by_side(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", "calls.yaml", "--policies", POLICIES)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].split() == [
        *("policy", "utility", "worst", "output", "latency", "mean", "p99"),
        *("queued", "mean", "max", "results/s", "overhead"),
    ]
    assert [line.split()[0] for line in lines[2:4]] == POLICIES.split(",")
    assert lines[5].startswith("take qos/box/20: its results are worth most, ")
    assert lines[6] == "written: compare/compare.csv, .json, .png, .svg"
    assert outcome.err.splitlines() == [
        "headway: simulating round-robin/box/100",
        "headway: simulating qos/box/20",
        "headway: drawing",
    ]
    assert not (calls / "bills.csv").exists(), "results go nowhere"


def test_what_check_warns_of_is_said_once(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (calls / "calls.yaml").write_text(
        CALLS.replace("[[0, 1], [5, 1], [60, 0]]}", "[[0, 1], [5, 1], [60, 0]], loss: [[1, 1], [0, 0]]}")
    )
    outcome = call(capsys, "compare", "calls.yaml", "--policies", POLICIES)
    assert outcome.code == 0
    assert outcome.err.count("warning: output 'bills': loss: x is the per cent of tuples delivered") == 1


def test_the_files(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = call(capsys, "compare", "calls.yaml", "--policies", POLICIES, "--out", "new/folder")
    out = calls / "new" / "folder"
    assert {path.name for path in out.iterdir()} == {f"compare.{end}" for end in ("csv", "json", "png", "svg")}
    with (out / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["run"], row["policy"]) for row in rows] == [("predicted", one) for one in POLICIES.split(",")]
    assert float(rows[1]["utility"]) > float(rows[0]["utility"])
    told = json.loads((out / "compare.json").read_text())
    assert told["advice"]["predicted"]["policy"] == "qos/box/20"
    assert (told["holds"], told["network"], len(told["predicted"])) == (None, "calls", 2)
    assert (out / "compare.png").read_bytes().startswith(b"\x89PNG")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    again = call(capsys, "compare", "calls.yaml", "--policies", POLICIES, "--out", "new/folder")
    assert again.out == first.out
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before, "all of it repeats itself"


def test_without_a_list_a_handful_is_compared(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", "calls.yaml", "--seconds", "0.1")
    assert len(outcome.out.splitlines()) == 2 + len(HANDFUL) + 3


def test_without_a_model_costs_are_measured(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "out").mkdir()
    arguments = ("border.yaml", "--input", "positions=day.csv", "--rate", "positions=1000", "--out", "out")
    outcome = call(capsys, "compare", *arguments, "--policies", "fifo/box/10,round-robin/superbox")
    assert outcome.code == 0
    assert "note: costs were just measured on this machine\n" in outcome.out
    assert "headway: measuring fifo/box/10 for real, 1 s of the input\n" in outcome.err
    monkeypatch.setattr(Predictor, "_real", None)  # nobody measures
    summary = folder / "run.json"
    call(capsys, "run", *arguments[:5], "--engine", "local", "--summary", summary, "--quiet")
    modelled = call(capsys, "compare", *arguments, "--model", summary, "--policies", "fifo/box")
    assert modelled.code == 0
    assert "note" not in modelled.out


def test_for_real(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(
        capsys, "compare", "calls.yaml", "--engine", "local", "--policies", f"{POLICIES},threads", "--seconds", "0.2"
    )
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert (lines[0], lines[6]) == ("predicted", "measured")
    assert lines[7].endswith("predicted/measured latency")
    assert [line.split()[0] for line in lines[9:12]] == [*POLICIES.split(","), "threads"]
    assert lines[11].endswith("-"), "nobody predicts threads"
    [advice] = [line for line in lines if line.startswith("take ")]
    told = json.loads((calls / "compare" / "compare.json").read_text())
    assert told["holds"] is (told["advice"]["predicted"]["policy"] == told["advice"]["measured"]["policy"])
    expected = "Measured, the same policy is best: " if told["holds"] else "The prediction does not hold: it was for "
    assert expected in advice
    assert "running threads for real (3 of 3)" in outcome.err


def test_only_threads(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "compare", "calls.yaml", "--engine", "local", "--policies", "threads", "--seconds", "0.05")
    assert outcome.code == 0
    assert "take threads: it is the only one (measured)\n" in outcome.out


def test_a_busy_machine_is_told(
    calls: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "QUIET", 2.0)
    arguments = ("calls.yaml", "--policies", "fifo/box", "--seconds", "0.05", "--engine", "local")
    assert "note: other programs took up to " in call(capsys, "compare", *arguments).out


def test_a_recorded_run(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", "calls.yaml", "--engine", "sim", "--policy", "fifo/box/100", "--trace", "run.json", "--quiet")
    (calls / "calls.yaml").unlink()  # the trace alone is enough
    outcome = call(capsys, "compare", "run.json", "--policies", POLICIES)
    assert outcome.code == 0
    assert "note: a recorded run, 30" in outcome.out  # some 300 ms
    assert [line.split()[0] for line in outcome.out.splitlines()[2:4]] == POLICIES.split(",")
    assert "\ntake " in outcome.out
    assert "headway: timing plans of qos/box/20\n" in outcome.err


def test_a_recording_of_an_older_version(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "run", "calls.yaml", "--engine", "sim", "--trace", "run.json", "--quiet")
    whole = json.loads((calls / "run.json").read_text())
    del whole["otherData"]["description"]
    (calls / "run.json").write_text(json.dumps(whole))
    outcome = call(capsys, "compare", "run.json")
    assert_one_error(outcome, "'run.json': does not hold the network", "record it again", "--trace")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--engine", "local"), "--engine local is for a network file; 'run.json' is a recorded run"),
        (("--rate", "calls=5"), "--rate is for a network file"),
        (("--model", "m.yaml"), "--model is for a network file"),
    ],
)
def test_what_a_recorded_run_has_of_its_own(
    calls: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: str
) -> None:
    (calls / "run.json").write_text('{"displayTimeUnit": "ms", "otherData": {}, "traceEvents": []}')
    assert_one_error(call(capsys, "compare", "run.json", *options), expected)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("calls.yaml", "--policies", "qos,nonsense"), ("unknown policy 'nonsense'", "choices: bucketed, chain")),
        (("calls.yaml", "--policies", "qos/bax"), ("'bax' is not a unit (box, superbox",)),
        (("calls.yaml", "--policies", "qos,qos"), ("'qos' is named twice",)),
        (("calls.yaml", "--policies", "threads"), ("'threads'", "--engine local")),
        (("calls.yaml", "--engine", "spork"), ("unknown engine 'spork'", "local, sim")),
        (
            ("calls.yaml", "--engine", "spark"),
            ("compared for the engine local only", "headway run FILE --engine spark --policy P --summary"),
        ),
        (("calls.yaml", "--seconds", "0"), ("--seconds: expected a number of seconds above 0",)),
        (("calls.yaml", "--seconds", "1e-9"), ("no tuple arrives within", "nothing to compare")),
        (("calls.yaml", "--input", "x=day.csv"), ("--input: unknown source 'x'", "calls")),
        (("calls.yaml", "--rate", "call=5"), ("--rate: unknown source 'call'", "did you mean 'calls'")),
        (("calls.yaml", "--model", "none.yaml"), ("model: none.yaml: cannot be read",)),
        (("calls.yaml", "--model", "wrong.yaml"), ("model: costs: unknown box 'chek'", "check")),
        (("calls.yaml", "--out", "calls.yaml"), ("--out: 'calls.yaml' is a file",)),
        (("calls.yaml", "--out", "calls.yaml/x"), ("calls.yaml' is a file",)),
        (("none.yaml",), ("no such file: none.yaml",)),
        (("border.yaml",), ("source 'positions' has no input",)),
        (("broken.json",), ("broken.json",)),
        ((), ("FILE", "headway compare --help")),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(
    calls: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    (calls / "wrong.yaml").write_text("costs: {chek: 1ms}\n")
    (calls / "broken.json").write_text('{"traceEvents": [')
    assert_one_error(call(capsys, "compare", *arguments), *expected)
    assert not (calls / "compare").exists()


def test_a_network_in_json_is_no_trace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "border.json").write_text(json.dumps(hw.load(BORDER).to_mapping()))
    outcome = call(capsys, "compare", "border.json", "--input", "positions=day.csv", "--policies", "fifo")
    assert outcome.code == 0


def test_without_graphs_nothing_is_worth_anything(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = hw.load(CALLS).to_mapping()
    for output in mapping["outputs"].values():
        del output["qos"]
    (calls / "plain.yaml").write_text(json.dumps(mapping))
    outcome = call(capsys, "compare", "plain.yaml", "--policies", POLICIES)
    assert "no output says what its results are worth; it has the lowest mean latency" in outcome.out
    assert outcome.out.splitlines()[2].split()[1:3] == ["-", "-"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1234, "1.23 kB"), (5_600_000, "5.6 MB"), (2e9, "2 GB")],
)
def test_bytes(number: float | None, expected: str) -> None:
    assert bytes_text(number) == expected
