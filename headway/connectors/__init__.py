"""Sources and sinks. Importing the package registers the connectors that come with Headway."""

from headway.connectors import (  # noqa: F401  (they register themselves)
    arrow,
    csv,
    generate,
    iterables,
    jsonl,
    parquet,
    replay,
    sinks,
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
