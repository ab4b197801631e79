"""Networks over several sources of each kind, run side by side in one process that is killed again and again.

A start of Spark costs more than all that these networks do, so one process runs several of them at once, each with
its own state. One kill -9 ends them all wherever they are.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import headway as hw
from headway.connectors.protocol import Chunk, Malformed
from headway.network.schema import Schema
from headway.storage.log import Commit, Log, read_slice
from headway.trains import NOTHING, Train
from tests.engines.spark.crashing import PROGRAMS, Process

SCHEMA = Schema.parse("t double, v bigint")
Row = tuple[float, int]


class Fed(NamedTuple):
    """A source of a network: what is given for it, with which rate, and how many tuples come at least."""

    what: object
    rate: float | None = None


def generated(number: int, **how: object) -> Fed:
    return Fed({"generate": {"seed": number + 1, "fields": {"t": "t", "v": f"i * 10 + {number}"}, **how}})


def rows_of(number: int, count: int, gap: float) -> list[Row]:
    """The rows of a file or a collection; moments ascend but for a few."""
    chance = random.Random(number)
    return [(round(at * gap + chance.choice((0, 0, 0, 0.3)), 3), at * 10 + number) for at in range(count)]


def filed(folder: Path, number: int, suffix: str, count: int, gap: float) -> str:
    """Write a file, with malformed rows where its kind has them; the same one every time."""
    path, rows = folder / f"s{number}{suffix}", rows_of(number, count, gap)
    if path.exists():
        return str(path)
    chance = random.Random(number)
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([{"t": t, "v": v} for t, v in rows], SCHEMA.to_arrow()), path)
        return str(path)
    lines = [json.dumps({"t": t, "v": v}) if suffix == ".jsonl" else f"{t},{v}" for t, v in rows]
    for at in sorted([0, *chance.sample(range(count), count // 40)], reverse=True):
        lines.insert(at, '{"t": "soon"}' if suffix == ".jsonl" else "soon,1")
    path.write_text("\n".join([*(["t,v"] if suffix == ".csv" else []), *lines]) + "\n")
    return str(path)


def slowly(number: int, count: int, state: Path) -> pa.RecordBatchReader:
    """An Arrow reader that takes its time, so that what arrives in turn does so bit by bit; not for what is known."""
    schema, known = SCHEMA.to_arrow(), position(state, f"s{number}")

    def pieces() -> Iterator[pa.RecordBatch]:
        rows = [{"t": t, "v": v} for t, v in rows_of(number, count, 0.01)]
        for at in range(0, count, 15):
            time.sleep(0.3 if at >= known else 0)
            yield pa.RecordBatch.from_pylist(rows[at : at + 15], schema)

    return pa.RecordBatchReader.from_batches(schema, pieces())


def position(state: Path, source: str) -> int:
    """Return how many tuples of a source the log has."""
    commit = newest_commit(state)
    return 0 if commit is None else commit.positions[source]


def newest_commit(state: Path) -> Commit | None:
    """Return the newest commit of a log that may be in use."""
    newest = max(state.glob("log/commits/*.json"), default=None)
    try:
        return None if newest is None else Commit.from_line(newest.read_bytes())
    except FileNotFoundError:  # folded meanwhile: there is a newer one
        return newest_commit(state)


def living(number: int, count: int, pause: float, state: Path) -> Iterator[Row]:
    """A generator that speaks now and then, and does not wait for what is known."""
    known = position(state, f"s{number}")
    for at, row in enumerate(rows_of(number, count, 0.02)):
        if at % 10 == 0 and at >= known:
            time.sleep(pause)
        yield row


def streamed(folder: Path, number: int, count: int) -> object:
    """A directory of JSON files that Spark reads, one after the other."""
    place = folder / f"s{number}.d"
    if not place.exists():
        place.mkdir()
        rows = rows_of(number, count, 0.02)
        for at in range(0, count, 25):
            lines = [json.dumps({"t": t, "v": v}) for t, v in rows[at : at + 25]]
            file = place / f"{at:05d}.json"
            file.write_text("\n".join(lines) + "\n")
            os.utime(file, (1e9 + at, 1e9 + at))  # Spark reads the oldest one first
    options = {"maxFilesPerTrigger": 1}
    return {"spark": {"format": "json", "path": str(place), "options": options, "available_now": True}}


def timed(folder: Path, scale: float) -> list[Fed]:
    many = round(600 * scale)
    return [
        generated(0, rate=30, count=many),
        generated(1, rate=0.4, count=many // 60),
        generated(2, rate=20, arrivals="poisson", count=many // 2),
        generated(3, burst={"size": 25, "every": "1300ms"}, count=many // 2),
        generated(4, phases=[[2, 0], [6 * scale, 15], [2, 0], [4 * scale, 30]]),
    ]


def files(folder: Path, scale: float) -> list[Fed]:
    many = round(500 * scale)
    return [
        Fed(filed(folder, 0, ".csv", many, 0.03), 30.0),
        Fed(filed(folder, 1, ".jsonl", many // 3, 0.1), 11.0),
        Fed(filed(folder, 2, ".parquet", many, 0.03), 27.0),
        Fed({"replay": {"file": filed(folder, 3, ".csv", many // 2, 0.06), "by": "t", "speed": 1.1}}),
        Fed(rows_of(4, many // 20, 0.7), 1.5),
    ]


def turns(folder: Path, scale: float) -> list[Fed]:
    many = round(400 * scale)
    return [
        Fed(filed(folder, 0, ".csv", many, 0.01)),
        Fed(slowly(1, many * 2, folder / "state")),
        Fed(filed(folder, 2, ".jsonl", many // 3, 0.01)),
        Fed(filed(folder, 3, ".parquet", many, 0.01)),
        Fed(rows_of(4, many // 2, 0.01)),
        Fed({"generate": {"count": many // 5, "fields": {"t": "i * 0.01", "v": "i * 10 + 5"}}}),
    ]


def mixed(folder: Path, scale: float) -> list[Fed]:
    many = round(400 * scale)
    return [
        generated(0, rate=25, count=many),
        Fed(slowly(1, many, folder / "state")),
        Fed(living(2, many, 0.25, folder / "state")),
        Fed(living(3, many // 2, 0.0, folder / "state"), 12.0),
        Fed(streamed(folder, 4, many // 2)),
        Fed(filed(folder, 5, ".csv", many // 2, 0.02)),
        Fed(filed(folder, 6, ".jsonl", many // 2, 0.02), 14.0),
    ]


def rates(folder: Path, scale: float) -> list[Fed]:
    """Rates far apart: what was lost when each source was shifted by itself."""
    return [generated(0, rate=60, count=round(1200 * scale)), generated(1, rate=0.2, count=round(4 * scale))]


KINDS: dict[str, Callable[[Path, float], list[Fed]]] = {
    "timed": timed,
    "files": files,
    "turns": turns,
    "mixed": mixed,
    "rates": rates,
}
ALIKE = frozenset({"timed", "files", "turns", "rates"})
"""All sources timed, or all untimed: these arrive in the same order as in an undisturbed run."""


def network_of(sources: list[Fed]) -> dict[str, Any]:
    """Union, windows that ignore what comes too late, windows over the order of arrival, and a join."""
    names = [f"s{at}" for at in range(len(sources))]
    return {
        "network": "several",
        "sources": {name: {"schema": {"t": "double", "v": "bigint"}} for name in names},
        "boxes": {
            "all": {"op": "union", "in": names},
            "seconds": {
                "op": "aggregate",
                "in": "all",
                "select": "count(*) as n, sum(v) as total",
                "order": {"on": "t", "slack": 0},
                "size": 1,
            },
            "sevens": {
                "op": "aggregate",
                "in": "all",
                "select": "first(v) as first, last(v) as last, sum(v) as total",
                "order": {"on": "#"},
                "size": 7,
                "advance": 5,
            },
            "pairs": {
                "op": "join",
                "in": names[:2],
                "on": "(left.v - right.v) % 70 < 10",
                "size": 1,
                "order": [{"on": "t", "slack": 2}, {"on": "t", "slack": 2}],
                "select": "left.t as t, left.v as one, right.v as other",
            },
        },
        "outputs": {name: {"from": name} for name in ("all", "seconds", "sevens", "pairs")},
    }


def run_one(folder: Path, kind: str, scale: float, train: int, on_status: Callable[[Any], None]) -> None:
    """Run a network on Spark in this process, with a state, or go on with it; tables are left in its folder."""
    sources = KINDS[kind](folder, scale)
    result = hw.run(
        network_of(sources),
        {f"s{at}": one.what for at, one in enumerate(sources)},
        rates={f"s{at}": one.rate for at, one in enumerate(sources) if one.rate is not None},
        engine="spark",
        state=folder / "state",
        keep=1e6,
        train=train,
        cut={"units": "one", "shards": 1},
        dead_letters=str(folder / "letters.csv"),
        on_status=on_status,
    )
    for name, table in result.outputs.items():
        feather.write_feather(table, str(folder / f"{name}.arrow"), compression="uncompressed")
    (folder / "done").write_text(json.dumps(result.summary["sources"]))


class Logged:
    """What the log holds of a source, due by arrival number: a timed source whose order is the log's."""

    timed, finite, live = True, True, False

    def __init__(self, trains: list[Train]) -> None:
        self._trains = trains

    def read(self, limit: int) -> Chunk | None:
        """Return the tuples of one segment, whatever the limit."""
        if not self._trains:
            return None
        train = self._trains.pop(0)
        return Chunk(train.to_batch(SCHEMA.to_arrow()), train.numbers)

    def malformed(self) -> list[Malformed]:
        """Return nothing: these are in the log."""
        return []

    def close(self) -> None:
        """Do nothing."""


def judge(folder: Path, kind: str, scale: float) -> None:
    """Compare a complete run: with the replay of its log, with its inputs, and with an undisturbed run if it can be."""
    sources = KINDS[kind](folder, scale)
    network = network_of(sources)
    names = list(network["sources"])
    log = Log(str(folder / "state" / "log"), dict.fromkeys(names, SCHEMA), keep_seconds=1e6)
    kept = {name: [read_slice(one, SCHEMA) for one in log.slices([name], NOTHING, log.issued)] for name in names}
    replayed = hw.run(network, {name: Logged(list(trains)) for name, trains in kept.items()}, engine="sim")
    found = {name: feather.read_table(folder / f"{name}.arrow") for name in network["outputs"]}
    for name, table in found.items():
        assert_rows(f"{kind}: {name}, as the log says", table, replayed.outputs[name])
    letters = sorted((folder / "letters.csv").read_text().splitlines())
    for at, (name, one) in enumerate(zip(names, sources, strict=True)):
        # Each source by itself, from its first tuple to its last: none is missing, none doubled, all in order.
        alone = hw.run(
            {
                "network": "one",
                "sources": {name: network["sources"][name]},
                "boxes": {},
                "outputs": {"o": {"from": name}},
            },
            {name: files_again(folder, one, at)},
            engine="sim",
            rates={} if one.rate is None else {name: one.rate},
            dead_letters=str(folder / f"letters.{name}.csv"),
        )
        values = [value for train in kept[name] for value in train.columns[1].values.tolist()]
        expected = alone.outputs["o"].column("v").to_pylist()
        if isinstance(one.what, Mapping) and "spark" in one.what:  # Spark may read two files at once, in its own order
            values.sort()
            expected.sort()
        assert values == expected, f"{kind}: source {name}"
        wanted = sorted((folder / f"letters.{name}.csv").read_text().splitlines()[1:])
        assert [line for line in letters if line.startswith(f"{name},")] == wanted, f"{kind}: letters of {name}"
    if kind in ALIKE:
        undisturbed = hw.run(
            network,
            {name: one.what for name, one in zip(names, KINDS[kind](folder, scale), strict=True)},
            rates={name: one.rate for name, one in zip(names, sources, strict=True) if one.rate is not None},
            engine="sim",
        )
        for name, table in found.items():
            assert_rows(f"{kind}: {name}, undisturbed", table, undisturbed.outputs[name])


def files_again(folder: Path, one: Fed, number: int) -> object:
    """Return the same input for a run without Spark in which nothing is waited for."""
    if isinstance(one.what, Mapping) and "spark" in one.what:
        lines = [line for file in sorted((folder / f"s{number}.d").iterdir()) for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]
    if isinstance(one.what, Iterator) and not isinstance(one.what, pa.RecordBatchReader):
        return list(one.what)
    return one.what


def assert_rows(name: str, found: pa.Table, expected: pa.Table) -> None:
    """Compare row for row."""
    rows, others = found.to_pylist(), expected.to_pylist()
    first = next((at for at, pair in enumerate(zip(rows, others, strict=False)) if pair[0] != pair[1]), None)
    assert (first, len(rows)) == (None, len(others)), f"{name} differs at {first}; {len(rows)} rows, not {len(others)}"


class Kills(NamedTuple):
    """How often runs were killed: before their first result, in mid-stream, and with all inputs in the log."""

    start: int = 0
    middle: int = 0
    end: int = 0
    processes: int = 0

    def __add__(self, other: tuple[Any, ...]) -> Kills:
        return Kills(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Fleet:
    """Several runs in one process, killed together until enough is enough."""

    def __init__(self, folder: Path, kinds: list[str], scale: float, seed: int, train: int = 40) -> None:
        self.folder, self.kinds, self.scale, self.train = folder, kinds, scale, train
        self.chance = random.Random(seed)
        self.kills = Kills()
        for kind in kinds:
            (folder / kind).mkdir(parents=True, exist_ok=True)

    def start(self, train: int | None = None) -> Process:
        arguments = [self.folder, self.scale, train or self.train, *self.kinds]
        # Threads that open the session at once would redirect each other's words.
        words = {"HEADWAY_SPARK_LOG": "1"}
        return Process(
            [sys.executable, PROGRAMS / "several.py", *arguments], log=self.folder / "said", environment=words
        )

    @property
    def left(self) -> list[str]:
        """The kinds whose run is not complete."""
        return [kind for kind in self.kinds if not (self.folder / kind / "done").exists()]

    def crash(self, pattern: str = "results/*/*.arrow", count: int = 1, delay: float = 0.0, every: bool = True) -> None:
        """Start, and kill when every run (or any) has so many new files of a kind, and a moment later."""
        known = {kind: set((self.folder / kind / "state").glob(pattern)) for kind in self.left}

        def enough() -> bool:
            far = [
                (self.folder / kind / "done").exists()
                or len(set((self.folder / kind / "state").glob(pattern)) - old) >= count
                for kind, old in known.items()
            ]
            return all(far) if every else any(far)

        self._crash(enough, delay)

    def crash_at_the_end(self) -> None:
        """Start, and kill as soon as the log has all inputs of a run that is not complete."""
        self._crash(lambda: any(self._ended(self.folder / kind / "state") for kind in self.left), 0.0)

    def _crash(self, enough: Callable[[], bool], delay: float) -> None:
        with self.start() as process:
            process.wait_for(enough)
            time.sleep(delay)
            assert not process.ended or not self.left, process.said
        self.kills += self._count()

    def _count(self) -> Kills:
        found = Kills(processes=1)
        for kind in self.left:
            state = self.folder / kind / "state"
            if not any(state.glob("results/*/*.arrow")):
                found += Kills(start=1)
            elif self._ended(state):
                found += Kills(end=1)
            else:
                found += Kills(middle=1)
        return found

    @staticmethod
    def _ended(state: Path) -> bool:
        commit = newest_commit(state)
        return commit is not None and commit.end is not None

    def complete(self) -> None:
        """Start for the last time, and judge all runs."""
        if self.left:
            with self.start(train=2000) as process:
                assert process.wait() == 0, process.said
                process.assert_alone()
        for kind in self.kinds:
            judge(self.folder / kind, kind, self.scale)
