"""Readers, ingest and log without Spark, in virtual time, killed at any commit: what arrives, and in which order."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.clock import MILLISECOND, SECOND, ManualClock
from headway.connectors import open_source
from headway.connectors.protocol import Reader, begins_anew
from headway.engines.ingest import Feed, Ingest
from headway.engines.spark.driver.reading import Arrivals, read_on
from headway.network.schema import Schema
from headway.storage.log import Log, read_slice
from headway.trains import NOTHING, Train
from tests.connectors.helpers import write

SCHEMA = Schema.parse("t double, v bigint")
FIELDS = {"t": "t", "v": "i"}
PLAIN = {"t": "0.5 * i", "v": "i"}

Made = Callable[[Path, random.Random], tuple[object, float | None]]
"""Makes an input and its rate; the same one for the same chance."""


def generated(**how: object) -> Made:
    return lambda path, chance: ({"generate": {"seed": chance.randrange(99), "fields": FIELDS, **how}}, None)


def filed(suffix: str, rate: float | None = None, by: float | None = None, empty: bool = False) -> Made:
    """A file with malformed rows where its kind can have them, also in front of the first tuple."""

    def make(path: Path, chance: random.Random) -> tuple[object, float | None]:
        rows: list[Any] = [{"t": at * 0.01 + chance.choice((0, 0.02)), "v": at} for at in range(chance.randrange(70))]
        rows = [] if empty else rows
        file = path.with_suffix(suffix)
        if suffix == ".parquet":
            write(file, SCHEMA.to_arrow().empty_table().from_pylist(rows, schema=SCHEMA.to_arrow()), 7)
        else:
            for _ in range(chance.randrange(9)):
                rows.insert(chance.randint(0, len(rows)), {"t": 1.0, "v": "bad"})
            lines = (
                [json.dumps(row) for row in rows] if suffix == ".jsonl" else [f"{row['t']},{row['v']}" for row in rows]
            )
            file.write_text("\n".join([*(["t,v"] if suffix == ".csv" else []), *lines]) + "\n")
        if by is not None:
            return {"replay": {"file": str(file), "by": "t", "speed": by}}, None
        return str(file), rate

    return make


def listed(rate: float | None = None) -> Made:
    return lambda path, chance: ([(0.0, at) for at in range(chance.randrange(60))], rate)


TIMED: dict[str, Made] = {
    "steady": generated(rate=100, count=80),
    "even": generated(rate=50, count=40),  # due at the same moments as every other tuple of the one before
    "slow": generated(rate=1.5, count=4),
    "none": generated(rate=5, count=0),
    "poisson": generated(rate=80, arrivals="poisson", count=90),
    "bursts": generated(burst={"size": 9, "every": "200ms"}, count=50),
    "phases": generated(phases=[[0.3, 40], [0.4, 0], [0.2, 90]]),
    "poisson phases": generated(phases=[[0.3, 0], [0.4, 90]], arrivals="poisson"),
    "paced csv": filed(".csv", rate=70),
    "paced jsonl": filed(".jsonl", rate=33),
    "paced parquet": filed(".parquet", rate=100),
    "paced list": listed(90),
    "replayed": filed(".csv", by=1.0),
    "replayed fast": filed(".parquet", by=3.0),
}
UNTIMED: dict[str, Made] = {
    "csv": filed(".csv"),
    "jsonl": filed(".jsonl"),
    "parquet": filed(".parquet"),
    "nothing": filed(".csv", empty=True),
    "list": listed(),
    "made": lambda path, chance: ({"generate": {"count": chance.randrange(80), "fields": PLAIN}}, None),
}


class Process:
    """What a process has of a run beside Spark: lost when it is killed, but for the log."""

    def __init__(self, log: Path, open_all: Callable[[], dict[str, Reader]], clock: ManualClock, chunk: int) -> None:
        self.clock = clock
        readers = open_all()
        self.log = Log(str(log), dict.fromkeys(readers, SCHEMA), keep_seconds=1e9, sync=False)
        self.arrivals = Arrivals(self.log, clock)
        self.feeds = []
        for name, reader in readers.items():
            reader = read_on(reader, name, self.log, None)
            feed = Feed(name, reader, self.arrivals.feeder(name), lambda number: None, Train.empty(SCHEMA))
            feed.tuples = self.log.positions[name]
            self.feeds.append(feed)
        self.ingest = Ingest(self.feeds, clock, chunk, self.arrivals.refuse, self.log.issued)
        if self.log.end is not None:
            self.ingest.stop()
        elif self.log.issued > NOTHING:
            self.ingest.go_on(self.log.newest.reached, self.log.newest.positions)

    def seal(self) -> None:
        positions = {feed.name: feed.tuples for feed in self.feeds}
        self.arrivals.seal(self.ingest.issued, positions, self.ingest.reached)

    def finish(self) -> None:
        if self.log.end is None:
            self.ingest.end()
            self.seal()

    @property
    def tuples(self) -> int:
        return sum(feed.tuples for feed in self.feeds)

    def close(self) -> None:
        self.ingest.stop()
        for feed in self.feeds:
            feed.reader.close()


def in_log(log: Log) -> tuple[list[tuple[str, int, float]], list[str]]:
    """Return what a log holds: the tuples in their order, and the malformed rows."""
    found = []
    for source in log.positions:
        last = 0
        for piece in log.slices([source], NOTHING, log.issued):
            train = read_slice(piece, SCHEMA)
            stamps = train.stamps.tolist()
            assert stamps == sorted(stamps), f"stamps of {source} go back"
            assert last <= stamps[0], f"stamps of {source} go back"
            last = stamps[-1]
            moments, values = (column.values.tolist() for column in train.columns)
            found += list(zip(train.numbers.tolist(), [source] * len(values), values, moments, strict=True))
    found.sort()
    assert len({number for number, *_ in found}) == len(found)
    refused = [" ".join(row) for commit in log.commits for row in commit.malformed]
    return [(source, value, moment) for _, source, value, moment in found], refused


class Inputs:
    """The sources of one example."""

    def __init__(self, folder: Path, kinds: list[str], seed: int) -> None:
        self._folder, self._kinds, self._seed = folder, kinds, seed
        folder.mkdir(parents=True, exist_ok=True)

    def open(self, only: set[str] | None = None) -> dict[str, Reader]:
        readers = {}
        for at, kind in enumerate(self._kinds):
            name = f"s{at}"
            what, rate = (TIMED | UNTIMED)[kind](self._folder / name, random.Random(self._seed + at))
            if only is None or kind in only:
                readers[name] = open_source(name, SCHEMA, what, rate=rate)
        return readers


def undisturbed(
    folder: Path, inputs: Inputs, only: set[str] | None = None
) -> tuple[list[tuple[str, int, float]], list[str]]:
    clock = ManualClock(7)
    process = Process(folder, lambda: inputs.open(only), clock, 1000)
    while not process.ingest.ended:
        process.ingest.pull(True)
        clock.advance(50 * MILLISECOND)
    process.seal()
    process.close()
    return in_log(process.log)


def killed(folder: Path, inputs: Inputs, seed: int, kills: int) -> tuple[list[tuple[str, int, float]], list[str]]:
    """Run with kills at random commits, before the first and behind the end included."""
    chance, clock = random.Random(seed), ManualClock(SECOND)
    while True:
        process = Process(folder, inputs.open, clock, chance.choice((3, 11, 1000)))
        until = chance.choice((0, 1, 2, 3, 5, 8, 13, 10_000)) if kills else 100_000
        while until and not process.ingest.ended:
            process.ingest.pull(chance.random() < 0.7)
            if chance.random() < 0.05:
                process.ingest.tick()
            if chance.random() < 0.6:
                process.seal()
                until -= 1
            clock.advance(chance.choice((0, 1, 40, 300)) * MILLISECOND)
        if process.ingest.ended and chance.random() < 0.5:
            process.finish()
        process.close()
        if not kills:
            process.finish()
            return in_log(process.log)
        kills -= 1
        clock.advance(chance.choice((0, 5, 100)) * SECOND)


def check(folder: Path, kinds: list[str], seed: int, kills: int) -> None:
    inputs = Inputs(folder / "inputs", kinds, seed)
    found, refused = killed(folder / "killed", inputs, seed, kills)
    for part in (set(TIMED), set(UNTIMED)):
        expected, missed = undisturbed(folder / f"undisturbed-{len(part)}", inputs, part)
        names = {f"s{at}" for at, kind in enumerate(kinds) if kind in part}
        assert [row for row in found if row[0] in names] == expected
        assert sorted(row for row in refused if row.split()[0] in names) == sorted(missed)


@given(
    st.lists(st.sampled_from(sorted(TIMED | UNTIMED)), min_size=1, max_size=5), st.integers(0, 10**6), st.integers(1, 4)
)
def test_any_sources_killed_at_any_commit(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str], seed: int, kills: int
) -> None:
    check(tmp_path_factory.mktemp("any"), kinds, seed, kills)


@pytest.mark.parametrize("kinds", [list(TIMED), list(UNTIMED), [*TIMED, *UNTIMED]], ids=["timed", "untimed", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_all_sources_at_once(tmp_path: Path, kinds: list[str], seed: int) -> None:
    check(tmp_path, kinds, seed, kills=3)


@pytest.mark.slow
def test_many_more_kills(tmp_path: Path) -> None:
    names = sorted(TIMED | UNTIMED)
    for seed in range(1500):
        chance = random.Random(seed)
        check(tmp_path / str(seed), chance.choices(names, k=chance.randint(1, 6)), seed, chance.randint(1, 5))


# The moments


def two(folder: Path) -> dict[str, Reader]:
    made = [{"generate": {"rate": rate, "count": count, "fields": FIELDS}} for rate, count in ((100, 3000), (0.1, 4))]
    return {name: open_source(name, SCHEMA, what) for name, what in zip("ab", made, strict=True)}


def test_one_shift_for_all(tmp_path: Path) -> None:
    clock = ManualClock(0)
    process = Process(tmp_path / "log", lambda: two(tmp_path), clock, 1000)
    clock.advance(11_500 * MILLISECOND)
    while process.ingest.pull(False):
        pass
    process.seal()
    clock.advance(3600 * SECOND)
    process = Process(tmp_path / "log", lambda: two(tmp_path), clock, 1000)
    began = clock.now()
    assert process.ingest.next_due() == began, "the first tuple that remains is due at once"
    seconds = []
    while not process.ingest.ended:
        process.ingest.pull(False)
        for name, train in process.arrivals.latest.items():
            seconds += [(name, stamp / SECOND) for stamp in train.stamps.tolist()]
        process.arrivals.latest.clear()
        clock.advance(SECOND)
    at = [round(moment - began / SECOND + 11.51, 6) for name, moment in seconds if name == "b"]
    assert at == [20, 30], "b is where it was against a"
    process.seal()
    assert [moment for _, _, moment in in_log(process.log)[0]] == sorted(
        [i / 100 for i in range(3000)] + [0, 10, 20, 30]
    )


def test_rates_do_not_count_what_came_before(tmp_path: Path) -> None:
    clock = ManualClock(0)
    process = Process(tmp_path / "log", lambda: two(tmp_path), clock, 1000)
    clock.advance(20 * SECOND)
    process.ingest.pull(False)
    process.seal()
    process = Process(tmp_path / "log", lambda: two(tmp_path), clock, 1000)
    clock.advance(SECOND)
    assert process.ingest.rates(clock.now()).tolist() == [0, 0]
    assert process.ingest.before == process.tuples == 1001


def test_a_slower_rate_keeps_nobody_waiting(tmp_path: Path) -> None:
    rows = [(0.0, at) for at in range(100)]
    clock = ManualClock(0)
    process = Process(tmp_path / "log", lambda: {"s": open_source("s", SCHEMA, rows, rate=10)}, clock, 1000)
    clock.advance(5 * SECOND)
    process.ingest.pull(False)
    process.seal()
    process = Process(tmp_path / "log", lambda: {"s": open_source("s", SCHEMA, rows, rate=1)}, clock, 1000)
    assert process.ingest.next_due() == clock.now()


def test_a_new_source_counts_from_now_on(tmp_path: Path) -> None:
    clock = ManualClock(0)
    process = Process(tmp_path / "log", lambda: two(tmp_path), clock, 10_000)
    clock.advance(11_500 * MILLISECOND)
    process.ingest.pull(False)
    process.seal()
    new = {"generate": {"rate": 1, "count": 3, "fields": FIELDS}}
    process = Process(tmp_path / "log", lambda: {**two(tmp_path), "c": open_source("c", SCHEMA, new)}, clock, 10_000)
    began = clock.now()
    assert process.ingest.next_due() == began
    clock.advance(10 * SECOND)
    process.ingest.pull(False)
    stamps = {name: (train.stamps - began).tolist() for name, train in process.arrivals.latest.items()}
    assert stamps["c"] == [0, SECOND, 2 * SECOND]
    assert stamps["a"][:2] == [0, SECOND // 100]
    process.ingest.pull(False)
    assert (process.arrivals.latest["b"].stamps - began).tolist() == [8490 * MILLISECOND]


# Live sources


def drained(process: Process, count: int) -> None:
    """Pull until so many tuples have come; threads read them."""
    deadline = time.monotonic() + 10
    while process.tuples < count and time.monotonic() < deadline:
        process.ingest.pull(True)
        time.sleep(0.002)
    process.seal()
    assert process.tuples == count


@pytest.mark.parametrize("rate", [None, 20.0])
def test_an_iterator_that_is_made_again_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rate: float | None
) -> None:
    clock = ManualClock(0)

    def rows(count: int) -> Iterator[tuple[float, object]]:
        return ((0.0, at if at % 5 else "bad") for at in range(count))

    process = Process(tmp_path / "log", lambda: {"s": open_source("s", SCHEMA, rows(20), rate=rate)}, clock, 1000)
    clock.advance(SECOND)
    drained(process, 16)
    process.close()
    clock.advance(SECOND)
    process = Process(tmp_path / "log", lambda: {"s": open_source("s", SCHEMA, rows(40), rate=rate)}, clock, 1000)
    began = clock.now()
    clock.advance(SECOND)
    drained(process, 32)
    process.close()
    found, refused = in_log(process.log)
    assert [value for _, value, _ in found] == [at for at in range(40) if at % 5]
    assert len(refused) == 8
    assert caplog.messages == ["source 's': its first 16 tuples are passed over: the saved run has them"]
    if rate is not None:  # tuple i at i/20 s; the run had gone on for 1 s
        stamps = [stamp for piece in process.log.slices("s", 15, 99) for stamp in read_slice(piece, SCHEMA).stamps]
        assert [stamp - began + SECOND for stamp in stamps] == [at * SECOND // 20 for at in range(16, 32)]


def test_a_pipe_goes_on_with_what_comes(tmp_path: Path) -> None:
    clock = ManualClock(0)

    def hang_up(process: Process, end: int) -> None:
        os.close(end)
        while not process.ingest.ended:
            process.ingest.pull(True)
            time.sleep(0.002)
        process.close()

    def speak(values: range) -> tuple[Process, int]:
        pipe = tmp_path / f"{values.start}.jsonl"  # the thread of the first process still waits at its own
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR)
        reader = open_source("s", SCHEMA, str(pipe), rate=10)
        assert not begins_anew(reader)
        os.write(end, b"".join(json.dumps({"t": 0.0, "v": value}).encode() + b"\n" for value in values))
        return Process(tmp_path / "log", lambda: {"s": reader}, clock, 1000), end

    process, end = speak(range(5))
    clock.advance(SECOND)
    drained(process, 5)
    hang_up(process, end)
    process, end = speak(range(5, 9))
    began = clock.now()
    clock.advance(SECOND)
    drained(process, 9)
    hang_up(process, end)
    assert [value for _, value, _ in in_log(process.log)[0]] == list(range(9))
    stamps = [stamp for piece in process.log.slices("s", 4, 99) for stamp in read_slice(piece, SCHEMA).stamps]
    assert stamps == [began + at * SECOND // 10 for at in range(4)], "it counts from where the run was"


@pytest.mark.parametrize(("file", "anew"), [(True, True), (False, False)])
def test_standard_input_from_a_file_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: bool, anew: bool
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"t": 0, "v": 1}\n')
    ends = os.pipe()
    with path.open() if file else os.fdopen(ends[0]) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert begins_anew(open_source("s", SCHEMA, "-")) is anew
    for end in ends if file else ends[1:]:
        os.close(end)


def test_a_csv_pipe_does_not_begin_anew(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=("t,v\n1,2\n",), daemon=True).start()
    reader = open_source("s", SCHEMA, str(pipe))
    assert not begins_anew(reader)
    reader.close()
