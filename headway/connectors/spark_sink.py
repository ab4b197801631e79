"""Any Spark batch writer as a sink: every micro-batch of an output becomes one write."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from headway.connectors.output_files import BatchesSink
from headway.connectors.protocol import SinkRequest
from headway.connectors.registry import check_keys, register_sink
from headway.connectors.sessions import first_line, need_session
from headway.connectors.spark_options import allowed_path, check_settings, read_options, read_text
from headway.connectors.spark_source import spark_schema
from headway.errors import OutputError, unknown

_KEYS = ("format", "path", "table", "options", "mode")
_MODES = ("append", "overwrite", "ignore", "error")
_TABLE = re.compile(r"\w+(?:\.\w+){0,2}")
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
"""Formats whose directories may consist of directories."""


class SparkSink(BatchesSink):
    """Writes an output with Spark.

    A file format writes each of them into a directory
    of its own below the path, named by unit and batch, so that writing it again changes nothing. Delta is told
    unit and batch and leaves out what it has. Any other writer may get the last micro-batch twice after a crash.
    """

    def __init__(self, request: SinkRequest) -> None:
        """Read the settings, or raise an OutputError that names the key; Spark is asked with the first write."""
        super().__init__()
        who = f"{request.who}: spark"
        given = check_keys(request.settings, _KEYS, request.who, "spark", OutputError)
        format_, path, table = (read_text(given, key, request) for key in ("format", "path", "table"))
        if format_ is None:
            raise OutputError(f"{who}: give a format, such as parquet, jdbc or delta")
        if path is not None and table is not None:
            raise OutputError(f"{who}: give a path or a table, not both")
        mode = given.get("mode", "append")
        if mode not in _MODES:
            raise OutputError(f"{who}: {unknown('mode', str(mode), _MODES)}")
        options = read_options(given.get("options"), request)
        check_settings(format_, options, request.trust, who, OutputError)
        path = allowed_path(path, request)
        if table is not None:
            if not _TABLE.fullmatch(table):
                raise OutputError(f"{who}: table is a name such as alarms or shop.alarms, not '{table[:60]}'")
            request.trust.check_table(table, f"{who}: table", OutputError)
        # Each micro-batch gets a directory of its own, which a repetition replaces.
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

    def save_as(self, batches: list[pa.RecordBatch], unit: str, batch: int) -> None:
        """Write a micro-batch."""
        session = need_session(self._who, OutputError)
        table = pa.Table.from_batches(batches, self._schema)
        try:
            frame: Any = session.createDataFrame(table, schema=spark_schema(self._schema))
            if self._files:  # one file, in the tuples' order
                writer = frame.coalesce(1).write.format(self._format).options(**self._options).mode("overwrite")
                writer.save(f"{str(self._path).rstrip('/')}/{self._column}={unit}-{batch:010d}")
                return
            writer = frame.write.format(self._format).options(**self._options).mode(self._mode)
            if self._format.lower() == "delta":
                writer = writer.option("txnAppId", unit).option("txnVersion", str(batch))
            if self._table is not None:
                writer.saveAsTable(self._table)
            elif self._path is not None:
                writer.save(self._path)
            else:
                writer.save()
        except Exception as error:
            raise OutputError(f"{self._who}: Spark's '{self._format}' cannot write: {first_line(error)}") from error


register_sink("spark", SparkSink, permit=SparkSink)  # opens nothing
