"""What driver and workers say to each other. It imports nothing else, for processes that only pass things on.

A run on Spark starts several helper processes per query that see the unit's work go by. Importing all of Headway
took each of them a second. So the work travels pickled and is opened where it is used. It comes the way that Spark's
own code objects come, from the driver, over connections that know a secret; it is never written to a state directory
or read from one.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any, Generic, TypeVar

ROWS = "shard int, lane int, first long, train binary"
"""The schema of what travels: the shard it is for, the lane, the first arrival number, and the packed train."""

Content = TypeVar("Content")


class Pickled(Generic[Content]):
    """A value that travels pickled, with a key by which processes recognise it; opened where it is used."""

    def __init__(self, key: str, content: Content) -> None:
        """Wrap a value."""
        self.key = key
        self._content: Content | None = content
        self._packed = b""

    def open(self) -> Content:
        """Return the value."""
        if self._content is None:
            from pyspark import cloudpickle

            content: Content = cloudpickle.loads(self._packed)
            self._content = content
        return self._content

    def __getstate__(self) -> dict[str, Any]:
        """Travel packed, as Spark packs everything else that it sends."""
        if not self._packed:
            from pyspark import cloudpickle

            self._packed = cloudpickle.dumps(self._content)  # type: ignore[no-untyped-call]
        return {"key": self.key, "_content": None, "_packed": self._packed}


class Lines:
    """What is said on a connection: lines of JSON."""

    def __init__(self, connection: socket.socket, rest: bytes = b"") -> None:
        """Go on with a connection of which `rest` was read already."""
        self.connection = connection
        self._rest = bytearray(rest)

    def next(self, limit: int | None = None) -> bytes | None:
        """Return the next line; None at the end, and for one that is longer than `limit`."""
        seen = 0
        while (end := self._rest.find(b"\n", seen)) < 0:
            seen = len(self._rest)
            if limit is not None and seen > limit:
                return None
            came = self.connection.recv(1 << 16)
            if not came:
                return None
            self._rest += came
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def send_line(connection: socket.socket, message: dict[str, Any]) -> None:
    """Send one line of JSON."""
    with contextlib.suppress(OSError):  # whoever is gone needs no answer
        connection.sendall(json.dumps(message).encode() + b"\n")
