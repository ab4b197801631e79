"""Arrivals on their way into the log: what has entered since the last append, sealed when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.clock import SECOND, Clock
from headway.connectors.base import Malformed
from headway.engines.letters import LetterRow
from headway.storage.log import Commit, Log
from headway.trains import Tick, Train, join_trains

_LONGEST = SECOND // 2
"""How long a tuple may wait to become durable when nobody asks for it."""
_LARGEST = 64 << 20


class Arrivals:
    """Gathers the trains that ingest pushes. Used by the scheduler thread."""

    def __init__(self, log: Log, clock: Clock) -> None:
        """Write to a log."""
        self._log = log
        self._clock = clock
        self._trains: dict[str, list[Train]] = {}
        self._ticks: list[Tick] = []
        self._end: int | None = None
        self._malformed: list[Malformed] = []
        self._since: int | None = None
        self.bytes = 0
        self.latest: dict[str, Train] = {}
        """By source: the train that entered last."""

    def feeder(self, source: str) -> Callable[[Train], None]:
        """Return where ingest pushes the trains of a source."""

        def push(train: Train) -> None:
            if len(train):
                self._trains.setdefault(source, []).append(train)
                self.latest[source] = train
                self.bytes += train.nbytes
            for tick in train.ticks:
                if tick not in self._ticks:  # it comes along on every source
                    self._ticks.append(tick)
            if train.end:
                self._end = train.progress
            if self._since is None:
                self._since = self._clock.now()

        return push

    def refuse(self, rows: Sequence[Malformed]) -> None:
        """Take rows that are no tuples: they become part of the log, so that a replay reports each once."""
        self._malformed += rows
        if rows and self._since is None:
            self._since = self._clock.now()

    @property
    def due(self) -> bool:
        """Whether it is time to seal although nobody asks."""
        if self._since is None:
            return False
        return self.bytes > _LARGEST or self._clock.now() - self._since >= _LONGEST

    def waiting(self, sources: Sequence[str]) -> tuple[int, int, int]:
        """Return of these sources: the tuples not sealed yet, their oldest stamp, and the sum of their stamps."""
        trains = [train for source in sources for train in self._trains.get(source, ())]
        count = sum(len(train) for train in trains)
        oldest = min((int(train.stamps[0]) for train in trains), default=0)
        total = sum(len(train) * (int(train.stamps[0]) + int(train.stamps[-1])) // 2 for train in trains)
        return count, oldest, total

    @property
    def marked(self) -> bool:
        """Whether a tick or the end waits to be sealed."""
        return bool(self._ticks) or self._end is not None

    def seal(self, issued: int, positions: dict[str, int], reached: int = 0) -> Commit | None:
        """Make everything durable, `reached` nanoseconds into the run; None if there is nothing."""
        if self._since is None:
            return None
        commit = self._log.append(
            {source: join_trains(trains) for source, trains in self._trains.items()},
            issued,
            self._clock.now(),
            ticks=self._ticks,
            end=self._end,
            positions=positions,
            reached=reached,
            malformed=[(row.source, row.where, row.text, row.reason) for row in self._malformed],
        )
        self._trains, self._ticks, self._malformed, self._since, self.bytes = {}, [], [], None, 0
        self._end = None
        return commit


def commit_letters(commit: Commit) -> list[LetterRow]:
    """Return the malformed rows that a commit logged, as dead letters."""
    return [(source, reason, text, where) for source, where, text, reason in commit.malformed]
