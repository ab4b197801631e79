"""What an experiment leaves on disk."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headway
from headway.errors import InputError, OutputError
from headway_experiments.checks import Check
from headway_experiments.results import (
    Verdict,
    csv_text,
    make_folder,
    read_verdicts,
    runs_text,
    verdict_of,
    verdict_text,
    write_results,
)
from headway_experiments.rows import Rows
from headway_experiments.running import Outcome, carry_out
from tests.experiments.toys import BAD, GOOD, TOY

FILES = {f"prb-toy1.{kind}" for kind in ("csv", "json", "png", "svg", "txt")}


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    toy = replace(TOY, notes=lambda rows: f"\nThere are **{len(rows)}** rows.\n")
    return replace(carry_out(toy, True), seconds=0.04)


def test_all_five_files(outcome: Outcome, tmp_path: Path) -> None:
    verdict = write_results(outcome, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert json.loads((tmp_path / "prb-toy1.json").read_text("utf-8")) == verdict
    assert (tmp_path / "prb-toy1.txt").read_text("utf-8") == verdict_text(verdict)
    with (tmp_path / "prb-toy1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["seed"]) for row in rows] == [
        ("fast", "1"),
        ("slow", "1"),
        ("fast", "2"),
        ("slow", "2"),
    ]
    assert float(rows[1]["latency"]) == outcome.rows[1]["latency"]
    assert read_verdicts(tmp_path) == [verdict]
    assert write_results(outcome, tmp_path)["name"] == "prb-toy1"  # over those that are there
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_the_verdict(outcome: Outcome) -> None:
    verdict = verdict_of(outcome)
    assert set(verdict) == set(Verdict.__annotations__)
    assert verdict["name"] == "prb-toy1"
    assert verdict["figures"] == ["toy 1", "toy 2"]
    assert (verdict["quick"], verdict["runs"], verdict["seeds"]) == (True, 4, [1, 2])
    assert verdict["headway"] == headway.__version__
    assert "Python" in verdict["machine"]
    assert [(check["key"], check["holds"]) for check in verdict["checks"]] == [
        ("slower", True),
        ("far", False),
        ("twice", True),
    ]
    [finding] = verdict["findings"]
    assert (finding["check"], finding["shown_by"], finding["holds"], finding["needed"]) == (
        "far",
        ["twice"],
        True,
        True,
    )
    assert verdict["notes"] == "There are **4** rows."
    assert verdict["verdict"] == "differs, explained"


def test_numbers_of_numpy_are_written(outcome: Outcome, tmp_path: Path) -> None:
    odd = Check("slower", "so", np.float64(1) > 0, "1", np.float64(1) > 2)  # type: ignore[arg-type]
    write_results(replace(outcome, experiment=GOOD, checks=(odd,)), tmp_path)
    [check] = json.loads((tmp_path / "aurora-toy.json").read_text())["checks"]
    assert (check["holds"], check["certain"]) == (True, False)


def test_the_text(outcome: Outcome) -> None:
    text = verdict_text(verdict_of(outcome))
    assert text.startswith("prb-toy1: fast against slow\n  toy 1, toy 2 of 'Preemptive Rate-based")
    assert "The paper: Slow is slower than fast, by far.\n" in text
    assert "engine sim, 4 runs, 2 seeds, 0.0 s; QUICK FORM\n" in text
    assert "\nyes  slow | has a higher latency\n     slow / fast: 2.000 ± 0.000\n" in text
    assert "\nNO   slow has more than 3 times the latency\n" in text
    assert "Why it differs: slow has more than 3 times the latency\n" in text
    assert "  It is twice, for each tuple costs twice as much.\n  Shown by: slow has about twice the latency\n" in text
    assert "\nThere are **4** rows.\n" in text
    assert text.endswith("\nverdict: differs, explained\n")
    assert max(map(len, text.splitlines())) <= 100


def test_the_text_tells_what_is_doubtful(outcome: Outcome) -> None:
    checks = [replace(check, holds=not check.holds, certain=False) for check in outcome.checks]
    text = verdict_text(verdict_of(replace(outcome, checks=tuple(checks), quick=False)))
    assert "Differs elsewhere, not in these runs: slow has more than 3" in text
    assert "NOT shown by: " in text
    assert text.count("(not certain: ") == 3
    assert "QUICK" not in text
    assert "Why" not in verdict_text(verdict_of(carry_out(BAD, True)))


def test_runs() -> None:
    verdict = verdict_of(replace(carry_out(GOOD), seconds=0.04))
    assert runs_text(verdict) == "engine sim, 8 runs, 4 seeds, 0.0 s"
    assert runs_text({**verdict, "runs": 1, "seeds": [], "seconds": 1234.56}) == "engine sim, 1 run, 1,234.6 s"
    assert runs_text({**verdict, "seeds": [7]}) == "engine sim, 8 runs, 1 seed, 0.0 s"


def test_columns_as_they_first_appear() -> None:
    rows = Rows([{"b": 1, "a": 0.1}, {"a": 2.5, "c": "x, y", "b": True}])
    assert csv_text(rows) == 'b,a,c\n1,0.1,\ntrue,2.5,"x, y"\n'


def test_the_folder(tmp_path: Path) -> None:
    make_folder(tmp_path / "new" / "deep")
    make_folder(tmp_path / "new" / "deep")
    assert not list((tmp_path / "new" / "deep").iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"--out: '.*file' is a file; expected a folder"):
        make_folder(tmp_path / "file")
    for bad in (tmp_path / "file" / "below", Path("/proc/nowhere")):
        with pytest.raises(OutputError, match="cannot be written"):
            make_folder(bad)


def test_a_disk_that_fails(outcome: Outcome, tmp_path: Path) -> None:
    """What cannot be written is an error that names the file, and leaves no half of one."""
    with pytest.raises(OutputError, match=r"^plot: .*prb-toy1\.png' cannot be written"):
        write_results(outcome, tmp_path / "missing")
    (tmp_path / "prb-toy1.csv").mkdir()
    with pytest.raises(OutputError, match=r"^--out: .*prb-toy1\.csv' cannot be written"):
        write_results(outcome, tmp_path)
    assert not list(tmp_path.glob(".*.partial"))
    assert not (tmp_path / "prb-toy1.json").exists()  # the mark that all is there


def test_reading(outcome: Outcome, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .* 'headway experiment NAME' makes them"):
        read_verdicts(tmp_path / "missing")
    (tmp_path / "other.json").write_text('{"mine": 1}')
    (tmp_path / "list.json").write_text("[]")
    assert read_verdicts(tmp_path) == []
    verdict = write_results(outcome, tmp_path)
    (tmp_path / "prb-toy1.json").write_text(json.dumps({key: one for key, one in verdict.items() if key != "runs"}))
    with pytest.raises(InputError, match="has no 'runs'; 'headway experiment prb-toy1' writes it anew"):
        read_verdicts(tmp_path)
    (tmp_path / "prb-toy1.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_verdicts(tmp_path)
