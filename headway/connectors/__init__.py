"""Sources and sinks. Importing the package registers the connectors that come with Headway."""

from headway.connectors import spark_source  # noqa: F401  (before arrow, which takes any data frame as a whole)

# isort: split
from headway.connectors import (  # noqa: F401  (they register themselves)
    arrow,
    console,
    csv,
    directories,
    generate,
    iterables,
    jsonl,
    parquet,
    replay,
    sinks,
    spark_sink,
    spark_tables,
)
from headway.connectors.base import (
    Chunk,
    Malformed,
    PipeClosedError,
    Reader,
    SinkRequest,
    SourceRequest,
    Writer,
    open_sink,
    open_source,
    register_sink,
    register_source,
    register_source_object,
    sink_kinds,
    sink_suffixes,
    source_kinds,
    source_suffixes,
)
from headway.connectors.sinks import CallbackSink, DiscardSink, TableSink

__all__ = [
    "CallbackSink",
    "Chunk",
    "DiscardSink",
    "Malformed",
    "PipeClosedError",
    "Reader",
    "SinkRequest",
    "SourceRequest",
    "TableSink",
    "Writer",
    "open_sink",
    "open_source",
    "register_sink",
    "register_source",
    "register_source_object",
    "sink_kinds",
    "sink_suffixes",
    "source_kinds",
    "source_suffixes",
]
