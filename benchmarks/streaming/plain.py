"""The baselines: plain Structured Streaming, a query per application, and one query merged by hand.

All run in a session with Headway's own settings, so that only the queries differ. Windows have no watermark, which
keeps the baselines' state a little larger and their micro-batches shorter: every tuple is in a result at the end of
its micro-batch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.streaming.apps import App, make_apps, make_single, window_of
from benchmarks.streaming.progress import KEEP, Report, read_reports
from benchmarks.streaming.settings import CAP, MERGED, Setting
from benchmarks.streaming.source import PARTS, StreamSource
from headway.clock import SECOND, WallClock
from headway.engines.spark.driver.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_clock = WallClock()
_LIMIT = 600 * SECOND
MOST = 4_000_000
"""The most tuples in a micro-batch of blobs: Headway's own bound. Without one, the JVM runs out of memory."""


class FailedError(Exception):
    """A query of a baseline has failed."""


class Baseline:
    """One baseline in this process."""

    def __init__(self, setting: Setting) -> None:
        """Open a session."""
        self._setting = setting
        self._folder = Path(tempfile.mkdtemp(prefix="streaming-"))
        self._begin = self._folder / "begin"
        mode = "FAIR" if setting.system == "plain, FAIR" else "FIFO"
        self._session: SparkSession = open_session(None, {**KEEP, "spark.scheduler.mode": mode})
        self._session.conf.set("spark.sql.shuffle.partitions", str(PARTS))
        self._session.dataSource.register(StreamSource)
        self.queries: dict[str, StreamingQuery] = {}
        self.apps = make_single(setting.windowed) if setting.total else make_apps(setting.apps)
        self.start = 0
        """When the stream began."""

    def launch(self) -> None:
        """Start all queries, then let the stream begin."""
        setting = self._setting
        if setting.system in MERGED:
            if setting.system == "merged, SQL":
                self._start("merged", merge_sql(self._stream(), self.apps, window_of(setting.rate)), "update")
            else:
                from benchmarks.streaming.operator import merge_python

                self._start("merged", merge_python(self._stream(blob=True), self.apps, window_of(setting.rate)))
        else:
            for app in self.apps:
                self._start(app.name, one_app(self._stream(), app, window_of(setting.rate)), _mode(app))
        if not setting.total:
            self._warm_up()
        self.start = _clock.now()
        self._announce(self.start)

    def _announce(self, start: int) -> None:
        written = self._begin.with_suffix(".new")
        written.write_text(str(start))
        written.replace(self._begin)

    def _warm_up(self) -> None:
        """Let every query run once on a few tuples, as Headway does before its stream begins."""
        self._announce(0)
        while not all(any(one.upto for one in read_reports(query)) for query in self.queries.values()):
            self._check()
            _clock.sleep(SECOND // 5)

    def watch(self) -> None:
        """Wait until the watch ends, or the backlog is drained."""
        total = self._setting.total
        if not total:
            _clock.sleep(int(self.start + self._setting.span.watched * SECOND) - _clock.now())
        while total and not any(one.upto >= total for reports in self.reports().values() for one in reports):
            if _clock.now() > self.start + _LIMIT:
                raise FailedError(f"{self._setting.system}: the backlog is not drained after {_LIMIT // SECOND} s")
            self._check()
            _clock.sleep(SECOND // 5)
        self._check()

    def reports(self) -> dict[str, list[Report]]:
        """Return the micro-batches of every application."""
        read = {name: read_reports(query) for name, query in self.queries.items()}
        return {app.name: read.get(app.name, read.get("merged", [])) for app in self.apps}

    def _check(self) -> None:
        for name, query in self.queries.items():
            if not query.isActive:
                raise FailedError(f"{self._setting.system}: query {name} has stopped: {query.exception()}")

    def _stream(self, blob: bool = False) -> DataFrame:
        reader = self._session.readStream.format("stream").option("begin", str(self._begin))
        reader = reader.option("rate", str(self._setting.rate))
        if blob:
            reader = reader.option("blob", "1").option("cap", str(MOST))
        if self._setting.total:
            reader = reader.option("total", str(self._setting.total)).option("cap", str(CAP))
        return reader.load()

    def _start(self, name: str, frame: DataFrame, mode: str = "append") -> None:
        writer = frame.writeStream.format("noop").queryName(name).outputMode(mode)
        writer = writer.option("checkpointLocation", str(self._folder / name))
        seconds = {"plain, 1 s": 1, "plain, 5 s": 5}.get(self._setting.system)
        if seconds is not None:
            writer = writer.trigger(processingTime=f"{seconds} seconds")
        context: Any = self._session.sparkContext
        if self._setting.system == "plain, FAIR":
            context.setLocalProperty("spark.scheduler.pool", name)
        query = self.queries[name] = writer.start()
        # Every query starts a Python process, to which Spark gives ten seconds: many at once would not make it.
        while query.isActive and query.status["message"].startswith("Initializing"):
            _clock.sleep(SECOND // 20)


def _mode(app: App) -> str:
    return "update" if app.windowed else "append"


def one_app(stream: DataFrame, app: App, window: int) -> DataFrame:
    """Return an application as a Spark user writes it."""
    from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

    passed = stream.where(F.col("v") > app.bound)
    if not app.windowed:
        return passed.select("i", "k", (F.col("v") * 2 + 1).alias("w"))
    return passed.groupBy(F.expr(f"i div {window}").alias("window"), "k").agg(F.count("*").alias("n"))


def merge_sql(stream: DataFrame, apps: Sequence[App], window: int) -> DataFrame:
    """Return all applications as one query: tagged rows of the stateless ones, conditional counts of the others.

    A row of the stateless part carries a flag for each application instead of being multiplied, and all counts
    share one stateful aggregation, with partial sums before the shuffle.
    """
    from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

    flags = [(F.col("v") > app.bound).alias(app.name) for app in apps if not app.windowed]
    least = min(app.bound for app in apps if not app.windowed)
    rows = stream.where(F.col("v") > least).select("i", "k", (F.col("v") * 2 + 1).alias("w"), *flags)
    counts = [F.count_if(F.col("v") > app.bound).alias(app.name) for app in apps if app.windowed]
    counted = stream.groupBy(F.expr(f"i div {window}").alias("window"), "k").agg(*counts)
    return rows.unionByName(counted, allowMissingColumns=True)
