"""Help, versions, and arguments that make no command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headway
from tests.cli.helpers import assert_one_error, call, spawn


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"headway {headway.__version__}\n", "")


@pytest.mark.parametrize("command", [(), ("check",), ("run",), ("policies",)])
def test_help_has_examples(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    outcome = call(capsys, *command, "--help")
    assert outcome.code == 0
    assert "examples:\n" in outcome.out
    assert outcome.err == ""


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = call(capsys, "run", "--help").out
    listed = text.partition("data:\n")[2]
    assert listed
    data = ["--input", "--output", "--rate", "--table", "--functions", "--strict", "--dead-letters"]
    schedule = ["--engine", "--policy", "--train", "--workers", "--memory"]
    spark = ["--master", "--state", "--keep", "--restart", "--units", "--spread", "--shards", "--front", "--conf"]
    for option in [*data, *schedule, *spark, "--summary", "--quiet"]:
        assert f"\n  {option}" in f"\n{listed}", option


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), ("COMMAND", "headway --help")),
        (("rnu",), ("unknown command 'rnu'", "did you mean 'run'", "explain, policies, prepare, run")),
        (("run",), ("FILE", "headway run --help")),
        (("check",), ("FILE", "headway check --help")),
        (("run", "x.yaml", "--polcy", "y"), ("'--polcy'", "did you mean '--policy'")),
        (("run", "x.yaml", "--sum=y"), ("'--sum'", "--summary")),
        (("check", "x.yaml", "y.yaml"), ("unexpected argument", "'y.yaml'")),
        (("check", "x.yaml", "--json", "--mermaid"), ("--mermaid", "--json", "not allowed")),
        (("--verbose", "policies"), ("'--verbose'",)),
        (("policies", "chian"), ("unknown policy 'chian'", "did you mean 'chain'")),
        (("policies", "chain", "extra"), ("'extra'",)),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], expected: tuple[str, ...]) -> None:
    outcome = call(capsys, *argv)
    assert_one_error(outcome, *expected)
    assert outcome.out == ""


def test_as_a_module(folder: Path) -> None:
    outcome = spawn(folder, "check", "border.yaml")
    assert outcome.code == 0
    assert "4 boxes" in outcome.out
    assert_one_error(spawn(folder, "check", "nowhere.yaml"), "nowhere.yaml")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_crash(tmp_path: Path, closed: str) -> None:
    """Daemons and cron have none."""
    (tmp_path / "n.yaml").write_text(
        "network: n\nsources: {s: {schema: {a: int}, source: s.csv}}\noutputs: {o: {from: s, sink: o.csv}}\n"
    )
    (tmp_path / "s.csv").write_text("a\n1\n2\n")
    command = f"{sys.executable} -m headway run n.yaml --engine local {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "o.csv").read_text() == "a\n1\n2\n"


def test_policies(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "policies")
    assert outcome.code == 0
    lines = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
    for name in headway.policies():
        assert name in lines


def test_a_bug_keeps_its_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.cli import arguments, main

    def broken(*_: object, **more: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(arguments, "load", broken)
    with pytest.raises(ZeroDivisionError):
        main.main(["check", "border.yaml"])


def test_interrupted_before_it_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from headway.cli import arguments

    def interrupted(*_: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(arguments, "load", interrupted)
    assert call(capsys, "check", "border.yaml") == (130, "", "headway: interrupted\n")
