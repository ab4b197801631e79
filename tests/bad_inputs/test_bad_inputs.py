"""Every bad input and every bad argument ends in one clear line and exit code 2, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bad_inputs.cases import CASES, GOOD, NETWORK, NETWORK_FILES, BadInput
from tests.bad_networks.cases import CASES as BAD_NETWORKS
from tests.cli.helpers import assert_one_error, call

ENGINE = ("--engine", "local")
"""Its messages are quick to get; a case may name another one."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.yaml").write_text(NETWORK)
    (tmp_path / "good.csv").write_bytes(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: Path, content: bytes | None) -> None:
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)


@pytest.mark.parametrize("bad", CASES, ids=[case.id for case in CASES])
def test_one_message(folder: Path, capsys: pytest.CaptureFixture[str], bad: BadInput) -> None:
    for name, content in bad.files.items():
        put(folder / name, content)
    before = {path: path.is_file() and path.read_bytes() for path in folder.iterdir()}
    outcome = call(capsys, "run", "net.yaml", *ENGINE, *bad.argv)
    assert_one_error(outcome, *bad.expected)
    assert outcome.out == ""
    after = {path: path.is_file() and path.read_bytes() for path in folder.iterdir() if path.name != "__pycache__"}
    assert after == before


@pytest.mark.parametrize(
    ("file", "content"), [case[1:] for case in NETWORK_FILES], ids=[case[0] for case in NETWORK_FILES]
)
@pytest.mark.parametrize("command", ["check", "run"])
def test_network_files(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, file: str, content: bytes | None
) -> None:
    if file != "nowhere.yaml":
        put(folder / file, content)
    outcome = call(capsys, command, file)
    assert_one_error(outcome)
    assert outcome.out == ""


def test_links_are_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "link.csv").symlink_to(folder / "good.csv")
    outcome = call(capsys, "run", "net.yaml", *ENGINE, "--input", "s=good.csv", "--output", "o=link.csv")
    assert_one_error(outcome, "output 'o'", "link.csv", "source 's'")
    assert (folder / "good.csv").read_bytes() == GOOD


def test_malformed_rows_do_not_stop_a_run_that_is_not_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x.csv").write_bytes(GOOD + b"three,3,c\n4,4,\xff\n5,5,e\n")
    outcome = call(capsys, "run", "net.yaml", *ENGINE, "--input", "s=x.csv", "--output", "o=o.csv")
    assert outcome.code == 0
    assert (folder / "o.csv").read_text() == "sid,time,name\n1,1,a\n2,2,b\n5,5,e\n"
    assert "malformed rows: source 's' 2" in outcome.out


def test_there_are_many() -> None:
    assert len(CASES) + len(NETWORK_FILES) >= 70
    assert len(CASES) + len(NETWORK_FILES) + len(BAD_NETWORKS) >= 150
    assert len({case.id for case in CASES}) == len(CASES)
