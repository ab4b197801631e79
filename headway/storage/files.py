"""Single Arrow files in any place that Arrow can open: static tables and results.

The checksum of a file stands in its name, ``<name>.<checksum>.arrow``: whoever reads it needs nothing else to notice
damage, and any Arrow tool reads it as it is.
"""

from __future__ import annotations

import re

import pyarrow as pa

from headway.errors import RunError
from headway.storage.checksums import bulk_checksum
from headway.storage.filesystems import FAILURES, Place, open_input, reason

SUFFIX = ".arrow"
_NAMED = re.compile(r"\.([0-9a-f]{8})\.arrow(?:\?|$)")
_MEND = "restore it, or give another --state"


def write_table(place: Place, relative: str, table: pa.Table, sync: bool = False) -> tuple[str, int]:
    """Write a table under a name that ends in ``.arrow``; the file appears whole or not at all.

    Returns the name inside the place, which has got a checksum, and the size.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue()
    named = f"{relative.removesuffix(SUFFIX)}.{bulk_checksum(data):08x}{SUFFIX}"
    place.write(named, data, sync=sync)
    return named, data.size


def read_table(name: str) -> pa.Table:
    """Read a table by the name that `Place.name` gave its file; a local one is mapped, not copied.

    Raises a RunError that names a file that is missing or damaged.
    """
    data = _open(name)
    try:
        return pa.ipc.open_file(pa.BufferReader(data)).read_all()
    except FAILURES as error:
        raise RunError(f"'{name}' is damaged: {reason(error)}; {_MEND}") from error


def verify_table(name: str) -> None:
    """Look at every byte of a table's file; a RunError that names it if it is missing or damaged."""
    _open(name)


def _open(name: str) -> pa.Buffer:
    found = _NAMED.search(name)
    try:
        data = open_input(name).read_buffer()
    except FileNotFoundError as error:
        raise RunError(f"'{name}' is missing; {_MEND}") from error
    except FAILURES as error:
        raise RunError(f"'{name}' cannot be read: {reason(error)}; {_MEND}") from error
    if found is None or int(found[1], 16) != bulk_checksum(data):
        raise RunError(f"'{name}' is damaged: its checksum is wrong; {_MEND}")
    return data
