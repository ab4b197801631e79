"""Checked data: checksums, JSON that contains its own, and Arrow files with theirs in the name.

CRC-32 detects every flipped bit and every short burst, at about a gigabyte per second. Columns of tuples come faster
than that, so large data is summed first, which is four times as fast. Neither protects against forged files: that is
what permissions are for.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from headway.errors import RunError
from headway.storage.filesystems import FAILURES, Place, open_input, reason

SUFFIX = ".arrow"
_NAMED = re.compile(r"\.([0-9a-f]{8})\.arrow(?:\?|$)")
RESTORE = "restore it, or give another --state"

_WORDS = 512
"""Words in a row of large data: four kilobytes, the size of a page."""
_SIGNS = 8
"""Hexadecimal digits of a checksum."""


@contextmanager
def intact(what: str, advice: str = RESTORE) -> Iterator[None]:
    """Raise a RunError if `what`, which is read within this context, is missing or damaged."""
    try:
        yield
    except FileNotFoundError as error:
        raise RunError(f"{what} is missing; {advice}") from error
    except FAILURES as error:
        raise RunError(f"{what} cannot be read: {reason(error)}; {advice}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RunError(f"{what} is damaged: {reason(error)}; {advice}") from error


def checksum(data: Any, start: int = 0) -> int:
    """Return the checksum of bytes; `start` is that of the bytes before them."""
    return zlib.crc32(data, start)


def bulk_checksum(data: Any) -> int:
    """Return the checksum of many bytes: of the sums of their rows and columns, and of the remainder.

    A flipped bit changes a row's sum and a column's; so do pages that are zeroed, missing or swapped.
    """
    view = memoryview(data).cast("B")
    count = len(view) // (8 * _WORDS)
    table = np.frombuffer(view, "<u8", count * _WORDS).reshape(count, _WORDS)
    crc = zlib.crc32(table.sum(axis=0).tobytes())
    crc = zlib.crc32(table.sum(axis=1).tobytes(), crc)
    return zlib.crc32(view[table.nbytes :], crc)


def seal(values: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return a mapping as JSON whose first member, `check`, is the checksum of the rest; one line without `indent`."""
    separators = (",", ":") if indent is None else None
    body = json.dumps({"check": "", **values}, indent=indent, separators=separators).encode()
    at = body.index(b'""') + 1
    rest = body[at:]
    return body[:at] + f"{checksum(rest):08x}".encode() + rest


def unseal(data: bytes) -> dict[str, Any]:
    """Return the mapping that `seal` wrote, without `check`; raises a ValueError if a byte of it has changed."""
    at = data.find(b'"', data.find(b":") + 1) + 1
    rest = data[at + _SIGNS :]
    if data[at : at + _SIGNS] != f"{checksum(rest):08x}".encode():
        raise ValueError("its checksum is wrong")
    values: dict[str, Any] = json.loads(data)
    if next(iter(values), "") != "check":
        raise ValueError("its checksum is wrong")
    del values["check"]
    return values


def write_table(place: Place, relative: str, table: pa.Table, sync: bool = False) -> tuple[str, int]:
    """Write a table under a name that ends in ``.arrow``; the file appears complete or not at all.

    Returns the name within the place, which then ends in ``.<checksum>.arrow``, and the size.
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
    data = verify_table(name)
    with intact(f"'{name}'"):
        return pa.ipc.open_file(pa.BufferReader(data)).read_all()


def verify_table(name: str) -> pa.Buffer:
    """Return the bytes of a table's file after checking all; a RunError names it if it is missing or damaged."""
    with intact(f"'{name}'"):
        data, found = open_input(name).read_buffer(), _NAMED.search(name)
        if found is None or int(found[1], 16) != bulk_checksum(data):
            raise ValueError("its checksum is wrong")
        return data
