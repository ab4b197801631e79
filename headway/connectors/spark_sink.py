"""Any Spark batch writer as a sink: every micro-batch of an output becomes one write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Where to write with Spark."""

    format: str
    path: str | None = None
    table: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    mode: str = "append"

    @property
    def files(self) -> bool:
        """Whether each micro-batch gets a directory of its own, which a repetition replaces."""
        return self.path is not None and self.format.lower() in _FILES

    @classmethod
    def parse(cls, request: SinkRequest) -> SparkTarget:
        """Read the settings of `{spark: ...}`; raises OutputError that names the key."""
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
        found = cls(format_, path, table, options, str(mode))
        if found.files and mode != "append":
            raise OutputError(
                f"{who}: mode {mode} cannot go with files: every micro-batch has a directory of its own; leave it out, "
                "and give an empty directory"
            )
        return found


class SparkSink(BatchesSink):
    """Writes an output with Spark.

    A file format writes each of them into a directory
    of its own below the path, named by unit and batch, so that writing it again changes nothing. Delta is told
    unit and batch and leaves out what it has. Any other writer may get the last micro-batch twice after a crash.
    """

    def __init__(self, request: SinkRequest) -> None:
        """Read the settings; Spark is asked with the first write."""
        super().__init__()
        self._who, self._target = request.who, SparkTarget.parse(request)
        self._schema = request.schema.to_arrow()
        names = {name.lower() for name in request.schema.names}
        self._column = next(one for one in ("batch", "headway_batch", "__hw_batch") if one not in names)

    def save_as(self, batches: list[pa.RecordBatch], unit: str, batch: int) -> None:
        """Write a micro-batch."""
        target = self._target
        session = need_session(self._who, OutputError)
        table = pa.Table.from_batches(batches, self._schema)
        try:
            frame: Any = session.createDataFrame(table, schema=spark_schema(self._schema))
            if target.files:  # one file, in the tuples' order
                writer = frame.coalesce(1).write.format(target.format).options(**target.options).mode("overwrite")
                writer.save(f"{str(target.path).rstrip('/')}/{self._column}={unit}-{batch:010d}")
                return
            writer = frame.write.format(target.format).options(**target.options).mode(target.mode)
            if target.format.lower() == "delta":
                writer = writer.option("txnAppId", unit).option("txnVersion", str(batch))
            if target.table is not None:
                writer.saveAsTable(target.table)
            elif target.path is not None:
                writer.save(target.path)
            else:
                writer.save()
        except Exception as error:
            raise OutputError(f"{self._who}: Spark's '{target.format}' cannot write: {first_line(error)}") from error


register_sink("spark", SparkSink, permit=SparkTarget.parse)
