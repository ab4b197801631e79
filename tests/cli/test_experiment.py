"""`headway experiment`: names, files, verdicts and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headway_experiments.rows import Rows
from tests.cli.helpers import assert_one_error, call, environment
from tests.experiments.toys import BAD, GOOD, TOY, broken, impossible, interrupted, registered

KINDS = ("csv", "json", "png", "svg", "txt")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run in a folder of its own, with toys for experiments."""
    import headway_experiments.catalogue  # noqa: F401  (the command would register them beside the toys)

    monkeypatch.chdir(tmp_path)
    with registered(TOY, GOOD):
        yield


def _files(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


def _all(*names: str) -> set[str]:
    return {f"{name}.{kind}" for name in names for kind in KINDS}


@pytest.mark.parametrize("argv", [(), ("list",)])
def test_list(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]) -> None:
    outcome = call(capsys, "experiment", *argv)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == (
        "aurora: Aurora: a new model and architecture for data stream management (VLDB Journal 2003)"
    )  # papers in their order
    assert lines[2].split() == ["name", "reproduces", "what", "engine"]
    assert lines[4].split("  ") == ["aurora-toy", "toy 1, toy 2", "fast against slow", "sim"]
    assert lines[-1].split("  ") == ["prb-toy1, prb-toy2", "toy 1, toy 2", "fast against slow", "sim"]
    assert not list(Path().iterdir())


def test_one(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "experiment", "prb-toy1", "--quick", "--jobs", "1")
    assert outcome.code == 0
    assert outcome.out.startswith("prb-toy1: fast against slow\n")
    assert "\nverdict: differs, explained\nfiles: experiments/prb-toy1.csv, .png, .svg, .json, .txt\n" in outcome.out
    assert "checks that hold" not in outcome.out  # the table is for several
    assert re.fullmatch(r"headway: prb-toy1: differs, explained, \d\.\d s\n", outcome.err)
    assert _files("experiments") == _all("prb-toy1")
    assert json.loads(Path("experiments/prb-toy1.json").read_text("utf-8"))["quick"] is True


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("prb-toy2",), ["prb-toy1"]),
        (("prb",), ["prb-toy1"]),
        (("all",), ["prb-toy1", "aurora-toy"]),
        (("aurora", "prb-toy2", "all"), ["aurora-toy", "prb-toy1"]),
    ],
)
def test_names(capsys: pytest.CaptureFixture[str], names: tuple[str, ...], expected: list[str]) -> None:
    outcome = call(capsys, "experiment", *names, "--quick", "--out", "some/where", "--jobs", "1")
    assert outcome.code == 0
    said = [line.split(":")[1].strip() for line in outcome.err.splitlines()]
    assert said == expected
    assert _files("some/where") == _all(*expected)


def test_several_end_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """In processes, as they come; the exit code tells that one failed."""
    with registered(TOY, GOOD, BAD):
        outcome = call(capsys, "experiment", "all", "--jobs", "2")
    assert outcome.code == 1
    table = outcome.out.rpartition("experiment  verdict")[2].splitlines()
    assert sorted(line.split("  ")[0] for line in table[2:5]) == ["aurora-toy", "prb-toy1", "prb-toybad"]
    assert table[-1].startswith("3 experiments in ")
    for count in ("1 confirmed", "1 differs, explained", "1 FAILED"):
        assert count in table[-1]
    [bad] = [line for line in table if line.startswith("prb-toybad")]
    assert bad.split()[1:5] == ["FAILED", "2", "of", "3"]
    assert "headway: prb-toybad: FAILED, " in outcome.err
    assert _files("experiments") == _all("prb-toy1", "prb-toybad", "aurora-toy")


def test_what_cannot_be_carried_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Each says why in one line, and the others go on."""

    def no_plot(rows: Rows, figure: object) -> None:
        raise KeyError("latency")

    wrong = (
        replace(GOOD, name="prb-bug", measure=broken),
        replace(GOOD, name="prb-java", measure=impossible, engine="spark"),
        replace(GOOD, name="prb-plot", draw=no_plot),
    )
    with registered(*wrong, GOOD):
        outcome = call(capsys, "experiment", "all", "--jobs", "1")
    assert outcome.code == 1
    lines = outcome.err.splitlines()
    assert lines[0].startswith("headway: prb-bug: ZeroDivisionError: a bug (toys.py:")
    assert lines[1].startswith("headway: prb-plot: KeyError: 'latency' (test_experiment.py:")
    assert lines[2].startswith("headway: aurora-toy: confirmed, ")
    assert lines[3] == "headway: prb-java: there is no Java;; install it"
    assert len(lines) == 4
    assert outcome.out.splitlines()[-1].endswith(": 3 ERROR; 1 confirmed")
    assert _files("experiments") == _all("aurora-toy")


def test_the_only_one_cannot_be_carried_out(capsys: pytest.CaptureFixture[str]) -> None:
    with registered(replace(TOY, measure=impossible)):
        assert_one_error(call(capsys, "experiment", "prb-toy1", "--jobs", "1"), "there is no Java")
    with registered(replace(TOY, measure=broken)):
        outcome = call(capsys, "experiment", "prb-toy1", "--jobs", "1")
    assert outcome.code == 1
    assert outcome.err.startswith("headway: prb-toy1: ZeroDivisionError: a bug (")
    assert outcome.err.count("\n") == 1


def test_ctrl_c_keeps_what_was_finished(capsys: pytest.CaptureFixture[str]) -> None:
    with registered(GOOD, TOY, replace(BAD, measure=interrupted)):
        outcome = call(capsys, "experiment", "all", "--quick", "--jobs", "1", "--page", "page.md")
    assert outcome.code == 130
    assert outcome.err.splitlines()[-1] == "headway: interrupted"
    assert outcome.out.splitlines()[-1].startswith("2 experiments of 3 in ")
    assert _files("experiments") == _all("aurora-toy", "prb-toy1")
    assert not Path("page.md").exists()


def test_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = call(capsys, "experiment", "all", "--quick", "--jobs", "1", "--page", "page.md")
    assert outcome.code == 0
    assert outcome.out.endswith("page: page.md\n")
    made = Path("page.md").read_text("utf-8")
    assert "### prb-toy1\n" in made
    assert _files("page") == {"prb-toy1.svg", "aurora-toy.svg"}
    Path("page.md").unlink()
    assert call(capsys, "experiment", "--page", "page.md") == (0, "page: page.md\n", "")
    assert Path("page.md").read_text("utf-8") == made
    with registered(TOY):
        outcome = call(capsys, "experiment", "--page", "page.md")
    assert outcome.err == (
        "headway: 'experiments/aurora-toy.json' was left out: there is no such experiment any more\n"
    )
    assert "### aurora-toy" not in Path("page.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("prb-toy3",), ("unknown experiment 'prb-toy3'", "did you mean 'prb-toy1'", "all, aurora, aurora-toy, list")),
        (("prb", "list"), ("'list' stands alone",)),
        (("prb", "--jobs", "0"), ("--jobs", "whole number above 0")),
        (("prb", "--quik"), ("'--quik'", "did you mean '--quick'")),
        (("prb", "--out", "file"), ("--out: 'file' is a file; expected a folder",)),
        (("prb", "--out", "file/x"), ("--out: the folder 'file/x' cannot be written",)),
        (("prb", "--page", "no/page.md"), ("--page: the folder 'no'",)),
        (("--page", "page.md"), ("there is no folder 'experiments' with results",)),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    Path("file").touch()
    with registered(replace(TOY, measure=broken), GOOD):
        outcome = call(capsys, "experiment", *argv)
    assert_one_error(outcome, *expected)
    assert outcome.out == ""
    assert _files(".") == {"file"}


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    text = call(capsys, "experiment", "--help").out
    assert "examples:\n" in text
    assert "exit codes: 0 no verdict is FAILED" in text
    for option in ("NAME", "--quick", "--out DIR", "--jobs N", "--page FILE.md"):
        assert f"\n  {option} " in text, option


def test_other_commands_do_not_pay_for_it() -> None:
    program = (
        "import sys; from headway.cli.main import main; main(['--help']); "
        "print([name for name in sys.modules if name.startswith(('matplotlib', 'headway_experiments'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


SERIES = """
import os, sys, time
from dataclasses import replace
from tests.experiments.toys import TOY, measure, registered

def slow(task):
    os.write(2, b"running\\n")
    time.sleep(60)
    return measure(task)

if __name__ == "__main__":
    from headway.cli.main import main
    with registered(replace(TOY, measure=slow)):
        sys.exit(main(["experiment", "prb-toy1", "--jobs", "2"]))
"""


def test_ctrl_c_at_a_terminal_stops_all_processes(tmp_path: Path) -> None:
    """There everybody in the group gets it; nobody complains, and nobody goes on working."""
    (tmp_path / "series.py").write_text(SERIES)
    with subprocess.Popen(
        [sys.executable, "series.py"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "running\n"
            os.killpg(process.pid, signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.replace("running\n", "") == "headway: interrupted\n"
