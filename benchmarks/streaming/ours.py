"""Headway: the applications as one network on the Spark engine, with its default policy."""

from __future__ import annotations

import cProfile
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import headway as hw
from benchmarks.streaming.apps import make_apps, make_batch, make_network, make_single, window_of
from benchmarks.streaming.progress import KEEP, Report, read_reports
from benchmarks.streaming.settings import Setting
from headway.clock import SECOND, WallClock
from headway.connectors.protocol import Chunk, Malformed
from headway.connectors.readers import constant_due
from headway.engines.spark.driver.session import open_session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_clock = WallClock()
DRAIN = 30.0
"""Seconds that a run gets to end by itself after the watch; an overloaded one is given up."""


class StreamInput:
    """The stream as a source: at a rate, or as a backlog that is read as fast as it is asked for."""

    finite = True
    live = False

    def __init__(self, total: int, rate: float | None) -> None:
        """Give so many tuples; `rate` makes it timed."""
        self._total = total
        self._rate = rate
        self._number = 0
        self.start = 0
        """When the stream began: the first read, 0 before."""
        self.queries: list[StreamingQuery] = []
        """What ran then."""

    @property
    def timed(self) -> bool:
        """Whether tuples arrive at a rate."""
        return self._rate is not None

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples."""
        if not self.start:
            self.start = _clock.now()
            self.queries = _active()
        first = self._number
        if first >= self._total:
            return None
        self._number = stop = min(self._total, first + limit)
        due = None if self._rate is None else constant_due(first, stop - first, self._rate)
        return Chunk(make_batch(first, stop), due)

    def malformed(self) -> list[Malformed]:
        """Return none."""
        return []

    def close(self) -> None:
        """Do nothing."""


def _active() -> list[StreamingQuery]:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    return [] if session is None else list(session.streams.active)


class Ours:
    """Headway in this process."""

    def __init__(self, setting: Setting) -> None:
        """Open a session that keeps the queries' reports."""
        self._setting = setting
        open_session(None, KEEP)
        self.apps = make_single(setting.windowed) if setting.total else make_apps(setting.apps)
        total = setting.total or int(setting.span.watched * setting.rate)
        self._input = StreamInput(total, None if setting.total else setting.rate)
        self.summary: Mapping[str, Any] = {}
        self._ended = threading.Event()

    @property
    def start(self) -> int:
        """When the stream began."""
        return self._input.start

    def run(self, give_up: Any) -> None:
        """Run to the end; calls `give_up` from another thread if that takes too long after the watch."""
        threading.Thread(target=self._guard, args=(give_up,), daemon=True).start()
        profiler = cProfile.Profile() if self._setting.profile else None
        network = make_network(self.apps, window_of(self._setting.rate))
        if profiler is not None:
            profiler.enable()
        self.summary = hw.run(network, {"events": self._input}, engine="spark").summary
        if profiler is not None:
            profiler.disable()
            profiler.dump_stats(self._setting.profile)
        self._ended.set()

    def _guard(self, give_up: Any) -> None:
        if self._setting.total:
            return
        while not self.start:
            _clock.sleep(SECOND // 4)
        limit = self.start + int((self._setting.span.watched + DRAIN) * SECOND)
        while not self._ended.wait(1.0):
            if _clock.now() > limit:
                give_up()

    def reports(self) -> dict[str, list[Report]]:
        """Return the micro-batches of every application's query; a query is named by its outputs."""
        found: dict[str, list[Report]] = {}
        for query in self._input.queries:
            reports = read_reports(query)
            for name in str(query.name).partition(" ")[0].split("+"):
                found[name] = reports
        return found
