"""Any Spark streaming source, or a streaming DataFrame, as a source; any Spark batch writer as a sink.

A streaming query of its own feeds each source: its micro-batches come to the driver as Arrow, wait until there is room,
and are read like any live source. With a state directory a micro-batch is stored in a spool before Spark commits it, so
nothing is lost or read twice. Every micro-batch of an output becomes one write.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from headway.connectors.casting import Caster
from headway.connectors.output_files import BatchesSink
from headway.connectors.protocol import Chunk, Malformed, SinkRequest, SourceRequest
from headway.connectors.readers import BatchReader, Handover, constant_due
from headway.connectors.registry import check_keys, register_sink, register_source, register_source_object
from headway.connectors.spark_columns import check_select, select_columns
from headway.connectors.spark_options import allowed_path, check_settings, read_options, read_text
from headway.connectors.spools import Spool, Unlogged
from headway.errors import HeadwayError, InputError, OutputError, check_known, within
from headway.network.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AHEAD = 1 << 18
"""How many tuples may be queued before the feeding query blocks. A single micro-batch may be larger."""

_KEYS = ("format", "path", "options", "schema", "select", "available_now", "frame")
_TYPED = ("avro", "csv", "json", "orc", "parquet", "xml")
"""Formats for which the reader must declare the columns."""
_MARKING = ("csv", "json")
"""Formats that can return unparsable rows, unless the user's own `mode` decides otherwise."""
_CORRUPT = "__hw_corrupt"
_PACKAGES = {
    "avro": "org.apache.spark:spark-avro_2.13",
    "delta": "io.delta:delta-spark_2.13",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13",
    "kinesis": "org.apache.spark:spark-streaming-kinesis-asl_2.13",
}


_MODES = ("append", "overwrite", "ignore", "error")
_TABLE = re.compile(r"\w+(?:\.\w+){0,2}")
_SINK_KEYS = ("format", "path", "table", "options", "mode")
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
"""Formats whose directories may have subdirectories."""

_openers: list[Callable[[], Any]] = []
"""The function that opens a session if there is none, set by the Spark engine: connectors import no engine."""
_lock = threading.Lock()


class SparkReader(BatchReader):
    """Reads from a streaming query. The first read starts Spark and matches the columns."""

    live = True

    def __init__(self, request: SourceRequest) -> None:
        """Read the settings; an InputError names the key. Opens nothing."""
        super().__init__(request)
        who, given = f"{request.who}: spark", request.settings
        frame: Any = given.get("frame") if isinstance(given, Mapping) else given
        if type(frame).__module__.startswith("pyspark.sql.connect"):
            raise InputError(
                f"{who}: a DataFrame of Spark Connect cannot feed a network; give one of a classic session"
            )
        settings = {"frame": given} if is_streaming(given) else check_keys(given, _KEYS, who)
        format_ = settings.get("format")
        select, now = settings.get("select", []), settings.get("available_now", False)
        path = read_text(settings, "path", request)
        options = read_options(settings.get("options"), request)
        with within(who, InputError):
            if frame is not None and not is_streaming(frame):
                raise InputError(f"frame is a streaming DataFrame, not {type(frame).__name__}")
            if (frame is None) == (format_ is None):
                raise InputError("give a format, such as kafka, json or rate, or a frame, a streaming DataFrame")
            if frame is None and (not isinstance(format_, str) or not format_):
                raise InputError(f"format is text, such as kafka, not {format_!r}")
            if not isinstance(select, list | tuple) or not all(isinstance(one, str) for one in select):
                raise InputError("select is a list of SQL expressions, such as [cast(value as string) as text]")
            if not isinstance(now, bool):
                raise InputError(f"available_now is true or false, not {now!r}")
            if select:
                with within("select", InputError):
                    check_select(select)
        if frame is None:
            check_settings(str(format_), options, request.trust, who, InputError)
        path = allowed_path(path, request)
        schema: Any = settings.get("schema")
        self._typed = None if schema is None else Schema.parse(schema)
        self._request, self._frame, self._format, self._path = request, frame, str(format_ or ""), path
        self._select, self._options = tuple(select), options
        # What messages call the source.
        self._place = "the streaming DataFrame" if frame is not None else f"Spark's '{self._format}' stream"
        self.timed = request.rate is not None
        self.finite = now
        self._lock = threading.Lock()
        self._ready: Handover[Unlogged] = Handover(AHEAD, lambda rest: int(rest.table.num_rows))
        self._given = 0
        self._acknowledged = (0, 0)
        self._spool: Spool | None = None
        self._caster: Caster | None = None
        self._query: Any = None
        self._begun = False

    # Resuming

    def resume(self, folder: str, tuples: int, refused: int) -> None:
        """Resume where a saved run stopped, and store batches in `folder` until they are acknowledged."""
        self._spool = Spool(folder, self._request.schema.to_arrow(), self.name, tuples, refused)
        self._acknowledged, self._given = (tuples, refused), tuples
        for rest in self._spool.rest():
            self._ready.put(rest, wait=False)

    def acknowledge(self, tuples: int, refused: int) -> None:
        """Note what is durable; the feeding query deletes it with its next batch."""
        self._acknowledged = (tuples, refused)

    # Reading

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples; with a rate, tuple i is due i/rate seconds after the start."""
        chunk = super().read(limit)
        if chunk is None or self._request.rate is None:
            return chunk
        start, self._given = self._given, self._given + len(chunk)
        return Chunk(chunk.batch, constant_due(start, len(chunk), self._request.rate))

    def next_batch(self, limit: int) -> pa.RecordBatch | None:
        """Wait for a micro-batch; None when the query has ended and everything is read."""
        if not self._begun:
            self._begun = True
            self._start()
        found = self._ready.take()
        if not found:
            if self._ready.error is not None and not self._ready.closed:
                raise self._ready.error
            return None
        (rest,) = found
        for row in rest.malformed:
            with self._lock:
                self.refuse(row.where, row.text, row.reason)
        batches = rest.table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._request.schema.to_arrow())

    def malformed(self) -> list[Malformed]:
        """Return the malformed rows found since the last call; another thread may be reading."""
        with self._lock:
            return super().malformed()

    def close(self) -> None:
        """Stop the feeding query; micro-batches that are neither spooled nor read are dropped."""
        self._ready.close()
        with self._lock:
            query, self._query = self._query, None
        _stop(query)

    # The feeding query

    def _start(self) -> None:
        session = need_session(self._who, InputError)
        frame = self._columns(self._open(session))
        writer = frame.writeStream.queryName(f"source {self.name} ({uuid4().hex[:8]})").foreachBatch(self._take)
        if self._spool is not None:
            writer = writer.option("checkpointLocation", self._spool.checkpoint())
        if self.finite:
            writer = writer.trigger(availableNow=True)
        context: Any = session.sparkContext
        context.setLocalProperty("spark.scheduler.pool", f"source-{self.name}")
        try:
            query = writer.start()
        except Exception as error:
            raise self._stopped(error) from error
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)
        with self._lock:
            closed = self._ready.closed
            self._query = None if closed else query
        if closed:
            _stop(query)
            return
        threading.Thread(target=self._watch, args=(query,), name=f"headway-feed-{self.name}", daemon=True).start()

    def _open(self, session: SparkSession) -> DataFrame:
        """Return the stream as Spark loads it, with a column for unparsable rows if the format supports it."""
        if self._frame is not None:
            found: DataFrame = self._frame
        else:
            reader = session.readStream.format(self._format).options(**self._options)
            own = self._request.schema if self._format in _TYPED and not self._select else None
            typed, named = self._typed or own, {key.lower() for key in self._options}
            try:
                if typed is not None:
                    fields = typed.to_arrow()
                    if self._format in _MARKING and not named & {"mode", "columnnameofcorruptrecord"}:
                        fields = fields.append(pa.field(_CORRUPT, pa.string()))
                        reader = reader.option("columnNameOfCorruptRecord", _CORRUPT)
                    reader = reader.schema(spark_schema(fields))
                found = reader.load() if self._path is None else reader.load(self._path)
            except Exception as error:
                raise self._unopened(error) from error
        if not self._select:
            return found
        names = [name for name in found.columns if name != _CORRUPT]
        extra = [_CORRUPT] if _CORRUPT in found.columns else []
        try:
            return found.select(*select_columns(self._select, names), *extra)
        except Exception as error:
            raise InputError(f"{self._who}: select: {first_line(error)}; columns: {', '.join(names)}") from error

    def _columns(self, frame: DataFrame) -> DataFrame:
        """Select the source's columns, or raise InputError that names what is missing or does not fit."""
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        wanted = [one for one in frame.schema.fields if one.name != _CORRUPT]
        given = to_arrow_schema(StructType(wanted), timezone="UTC")
        caster = Caster(self._request.schema, given, self._who, self._place)
        names = caster.names + ([_CORRUPT] if _CORRUPT in frame.columns else [])
        return frame.select(*["`" + name.replace("`", "``") + "`" for name in names])

    def _take(self, frame: DataFrame, number: int) -> None:
        """Handle a micro-batch; called by Spark, which commits it when this returns."""
        try:
            if self._ready.closed:
                raise InputError(f"{self._who} is closed")
            if self._spool is not None and not self._is_new(number):
                return
            rest = self._cast(frame.toArrow(), number)
            if self._spool is not None:
                self._spool.keep(number, rest.table, rest.malformed)
                self._spool.trim(*self._acknowledged)
            self._ready.put(rest)
        except BaseException as error:  # of any kind: the reader is waiting and must be told
            self._fail(error)
            raise

    def _is_new(self, number: int) -> bool:
        """Whether a micro-batch is not stored yet; Spark repeats the last one if it could not commit it."""
        assert self._spool is not None
        if number < self._spool.newest:
            raise InputError(
                f"{self._who}: Spark is at batch {number}, but batch {self._spool.newest} was read before: its "
                f"checkpoint '{self._spool.checkpoint()}' was changed; restore it, or give another --state"
            )
        return number > self._spool.newest

    def _cast(self, table: pa.Table, number: int) -> Unlogged:
        malformed: tuple[Malformed, ...] = ()
        if _CORRUPT in table.column_names:
            texts = table.column(_CORRUPT)
            reason = f"not a {self._format.upper()} row of the schema ({self._typed or self._request.schema})"
            malformed = tuple(
                Malformed(self.name, f"{self._place}, batch {number}", text, reason)
                for text in texts.drop_null().to_pylist()
            )
            table = table.filter(pc.is_null(texts)).drop_columns([_CORRUPT])
        if self._caster is None:
            self._caster = Caster(self._request.schema, table.schema, self._who, self._place)
        batches = []
        for batch in table.to_batches():
            made, misfits = self._caster.cast(batch)
            batches.append(made)
            where = f"{self._place}, batch {number}"
            malformed += tuple([Malformed(self.name, where, text, reason) for text, reason in misfits.values()])
        return Unlogged(pa.Table.from_batches(batches, self._request.schema.to_arrow()), malformed)

    def _watch(self, query: Any) -> None:
        try:
            query.awaitTermination()
        except BaseException as error:
            self._fail(error)
        self._ready.end()

    def _fail(self, error: BaseException) -> None:
        """End with an error, unless there is one already: Spark wraps what Python raised and raises it again."""
        self._ready.end(error if isinstance(error, HeadwayError) else self._stopped(error))

    def _stopped(self, error: BaseException) -> InputError:
        return InputError(f"{self._who}: {self._place} cannot be read: {first_line(error)}")

    def _unopened(self, error: Exception) -> InputError:
        text, format_ = first_line(error), self._format
        if "DATA_SOURCE_NOT_FOUND" in str(error) or "Failed to find data source" in str(error):
            package = _PACKAGES.get(format_.lower())
            named = f" (for {format_}: {package}, in the version of your Spark)" if package else ""
            return InputError(
                f"{self._who}: Spark has no format '{format_}'; if it comes in a package, name that in "
                f"spark.jars.packages{named} before the session starts, in spark-defaults.conf or with "
                "SparkSession.builder.config"
            )
        return InputError(f"{self._who}: {self._place} cannot be opened: {text}")


def spark_schema(schema: pa.Schema) -> Any:
    """Convert an Arrow schema to Spark's; timestamps without a zone stay without one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def is_streaming(what: object) -> bool:
    """Whether an object is a streaming DataFrame; does not import Spark."""
    return type(what).__module__.startswith("pyspark.") and getattr(what, "isStreaming", False) is True


def _stop(query: Any) -> None:
    if query is not None:
        with contextlib.suppress(Exception):  # it may have failed or ended already
            query.stop()


class SparkSink(BatchesSink):
    """Writes an output with Spark.

    A file format writes each micro-batch into a directory of its own below the path, named by unit and batch, so that
    repeating it changes nothing. Delta gets unit and batch as a transaction and skips what it already has. Any other
    writer may receive the last micro-batch twice after a crash.
    """

    def __init__(self, request: SinkRequest) -> None:
        """Read the settings; an OutputError names the key. Spark is contacted with the first write."""
        super().__init__()
        who = f"{request.who}: spark"
        given = check_keys(request.settings, _SINK_KEYS, who, OutputError)
        format_, path, table = (read_text(given, key, request) for key in ("format", "path", "table"))
        if format_ is None:
            raise OutputError(f"{who}: give a format, such as parquet, jdbc or delta")
        if path is not None and table is not None:
            raise OutputError(f"{who}: give a path or a table, not both")
        mode = given.get("mode", "append")
        check_known("mode", [mode], _MODES, OutputError, who)
        options = read_options(given.get("options"), request)
        check_settings(format_, options, request.trust, who, OutputError)
        path = allowed_path(path, request)
        if table is not None:
            if not _TABLE.fullmatch(table):
                raise OutputError(f"{who}: table is a name such as alarms or shop.alarms, not '{table[:60]}'")
            request.trust.check_table(table, f"{who}: table", OutputError)
        # Each micro-batch gets its own directory, which a repetition replaces.
        self._files = path is not None and format_.lower() in _FILES
        if self._files and mode != "append":
            raise OutputError(
                f"{who}: mode {mode} cannot go with files: every micro-batch has a directory of its own; leave it out, "
                "and give an empty directory"
            )
        self._who, self._schema = request.who, request.schema.to_arrow()
        self._format, self._path, self._table, self._options, self._mode = format_, path, table, options, str(mode)
        names = {name.lower() for name in request.schema.names}
        self._column = next(one for one in ("batch", "headway_batch", "__hw_batch") if one not in names)

    def save(self, batches: list[pa.RecordBatch]) -> None:
        """Write a micro-batch."""
        session = need_session(self._who, OutputError)
        table = pa.Table.from_batches(batches, self._schema)
        try:
            frame: Any = session.createDataFrame(table, schema=spark_schema(self._schema))
            if self._files:  # one file, to keep the order of tuples
                writer = frame.coalesce(1).write.format(self._format).options(**self._options).mode("overwrite")
                writer.save(f"{str(self._path).rstrip('/')}/{self._column}={self.unit}-{self.batch:010d}")
                return
            writer = frame.write.format(self._format).options(**self._options).mode(self._mode)
            if self._format.lower() == "delta":
                writer = writer.option("txnAppId", self.unit).option("txnVersion", str(self.batch))
            if self._table is not None:
                writer.saveAsTable(self._table)
            elif self._path is not None:
                writer.save(self._path)
            else:
                writer.save()
        except Exception as error:
            raise OutputError(f"{self._who}: Spark's '{self._format}' cannot write: {first_line(error)}") from error


# The session: the existing one, or one that an engine opens


def register_session(open_session: Callable[[], Any]) -> None:
    """Set the function that opens a session if there is none."""
    _openers[:] = [open_session]


def java_context(session: Any) -> Any:
    """Return the JVM side of a session's context; None if the session was stopped through Python."""
    return getattr(getattr(session, "_sc", None), "_jsc", None)


def find_session() -> SparkSession | None:
    """Return this process's live session, whichever thread opened it, or None. Never starts one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    anyone: Any = SparkSession
    # The active session is per thread, the instantiated one per process.
    for session in (anyone.getActiveSession(), anyone._instantiatedSession):
        context = java_context(session)
        if context is not None and not context.sc().isStopped():
            found: SparkSession = session
            return found
    return None


def need_session(who: str, error: type[HeadwayError]) -> SparkSession:
    """Return the live session, or open one, which takes seconds; raises `error` if none can be opened."""
    with _lock:  # several sources may start at the same time
        session = find_session()
        if session is not None:
            return session
        if not _openers:
            raise error(f"{who}: there is no Spark session; make one with SparkSession.builder.getOrCreate() first")
        opened: SparkSession = _openers[0]()
        return opened


def first_line(problem: BaseException) -> str:
    """Return the line of a Spark error that states the problem."""
    text = str(problem).strip()
    cause = getattr(problem, "java_exception", None)
    if cause is not None:
        text = str(cause.toString()).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__


# The constructors open nothing, so they also serve as `permit`.
register_source("spark", SparkReader, permit=SparkReader)
register_source_object(is_streaming, SparkReader)
register_sink("spark", SparkSink, permit=SparkSink)
