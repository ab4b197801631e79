"""Connection points on Spark: what passes them is kept, and queries that are attached behind them read it first.

The driver keeps what passes a point: of a source when it is in the log, of a box when its query delivers it to the
arc's relay. Both are durable before anything else happens with it, and are forgotten only when the history has written
it. So a run that goes on after a crash takes the rest from there.

A query that begins with history reads it from logs of its own, one for each arc, which are filled before it starts.

Executors write the files of histories from log and relay, and read them into the logs of such queries; the driver only
lists what they have made. What is less than `LEAST` tuples it does itself: a task costs more than that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from headway.checking import CheckedNetwork
from headway.columns import NEVER
from headway.engines.alteration import Alteration
from headway.engines.histories import OpenHistories
from headway.engines.spark.driver.tasks import Tasks
from headway.engines.spark.worker.histories import Copying, Writing, copy, write
from headway.errors import HeadwayError, NetworkError, RunError
from headway.history import History, HistoryFile, Position, through
from headway.storage.log import Log, read_slice
from headway.trains import NOTHING, Train, constant, join_trains

_log = logging.getLogger("headway")

LEAST = 20_000
"""Tuples from which on executors write a file of history, and read some for a query."""


@dataclass(frozen=True, slots=True)
class Past:
    """The history with which a query begins."""

    folder: str
    """The beginning of the names of its logs."""
    begin: int
    """Everything above this arrival number is read."""
    seam: int
    """Up to this one from history, above it from what is live."""
    ends: bool
    """Whether its input ends at the seam."""
    points: Mapping[str, tuple[str, Any]]
    """By arc that is read so: the point, and the storage keys that are needed."""

    def to_mapping(self) -> dict[str, Any]:
        """Return plain data, from which `of` makes the same."""
        points = {arc: list(one) for arc, one in self.points.items()}
        return {"folder": self.folder, "begin": self.begin, "seam": self.seam, "ends": self.ends, "points": points}

    @classmethod
    def of(cls, mapping: Mapping[str, Any] | None) -> Past | None:
        """Return what `to_mapping` returned."""
        if mapping is None:
            return None
        points = {arc: (point, _key(key)) for arc, (point, key) in mapping["points"].items()}
        return cls(mapping["folder"], mapping["begin"], mapping["seam"], mapping["ends"], points)


def _key(key: Any) -> Any:
    """Return storage keys as they were before JSON made a pair of bounds a list."""
    return tuple(key) if isinstance(key, list) else key


class Points(OpenHistories):
    """The points of a run. `keep` is called by one thread for each arc, the rest by the scheduler thread."""

    def __init__(
        self, folder: str | None, log_of: Callable[[str], tuple[Log, str]], tasks: Tasks | None = None
    ) -> None:
        """Keep histories in a folder, by default in a temporary one; executors help by tasks.

        `log_of` returns the log that has what passes an arc, and the arc's name there.
        """
        super().__init__(folder)
        self._log_of, self._tasks = log_of, tasks
        self._sync = folder is not None
        self._after: dict[str, int] = {}
        self._on: dict[str, tuple[str, ...]] = {}
        self._failed: dict[str, RunError] = {}

    def follow(self, checked: CheckedNetwork, anew: Collection[str] = (), seam: int = NOTHING) -> None:
        """Keep what passes the points of a network; of new ones, what comes after a seam."""
        opened = self.reopen(checked, anew)
        self._after = {name: seam if name in opened else self._after.get(name, NOTHING) for name in self._open}
        on: dict[str, tuple[str, ...]] = {}
        for name in self._open:
            arc = checked.points[name]
            on[arc] = (*on.get(arc, ()), name)
            history = self._open[name]
            if name in opened:
                history.elsewhere = partial(self._write, history, arc)
            elif arc not in self._on or name not in self._on[arc]:
                history.elsewhere = None  # what waits in memory has passed another arc
        self._on = on

    def keep(self, arc: str, train: Train) -> None:
        """Keep what has passed an arc. If that fails, the run goes on without it."""
        for name in self._on.get(arc, ()):
            if name in self._failed:
                continue
            first = int(np.searchsorted(train.numbers, self._after[name], side="right"))
            try:
                self._open[name].append(train if first == 0 else train.slice(first, len(train)))
            except RunError as error:
                self._failed[name] = RunError(f"point '{name}' keeps nothing more: {error}")
                _log.error("%s", self._failed[name])

    def failure(self, point: str) -> RunError | None:
        """Return why the history of a point has failed, if it has. Thread-safe."""
        return self._failed.get(point)

    def owed(self, arc: str) -> int:
        """Return up to which arrival number what passed an arc may be forgotten elsewhere."""
        waiting = [self._open[name] for name in self._on.get(arc, ()) if name not in self._failed]
        return min([one.durable.number - 1 for one in waiting if one.unwritten], default=NEVER)

    @property
    def arcs(self) -> Collection[str]:
        """The arcs that have points."""
        return self._on.keys()

    def close(self) -> None:
        """Write what is in memory, without executors, and stop."""
        if self._tasks is not None:
            self._tasks.close()
        super().close()

    def _write(self, history: History, arc: str, first: Position, last: Position, rows: int) -> HistoryFile | None:
        """Let an executor write a file of what has passed an arc. Called from the threads of writers."""
        if self._tasks is None or rows < LEAST:
            return None
        try:
            log, source = self._log_of(arc)
            slices = log.slices([source], first.number - 1, last.number)
        except (LookupError, ValueError, RunError):  # a seam has taken the relay away
            return None
        if sum(map(len, slices)) != rows:
            return None
        place = history.place
        made = self._tasks.each(write, [Writing(place.root, history.kept, tuple(slices), self._sync)])
        if not made:
            return None
        file = HistoryFile.from_json(made[0])
        if {name.lstrip("/"): size for name, size in place.files("").items()}.get(file.name) != file.bytes:
            self._tasks.give_up(f"'{place.name(file.name)}' is not there; do executors share the disk?")
            return None
        return file

    def recover(self, checked: CheckedNetwork) -> None:
        """Keep what logs have and histories have not, after a crash."""
        for arc, names in self._on.items():
            log, source = self._log_of(arc)
            after = min(self._open[name].edge.number - 1 for name in names)
            held = [one.first - 1 for commit in log.commits for one in commit.segments.values()]
            after = max(after, min(held, default=log.issued))  # what is before was forgotten
            for piece in log.slices([source], after, log.issued) if log.issued > after else ():
                self.keep(arc, read_slice(piece, checked.arcs[arc]))

    def past_of(self, alteration: Alteration, seam: int) -> Past | None:
        """Return the history with which the queries of a change begin; everything up to the seam is kept by now."""
        if not alteration.histories:
            return None
        every = list(alteration.histories.values())
        begun = every[0].begun
        try:
            begin = max(self.begins(one, seam) for one in every)
        except HeadwayError as error:  # whoever asked takes the fragment out again
            begin = seam + 1
            if begun is not None:
                begun.set_exception(error)
        else:
            if begun is not None:
                begun.set_result(begin)
        points: dict[str, tuple[str, Any]] = {}
        for one in every:
            arc = alteration.new.points[one.point]
            key = one.key if arc not in points or points[arc][1] == one.key else None
            points[arc] = (one.point, key)
        return Past(f"past-{seam}", begin - 1, seam, any(one.ends for one in every), points)

    def fill(self, past: Past, arc: str, log: Log, source: str, now: int) -> None:
        """Write the history of an arc to a log; tuples count their latency from now."""
        point, key = past.points[arc]
        self._copy(past, arc, log, source, now)
        rest: Train | None = None
        count = log.positions.get(source, 0)
        for train in self.of(point).read(max(past.begin, log.issued), past.seam, key):
            whole = train if rest is None else join_trains([rest, train])
            stop = int(np.searchsorted(whole.numbers, whole.numbers[-1], side="left"))
            rest = whole.slice(stop, len(whole))  # more of its last number may follow
            if stop:
                count = _append(log, source, whole.slice(0, stop), count, now)
        if rest is not None:
            count = _append(log, source, rest, count, now)
        if log.issued < past.seam:
            log.append({}, past.seam, now, positions={source: count})

    def _copy(self, past: Past, arc: str, log: Log, source: str, now: int) -> None:
        """Let executors write the history of an arc to a log, as far as it is in files; or nothing, if it is little."""
        point, key = past.points[arc]
        history = self.of(point)
        with history.pinned() as (files, floor, rest):
            after = max(through(past.begin), through(log.issued), floor)
            wanted = [file for file in files if file.last > after and file.first.number <= past.seam]
            runs = _whole(wanted, rest)
            if self._tasks is None or sum([file.rows for run in runs for file in run]) < LEAST:
                return
            root, folder = history.place.root, log.root
            tasks = [
                Copying(root, history.kept, run, after, past.seam, key, folder, name, source, now, self._sync)
                for run, name in zip(runs, log.following(source, len(runs)), strict=True)
            ]
            for run, segment in zip(runs, self._tasks.each(copy, tasks) or (), strict=False):
                try:
                    log.adopt(source, segment, min(run[-1].last.number, past.seam), now)
                except RunError as error:
                    self._tasks.give_up(str(error))
                    return


def _whole(files: Sequence[HistoryFile], rest: Position) -> list[tuple[HistoryFile, ...]]:
    """Return runs of neighbouring files that have all tuples of their arrival numbers; what comes next is at `rest`."""
    runs: list[tuple[HistoryFile, ...]] = []
    for file in files:
        if runs and runs[-1][-1].last.number == file.first.number:
            runs[-1] = (*runs[-1], file)
        else:
            runs.append((file,))
    if runs and runs[-1][-1].last.number == rest.number:
        runs.pop()
    return runs


def _append(log: Log, source: str, train: Train, count: int, now: int) -> int:
    stamped = Train(train.columns, constant(now, len(train)), train.numbers)
    count += len(train)
    log.append({source: stamped}, int(train.numbers[-1]), now, positions={source: count})
    return count


def check_mixed(arc: str) -> NetworkError:
    """Return the error for a query that reads one arc with history and without."""
    return NetworkError(f"'{arc}' is read with history and without it in one query: on Spark, attach two fragments")
