"""Large trains travel from task to task as files, where driver and executors share a disk.

Through Spark a train is copied some eight times: to the JVM, into a row, into the shuffle, out of it, and back to
Python. As a file it is written once and mapped. A row then carries only the file's name. Files live as long as
their micro-batch: when a unit asks for its next grant, nobody needs them any more.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from headway.engines.spark.rows import Row

LARGE = 1 << 16
"""Bytes from which on a file is cheaper than the way through Spark."""
_MARK = b"@file:"


def send(row: Row, folder: str | None) -> Row:
    """Return a row as it travels: a large train is left in a folder, if there is one."""
    if folder is None or len(row.train) < LARGE:
        return row
    name = uuid4().hex  # a task that is tried again writes another file
    with Path(folder, name).open("wb") as file:
        file.write(row.train)
    return row._replace(train=_MARK + name.encode())


def receive(row: Row, folder: str | None) -> Row:
    """Return a row as it was sent."""
    if folder is None or bytes(row.train[: len(_MARK)]) != _MARK:
        return row
    name = bytes(row.train[len(_MARK) :]).decode()
    return row._replace(train=pa.memory_map(str(Path(folder, name))).read_buffer())


def clear(folder: str | None) -> None:
    """Remove what a finished micro-batch has left behind."""
    if folder is not None:
        with contextlib.suppress(FileNotFoundError):
            for path in Path(folder).iterdir():
                path.unlink(missing_ok=True)
