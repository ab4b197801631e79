"""Connection points on Spark: what passes them is kept, and queries that are attached behind them read it first.

The driver keeps what passes a point: of a source when it is in the log, of a box when its query delivers it to the
arc's relay. Both are durable before anything else happens with it, and are forgotten only when the history has written
it. So a run that goes on after a crash takes the rest from there.

A query that begins with history reads it from logs of its own, one for each arc, which are filled before it starts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.checking import CheckedNetwork
from headway.columns import NEVER
from headway.engines.alteration import Alteration
from headway.engines.histories import OpenHistories
from headway.errors import HeadwayError, NetworkError, RunError
from headway.storage.log import Log, read_slice
from headway.trains import NOTHING, Train, constant, join_trains

_log = logging.getLogger("headway")


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

    def __init__(self, folder: str | None) -> None:
        """Keep histories in a folder, by default in a temporary one."""
        super().__init__(folder)
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

    def recover(self, checked: CheckedNetwork, log_of: Callable[[str], tuple[Log, str]]) -> None:
        """Keep what logs have and histories have not, after a crash; `log_of` returns an arc's log and its name."""
        for arc, names in self._on.items():
            log, source = log_of(arc)
            after = min(self._open[name].edge.number - 1 for name in names)
            commits = log.commits
            held = [one.first - 1 for commit in commits for one in commit.segments.values()]
            after = max(NOTHING, after, min(held, default=NOTHING))
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


def _append(log: Log, source: str, train: Train, count: int, now: int) -> int:
    stamped = Train(train.columns, constant(now, len(train)), train.numbers)
    count += len(train)
    log.append({source: stamped}, int(train.numbers[-1]), now, positions={source: count})
    return count


def check_mixed(arc: str) -> NetworkError:
    """Return the error for a query that reads one arc with history and without."""
    return NetworkError(f"'{arc}' is read with history and without it in one query: on Spark, attach two fragments")
