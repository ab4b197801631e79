"""The gate: streaming queries ask here for their next grant, and wait until the scheduler gives one.

Each query's source asks from its own process on the driver, over a loopback connection that is authenticated by the
run's secret. Requests and responses are single lines of JSON:

- ``{"secret": S, "unit": U}`` comes first. The response is ``{"welcome": true}``, or ``{"stop": true}`` and the end.
- ``{"latest": N}``: the query has committed everything up to arrival number N and may be granted more. The response
  comes when the scheduler decides: ``{"upto": M}``, or ``{"stop": true}``.
- ``{"tasks": [N, M]}``: which parts of the log hold the numbers above N up to M? Answered immediately, also for a
  micro-batch that is replayed after a crash.

Any user of the machine can connect. Until a connection has presented the secret, it is a stranger: one thread serves
all strangers, each may send one short line within a few seconds, and when there are too many the oldest are closed.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any

from headway.clock import SECOND, stopwatch
from headway.engines.spark.worker.source import Lines, send_line

LONGEST_HELLO = 256
"""Most bytes that a stranger may send."""
LONGEST_QUESTION = 1 << 16
"""Most bytes of an authenticated request."""
MOST_STRANGERS = 64
"""Most unauthenticated connections; beyond that, the oldest is closed. Our own queries then try again."""
PATIENCE = 5 * SECOND
"""How long a stranger has to present the secret (ns)."""
_NONSENSE = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""Exceptions that a peer which violates the protocol may cause."""


class Gate:
    """Listens on loopback for queries that ask for grants."""

    def __init__(
        self, tasks: Callable[[int, int, int], list[Any]], wake: Callable[[], None], *, patience: int = PATIENCE
    ) -> None:
        """Answer requests for tasks by ``tasks(unit, after, upto)``; call `wake` whenever a unit asks or disconnects.

        `patience` is how many nanoseconds a stranger has to present the secret.
        """
        self._tasks = tasks
        self._wake = wake
        self._patience = patience
        self._lock = threading.Lock()
        self._asking: dict[int, tuple[socket.socket, int]] = {}
        self._met: set[int] = set()
        self._left: set[int] = set()
        self._closed = False
        self.secret = secrets.token_hex(16)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._server.setblocking(False)
        self.port: int = self._server.getsockname()[1]
        self._ended, self._end = socket.socketpair()
        threading.Thread(target=self._serve, name="headway-gate", daemon=True).start()

    def waiting(self) -> dict[int, int]:
        """Return the units waiting for a grant, each with the number up to which it has committed."""
        with self._lock:
            return {unit: committed for unit, (_, committed) in self._asking.items()}

    def met(self, unit: int) -> bool:
        """Return whether a unit has connected since `forget`: then the process of its source is up."""
        return unit in self._met

    def forget(self, unit: int) -> None:
        """Expect a unit to connect again."""
        self._met.discard(unit)

    def grant(self, unit: int, upto: int) -> bool:
        """Grant a waiting unit everything up to an arrival number; return False if it has disconnected."""
        with self._lock:
            connection, _ = self._asking.pop(unit, (None, 0))
        if connection is not None:
            send_line(connection, {"upto": upto})
        return connection is not None

    def leave(self, unit: int) -> None:
        """Tell a unit that waits, now or later, to stop."""
        with self._lock:
            self._left.add(unit)
            connection, _ = self._asking.pop(unit, (None, 0))
        if connection is not None:
            send_line(connection, {"stop": True})

    def close(self) -> None:
        """Tell all units that wait, now or later, to stop."""
        with self._lock:
            self._closed = True
            asking, self._asking = self._asking, {}
        for connection, _ in asking.values():
            send_line(connection, {"stop": True})

    def shut(self) -> None:
        """Stop listening."""
        self.close()
        self._end.close()  # wakes the serving thread, which closes the rest

    # Unauthenticated connections: one thread for all of them

    def _serve(self) -> None:
        strangers: dict[socket.socket, _Stranger] = {}
        with selectors.DefaultSelector() as selector, self._server, self._ended:
            selector.register(self._server, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(self._time_left(strangers))]
                if self._ended in ready:
                    break
                now = stopwatch()
                # Connections that have sent something are served before any is accepted or closed.
                for connection in [one for one in strangers if one in ready]:
                    if strangers[connection].listen():
                        selector.unregister(connection)
                        self._meet(strangers.pop(connection))
                if self._server in ready:
                    self._accept(selector, strangers, now)
                late = [one for one, stranger in strangers.items() if now - stranger.since >= self._patience]
                for connection in late:
                    _dismiss(selector, strangers, connection)
            for connection in list(strangers):
                _dismiss(selector, strangers, connection)

    def _time_left(self, strangers: dict[socket.socket, _Stranger]) -> float | None:
        if not strangers:
            return None
        oldest = next(iter(strangers.values())).since  # they are in order of arrival
        return max(0, oldest + self._patience - stopwatch()) / SECOND

    def _accept(self, selector: selectors.BaseSelector, strangers: dict[socket.socket, _Stranger], now: int) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # the peer has gone, or files have run out: one must be closed
            for oldest in list(strangers)[:1]:
                _dismiss(selector, strangers, oldest)
            return
        connection.setblocking(False)
        strangers[connection] = _Stranger(connection, now)
        selector.register(connection, selectors.EVENT_READ)
        if len(strangers) > MOST_STRANGERS:
            _dismiss(selector, strangers, next(iter(strangers)))

    def _meet(self, stranger: _Stranger) -> None:
        """Give an authenticated connection its own thread; tell other queries to stop, and close all others."""
        connection = stranger.connection
        unit = self._unit_of(stranger.hello)
        if unit is None:
            if stranger.hello is not None and stranger.hello.startswith(b"{"):
                send_line(connection, {"stop": True})
            connection.close()
            return
        connection.setblocking(True)
        lines = Lines(connection, stranger.rest)
        threading.Thread(target=self._talk, args=(unit, connection, lines), name="headway-gate", daemon=True).start()

    def _unit_of(self, hello: bytes | None) -> int | None:
        try:
            said = json.loads(hello or b"{}")
            known = secrets.compare_digest(str(said["secret"]).encode(), self.secret.encode())
            return int(said["unit"]) if known else None
        except _NONSENSE:
            return None

    # Authenticated connections

    def _talk(self, unit: int, connection: socket.socket, lines: Lines) -> None:
        try:
            with connection, contextlib.suppress(*_NONSENSE):
                self._met.add(unit)
                send_line(connection, {"welcome": True})
                while (line := lines.next(LONGEST_QUESTION)) is not None:
                    self._hear(unit, connection, json.loads(line))
        finally:  # however it ended, no grant may go to this connection
            with self._lock:
                asking = self._asking.get(unit)
                if asking is not None and asking[0] is connection:
                    del self._asking[unit]
            self._wake()

    def _hear(self, unit: int, connection: socket.socket, question: dict[str, Any]) -> None:
        if "tasks" in question:
            after, upto = question["tasks"]
            try:
                send_line(connection, {"tasks": self._tasks(unit, after, upto)})
            except Exception as error:  # the query fails with it, with the log's message
                send_line(connection, {"error": str(error)})
            return
        latest = int(question["latest"])
        with self._lock:
            closed = self._closed or unit in self._left
            if not closed:
                self._asking[unit] = connection, latest
        if closed:
            send_line(connection, {"stop": True})
        else:
            self._wake()


class _Stranger:
    """A connection that has not presented the secret."""

    def __init__(self, connection: socket.socket, since: int) -> None:
        self.connection = connection
        self.since = since
        self.hello: bytes | None = None
        self.rest = b""

    def listen(self) -> bool:
        """Receive; return True if there is nothing more to wait for: a whole line, too much data, or the end."""
        try:
            came = self.connection.recv(LONGEST_HELLO - len(self.rest))
        except BlockingIOError:
            return False
        except OSError:
            came = b""
        self.rest += came
        line, end, rest = self.rest.partition(b"\n")
        if end:
            self.hello, self.rest = line, rest
        return bool(end) or not came or len(self.rest) >= LONGEST_HELLO


def _dismiss(selector: selectors.BaseSelector, strangers: dict[socket.socket, _Stranger], one: socket.socket) -> None:
    selector.unregister(one)
    del strangers[one]
    one.close()
