"""Paths that are none are named, wherever they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.cli.main import main
from headway.paths import unusable

NETWORK = """
network: n
sources:
  a: {schema: {x: bigint}, source: %s}
boxes:
  f: {op: filter, in: a, where: "x > 1"}
outputs:
  o: {from: f, sink: %s}
"""
LONG = "x" * 300


def test_why_a_path_is_none(tmp_path: Path) -> None:
    assert unusable(tmp_path / "a.csv") == ""
    assert unusable(tmp_path / "no" / "a.csv") == ""
    assert unusable(tmp_path / LONG) == "file name too long"
    assert unusable("a\0b") == "it has a character that no file's name can have"


@pytest.mark.parametrize("command", [["check"], ["run", "--engine", "local"]])
@pytest.mark.parametrize(("name", "why"), [(LONG + ".csv", "file name too long"), ('"a\\0.csv"', "character")])
def test_in_a_network(
    tmp_path: Path, command: list[str], name: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    file = tmp_path / "n.yaml"
    for source, sink in ((name, "o.csv"), ("a.csv", name)):
        if command == ["check"] and sink != "o.csv":
            continue  # a check opens no outputs
        file.write_text(NETWORK % (source, sink))
        assert main([*command, str(file)]) == 2
        assert why in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--trace", "--summary", "--dead-letters", "--model", "--input", "--output"])
@pytest.mark.parametrize("name", [LONG + ".csv", "a\0b.csv"])
def test_in_options(tmp_path: Path, option: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    file = tmp_path / "n.yaml"
    file.write_text(NETWORK % ("a.csv", "o.csv"))
    engine = "sim" if option == "--model" else "local"
    given = {"--input": "a=", "--output": "o="}.get(option, "") + name
    assert main(["run", str(file), "--engine", engine, option, given]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", [LONG, "a\0b"])
@pytest.mark.parametrize("command", ["explain", "check", "run", "compare"])
def test_as_the_file(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
