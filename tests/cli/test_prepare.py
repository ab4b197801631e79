"""``headway prepare``: an archive is written once, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway.cli import prepare
from headway.cli.main import main
from headway.engines.spark.driver import session
from headway.engines.spark.driver.session import class_archive

JAVA = "17.0.1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, with a Java that nobody asks."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(session, "check_java", lambda: JAVA)
    return tmp_path


def training(monkeypatch: pytest.MonkeyPatch, code: int, writes: bool) -> list[list[str]]:
    """Let the run that writes the archive end at once; return the commands that were given."""
    given: list[list[str]] = []

    def run(command: list[str], env: dict[str, str], **more: Any) -> subprocess.CompletedProcess[str]:
        given.append(command)
        if writes:
            Path(env["SPARK_SUBMIT_OPTS"].partition("=")[2].strip('"')).write_bytes(b"classes")
        return subprocess.CompletedProcess(command, code, "one line\nno room left\n\n")

    monkeypatch.setattr(subprocess, "run", run)
    return given


def test_it_is_written_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = training(monkeypatch, 0, True)
    assert main(["prepare"]) == 0
    assert class_archive(JAVA).read_bytes() == b"classes"
    assert [path.name for path in class_archive(JAVA).parent.iterdir()] == [class_archive(JAVA).name]
    assert "written in" in capsys.readouterr().out
    assert main(["prepare"]) == 0
    assert "exists already; --again" in capsys.readouterr().out
    assert main(["prepare", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert len(given) == 1
    assert main(["prepare", "--again"]) == 0
    assert len(given) == 2


@pytest.mark.parametrize(("code", "writes"), [(2, True), (0, False)])
def test_one_that_failed_leaves_nothing(
    code: int, writes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    training(monkeypatch, code, writes)
    assert main(["prepare"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "headway: error: the archive was not written: no room left"
    assert not list(class_archive(JAVA).parent.iterdir())


def test_a_place_that_cannot_be_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "var").write_text("a file")
    assert main(["prepare"]) == 2
    assert "cannot be made" in capsys.readouterr().err


def test_the_network_gives_something_at_every_output() -> None:
    outputs = hw.run(prepare.TRAINING, engine="local", rates={"s": 1e6}).outputs
    assert all(table.num_rows for table in outputs.values())
