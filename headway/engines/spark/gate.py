"""The gate: where streaming queries ask for their next grant, and wait until the scheduler gives one.

Every query's source asks from a process of its own on the driver, over a loopback connection that knows the run's
secret. A question is one line of JSON, and so is the answer:

- ``{"latest": N}``: the query has committed everything up to arrival number N and may be granted more. The answer
  comes when the scheduler decides: ``{"upto": M}``, or ``{"stop": true}``.
- ``{"tasks": [N, M]}``: which parts of the log hold the numbers above N up to M? Answered at once, also for a
  micro-batch that is replayed after a crash.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Callable
from typing import Any

Tasks = Callable[[int, int, int], list[Any]]


class Gate:
    """Listens on loopback. `waiting` holds the units that ask, with the number up to which they have committed."""

    def __init__(self, tasks: Tasks, wake: Callable[[], None]) -> None:
        """Answer questions for tasks by ``tasks(unit, after, upto)``; call `wake` whenever a unit asks or leaves."""
        self._tasks = tasks
        self._wake = wake
        self._lock = threading.Lock()
        self._asking: dict[int, tuple[socket.socket, int]] = {}
        self._met: set[int] = set()
        self._closed = False
        self.secret = secrets.token_hex(16)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, name="headway-gate", daemon=True).start()

    def waiting(self) -> dict[int, int]:
        """Return by unit that waits for a grant the number up to which it has committed."""
        with self._lock:
            return {unit: committed for unit, (_, committed) in self._asking.items()}

    def met(self, unit: int) -> bool:
        """Return whether a unit has said anything since it was forgotten: then the process of its source is up."""
        return unit in self._met

    def forget(self, unit: int) -> None:
        """Expect a unit to come anew."""
        self._met.discard(unit)

    def grant(self, unit: int, upto: int) -> bool:
        """Let a unit that waits run up to an arrival number; False if it does not wait any more: it has gone."""
        with self._lock:
            connection, _ = self._asking.pop(unit, (None, 0))
        if connection is not None:
            _answer(connection, {"upto": upto})
        return connection is not None

    def close(self) -> None:
        """Tell everybody who waits, now or later, to stop."""
        with self._lock:
            self._closed = True
            asking, self._asking = self._asking, {}
        for connection, _ in asking.values():
            _answer(connection, {"stop": True})

    def shut(self) -> None:
        """Stop listening."""
        self.close()
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # closing alone does not wake the thread that accepts
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), name="headway-gate", daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        unit: int | None = None
        with connection, connection.makefile("r") as lines:
            try:
                hello = json.loads(lines.readline() or "{}")
                if not secrets.compare_digest(str(hello.get("secret")), self.secret):
                    return
                unit = int(hello["unit"])
                self._met.add(unit)
                for line in lines:
                    self._hear(unit, connection, json.loads(line))
            except (OSError, ValueError):
                pass
        with self._lock:
            asking = self._asking.get(unit) if unit is not None else None
            if unit is not None and asking is not None and asking[0] is connection:
                del self._asking[unit]
        self._wake()

    def _hear(self, unit: int, connection: socket.socket, question: dict[str, Any]) -> None:
        if "tasks" in question:
            after, upto = question["tasks"]
            try:
                _answer(connection, {"tasks": self._tasks(unit, after, upto)})
            except Exception as error:  # the query fails with it, in the words of the log
                _answer(connection, {"error": str(error)})
            return
        with self._lock:
            closed = self._closed
            if not closed:
                self._asking[unit] = connection, int(question["latest"])
        if closed:
            _answer(connection, {"stop": True})
        else:
            self._wake()


class Asker:
    """A query's side of the gate; used in the process of its source."""

    def __init__(self, port: int, secret: str, unit: int) -> None:
        """Ask at this port in the name of a unit; connects with the first question."""
        self._address = ("127.0.0.1", port)
        self._hello = {"secret": secret, "unit": unit}
        self._connection: socket.socket | None = None
        self._lines: Any = None

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the answer; a driver that is gone says stop."""
        try:
            if self._connection is None:
                self._connection = socket.create_connection(self._address)
                self._lines = self._connection.makefile("r")
                _answer(self._connection, self._hello)
            _answer(self._connection, question)
            line = self._lines.readline()
        except OSError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"stop": True}
        return answer

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._lines.close()
            self._connection.close()
            self._connection = None


def _answer(connection: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # whoever is gone needs no answer
        connection.sendall(json.dumps(message).encode() + b"\n")
