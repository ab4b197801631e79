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
    sql,
)
from headway.connectors.memory import TableSink as TableSink
from headway.connectors.protocol import Chunk as Chunk
from headway.connectors.protocol import Malformed as Malformed
from headway.connectors.protocol import PipeClosedError as PipeClosedError
from headway.connectors.protocol import Reader as Reader
from headway.connectors.protocol import Resumable as Resumable
from headway.connectors.protocol import SinkRequest as SinkRequest
from headway.connectors.protocol import SourceRequest as SourceRequest
from headway.connectors.protocol import Writer as Writer
from headway.connectors.registry import open_sink as open_sink
from headway.connectors.registry import open_source as open_source
from headway.connectors.registry import register_sink as register_sink
from headway.connectors.registry import register_source as register_source
from headway.connectors.registry import register_source_object as register_source_object
from headway.connectors.registry import sink_kinds as sink_kinds
from headway.connectors.registry import sink_suffixes as sink_suffixes
from headway.connectors.registry import source_kinds as source_kinds
from headway.connectors.registry import source_suffixes as source_suffixes
