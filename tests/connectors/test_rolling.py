"""Outputs in parts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.clock import SECOND, ManualClock
from headway.connectors import open_sink, open_source, output_files
from headway.connectors.registry import can_roll
from headway.connectors.rolling import RollingSink
from headway.errors import HeadwayError, OutputError
from headway.network.keep import Keep, Roll
from headway.network.schema import Schema
from headway.network.trust import Trust
from tests.connectors.helpers import rows

SCHEMA = Schema.parse("a int, s string")


def batch(*values: int, text: str = "x") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"a": list(values), "s": [text] * len(values)}, SCHEMA.to_arrow())


def open_(what: object, roll: str = "1 hour", keep: object = None, clock: ManualClock | None = None) -> RollingSink:
    kept = None if keep is None else Keep.parse(keep)
    sink = open_sink("o", SCHEMA, what, roll=Roll.parse(roll), keep=kept, clock=clock or ManualClock())
    assert isinstance(sink, RollingSink)
    return sink


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def whole(folder: Path) -> list[list[int]]:
    """Return the values of each part in order; hidden files are not parts."""
    paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    return [[row["a"] for row in rows(open_source("s", SCHEMA, path))] for path in paths]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_part_appears_while_the_run_goes_on(tmp_path: Path, suffix: str) -> None:
    clock = ManualClock(5 * SECOND)
    sink = open_(tmp_path / f"o.{suffix}", "10s", clock=clock)
    assert names(tmp_path) == []
    sink.write(batch(1, 2))
    clock.advance(9 * SECOND)
    sink.write(batch(3))
    sink.look()
    assert whole(tmp_path) == []
    clock.advance(SECOND)
    sink.look()  # although nothing is written
    assert names(tmp_path) == [f"o-000001.{suffix}"]
    assert whole(tmp_path) == [[1, 2, 3]]
    clock.advance(100 * SECOND)
    sink.look()
    sink.write(batch(4))  # a part begins with its first tuple
    clock.advance(9 * SECOND)
    sink.write(batch(5))
    clock.advance(SECOND)
    sink.write(batch(6))
    assert whole(tmp_path) == [[1, 2, 3], [4, 5]]
    sink.prepare()
    assert whole(tmp_path) == [[1, 2, 3], [4, 5]]
    sink.close()
    sink.close()
    assert whole(tmp_path) == [[1, 2, 3], [4, 5], [6]]
    assert names(tmp_path) == [f"o-00000{at}.{suffix}" for at in (1, 2, 3)]


def test_without_tuples_there_are_no_parts(tmp_path: Path) -> None:
    sink = open_(tmp_path / "o.csv")
    sink.write(batch())
    sink.prepare()
    sink.close()
    assert names(tmp_path) == []


@pytest.mark.parametrize("what", ["out/", {"csv": "out/"}, {"directory": {"path": "out", "format": "csv"}}], ids=str)
def test_a_directory_of_parts(tmp_path: Path, what: object) -> None:
    sink = open_sink("o", SCHEMA, what, tmp_path, roll=Roll.parse("20 B"), clock=ManualClock())
    sink.write(batch(1, 2, 3, 4, 5, 6, 7, 8))
    sink.close()
    suffix = "parquet" if what == "out/" else "csv"
    found = names(tmp_path / "out")
    assert found[0] == f"part-000001.{suffix}"
    assert [value for part in whole(tmp_path / "out") for value in part] == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(("suffix", "line"), [("csv", 4), ("jsonl", 16)])
def test_no_part_is_larger_than_its_size(tmp_path: Path, suffix: str, line: int) -> None:
    head = 4 if suffix == "csv" else 0
    sink = open_(tmp_path / f"o.{suffix}", f"{head + 2 * line + 1} B")
    sink.write(batch(1, 2, 3, 4, 5))
    assert whole(tmp_path) == [[1, 2], [3, 4]]
    sink.write(batch(6, 7, text="a text that is longer than any part may be"))
    sink.close()
    assert whole(tmp_path) == [[1, 2], [3, 4], [5], [6], [7]]
    sink = open_(tmp_path / f"p.{suffix}", f"{head + 2 * line} B")
    sink.write(batch(1, 2))
    assert names(tmp_path)[-1] == f"p-000001.{suffix}"  # at once, as it is full
    sink.close()


def test_the_size_of_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_files, "GROUP_ROWS", 500)
    sink = open_(tmp_path / "o.parquet", "20kB")
    values = iter(range(100_000))
    for _ in range(100):
        text = os.urandom(16).hex()
        sink.write(batch(*[next(values) for _ in range(100)], text=text))
    sink.close()
    assert [value for part in whole(tmp_path) for value in part] == list(range(10_000))
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) > 5
    assert max(sizes) <= 20 << 10


def test_a_failed_run_keeps_complete_parts(tmp_path: Path) -> None:
    sink = open_(tmp_path / "o.csv", "12 B")
    sink.write(batch(1, 2, 3))
    sink.abort()
    sink.abort()
    assert names(tmp_path) == ["o-000001.csv"]
    assert whole(tmp_path) == [[1, 2]]


def test_a_run_that_starts_again_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "o-000041.csv").write_text("mine")
    (tmp_path / "o-7.csv").write_text("not a part")
    (tmp_path / "other-000099.csv").write_text("of another output")
    for _ in range(2):
        sink = open_(tmp_path / "o.csv", "12 B")
        sink.write(batch(1, 2, 3))
        sink.close()
    assert names(tmp_path) == [
        *("o-000041.csv", "o-000042.csv", "o-000043.csv", "o-000044.csv", "o-000045.csv"),
        *("o-7.csv", "other-000099.csv"),
    ]
    assert (tmp_path / "o-000041.csv").read_text() == "mine"


@pytest.mark.parametrize("links", [True, False])
def test_two_runs_at_once_share_the_numbers(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise PermissionError(1, "no links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    one, other = open_(tmp_path / "o.csv", "12 B"), open_(tmp_path / "o.csv", "12 B")
    for at in range(3):
        one.write(batch(at, at))
        other.write(batch(5 + at, 5 + at))
    one.close()
    other.close()
    assert len(names(tmp_path)) == 6
    assert sorted(value for part in whole(tmp_path) for value in part) == [0, 0, 1, 1, 2, 2, 5, 5, 6, 6, 7, 7]


BATCHES = st.lists(st.lists(st.integers(0, 10_000), max_size=8), max_size=8)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=BATCHES, other=st.randoms(use_true_random=False), size=st.integers(1, 80))
def test_batches_do_not_matter(tmp_path: Path, suffix: str, cut: list[list[int]], other: Any, size: int) -> None:
    values = [value for one in cut for value in one]
    made: list[list[bytes]] = []
    for turn in range(2):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        sink, at = open_(folder / f"o.{suffix}", f"{size} B"), 0
        parts = cut if turn == 0 else []
        while turn == 1 and at < len(values):
            step = other.randint(1, len(values))
            parts.append(values[at : at + step])
            at += step
        for one in parts:
            sink.write(batch(*one))
        sink.close()
        assert [value for part in whole(folder) for value in part] == values
        made.append([path.read_bytes() for path in sorted(folder.iterdir())])
        assert all(len(text) <= size or text.count(b"\n") == (2 if suffix == "csv" else 1) for text in made[-1])
    assert made[0] == made[1]


def test_old_parts_are_deleted_by_time(tmp_path: Path) -> None:
    clock = ManualClock(1000 * SECOND)
    sink = open_(tmp_path / "o.csv", "10s", "1 minute", clock)
    for at in range(4):
        sink.write(batch(at))
        clock.advance(20 * SECOND)
    sink.look()
    assert whole(tmp_path) == [[0], [1], [2], [3]][-3:]  # the first is 80 s old
    clock.advance(20 * SECOND)
    sink.look()
    assert whole(tmp_path) == [[2], [3]]
    clock.advance(100 * SECOND)
    sink.look()
    assert whole(tmp_path) == []
    sink.write(batch(9))
    sink.close()
    assert names(tmp_path) == ["o-000005.csv"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_old_parts_are_deleted_by_number(tmp_path: Path, suffix: str) -> None:
    for run in range(2):  # the second counts the parts of the first
        sink = open_(tmp_path / f"o.{suffix}", "1s", 4, clock := ManualClock())
        for at in range(4):
            sink.write(batch(*range(10 * run + at, 10 * run + at + 2)))
            clock.advance(SECOND)
            sink.look()
        sink.close()
        assert whole(tmp_path) == [[10 * run + 2, 10 * run + 3], [10 * run + 3, 10 * run + 4]]
    sink = open_(tmp_path / f"o.{suffix}", "1s", 3)
    sink.write(batch(7, 8))
    sink.close()
    assert whole(tmp_path) == [[13, 14], [7, 8]]  # 13 lies outside, 14 does not


def test_parts_of_earlier_runs_are_deleted_by_the_time_of_their_file(tmp_path: Path) -> None:
    for number, age in ((1, 100), (2, 10)):
        path = tmp_path / f"o-00000{number}.csv"
        path.write_text("a,s\n1,x\n")
        os.utime(path, ns=(0, (1000 - age) * SECOND))
    (tmp_path / "keep.csv").write_text("")
    sink = open_(tmp_path / "o.csv", "1s", "1 minute", ManualClock(1000 * SECOND))
    sink.look()
    sink.close()
    assert names(tmp_path) == ["keep.csv", "o-000002.csv"]


@pytest.mark.parametrize(
    ("what", "given_", "message"),
    [
        (
            "-",
            {"roll": "1h"},
            "output 'o': roll: only outputs to files roll over (csv, directory, jsonl, parquet), and",
        ),
        ({"csv": "-"}, {"roll": "1h"}, "output 'o': roll: only outputs to files roll over"),
        ({"console": None}, {"roll": "1h"}, "output 'o': roll: only outputs to files roll over"),
        (print, {"keep": "1h"}, "output 'o': keep: only outputs to files roll over"),
        (None, {"roll": "1h"}, "output 'o': roll: only outputs to files roll over"),
        ("o.csv", {"keep": "1h"}, "output 'o': keep: nothing is deleted from a file; with roll, whole files are"),
        ("no/o.csv", {"roll": "1h"}, "output 'o': the folder '"),
        ("o.csv/o.csv", {"roll": "1h"}, "output 'o': the folder '"),
        ("no/no/", {"roll": "1h"}, "output 'o': the folder '"),
    ],
)
def test_what_cannot_roll(tmp_path: Path, what: object, given_: dict[str, str], message: str) -> None:
    kinds: dict[str, Any] = {"roll": Roll, "keep": Keep}
    asked = {key: kinds[key].parse(value) for key, value in given_.items()}
    with pytest.raises(OutputError) as raised:
        open_sink("o", SCHEMA, what, tmp_path, **asked)
    assert str(raised.value).startswith(message)
    assert names(tmp_path) == []


def test_keep_all_asks_for_nothing(tmp_path: Path) -> None:
    open_sink("o", SCHEMA, tmp_path / "o.csv", keep=Keep()).abort()
    files: list[object] = ["a.csv", Path("a.jsonl"), "a/", {"parquet": "x"}]
    others: list[object] = ["-", "a.txt", {"spark": {}}, {}, None, print]
    assert [one for one in [*files, *others] if can_roll(one)] == files


def test_strangers_need_leave(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="a file from a stranger may not write"):
        open_sink("o", SCHEMA, "o.csv", tmp_path, Trust(), roll=Roll.parse("1h"))


def test_a_part_that_cannot_be_placed_is_one_message(tmp_path: Path) -> None:
    sink = open_({"csv": f"{tmp_path}/out/"}, "12 B")
    sink.write(batch(1))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(OutputError, match=r"^output 'o': '.*' cannot be written: No such file or directory$"):
        sink.close()
    sink.abort()


KILLED = """
import os, signal, sys
from pathlib import Path
import pyarrow as pa
from headway.connectors import open_sink
from headway.network.keep import Roll
from headway.network.schema import Schema

schema = Schema.parse("a int, s string")
sink = open_sink("o", schema, Path(sys.argv[1]), roll=Roll.parse("500 B"))
for at in range(100_000):
    sink.write(pa.RecordBatch.from_pydict({"a": [at], "s": ["x"]}, schema.to_arrow()))
    if at == 500:
        print("now", flush=True)
"""


def test_a_killed_run_keeps_complete_parts(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, tmp_path / "o.csv"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    before = whole(tmp_path)
    values = [value for part in before for value in part]
    assert values == list(range(len(values)))
    assert len(values) > 300
    sink = open_(tmp_path / "o.csv")
    sink.write(batch(-1))
    sink.close()
    assert whole(tmp_path) == [*before, [-1]]
    assert not any(name.startswith(".") for name in names(tmp_path))  # what the killed run left is gone
