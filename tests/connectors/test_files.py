"""Files that appear when they are complete, and what killed processes leave of them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from headway.connectors import open_sink
from headway.connectors.protocol import Writer, prepare
from headway.network.schema import Schema

SCHEMA = Schema.parse("a int")
BATCH = pa.RecordBatch.from_pydict({"a": [1]}, SCHEMA.to_arrow())
PROGRAM = """
import os, sys
from headway.connectors import open_sink
from tests.connectors.test_files import BATCH, SCHEMA
sink = open_sink("o", SCHEMA, sys.argv[1])
sink.write(BATCH)
os.kill(os.getpid(), 9)
"""


def partial(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob(".*.partial"))


def opened(path: Path) -> Writer:
    sink = open_sink("o", SCHEMA, path)
    sink.write(BATCH)
    return sink


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet"])
def test_what_a_killed_process_has_left_is_removed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=False, timeout=60)
    assert len(partial(tmp_path)) == 1
    opened(tmp_path / f"another-{name}").close()
    assert len(partial(tmp_path)) == 1, "only of the same target"
    sink = opened(path)
    assert len(partial(tmp_path)) == 1, "its own"
    sink.close()
    assert partial(tmp_path) == []
    assert path.exists()


@pytest.mark.parametrize("ready", [False, True])
def test_what_is_being_written_stays(tmp_path: Path, ready: bool) -> None:
    """Also when it is prepared and only its name is missing."""
    path = tmp_path / "out.csv"
    first = opened(path)
    if ready:
        prepare(first)
    second = opened(path)
    assert len(partial(tmp_path)) == 2
    first.close()
    second.abort()
    assert partial(tmp_path) == []
    assert path.read_text() == "a\n1\n"


def test_what_is_no_remains_stays(tmp_path: Path) -> None:
    kept = [".out.csv.1234.partial", ".out.csv.12345678.partial.txt", "out.csv.12345678.partial"]
    for name in kept:
        (tmp_path / name).touch()
    os.mkfifo(tmp_path / ".out.csv.12345678.partial")
    (tmp_path / ".out.csv.87654321.partial").symlink_to("elsewhere")
    opened(tmp_path / "out.csv").close()
    assert len(list(tmp_path.iterdir())) == len(kept) + 3


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for end in ("close", "abort"):
        sink = opened(tmp_path / "out.csv")
        prepare(sink)
        getattr(sink, end)()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".out.csv.12345678.partial").touch()
    opened(tmp_path / "out.csv").close()
    assert partial(tmp_path) == [".out.csv.12345678.partial"], "nobody knows whether somebody writes it"
    assert (tmp_path / "out.csv").exists()
