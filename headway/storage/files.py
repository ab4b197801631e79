"""Single Arrow files in any place that Arrow can open: static tables and results."""

from __future__ import annotations

import pyarrow as pa

from headway.storage.filesystems import Place, open_input


def write_table(place: Place, relative: str, table: pa.Table, sync: bool = False) -> None:
    """Write a table; the file appears whole or not at all."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    place.write(relative, sink.getvalue(), sync=sync)


def read_table(name: str) -> pa.Table:
    """Read a table by the name that `Place.name` gave its file; a local one is mapped, not copied."""
    return pa.ipc.open_file(open_input(name)).read_all()
