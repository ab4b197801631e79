"""Sources and sinks. Importing the package registers the connectors that come with Headway."""

from headway.connectors import spark  # noqa: F401  (before memory, which would accept its data frames)

# isort: split
from headway.connectors import (  # noqa: F401  (they register themselves)
    console,
    csv,
    generate,
    jsonl,
    memory,
    parquet,
    replay,
    spark_tables,
)
from headway.connectors.memory import TableSink
from headway.connectors.protocol import (
    Chunk,
    Malformed,
    PipeClosedError,
    Reader,
    Resumable,
    SinkRequest,
    SourceRequest,
    Writer,
)
from headway.connectors.registry import (
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

__all__ = [
    "Chunk",
    "Malformed",
    "PipeClosedError",
    "Reader",
    "Resumable",
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
