"""The arrival log against a plain list of what was appended, and against crashes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.columns import Column
from headway.errors import InputError, RunError
from headway.network.schema import Schema
from headway.storage import log as log_module
from headway.storage import records, segments
from headway.storage.checked import seal
from headway.storage.filesystems import Place, locate
from headway.storage.log import Log, read_slice
from headway.trains import NOTHING, Tick, Train, join_trains
from tests.searching import examples

SCHEMA = Schema.parse("a bigint, s string")
SOURCES = ("a", "b/..", "c")
SCHEMAS = dict.fromkeys(SOURCES, SCHEMA)

Tuple = tuple[str, int, int]
"""Source, arrival number, stamp."""


def train(numbers: list[int], stamps: list[int] | None = None) -> Train:
    at = np.array(numbers, np.int64)
    texts = Column(pa.array([str(number) for number in numbers], pa.string()))
    return Train((Column(at * 3), texts), at if stamps is None else np.array(stamps, np.int64), at)


@dataclass
class Model:
    """What was appended, naively."""

    tuples: list[Tuple] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)
    issued: int = NOTHING
    bounds: list[int] = field(default_factory=list)

    def within(self, sources: list[str], after: int, upto: int) -> list[Tuple]:
        return [one for one in self.tuples if one[0] in sources and after < one[1] <= upto]

    def cut(self, sources: list[str], after: int, tuples: int) -> int:
        waiting = self.within(sources, after, self.issued)
        limit = max(1, tuples)
        return waiting[limit][1] - 1 if len(waiting) > limit else max(after, self.issued)


@st.composite
def appends(draw: st.DrawFn) -> list[tuple[dict[str, list[int]], list[int], list[int], int]]:
    """Draw appends: numbers by source, numbers of ticks, stamps by offset, the numbers left unused at the end."""
    return [
        (
            {},
            draw(st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4]), max_size=12)),
            draw(st.lists(st.integers(0, 5), min_size=12, max_size=12)),
            draw(st.integers(0, 2)),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]


def fill(log: Log, model: Model, drawn: list[Any], first: int = 0) -> None:
    """Append what was drawn: each entry is a source, 3 for a tick, 4 for a number that nobody gets."""
    stamp = model.tuples[-1][2] if model.tuples else 10**18
    for at, (_, kinds, steps, gap) in enumerate(drawn, first):
        parts: dict[str, tuple[list[int], list[int]]] = {}
        ticks = []
        for kind, step in zip(kinds, steps, strict=False):
            model.issued += 1
            if kind < 3:
                stamp += step
                numbers, stamps = parts.setdefault(SOURCES[kind], ([], []))
                numbers.append(model.issued)
                stamps.append(stamp)
                model.tuples.append((SOURCES[kind], model.issued, stamp))
            elif kind == 3:
                ticks.append(Tick(model.issued, at))
        model.issued += gap
        model.ticks += ticks
        model.bounds.append(model.issued)
        positions = {source: sum(one[0] == source for one in model.tuples) for source in SOURCES}
        log.append(
            {source: train(*part) for source, part in parts.items()},
            model.issued,
            at * 10,
            ticks=ticks,
            positions=positions,
        )


def read(log: Log, sources: list[str], after: int, upto: int) -> list[Tuple]:
    """Return the tuples of all slices, by number."""
    found: list[Tuple] = []
    pieces = log.slices(sources, after, upto)
    assert [piece.first for piece in pieces] == sorted(piece.first for piece in pieces)
    for piece in pieces:
        tuples = read_slice(piece, SCHEMA)
        numbers = tuples.numbers.tolist()
        assert (numbers[0], numbers[-1], len(numbers)) == (piece.first, piece.last, len(piece))
        assert tuples.columns[0].values.tolist() == [3 * number for number in numbers]
        assert tuples.columns[1].values.to_pylist() == [str(number) for number in numbers]
        found += zip([piece.source] * len(numbers), numbers, tuples.stamps.tolist(), strict=True)
    return sorted(found, key=lambda one: one[1])


chosen = st.lists(st.sampled_from(SOURCES), unique=True)


@examples(60)
@given(appends(), st.data())
def test_the_log_agrees_with_a_list(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], data: st.DataObject
) -> None:
    path = str(tmp_path_factory.mktemp("log"))
    model = Model()
    log = Log(path, SCHEMAS, sync=False)
    split = data.draw(st.integers(0, len(drawn)))
    fill(log, model, drawn[:split])
    if data.draw(st.booleans()):
        log = Log(path, SCHEMAS, sync=False)
    fill(log, model, drawn[split:], split)
    for reopened in (log, Log(path, SCHEMAS, sync=False)):
        assert reopened.issued == model.issued
        assert reopened.positions == {source: len(model.within([source], -1, 10**9)) for source in SOURCES}
        sources = data.draw(chosen)
        cuts = sorted(data.draw(st.lists(st.integers(-1, model.issued + 1), max_size=5)))
        together: list[Tuple] = []
        for after, upto in zip([NOTHING, *cuts], [*cuts, model.issued], strict=True):
            together += read(reopened, sources, after, upto)
            expected = model.within(sources, after, upto)
            for source in SOURCES:
                assert reopened.count([source], after, upto) == len(model.within([source], after, upto))
            firsts = [model.within([source], after, upto)[:1] for source in sources]
            least = min([first[0][2] for first in firsts if first], default=None)
            mean = sum(one[2] for one in expected) // len(expected) if expected else 0
            assert reopened.stamps(sources, after, upto) == (None if least is None else (least, mean))
            assert reopened.marks(after, upto)[0] == tuple(t for t in model.ticks if after < t.number <= upto)
        assert together == model.within(sources, NOTHING, model.issued)
        after, tuples = data.draw(st.integers(-1, model.issued)), data.draw(st.integers(-1, 20))
        assert reopened.cut(sources, after, tuples) == model.cut(sources, after, tuples)
        covering = [at for at, bound in enumerate(model.bounds) if bound >= after]
        assert reopened.moment_at(after) == covering[0] * 10


@examples(40)
@given(appends(), st.data())
def test_what_has_no_commit_never_was(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("log")
    model = Model()
    log = Log(str(root), SCHEMAS, sync=False)
    fill(log, model, drawn)
    before = sorted(file for file in root.rglob("*") if file.is_file())
    newest = root / "commits/newest"
    named = newest.read_bytes() if newest.exists() else b""
    later = Model(list(model.tuples), list(model.ticks), model.issued)
    fill(log, later, [({}, [0, 1, 2, 0, 1, 2], [1] * 12, 0)], len(drawn))
    added = sorted(file for file in root.rglob("*") if file.is_file() and file not in before)
    assert len(added) == 4 + (not named)
    newest.write_bytes(named)  # it is written after the commit
    (commit,) = [file for file in added if file.suffix == ".json"]
    commit.rename(commit.with_name(commit.name + ".tmp"))
    segments = [one for one in added if one not in (commit, newest)]
    for file in data.draw(st.lists(st.sampled_from(segments), unique=True)):
        file.write_bytes(file.read_bytes()[: data.draw(st.integers(0, 50))]) if data.draw(
            st.booleans()
        ) else file.unlink()
    log = Log(str(root), SCHEMAS, sync=False)
    assert sorted(file for file in root.rglob("*") if file.is_file() and file != newest) == [
        file for file in before if file != newest
    ]
    assert (log.issued, read(log, list(SOURCES), -1, 10**9)) == (model.issued, model.tuples)
    fill(log, model, drawn, len(drawn))
    assert read(log, list(SOURCES), -1, 10**9) == model.tuples


def check_rest(log: Log, model: Model) -> None:
    """Check that what a log still holds is all that came after what it has forgotten."""
    kept = log.commits[0].sequence
    forgotten = model.bounds[kept - 1] if kept else NOTHING
    expected = model.within(list(SOURCES), forgotten, 10**9)
    assert read(log, list(SOURCES), forgotten, 10**9) == expected
    assert log.bytes == sum(segment.bytes for commit in log.commits for segment in commit.segments.values())
    for source in SOURCES:
        segments = [commit.segments[source] for commit in log.commits if source in commit.segments]
        for number in (-1, *(edge + by for one in segments for edge in (one.first, one.last) for by in (-1, 0, 1))):
            unread = sum(one.bytes for one in segments if one.last > number)
            assert log.bytes_after({source: number}) == unread
        stamps = [one[2] for one in expected if one[0] == source]
        assert log.count([source], forgotten, 10**9) == len(stamps)
        mean = (stamps[0], sum(stamps) // len(stamps)) if stamps else None
        assert log.stamps([source], forgotten, 10**9) == mean
    assert log.marks(forgotten, 10**9)[0] == tuple(tick for tick in model.ticks if tick.number > forgotten)
    assert log.cut(SOURCES, forgotten, 3) == model.cut(list(SOURCES), forgotten, 3)


@examples(40)
@given(appends(), st.data())
def test_dropping(tmp_path_factory: pytest.TempPathFactory, drawn: list[Any], data: st.DataObject) -> None:
    path, keep, fold = str(tmp_path_factory.mktemp("log")), data.draw(st.integers(0, 30)), records.FOLD
    model = Model()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "FOLD", data.draw(st.sampled_from([1, 2, 3, fold])))
        log = Log(path, SCHEMAS, sync=False, keep_seconds=keep / 10**9)
        fill(log, model, drawn)
        for _ in range(data.draw(st.integers(1, 3))):
            upto, now = data.draw(st.integers(-1, model.issued)), data.draw(st.integers(0, 80))
            before, held = log.bytes, log.commits
            gone = 0
            while gone < len(held) - 1 and held[gone].issued <= upto and now - held[gone].moment >= keep:
                gone += 1
            assert log.drop(upto, now) == before - log.bytes
            reopened = Log(path, SCHEMAS, sync=False, keep_seconds=keep / 10**9)
            for one in (log, reopened):
                assert one.commits == held[gone:]
                check_rest(one, model)
            log = data.draw(st.sampled_from([log, reopened]))
        fill(log, model, drawn, len(drawn))
        log = Log(path, SCHEMAS, sync=False)
    assert (log.issued, log.positions) == (
        model.issued,
        {source: len(model.within([source], -1, 10**9)) for source in SOURCES},
    )
    check_rest(log, model)
    assert log.bytes == sum(file.stat().st_size for file in Path(path).rglob("*.arrow"))
    kept = log.commits[0].sequence
    forgotten = model.bounds[kept - 1] if kept else NOTHING
    if kept and forgotten > NOTHING:
        with pytest.raises(RunError, match="no longer holds"):
            log.slices(SOURCES, forgotten - 1, 10**9)


def test_marks_malformed_and_the_end_survive(tmp_path: Path) -> None:
    log = Log(str(tmp_path), SCHEMAS)
    refusals = [("a", "line 3", "x,\ud800y", "no number"), ("a", "line 4", "", "empty")]
    log.append({}, 0, 5, ticks=[Tick(0, 99)], positions={"a": 0}, malformed=refusals)
    log.append({"a": train([1])}, 3, 7, end=3, positions={"a": 1}, malformed=refusals[:1])
    log = Log(str(tmp_path), SCHEMAS)
    assert log.commits[0].malformed == tuple(refusals)
    assert log.refused == {"a": 3, "b/..": 0, "c": 0}
    assert log.positions == {"a": 1, "b/..": 0, "c": 0}
    assert (log.end, log.marks(-1, 2), log.marks(2, 3), log.marks(0, 3)) == (
        3,
        ((Tick(0, 99),), None),
        ((), 3),
        ((), 3),
    )
    assert [log.moment_at(number) for number in (-1, 0, 1, 3, 9)] == [5, 5, 7, 7, 7]


def test_an_empty_log(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "new" / "er"), SCHEMAS)
    assert (log.issued, log.end, log.bytes, log.commits) == (NOTHING, None, 0, ())
    assert log.positions == dict.fromkeys(SOURCES, 0)
    assert (log.cut(SOURCES, NOTHING, 5), log.slices(SOURCES, NOTHING, 9), log.drop(9, 9)) == (NOTHING, [], 0)
    assert (log.stamps(SOURCES, NOTHING, 9), log.moment_at(0)) == (None, 0)


def test_no_file_stays_mapped_when_the_log_is_gone(tmp_path: Path) -> None:
    log = Log(str(tmp_path), SCHEMAS, sync=False)
    log.append({"a": train([1, 2, 9])}, 9, 0, positions={})
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux lists mappings")
    log = Log(str(tmp_path), SCHEMAS, sync=False)  # recovery opens it
    assert str(tmp_path) in maps.read_text()
    del log
    assert str(tmp_path) not in maps.read_text()


def test_many_commits_are_folded_into_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "FOLD", 10)
    log = Log(str(tmp_path), SCHEMAS, sync=False)
    for number in range(35):
        log.append({"a": train([number])}, number, number, positions={"a": number + 1})
    names = sorted(file.name for file in (tmp_path / "commits").iterdir())
    assert names == [
        *("000000000009.jsonl", "000000000019.jsonl", "000000000029.jsonl"),
        *(f"{number:012d}.json" for number in range(30, 35)),
        "newest",
    ]
    # A crash between the folding and the deletion leaves singles behind.
    (tmp_path / "commits" / "000000000029.json").write_bytes(log.commits[29].to_line())
    log = Log(str(tmp_path), SCHEMAS, sync=False)
    assert [commit.sequence for commit in log.commits] == list(range(35))
    assert not (tmp_path / "commits" / "000000000029.json").exists()
    assert log.count(["a"], -1, 100) == 35


def test_the_last_commit_is_missed_too(tmp_path: Path) -> None:
    log, last, newest = Log(str(tmp_path), SCHEMAS), tmp_path / "commits/000000000002.json", tmp_path / "commits/newest"
    for number in range(3):
        log.append({"a": train([number])}, number, 0, positions={})
    commit, named = last.read_bytes(), newest.read_bytes()
    last.unlink()
    with pytest.raises(RunError, match=r"000000000002\.json' is missing, which '.*newest' names; .*--state"):
        Log(str(tmp_path), SCHEMAS)
    assert (tmp_path / "segments/a/000000000002.arrow").exists(), "what is refused stays as it is"
    last.write_bytes(commit)
    newest.write_bytes(named.replace(b"2", b"1"))
    with pytest.raises(RunError, match=r"commits/newest' is damaged: .*--state"):
        Log(str(tmp_path), SCHEMAS)
    for harmless in (b"", bytes(9), seal({"sequence": 1})):  # after a power failure, and a kill between the two
        newest.write_bytes(harmless)
        assert Log(str(tmp_path), SCHEMAS).issued == 2


def damage(kind: str, root: Path) -> None:
    commit, segment = root / "commits/000000000001.json", root / "segments/a/000000000001.arrow"
    if kind == "damaged commit":
        commit.write_bytes(commit.read_bytes()[:40])
    elif kind == "empty commit":
        commit.write_bytes(b"")
    elif kind == "strange commit":
        commit.write_bytes(b"[1]")
    elif kind == "missing commit":
        commit.unlink()
    elif kind == "missing segment":
        segment.unlink()
    elif kind == "short segment":
        segment.write_bytes(segment.read_bytes()[:40])


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("damaged commit", r"0001\.json' is damaged: .*--state"),
        ("strange commit", r"0001\.json' is damaged: .*--state"),
        ("empty commit", r"0001\.json' is .*--state"),
        ("missing commit", r"0001\.json' is missing; .*--state"),
        ("missing segment", r"source 'a'.*0001\.arrow' is missing; .*--state"),
        ("short segment", r"source 'a'.*0001\.arrow' is damaged: 40 bytes.*--state"),
    ],
)
def test_damage_is_named(tmp_path: Path, kind: str, message: str) -> None:
    log = Log(str(tmp_path), SCHEMAS, sync=False)
    for number in range(3):
        log.append({"a": train([number])}, number, 0, positions={})
    damage(kind, tmp_path)
    with pytest.raises(RunError, match=message):
        Log(str(tmp_path), SCHEMAS, sync=False)


def test_another_network_is_refused(tmp_path: Path) -> None:
    Log(str(tmp_path), SCHEMAS, sync=False).append({"a": train([0])}, 0, 0, positions={})
    with pytest.raises(RunError, match=r"\.arrow.*\(a int64, s string\).*\(a bigint, s bigint\).*--state"):
        Log(str(tmp_path), SCHEMAS | {"a": Schema.parse("a bigint, s bigint")}, sync=False)
    with pytest.raises(RunError, match=r"\.arrow.*unknown source 'a'.*choices: c.*--state"):
        Log(str(tmp_path), {"c": SCHEMA}, sync=False)


def test_a_path_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match=r"file': .*[Dd]irectory"):
        Log(str(tmp_path / "file"), SCHEMAS)
    with pytest.raises(InputError, match="nonsense://x"):
        Log("nonsense://x", SCHEMAS)


def test_an_append_that_cannot_be_written_may_be_repeated(tmp_path: Path) -> None:
    log = Log(str(tmp_path), SCHEMAS)
    log.append({"a": train([0])}, 0, 0, positions={"a": 1})
    shutil.rmtree(tmp_path / "segments" / "a")
    with pytest.raises(RunError, match=f"cannot write the log '{tmp_path}': No such file"):
        log.append({"a": train([1])}, 1, 0, positions={"a": 2})
    assert (log.issued, log.positions["a"], len(log.commits)) == (0, 1, 1)
    (tmp_path / "segments" / "a").mkdir()
    assert log.append({"a": train([1])}, 1, 0, positions={"a": 2}).sequence == 1
    assert log.issued == 1


@pytest.mark.parametrize(
    "append",
    [
        lambda log: log.append({"a": train([5])}, 9, 0, positions={}),
        lambda log: log.append({"a": train([10])}, 9, 0, positions={}),
        lambda log: log.append({"a": train([8, 7])}, 9, 0, positions={}),
        lambda log: log.append({"z": train([8])}, 9, 0, positions={}),
        lambda log: log.append({}, 4, 0, positions={}),
        lambda log: log.append({}, 9, 0, ticks=[Tick(5, 0)], positions={}),
        lambda log: log.append({}, 9, 0, end=10, positions={}),
    ],
)
def test_numbers_that_do_not_ascend_are_refused(tmp_path: Path, append: Callable[[Log], object]) -> None:
    log = Log(str(tmp_path), SCHEMAS, sync=False)
    log.append({}, 5, 0, positions={})
    with pytest.raises(ValueError, match=r"arrival numbers|unknown source"):
        append(log)
    assert len(log.commits) == 1


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "segments").mkdir()
    (tmp_path / "segments" / "holiday.jpg").write_text("x")
    Log(str(tmp_path), SCHEMAS)
    assert (tmp_path / "segments" / "holiday.jpg").exists()


@pytest.mark.parametrize("renames", [True, False])
def test_a_remote_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: bool) -> None:
    """HDFS renames, object stores do not; a local disk reached only through Arrow stands for both."""

    def remote(path: str) -> Place:
        return replace(locate(path), local=False, renames=renames)

    monkeypatch.setattr(log_module, "locate", remote)
    monkeypatch.setattr(Place, "name", lambda self, relative: f"{self.root}/{relative}")
    monkeypatch.setattr(records, "FOLD", 3)
    if not renames:
        for source in SOURCES:  # a local disk needs them
            (tmp_path / "segments" / segments.quote_name(source)).mkdir(parents=True)
        (tmp_path / "commits").mkdir()
    model = Model()
    log = Log(str(tmp_path), SCHEMAS)
    fill(log, model, [({}, [0, 1, 2, 0, 3, 2], [1] * 12, 0)] * 8)
    log.drop(model.bounds[4], 10**9)
    log = Log(str(tmp_path), SCHEMAS)
    assert [commit.sequence for commit in log.commits] == [5, 6, 7]
    assert read(log, list(SOURCES), model.bounds[4], 10**9) == model.within(list(SOURCES), model.bounds[4], 10**9)
    assert not list(tmp_path.rglob("*.tmp"))


WRITER = """
import sys
import numpy as np
import pyarrow as pa
from headway.columns import Column
from headway.network.schema import Schema
from headway.storage.log import Log
from headway.trains import Train

log = Log(sys.argv[1], {"a": Schema.parse("a bigint"), "b": Schema.parse("a bigint")}, sync=False)
while True:
    first, at = log.issued + 1, len(log.commits)
    numbers = np.arange(first, first + 40)
    trains = {
        name: Train((Column(part * 3),), part, part) for name, part in (("a", numbers[::2]), ("b", numbers[1::2]))
    }
    log.append(trains, first + 39, at, positions={"a": first // 2 + 20, "b": first // 2 + 20})
    print(log.issued, flush=True)
"""


@pytest.mark.parametrize("commits", [1, 300])
def test_a_process_is_killed_while_it_appends(tmp_path: Path, commits: int) -> None:
    schemas = dict.fromkeys("ab", Schema.parse("a bigint"))
    returned = NOTHING
    for _ in range(2):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        with writer, writer.stdout as lines:
            for _ in range(commits):
                returned = int(lines.readline())
            os.kill(writer.pid, signal.SIGKILL)
            returned = max([returned, *(int(line) for line in lines if line.endswith("\n"))])
        log = Log(str(tmp_path), schemas)
        assert log.issued >= returned
        assert log.positions == dict.fromkeys("ab", (log.issued + 1) // 2)
        pieces = log.slices("ab", NOTHING, log.issued)
        parts = [read_slice(piece, schemas["a"]) for piece in pieces]
        whole = join_trains(parts)
        assert sorted(whole.numbers.tolist()) == list(range(log.issued + 1))
        assert (whole.columns[0].values == whole.numbers * 3).all()
        files = {str(file.relative_to(tmp_path)) for file in (tmp_path / "segments").rglob("*.arrow")}
        assert files == {segment.file for commit in log.commits for segment in commit.segments.values()}


def test_a_seam_is_part_of_the_commit_and_sources_come_and_go(tmp_path: Path) -> None:
    log = Log(str(tmp_path), {"a": SCHEMA}, sync=False)
    log.append({"a": train([0, 1])}, 2, 0, positions={"a": 2}, seam={"network": {"x": [1]}})
    log.exchange({"c": SCHEMA})
    log.append({"c": train([3, 4])}, 4, 0, positions={"c": 2})
    with pytest.raises(RunError, match="unknown source 'c'"):
        Log(str(tmp_path), {"a": SCHEMA}, sync=False)
    again = Log(str(tmp_path), dict.fromkeys(("a", "c"), SCHEMA), sync=False)
    assert [commit.seam for commit in again.commits] == [{"network": {"x": [1]}}, None]
    assert (again.count(["a"], -1, 4), again.count(["c"], -1, 4)) == (2, 2)
    assert again.commits[0].issued == 2


def test_numbers_may_repeat_where_that_is_said(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "one"), {"a": SCHEMA}, sync=False, repeats=True)
    log.append({"a": train([1, 1, 1])}, 1, 0, positions={})
    log.append({"a": train([2, 4, 4, 4, 7])}, 9, 0, positions={})
    assert [log.count(["a"], after, upto) for after, upto in ((-1, 1), (0, 3), (1, 4), (4, 9))] == [3, 4, 4, 1]
    pieces = [read_slice(one, SCHEMA) for one in log.slices(["a"], 0, 4)]
    assert np.concatenate([piece.numbers for piece in pieces]).tolist() == [1, 1, 1, 2, 4, 4, 4]
    strict = Log(str(tmp_path / "two"), {"a": SCHEMA}, sync=False)
    with pytest.raises(ValueError, match="arrival numbers must ascend"):
        strict.append({"a": train([1, 1])}, 1, 0, positions={})


def test_segments_that_another_process_wrote_are_adopted(tmp_path: Path) -> None:
    def written(name: str, numbers: list[int]) -> segments.LogSegment:
        segment, data = segments.encode("a", train(numbers), SCHEMA, name)
        locate(str(tmp_path)).write(name, data, sync=False)
        return segment

    log = Log(str(tmp_path), SCHEMAS)
    log.append({"a": train([1, 2])}, 5, 0, positions={"a": 2})
    names = log.following("a", 3)
    made = [written(names[0], [6, 8]), None, written(names[2], [11])]
    log.adopt("a", made[0], 9, 1)
    log.adopt("a", made[1], 10, 1)  # killed before the third
    log = Log(str(tmp_path), SCHEMAS)
    assert not (tmp_path / names[2]).exists()
    assert (log.issued, log.positions["a"], log.count(["a"], NOTHING, 10)) == (10, 4, 4)
    assert join_trains([read_slice(one, SCHEMA) for one in log.slices(["a"], 5, 10)]).numbers.tolist() == [6, 8]
    (name,) = log.following("a", 1)
    with pytest.raises(ValueError, match="does not come after 10"):
        log.adopt("a", written(name, [10, 11]), 11, 2)
    again = written(name, [11, 12])
    (tmp_path / name).unlink()
    with pytest.raises(RunError, match="is not as it was written"):
        log.adopt("a", again, 12, 2)
    log.append({"a": train([11])}, 12, 2, positions={"a": 5})
    assert log.count(["a"], NOTHING, 12) == 5
