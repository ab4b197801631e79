"""The gate: where streaming queries ask for their next grant, and wait until the scheduler gives one.

Every query's source asks from a process of its own on the driver, over a loopback connection that knows the run's
secret. A question is one line of JSON, and so is the answer:

- ``{"secret": S, "unit": U}`` comes first. The answer is ``{"welcome": true}``, or ``{"stop": true}`` and the end.
- ``{"latest": N}``: the query has committed everything up to arrival number N and may be granted more. The answer
  comes when the scheduler decides: ``{"upto": M}``, or ``{"stop": true}``.
- ``{"tasks": [N, M]}``: which parts of the log hold the numbers above N up to M? Answered at once, also for a
  micro-batch that is replayed after a crash.

Any user of the machine can connect. Until it has shown the secret, a connection is a stranger: one thread looks after
all of them, each may send one short line and has a few seconds for it, and when there are too many the oldest go.
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
"""Bytes that a stranger may send."""
LONGEST_QUESTION = 1 << 16
"""Bytes of a question of somebody who knows the secret."""
MOST_STRANGERS = 64
"""Connections that have not shown the secret; with more, the oldest is closed. Who knows it tries again."""
PATIENCE = 5 * SECOND
"""How long a stranger has to show the secret."""
_NONSENSE = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""What talking to somebody who does not keep to the rules may raise."""


class Gate:
    """Listens on loopback. `waiting` holds the units that ask, with the number up to which they have committed."""

    def __init__(
        self, tasks: Callable[[int, int, int], list[Any]], wake: Callable[[], None], *, patience: int = PATIENCE
    ) -> None:
        """Answer questions for tasks by ``tasks(unit, after, upto)``; call `wake` whenever a unit asks or leaves.

        `patience` is how many nanoseconds a stranger has to show the secret.
        """
        self._tasks = tasks
        self._wake = wake
        self._patience = patience
        self._lock = threading.Lock()
        self._asking: dict[int, tuple[socket.socket, int]] = {}
        self._met: set[int] = set()
        self._closed = False
        self.secret = secrets.token_hex(16)
        self._server = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._server.setblocking(False)
        self.port: int = self._server.getsockname()[1]
        self._ended, self._end = socket.socketpair()
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
            send_line(connection, {"upto": upto})
        return connection is not None

    def close(self) -> None:
        """Tell everybody who waits, now or later, to stop."""
        with self._lock:
            self._closed = True
            asking, self._asking = self._asking, {}
        for connection, _ in asking.values():
            send_line(connection, {"stop": True})

    def shut(self) -> None:
        """Stop listening."""
        self.close()
        self._end.close()  # wakes the thread that listens, which closes the rest

    # Strangers: one thread for all of them

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
                # Whoever has said something is heard before anybody is let in or sent away.
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
        oldest = next(iter(strangers.values())).since  # they stand in the order in which they came
        return max(0, oldest + self._patience - stopwatch()) / SECOND

    def _accept(self, selector: selectors.BaseSelector, strangers: dict[socket.socket, _Stranger], now: int) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # gone again, or no more files: somebody has to go
            for oldest in list(strangers)[:1]:
                _dismiss(selector, strangers, oldest)
            return
        connection.setblocking(False)
        strangers[connection] = _Stranger(connection, now)
        selector.register(connection, selectors.EVENT_READ)
        if len(strangers) > MOST_STRANGERS:
            _dismiss(selector, strangers, next(iter(strangers)))

    def _meet(self, stranger: _Stranger) -> None:
        """Let in who knows the secret, with a thread of its own; another query is told to stop, nonsense nothing."""
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

    # Those who know the secret

    def _talk(self, unit: int, connection: socket.socket, lines: Lines) -> None:
        try:
            with connection, contextlib.suppress(*_NONSENSE):
                self._met.add(unit)
                send_line(connection, {"welcome": True})
                while (line := lines.next(LONGEST_QUESTION)) is not None:
                    self._hear(unit, connection, json.loads(line))
        finally:  # whatever ended it: nobody grants anything to who has gone
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
            except Exception as error:  # the query fails with it, in the words of the log
                send_line(connection, {"error": str(error)})
            return
        latest = int(question["latest"])
        with self._lock:
            closed = self._closed
            if not closed:
                self._asking[unit] = connection, latest
        if closed:
            send_line(connection, {"stop": True})
        else:
            self._wake()


class _Stranger:
    """A connection that has not shown the secret."""

    def __init__(self, connection: socket.socket, since: int) -> None:
        self.connection = connection
        self.since = since
        self.hello: bytes | None = None
        self.rest = b""

    def listen(self) -> bool:
        """Take what has come; True when there is nothing to wait for any more: a line, too much, or the end."""
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
