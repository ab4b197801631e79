"""Stored data sets as sources: each is streamed once, from its beginning."""

from __future__ import annotations

from headway.connectors.protocol import Reader
from headway.connectors.registry import open_source
from headway.network.schema import Schema
from headway.tables import DataSet, data_schema, data_table, is_folder

_STREAMED = ("csv", "parquet")


def open_data(name: str, data: DataSet, *, schema: Schema | None = None, rate: float | None = None) -> Reader:
    """Open a data set as a source: its tuples are the rows of `data_table`, in the same order.

    CSV, Parquet and tables of databases are streamed; what else there is is held in memory: JSON lines, whose types are
    inferred from all of them, directories, and tables of Spark. `schema` saves
    inferring it again, and must be the data set's. With `rate`, in tuples per second, the source is timed. A row that
    does not fit is an error, not a dead letter. Raises a HeadwayError if the data set cannot be opened.
    """
    schema = data_schema(data) if schema is None else schema
    what: object
    if data.kind == "sql":
        what = {"sql": {"url": data.place, "table": data.table}}
    elif data.kind in _STREAMED and not is_folder(data):
        what = {data.kind: data.place}
    else:
        what = data_table(data)
    return open_source(name, schema, what, rate=rate, strict=True, base=data.base, trust=data.trust)
