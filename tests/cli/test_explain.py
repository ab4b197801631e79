"""``headway explain`` and ``--trace``: lines, summaries, and files that cannot be explained."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from headway.cli.arguments import Parser, UsageError, add_options
from headway.cli.explain import COMMAND, EPILOG, explain
from headway.cli.main import main
from headway.cli.run import COMMAND as RUN
from headway.clock import MILLISECOND
from headway.engines.reasons import Reason
from headway.engines.traces import Change, StepRecord, Trace
from headway.errors import InputError
from tests.cli.helpers import BORDER

BY_UTILITY = Reason("p", "largest utility", ("utility",), (0.5,), ((1, (0.25,)),))
ONLY = Reason("p", "the only one left", ("utility",), (0.25,))


def step(unit: int, begin: int, end: int, tuples: int, reason: Reason, preempted: bool = False) -> StepRecord:
    """Return a step from `begin` to `end`, in milliseconds."""
    return StepRecord(unit, 0, begin * MILLISECOND, end * MILLISECOND, tuples, (), reason, preempted, 1)


TRACE = Trace(
    "border",
    "slope-slack/box/1000",
    ("alarms", "counts", "pairs"),
    ("x",),
    0,
    (
        step(0, 0, 10, 100, BY_UTILITY),
        step(1, 10, 40, 2000, ONLY, preempted=True),
        step(0, 60, 70, 1, BY_UTILITY),
        step(0, 75, 85, 9, BY_UTILITY),
    ),
    (),
    0,
)
"""'alarms' works for 30 ms and waits 50 ms and 5 ms; 'counts' works for 30 ms; 'pairs' never ran."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the trace in a file."""
    TRACE.write(tmp_path / "run.json")
    return tmp_path / "run.json"


def parse(*argv: object) -> argparse.Namespace:
    parser = Parser(prog="headway explain", epilog=EPILOG)
    add_options(parser, COMMAND.groups)
    return parser.parse_args([str(word) for word in argv])


def shown(capsys: pytest.CaptureFixture[str], *argv: object) -> list[str]:
    capsys.readouterr()
    assert explain(parse(*argv)) == 0
    return capsys.readouterr().out.splitlines()


def test_a_line_for_each_step(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    assert shown(capsys, path) == [
        "network 'border', policy slope-slack/box/1000: 4 steps",
        "",
        "0.000 ms  worker 0  'alarms' on 100 tuples, 10 ms: largest utility; utility 0.5; before 'counts' "
        "(utility 0.25)",
        "10.000 ms  worker 0  'counts' on 2,000 tuples, 30 ms, preempted: the only one left; utility 0.25",
        "60.000 ms  worker 0  'alarms' on 1 tuple, 10 ms: largest utility; utility 0.5; before 'counts' (utility 0.25)",
        "75.000 ms  worker 0  'alarms' on 9 tuples, 10 ms: largest utility; utility 0.5; before 'counts' "
        "(utility 0.25)",
    ]


def test_the_first_steps_and_how_to_see_more(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    lines = shown(capsys, path, "--first", 3)
    assert len(lines) == 7
    assert lines[-1] == "1 more step; --first 4 shows all"
    assert shown(capsys, path, "--first", 1)[-1] == "3 more steps; --first 4 shows all"
    assert len(shown(capsys, path, "--first", 4)) == 6


def test_fifty_steps_unless_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    steps = tuple([step(0, at, at + 1, 1, ONLY) for at in range(60)])
    replace(TRACE, steps=steps).write(tmp_path / "long.json")
    lines = shown(capsys, tmp_path / "long.json")
    assert len([line for line in lines if "worker 0" in line]) == 50
    assert lines[-1] == "10 more steps; --first 60 shows all"


def test_one_unit(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    lines = shown(capsys, path, "--unit", "counts")
    assert [line.split()[0] for line in lines[2:]] == ["10.000"]
    lines = shown(capsys, path, "--unit", "alarms", "--first", 1)
    assert lines[-1] == "2 more steps; --first 3 shows all"
    assert len(shown(capsys, path, "--unit", "pairs")) == 2


def test_a_summary(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    lines = [line.split() for line in shown(capsys, path, "--summary")]
    assert ["unit", "steps", "tuples", "seconds", "share", "longest", "gap"] in lines
    assert ["alarms", "3", "110", "0.030", "50", "%", "50.0", "ms"] in lines
    assert ["counts", "1", "2,000", "0.030", "50", "%", "-"] in lines
    assert not [line for line in lines if line[:1] == ["pairs"]]
    assert lines.index(["largest", "utility", "3"]) < lines.index(["the", "only", "one", "left", "1"])
    assert lines[-1] == ["1", "step", "was", "preempted"]


def test_a_summary_of_one_unit(capsys: pytest.CaptureFixture[str], path: Path) -> None:
    lines = [line.split() for line in shown(capsys, path, "--summary", "--unit", "counts")]
    assert ["counts", "1", "2,000", "0.030", "50", "%", "-"] in lines
    assert not [line for line in lines if line[:1] in (["alarms"], ["largest"])]


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_a_recording_that_is_not_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...]
) -> None:
    replace(TRACE, left_out=1234).write(tmp_path / "part.json")
    last = shown(capsys, tmp_path / "part.json", *options)[-1]
    assert last == "the recording is incomplete: 1,234 later steps were left out, to save memory"


@pytest.mark.parametrize("options", [(), ("--summary",)])
def test_a_trace_without_steps(capsys: pytest.CaptureFixture[str], tmp_path: Path, options: tuple[str, ...]) -> None:
    replace(TRACE, steps=()).write(tmp_path / "none.json")
    assert shown(capsys, tmp_path / "none.json", *options)[0].endswith(": 0 steps")


def test_names_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = ("al\x1b[2Jarms", "counts", "pairs")
    replace(TRACE, units=names, network="b\nx").write(tmp_path / "odd.json")
    for options in ((), ("--summary",)):
        text = "".join(shown(capsys, tmp_path / "odd.json", *options))
        assert text.isprintable()
        assert "al\\x1b[2Jarms" in text


def change(moment: int, what: str, subject: str = "s -> b", kind: str = "shed") -> Change:
    """Return a change at a moment in milliseconds."""
    return Change(moment * MILLISECOND, kind, subject, what, "because")


CHANGES = (
    change(5, "inserted: keeps 54%"),
    change(10, "fifo -> chain", "all", "switch"),
    change(65, "keeps 60%"),
    change(100, "removed"),
)


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Return the trace with changes in a file."""
    replace(TRACE, changes=CHANGES).write(tmp_path / "changed.json")
    return tmp_path / "changed.json"


def moments(lines: list[str]) -> list[str]:
    return [f"{line.split()[0]} {line.split()[2]}" for line in lines if " ms  " in line]


def test_changes_stand_between_the_steps(capsys: pytest.CaptureFixture[str], changed: Path) -> None:
    lines = shown(capsys, changed)
    assert lines[0].endswith(": 4 steps"), "they are no steps"
    assert moments(lines) == [
        "0.000 worker",
        "5.000 shed",
        "10.000 switch",  # at the same moment, it comes before what it may have caused
        "10.000 worker",
        "60.000 worker",
        "65.000 shed",
        "75.000 worker",
        "100.000 shed",
    ]
    assert "5.000 ms  shed 's -> b': inserted: keeps 54%: because" in lines
    assert "10.000 ms  switch 'all': fifo -> chain: because" in lines


def test_changes_after_the_last_step_shown_are_not(capsys: pytest.CaptureFixture[str], changed: Path) -> None:
    lines = shown(capsys, changed, "--first", 2)
    assert moments(lines) == ["0.000 worker", "5.000 shed", "10.000 switch", "10.000 worker"]
    assert lines[-1] == "2 more steps; --first 4 shows all"


def test_changes_of_a_summary(capsys: pytest.CaptureFixture[str], changed: Path, path: Path) -> None:
    lines = shown(capsys, changed, "--summary")
    assert lines[-4:-2] == [
        "5.000 to 100.000 ms  shed ×3  's -> b': inserted: keeps 54%; 's -> b': keeps 60%; 's -> b': removed: because",
        "10.000 ms  switch 'all': fifo -> chain: because",
    ]
    assert lines[-1] == "1 step was preempted"
    assert moments(shown(capsys, path, "--summary")) == []


def test_one_reason_is_told_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    thirty = tuple([change(5, "inserted: keeps 54%", f"s -> b{at}") for at in range(30)])
    replace(TRACE, changes=thirty).write(tmp_path / "thirty.json")
    for options in ((), ("--summary",)):
        lines = [line for line in shown(capsys, tmp_path / "thirty.json", *options) if "because" in line]
        assert lines == [
            "5.000 ms  shed ×30  's -> b0'; 's -> b1'; 's -> b2'; and 27 more: inserted: keeps 54%: because"
        ]


def test_a_summary_has_a_bound(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    units = tuple([f"unit{at}" for at in range(300)])
    steps = tuple([step(at, at, at + 1, 1, ONLY) for at in range(300)])
    changes = tuple([Change(at * MILLISECOND, "shed", "s", "removed", f"reason {at}") for at in range(300)])
    replace(TRACE, units=units, steps=steps, changes=changes).write(tmp_path / "large.json")
    lines = shown(capsys, tmp_path / "large.json", "--summary")
    assert len(lines) < 70
    assert "… and 270 more units; --unit NAME shows one" in lines
    assert "… and 280 more changes, between the steps" in lines


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("iot.yaml", "# sensors\nnetwork: iot\nsources:\n  s: {schema: {a: int}}\noutputs: {o: {from: s}}\n"),
        ("iot.json", '{"network": "iot", "sources": {"s": {"schema": {"a": "int"}}}, "outputs": {"o": {"from": "s"}}}'),
    ],
)
def test_a_network_is_told_from_a_trace(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        explain(parse(path))
    assert str(raised.value) == (
        f"'{path}' is a network file, and explain reads a trace of a run; to record a trace: headway run {path} "
        "--trace run.json, then: headway explain run.json"
    )


def test_other_files_are_told_from_a_trace(tmp_path: Path) -> None:
    (tmp_path / "sum.json").write_text('{\n  "network": "n",\n  "engine": "local",\n  "tuples_in": 3\n}')
    with pytest.raises(InputError, match=r"'.*sum.json' is the summary of a run.*--trace run.json"):
        explain(parse(tmp_path / "sum.json"))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        InputError, match=r"x.csv' is not a trace that 'headway run --trace' wrote: it is not valid JSON$"
    ):
        explain(parse(tmp_path / "x.csv"))


def test_changes_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    odd = (Change(0, "shed", "s\x1b[2J", "re\nmoved", "be\x07cause"),)
    replace(TRACE, changes=odd).write(tmp_path / "odd.json")
    for options in ((), ("--summary",)):
        text = "".join(shown(capsys, tmp_path / "odd.json", *options))
        assert text.isprintable()
        assert "s\\x1b[2J" in text


def test_errors(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown unit 'alarm'; did you mean 'alarms'.*alarms, counts, pairs"):
        explain(parse(path, "--unit", "alarm"))
    with pytest.raises(InputError, match=r"there is no file .*x\.json"):
        explain(parse(tmp_path / "x.json"))
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(InputError, match="'headway run --trace' wrote"):
        explain(parse(tmp_path / "x.json"))
    with pytest.raises(UsageError, match="not allowed with"):
        parse(path, "--first", 3, "--summary")
    with pytest.raises(UsageError, match="whole number above 0"):
        parse(path, "--first", 0)


def test_help_teaches() -> None:
    assert "examples:\n" in EPILOG
    parser = Parser(prog="headway run")
    add_options(parser, RUN.groups)
    assert "ui.perfetto.dev" in parser.format_help()
    assert parser.parse_args(["net.yaml", "--trace", "run.json"]).trace == "run.json"
    assert parser.parse_args(["net.yaml"]).trace is None


@pytest.mark.parametrize(
    ("name", "said"),
    [(".", "is a directory"), ("nowhere/run.json", "does not exist"), ("-", "standard output")],
)
def test_a_path_is_checked_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("border.yaml").write_text(BORDER)
    assert main(["run", "border.yaml", "--engine", "local", "--trace", name]) == 2
    assert said in capsys.readouterr().err


def test_the_file_is_json_for_viewers(path: Path) -> None:
    assert [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"] == [
        "alarms",
        "counts",
        "alarms",
        "alarms",
    ]
