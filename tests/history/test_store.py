"""A history in use: catching up, what stays for readers, merging, manifests, failures, kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import fs

from headway.clock import SECOND, stopwatch
from headway.columns import UNREAD, Column
from headway.durations import Duration
from headway.errors import InputError, RunError
from headway.history import (
    START,
    History,
    HistoryFile,
    Kept,
    Layout,
    Position,
    Reader,
    Writers,
    file_name,
    read_files,
    through,
    write_file,
)
from headway.history.records import END
from headway.network.schema import Schema
from headway.storage.checked import seal, unseal
from headway.storage.filesystems import Place
from headway.trains import Train, constant
from tests.history.helpers import TINY, make_train, moment, store
from tests.searching import THOROUGH

SCHEMA = Schema.parse("sid int, time bigint, v double")
KEYED = Kept(SCHEMA, "sid", "time")
SMALL = Layout(flush=40_000, largest=400_000, merge=3, groups=16, least=16, most=64)


def train(first: int, count: int = 100, keys: int = 50) -> Train:
    numbers = np.arange(first, first + count)
    columns = (Column((numbers * 7919 % keys).astype(np.int32)), Column(numbers // 10), Column(numbers / 4))
    return Train(columns, constant(first * 1000, count), numbers)


def fill(history: History, upto: int, flush_every: int = 300) -> None:
    for first in range(history.edge.number + 1 if history.edge != START else 0, upto, 100):
        history.append(train(first))
        if (first + 100) % flush_every == 0:
            history.flush()


def numbers(reader: Reader) -> list[int]:
    return [number for one in reader for number in one.numbers.tolist()]


def merge_all(history: History) -> None:
    while history.work():
        pass


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with store(tmp_path / "points", KEYED, layout=SMALL) as opened:
        yield opened


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("key", [None, 7, (3, 9)])
def test_catching_up_has_neither_gap_nor_duplicate(tmp_path: Path, ahead: bool, key: Any) -> None:
    """A writer appends and merges all the time; the reader goes over to live tuples when it has reached the edge."""
    count = 40_000
    with (
        Writers(patience=SECOND // 50) as writers,
        History(str(tmp_path), KEYED, writers, SMALL, sync=False) as history,
    ):
        fill(history, 2000)

        def feed() -> None:
            for first in range(2000, count, 100):
                history.append(train(first))

        feeder = threading.Thread(target=feed)
        feeder.start()
        reader = history.follow(499, key, ahead=ahead)
        found: list[int] = []
        while True:
            got = reader.next(777, wait=False)
            if got is not None:
                assert len(got) <= 777
                found += got.numbers.tolist()
            elif reader.reached and reader.position == (count - 1, 0):
                break
            assert not (reader.reached and got is not None)
        feeder.join()
        assert reader.next() is None
        low, high = (key, key) if isinstance(key, int) else key or (0, 49)
        assert found == [number for number in range(500, count) if low <= number * 7919 % 50 <= high]
        history.append(train(count, 1))
        assert (reader.next() is not None) == (low <= count * 7919 % 50 <= high)
        assert reader.next() is None
        assert reader.position == (count, 0)


def test_a_read_is_what_there_was_when_it_began(history: History) -> None:
    fill(history, 1000)
    reader = history.read(after=99)
    fill(history, 3000)
    merge_all(history)
    assert numbers(reader) == list(range(100, 1000))


def test_columns_that_are_not_wanted_stay_unread(history: History) -> None:
    fill(history, 1000)
    part, whole = history.read(key=7, columns=["v"]), history.read(key=7)
    assert [one.columns[2].values.tolist() for one in part] == [one.columns[2].values.tolist() for one in whole]
    assert 0 < part.bytes_read < whole.bytes_read
    assert part.bytes_read == history.plan(7, columns=["v"]).bytes
    with pytest.raises(Exception, match="unknown field 'w'"):
        history.read(columns=["w"])


def test_what_a_reader_needs_stays(tmp_path: Path) -> None:
    kept = Kept(SCHEMA, "sid", "time", 500)
    with store(tmp_path, kept, layout=SMALL) as history:
        fill(history, 1000)
        reader = history.read(ahead=False)
        first = reader.next(50)
        assert first is not None
        assert first.numbers[0] == 500
        fill(history, 4000)
        assert history.files[0].first.number == 300
        assert numbers(reader) == list(range(550, 1000))
        fill(history, 4500)
        assert history.files[0].first.number == 3900
        assert numbers(history.read()) == list(range(4000, 4500))
        reader = history.read()
        del reader  # forgotten, not closed
        fill(history, 6000)
        assert history.files[0].first.number >= 5000
        assert len(list(tmp_path.glob("*.parquet"))) == len(history.files)


def test_files_are_deleted_when_their_last_reader_has_read_them(tmp_path: Path) -> None:
    with store(tmp_path, KEYED, layout=SMALL) as history:
        fill(history, 900)
        old = {file.name for file in history.files}
        with history._view() as view:
            merge_all(history)
            assert old <= {path.name for path in tmp_path.glob("*.parquet")}
            assert view.first_at_least(0, START, through(10**6)) == 0
        assert {path.name for path in tmp_path.glob("*.parquet")} == {file.name for file in history.files}


def test_files_are_merged_until_they_are_large(history: History) -> None:
    fill(history, 20_000, 200)
    assert len(history.files) == 100
    merge_all(history)
    assert len(history.files) < 20
    assert max(file.raw for file in history.files) <= SMALL.largest
    assert numbers(history.read()) == list(range(20_000))
    assert [one.first.number for one in history.files[1:]] == [one.last.number + 1 for one in history.files[:-1]]
    plan = history.plan(7)
    assert plan.way == "lookup"
    assert plan.bytes < plan.of_bytes / 4
    reader = history.read(key=7)
    assert numbers(reader) == [number for number in range(20_000) if number * 7919 % 50 == 7]
    assert reader.bytes_read == plan.bytes


def test_merged_files_hold_at_most_a_part_of_what_is_kept(tmp_path: Path) -> None:
    for keep in (4000, Duration.parse("400s")):
        with store(tmp_path / str(keep), Kept(SCHEMA, "sid", "time", keep), layout=SMALL) as history:
            fill(history, 8000, 100)
            merge_all(history)
            fill(history, 12_000, 100)
            merge_all(history)
            assert 4 <= len(history.files) < 60
            assert max(file.rows for file in history.files) <= 1100
            assert sum(file.rows for file in history.files) <= 5200
            assert numbers(history.read())[0] in (7990, 8000)


def test_plans_say_how_history_is_read(history: History) -> None:
    assert str(history.plan()) == "nothing to read"
    history.append(train(0))
    assert str(history.plan(7)) == "100 tuples in memory"
    fill(history, 2000, 500)
    history.append(train(2000))
    assert str(history.plan()).startswith("scan in 4 of 4 files, ")
    assert str(history.plan(7)).startswith("key lookup in 4 of 4 files, ")
    assert str(history.plan(7, 999)).startswith("key lookup in 2 of 4 files, ")
    assert str(history.plan(7)).endswith("MB, and 100 tuples in memory")
    assert history.plan((90, 99)).files == 0
    assert history.plan(7).seconds < history.plan().seconds
    assert history.plan(upto=499).rows == 500


def test_the_key_of_a_point_without_one_is_the_arrival_number(tmp_path: Path) -> None:
    with store(tmp_path, Kept(SCHEMA), layout=SMALL) as history:
        fill(history, 5000, 1000)
        reader = history.read(key=(1234, 1300))
        assert reader.upto == (4999, 0)
        assert numbers(reader) == list(range(1234, 1301))
        assert reader.bytes_read < sum(file.data for file in history.files) / 20
        reader = history.read(after=1233, upto=1300)
        assert numbers(reader) == list(range(1234, 1301))
        assert reader.bytes_read < sum(file.data for file in history.files) / 20


def test_since_takes_moments_too(tmp_path: Path) -> None:
    with store(tmp_path, KEYED) as history:
        fill(history, 1000)
        assert history.first_since(50).number == 500
        with pytest.raises(InputError, match="'noon' is not a moment of 'time', a bigint"):
            history.first_since("noon")
        with pytest.raises(InputError, match=r"1\.5 is not a moment"):
            history.first_since(1.5)
    with store(tmp_path / "stamps", Kept(SCHEMA)) as history:
        history.append(Train(train(0, 2).columns, np.array([0, 1_577_836_805 * SECOND]), np.arange(2)))
        assert history.first_since(moment(1)).number == 1
        assert history.first_since(moment(6)).number == 2
        assert history.kept.shown(1_577_836_805 * SECOND) == "2020-01-01 00:00:05+00:00"
        with pytest.raises(InputError, match="expected a datetime, or nanoseconds since 1970"):
            history.first_since("noon")


def test_since_reaches_back_further_than_what_is_kept(tmp_path: Path) -> None:
    with store(tmp_path, Kept(SCHEMA, "sid", "time", 300), layout=SMALL) as history:
        fill(history, 2000)
        near = history.first_since(Duration.parse("20s"))
        assert (near.number, near.complete) == (1790, True)
        far = history.first_since(Duration.parse("1h"))
        assert (far.number, far.complete, far.oldest, far.time) == (1700, False, (1700, 0), 170)
        assert not history.first_since().complete


def test_files_written_elsewhere_can_be_adopted(history: History) -> None:
    fill(history, 300)

    def written(first: int, count: int = 100, tag: str = "unit1b7") -> HistoryFile:
        return write_file(history.place, file_name(Position(first, 0), tag), KEYED, train(first, count))

    history.adopt([written(300), written(400)])
    assert history.edge == history.durable == (499, 0)
    history.adopt([written(300, 200, "again"), written(500)])  # repeated after a crash
    assert [file.first.number for file in history.files] == [0, 300, 400, 500]
    assert not list(Path(history.place.base).glob("*again*"))
    with pytest.raises(ValueError, match=r"begins at .*number=550.* which is not after .*number=599"):
        history.adopt([written(550)])
    history.append(train(600))
    with pytest.raises(ValueError, match="flush before"):
        history.adopt([written(700)])
    history.flush()
    fill(history, 900)
    assert numbers(history.read()) == list(range(900))
    found = read_files(history.place, history.files, KEYED, key=7)
    assert [number for one in found for number in one.numbers.tolist()] == numbers(history.read(key=7))


def test_files_are_written_elsewhere_if_they_can_be(history: History) -> None:
    fill(history, 300)
    asked: list[tuple[Position, Position, int]] = []

    def elsewhere(first: Position, last: Position, rows: int) -> HistoryFile | None:
        asked.append((first, last, rows))
        if first.number == 400:
            return None
        count = rows - (first.number == 500)  # the last one lacks a tuple
        made = train(first.number, count)
        return write_file(history.place, file_name(first, f"t{len(asked)}"), KEYED, made, sync=False)

    history.elsewhere = elsewhere
    for first in (300, 400, 500):
        history.append(train(first))
        history.flush()
    assert asked == [(Position(at, 0), Position(at + 99, 0), 100) for at in (300, 400, 500)]
    assert [file.name.endswith("t1.parquet") for file in history.files] == [False, True, False, False]
    assert not list(Path(history.place.base).glob("*-t3.parquet"))
    assert numbers(history.read()) == list(range(600))
    with history.pinned() as (files, _, rest):
        assert (list(files), rest) == (list(history.files), END)
    history.append(train(600))
    with history.pinned() as (files, _, rest):
        assert (len(files), rest) == (4, Position(600, 0))


def test_arrival_numbers_do_not_go_back(history: History) -> None:
    history.append(train(100))
    with pytest.raises(ValueError, match="arrival number 150 comes after 199"):
        history.append(train(150))


# Opening


def test_unlisted_files_are_removed_and_others_stay(tmp_path: Path) -> None:
    with store(tmp_path, KEYED) as history:
        fill(history, 300)
        listed = history.files[0].name
        shutil.copy(tmp_path / listed, tmp_path / "000000000300-0-000099.parquet")
        shutil.copy(tmp_path / listed, tmp_path / file_name(Position(300, 0), "executor"))
        (tmp_path / "000000000300-0-000100.parquet.tmp").write_bytes(b"half")
        (tmp_path / "mine.parquet").write_bytes(b"a user's")
    with store(tmp_path, KEYED) as history:
        assert numbers(history.read()) == list(range(300))
        assert {path.name for path in tmp_path.iterdir()} == {
            *[file.name for file in history.files],
            "manifest.jsonl",
            "mine.parquet",
        }


def test_another_version_is_named(tmp_path: Path) -> None:
    store(tmp_path, KEYED).close()
    with store(tmp_path, KEYED) as history:
        fill(history, 100)
    path = tmp_path / "manifest.jsonl"
    head, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(seal({**unseal(head), "format": 7}) + b"\n" + rest)
    with pytest.raises(RunError, match=r"has format 7, and this version of Headway reads format 1"):
        store(tmp_path, KEYED)


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (Kept(SCHEMA, None, "time"), "its storage key was 'sid', and is now that of arrival; rename the point"),
        (Kept(SCHEMA, "sid"), "its time was 'time', and is now that of arrival"),
        (
            Kept(Schema.parse("sid int, time bigint"), "sid", "time"),
            "its fields were sid int, time bigint, v double, and are now sid",
        ),
    ],
)
def test_another_point_is_refused(tmp_path: Path, kept: Kept, message: str) -> None:
    with store(tmp_path, KEYED) as history:
        fill(history, 100)
    with pytest.raises(RunError, match=message):
        store(tmp_path, kept)
    with store(tmp_path, Kept(SCHEMA, "sid", "time", 10)) as history:
        assert numbers(history.read()) == list(range(90, 100))


def test_damage_is_found_when_opening(tmp_path: Path) -> None:
    with store(tmp_path, KEYED, layout=SMALL) as history:
        fill(history, 300)
        file = tmp_path / history.files[0].name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(RunError, match=f"'{file}' is damaged: it has"):
        store(tmp_path, KEYED)
    file.unlink()
    with pytest.raises(RunError, match=f"'{file}' is missing; restore the file, or delete this history"):
        store(tmp_path, KEYED)
    file.write_bytes(whole)
    path = tmp_path / "manifest.jsonl"
    data = path.read_bytes()
    for changed in (b"", data[:50], data.replace(b'"rows":300', b'"rows":301'), seal({"format": 1})):
        path.write_bytes(changed)
        with pytest.raises(RunError, match=r"manifest\.jsonl' is"):
            store(tmp_path, KEYED)
    path.write_bytes(data)
    with store(tmp_path, KEYED) as history:
        assert numbers(history.read()) == list(range(300))


def test_a_place_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"file/x' cannot be written: File exists"):
        store(tmp_path / "file" / "x", KEYED)


# Failures and memory


class Full:
    """A disk that is full for some files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: tuple[str, ...] = ()
        write = Place.write

        def refuse(place: Place, relative: str, data: Any, *, sync: bool, rename: bool = True) -> None:
            if any(name in relative for name in self.names):
                (Path(place.base) / f"{relative}.tmp").write_bytes(b"half")
                raise OSError(28, "No space left on device")
            write(place, relative, data, sync=sync, rename=rename)

        monkeypatch.setattr(Place, "write", refuse)


@pytest.mark.parametrize("name", ["parquet", "manifest"])
def test_a_full_disk_is_one_error_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    disk = Full(monkeypatch)
    writers = Writers(threads=0)
    with store(tmp_path, KEYED, writers, SMALL) as history:
        fill(history, 600)
        listed = history.files
        disk.names = (name,)
        history.append(train(600))
        with pytest.raises(RunError, match=f"history '{tmp_path}' cannot be written: No space left on device"):
            history.flush()
        assert history.failed is not None
        assert history.files == listed
        assert {path.name for path in tmp_path.iterdir()} == {"manifest.jsonl", *[file.name for file in listed]}
        with pytest.raises(RunError, match="No space left"):
            fill(history, 10_000, 10**9)
        assert writers.waiting == 0
        assert not history.work()
        edge = history.edge.number
        assert numbers(history.read()) == list(range(edge + 1))
        disk.names = ()
        history.flush()
        fill(history, edge + 201)
        assert numbers(history.read()) == list(range(edge + 201))
    assert writers.waiting == 0


def test_a_failure_in_the_background_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Full(monkeypatch)
    disk.names = ("parquet",)
    with Writers(limit=200_000) as writers:
        history = History(str(tmp_path), KEYED, writers, SMALL, sync=False)
        with pytest.raises(RunError, match="No space left"):
            fill(history, 100_000, 10**9)
        assert str(history.failed).endswith("No space left on device")
        disk.names = ()
        history.close()
    with store(tmp_path, KEYED) as again:
        assert numbers(again.read()) == list(range(history.edge.number + 1))


def test_appending_waits_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = threading.Event()
    write = Place.write

    def slow(place: Place, relative: str, data: Any, *, sync: bool, rename: bool = True) -> None:
        allowed.wait(10)
        write(place, relative, data, sync=sync, rename=rename)

    monkeypatch.setattr(Place, "write", slow)
    with Writers(limit=100_000) as writers, History(str(tmp_path), KEYED, writers, SMALL, sync=False) as history:
        done = threading.Event()

        def feed() -> None:
            for first in range(0, 10_000, 100):
                history.append(train(first))
            done.set()

        threading.Thread(target=feed, daemon=True).start()
        assert not done.wait(0.2)
        assert (history.behind, writers.waiting < 110_000) == (True, True)
        allowed.set()
        assert done.wait(10)
        history.flush()
        assert (history.behind, writers.waiting) == (False, 0)
        assert numbers(history.read()) == list(range(10_000))


def test_what_waits_long_enough_is_written(tmp_path: Path) -> None:
    with Writers(patience=SECOND // 100) as writers, History(str(tmp_path), KEYED, writers, sync=False) as history:
        for first in (0, 100):
            history.append(train(first))
            until = stopwatch() + 10 * SECOND
            while history.unwritten and stopwatch() < until:
                time.sleep(0.01)
            assert history.durable == (first + 99, 0)


def test_a_thousand_points_share_a_thread_and_the_memory(tmp_path: Path) -> None:
    before = threading.active_count()
    with Writers(limit=3_000_000) as writers:
        points = [History(str(tmp_path / str(at)), KEYED, writers, sync=False) for at in range(1000)]
        for first in (0, 100):
            for point in points:
                point.append(train(first))
                assert writers.waiting < 3_010_000
        assert threading.active_count() == before + 1
        assert sum(len(point.files) for point in points) > 100
        for point in points[::100]:
            assert numbers(point.read()) == list(range(200))
        for point in points:
            point.close()
        assert writers.waiting == 0
    assert threading.active_count() == before


# Kills

CHILD = """
import sys, numpy as np
from headway.columns import Column
from headway.history import History, Writers
from tests.history.test_store import KEYED, SMALL, train
with Writers() as writers:
    history = History(sys.argv[1], KEYED, writers, SMALL)
    for first in range(int(sys.argv[2]), 10**9, 100):
        history.append(train(first))
        print(history.durable.number, flush=True)
"""


@pytest.mark.slow
def test_a_kill_leaves_whole_files(tmp_path: Path) -> None:
    edge = -1
    for turn in range(12):
        command = [sys.executable, "-c", CHILD, str(tmp_path), str(max(0, edge // 100 - 3) * 100)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        assert child.stdout is not None
        said = edge
        while said < edge + 5_000 + 3_000 * turn:
            said = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with store(tmp_path, KEYED, layout=SMALL) as history:
            assert history.durable.number >= said
            edge = history.durable.number
            assert numbers(history.read()) == list(range(edge + 1))
            expected = [number for number in range(edge + 1) if number * 7919 % 50 == 7]
            assert numbers(history.read(key=7)) == expected


def test_positions_compare_in_the_order_of_arrival() -> None:
    assert START < Position(0, 0) < Position(0, 1) < through(0) < Position(1, 0)
    assert TINY.flush < TINY.largest


def test_a_history_can_be_cut_where_a_restart_begins(tmp_path: Path) -> None:
    for upto, files in ((-1, 0), (149, 2), (299, 3), (1000, 6)):
        path = tmp_path / str(upto)
        with store(path, KEYED, layout=SMALL) as history:
            fill(history, 600, 100)
        with store(path, KEYED, layout=SMALL) as history:
            history.cut(upto)
            left = min(upto, 599)
            assert len(history.files) == files == len(list(path.glob("*.parquet")))
            assert history.edge == history.durable == ((left, 0) if left >= 0 else START)
            assert numbers(history.read()) == list(range(left + 1))
            history.append(train(left + 1))
            assert numbers(history.read(key=7)) == [at for at in range(left + 101) if at * 7919 % 50 == 7]
            with pytest.raises(ValueError, match="before anything is appended"):
                history.cut(0)


def test_a_train_that_cannot_be_read_fails_and_is_named(tmp_path: Path) -> None:
    with Writers(patience=SECOND // 100) as writers:
        history = History(str(tmp_path), KEYED, writers, sync=False)
        whole = train(0)
        history.append(Train((whole.columns[0], UNREAD, whole.columns[2]), whole.stamps, whole.numbers))
        until = stopwatch() + 10 * SECOND
        while history.failed is None and stopwatch() < until:
            time.sleep(0.01)
        assert f"the history '{tmp_path}' cannot be written: AttributeError" in str(history.failed)
        with pytest.raises(RunError, match="AttributeError"):
            history.close()


def test_a_history_may_be_elsewhere() -> None:
    filesystem = fs._MockFileSystem()
    place = Place("mock://points/a", filesystem, "points/a", False, True)
    for first in (0, 1000):
        with Writers() as writers, History(place, KEYED, writers, SMALL) as history:
            fill(history, first + 1000)
            merge_all(history)
            assert numbers(history.read(key=(7, 8), ahead=True)) == [
                at for at in range(first + 1000) if 7 <= at * 7919 % 50 <= 8
            ]
    assert len(place.files("")) == len(history.files) + 1


def test_a_number_whose_later_tuples_are_kept_is_kept_whole(tmp_path: Path) -> None:
    """Files may end within an arrival number; a duration covers whole ones."""
    kept = Kept(SCHEMA, "sid", "time", Duration.parse("2s"))
    with store(tmp_path, kept) as history:
        rows = [(0, 0, 0.0), (5, 1, 1.0), (5, 9, 2.0), (6, 9, 3.0)]
        for number, moment_, value in rows:
            history.append(make_train(SCHEMA, [(1, moment_, value)], [number], [0]))
            history.flush()
        assert [one.columns[2].values.tolist() for one in history.read()] == [[1.0], [2.0], [3.0]]
        assert [file.first for file in history.files] == [(5, 0), (5, 1), (6, 0)]


def test_a_reader_ends_where_it_should(history: History) -> None:
    fill(history, 600)
    history.append(train(600))
    for upto in (250, 299, 649, 10_000):
        reader = history.read(upto=upto)
        assert numbers(reader) == list(range(min(upto, 699) + 1))
        assert reader.position == min(through(upto), Position(699, 0))


def test_merged_files_know_of_tuples_without_a_time(tmp_path: Path) -> None:
    schema = Schema.parse("sid int, time bigint")
    layout = Layout(flush=4_000, largest=30_000, merge=3)
    with store(tmp_path, Kept(schema, "sid", "time"), layout=layout) as history:
        for number in range(3):
            history.append(make_train(schema, [(1, number or None)], [number], [0]))
            history.flush()
        merge_all(history)
        assert [file.untimed for file in history.files] == [1]
        assert history.first_since(0).number == 1


def test_all_points_are_written_when_memory_is_short(tmp_path: Path) -> None:
    """Also those that nobody appends to any more: who needs the memory must not wait for their patience."""
    with Writers(limit=100_000, patience=1000 * SECOND) as writers:
        layout = Layout(flush=10**6)
        points = [History(str(tmp_path / str(at)), KEYED, writers, layout, sync=False) for at in range(2)]
        points[0].append(train(0, 1000))
        assert not points[0].behind
        points[1].append(train(0, 500))
        until = stopwatch() + 10 * SECOND
        while points[0].unwritten and stopwatch() < until:
            time.sleep(0.01)
        assert points[0].unwritten == 0
        for point in points:
            point.close()


@pytest.mark.parametrize("keep", [1500, Duration.parse("150s")])
def test_readers_of_all_kinds_while_files_come_and_go(tmp_path: Path, keep: int | Duration) -> None:
    """Each sees the arc from where it began, without gaps, whatever is merged and deleted meanwhile."""
    count = 1_000_000 if THOROUGH else 30_000
    errors: list[BaseException] = []
    kept = Kept(SCHEMA, "sid", "time", keep)
    with (
        Writers(patience=SECOND // 100, threads=2) as writers,
        History(str(tmp_path), kept, writers, SMALL, sync=False) as history,
    ):
        done = threading.Event()

        def follow(start: int, ahead: bool) -> None:
            chance = np.random.default_rng(start)
            reader = history.follow(ahead=ahead)
            last: int | None = None
            while not done.is_set() or last is None or last < count - 1:
                got = reader.next(int(chance.integers(1, 900)), wait=bool(chance.integers(0, 2)))
                if got is not None:
                    found = got.numbers.tolist()
                    assert last is None or found[0] == last + 1
                    assert found == list(range(found[0], found[-1] + 1))
                    last = found[-1]
            assert reader.position == history.edge

        def ask(seed: int) -> None:
            chance = np.random.default_rng(seed)
            while not done.is_set():
                key = int(chance.integers(0, 50))
                edge = history.edge.number
                found = numbers(history.read(upto=edge, key=key, ahead=bool(chance.integers(0, 2))))
                assert all(number * 7919 % 50 == key for number in found)
                assert len(found) <= 1600 // 50
                assert not found or found[-1] > edge - 50
                since = history.first_since(Duration.parse("20s"), edge)
                assert since.number >= max(0, (edge // 10 - 20) * 10)  # more if much was appended meanwhile
                assert history.plan(key).files >= 0

        def caught(work: Callable[..., None], *arguments: Any) -> None:
            try:
                work(*arguments)
            except BaseException as error:
                errors.append(error)
                raise

        works: list[tuple[Any, ...]] = [(follow, 1, False), (follow, 2, True), (ask, 3), (ask, 4)]
        threads = [threading.Thread(target=caught, args=work) for work in works]
        for thread in threads:
            thread.start()
        for first in range(0, count, 100):
            history.append(train(first))
            if history.behind:
                time.sleep(0.001)
        done.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert history.failed is None
        history.flush()
        left = {path.name for path in tmp_path.glob("*.parquet")}
        assert left == {file.name for file in history.files} | history._doomed
        assert not history._used


def test_without_threads_who_appends_writes(tmp_path: Path) -> None:
    with Writers(threads=0, limit=100_000) as writers:
        points = [store(tmp_path / str(at), KEYED, writers, SMALL) for at in range(5)]
        for first in range(0, 5000, 100):
            for point in points:
                point.append(train(first))
                assert writers.waiting < 150_000
        assert all(len(point.files) > 3 for point in points)
        assert [numbers(point.read()) for point in points] == [list(range(5000))] * 5
        for point in points:
            point.close()
        assert writers.waiting == 0
