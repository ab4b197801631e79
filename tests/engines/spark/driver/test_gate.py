"""The gate: grants over loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from headway.clock import SECOND, stopwatch
from headway.engines.spark.driver.gate import MOST_STRANGERS, Gate
from headway.engines.spark.worker.source import GateClient

PATIENCE = 20.0


class Driver:
    """A gate, and what it told the scheduler."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.woken = threading.Event()
        self.gate = Gate(self.tasks, self.woken.set)
        self.pool = ThreadPoolExecutor(8)
        self.askers: list[GateClient] = []

    def tasks(self, unit: int, after: int, upto: int) -> list[Any]:
        self.asked.append((unit, after, upto))
        if upto > 100:
            raise ValueError("the log no longer holds them")
        return [[after, upto]]

    def asker(self, unit: int, secret: str | None = None) -> GateClient:
        self.askers.append(GateClient(self.gate.port, self.gate.secret if secret is None else secret, unit))
        return self.askers[-1]

    def ask(self, asker: GateClient, question: dict[str, Any]) -> Future[dict[str, Any]]:
        return self.pool.submit(asker.ask, question)

    def leave(self) -> None:
        self.gate.shut()
        self.pool.shutdown()
        for asker in self.askers:
            asker.close()


@pytest.fixture
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.leave()


def wait_until(condition: Callable[[], bool]) -> None:
    begun = stopwatch()
    while not condition():
        assert stopwatch() - begun < PATIENCE * 1e9
        threading.Event().wait(0.005)


def test_a_unit_waits_for_its_grant(driver: Driver) -> None:
    answer = driver.ask(driver.asker(3), {"latest": 7})
    assert driver.woken.wait(PATIENCE)
    assert driver.gate.waiting() == {3: 7}
    assert not answer.done()
    driver.gate.grant(3, 12)
    assert answer.result(PATIENCE) == {"upto": 12}
    assert driver.gate.waiting() == {}


def test_a_unit_is_met_when_it_says_anything(driver: Driver) -> None:
    assert not driver.gate.met(2)
    driver.asker(2).ask({"tasks": [4, 9]})
    assert driver.gate.met(2)
    assert not driver.gate.met(1)
    driver.gate.forget(2)
    assert not driver.gate.met(2)


def test_units_are_granted_one_by_one_and_again(driver: Driver) -> None:
    askers = [driver.asker(unit) for unit in range(3)]
    answers = [driver.ask(asker, {"latest": unit}) for unit, asker in enumerate(askers)]
    wait_until(lambda: driver.gate.waiting() == {0: 0, 1: 1, 2: 2})
    driver.gate.grant(1, 10)
    assert answers[1].result(PATIENCE) == {"upto": 10}
    assert driver.gate.waiting() == {0: 0, 2: 2}
    again = driver.ask(askers[1], {"latest": 10})
    wait_until(lambda: driver.gate.waiting().get(1) == 10)
    driver.gate.grant(1, 20)
    assert again.result(PATIENCE) == {"upto": 20}
    assert not answers[0].done()
    driver.gate.close()
    assert answers[0].result(PATIENCE) == answers[2].result(PATIENCE) == {"stop": True}


def test_questions_for_tasks_are_answered_at_once(driver: Driver) -> None:
    asker = driver.asker(2)
    assert asker.ask({"tasks": [4, 9]}) == {"tasks": [[4, 9]]}
    assert driver.asked == [(2, 4, 9)]
    assert asker.ask({"tasks": [4, 900]}) == {"error": "the log no longer holds them"}
    assert asker.ask({"tasks": [9, 10]}) == {"tasks": [[9, 10]]}, "one failure does not end the conversation"


def test_after_the_end_everybody_is_told_to_stop_but_tasks_are_known(driver: Driver) -> None:
    asker = driver.asker(0)
    driver.gate.close()
    assert asker.ask({"latest": 3}) == {"stop": True}
    assert asker.ask({"tasks": [3, 5]}) == {"tasks": [[3, 5]]}, "a micro-batch under way still finds its tasks"
    assert driver.gate.waiting() == {}


@pytest.mark.parametrize("secret", ["", "0" * 32])
def test_without_the_secret_nothing_is_heard(driver: Driver, secret: str) -> None:
    assert driver.asker(0, secret).ask({"tasks": [0, 1]}) == {"stop": True}
    assert driver.asker(0, secret).ask({"latest": 0}) == {"stop": True}
    assert driver.asked == []
    assert driver.gate.waiting() == {}


def test_nonsense_ends_only_its_own_connection(driver: Driver) -> None:
    with socket.create_connection(("127.0.0.1", driver.gate.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection.settimeout(PATIENCE)
        assert connection.recv(100) == b""
    assert driver.asker(1).ask({"tasks": [0, 1]}) == {"tasks": [[0, 1]]}


def test_a_query_that_is_gone_waits_no_longer(driver: Driver) -> None:
    connection = socket.create_connection(("127.0.0.1", driver.gate.port))
    for message in ({"secret": driver.gate.secret, "unit": 5}, {"latest": 1}):
        connection.sendall(json.dumps(message).encode() + b"\n")
    wait_until(lambda: driver.gate.waiting() == {5: 1})
    driver.woken.clear()
    connection.close()
    assert driver.woken.wait(PATIENCE)
    wait_until(lambda: driver.gate.waiting() == {})


def test_a_driver_that_is_gone_says_stop() -> None:
    gone = Driver()
    asker = gone.asker(0)
    gone.leave()
    assert asker.ask({"latest": 0}) == {"stop": True}


def test_a_gate_that_is_shut_leaves_nothing_behind() -> None:
    before = threading.active_count()
    for _ in range(3):
        Gate(lambda unit, after, upto: [], lambda: None).shut()
    wait_until(lambda: threading.active_count() <= before)


# Strangers: any user of the machine can connect


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What threads die of; each would print a traceback."""
    found: list[object] = []
    monkeypatch.setattr(threading, "excepthook", found.append)
    return found


def connect(driver: Driver) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", driver.gate.port))
    connection.settimeout(PATIENCE)
    return connection


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1 << 16) == b"" or is_closed(connection)
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_flood_of_idle_connections_costs_no_threads_and_shuts_nobody_out(driver: Driver) -> None:
    before = threading.active_count()
    idle = [connect(driver) for _ in range(500)]
    try:
        assert driver.asker(1).ask({"tasks": [0, 1]}) == {"tasks": [[0, 1]]}
        answer = driver.ask(driver.asker(2), {"latest": 3})
        wait_until(lambda: driver.gate.waiting() == {2: 3})
        driver.gate.grant(2, 9)
        assert answer.result(PATIENCE) == {"upto": 9}
        # Two conversations, and the pool's own thread.
        assert threading.active_count() <= before + 3
        assert all(is_closed(one) for one in idle[: len(idle) - MOST_STRANGERS]), "the oldest have gone"
    finally:
        for one in idle:
            one.close()


def test_a_flood_that_never_ends_only_delays(driver: Driver) -> None:
    ending = threading.Event()

    def flood() -> None:
        while not ending.is_set():
            mine = [connect(driver) for _ in range(30)]
            for one in mine:
                one.close()

    floods = [threading.Thread(target=flood, daemon=True) for _ in range(3)]
    for one in floods:
        one.start()
    try:
        for unit in range(10):
            assert driver.asker(unit).ask({"tasks": [0, unit]}) == {"tasks": [[0, unit]]}
    finally:
        ending.set()
        for one in floods:
            one.join(PATIENCE)


def test_a_long_line_of_a_stranger_is_not_read(driver: Driver) -> None:
    sent = 0
    with connect(driver) as connection, contextlib.suppress(ConnectionError):
        while sent < 500 << 20:
            sent += connection.send(b"x" * (1 << 20))
    assert sent < 64 << 20, "what the kernel buffers"
    assert driver.asker(1).ask({"tasks": [0, 1]}) == {"tasks": [[0, 1]]}


def test_a_stranger_has_little_time(failures: list[object]) -> None:
    gate = Gate(lambda unit, after, upto: [[after, upto]], lambda: None, patience=SECOND // 5)
    slow = socket.create_connection(("127.0.0.1", gate.port))
    slow.settimeout(0.02)
    begun, closed = stopwatch(), False
    while not closed and stopwatch() - begun < PATIENCE * SECOND:
        try:
            slow.sendall(b" ")
            closed = slow.recv(1) == b""
        except TimeoutError:
            asker = GateClient(gate.port, gate.secret, 0)
            assert asker.ask({"tasks": [1, 2]}) == {"tasks": [[1, 2]]}
            asker.close()
        except OSError:
            closed = True
    assert closed
    assert stopwatch() - begun < 5 * SECOND
    slow.close()
    gate.shut()
    assert not failures


@pytest.mark.parametrize(
    "said",
    [
        b"[]",
        b"5",
        b"null",
        b'"x"',
        b"{}",
        b'{"secret": "\xc3\xa9", "unit": 1}',
        b'{"secret": ["SECRET"], "unit": 1}',
        b'{"secret": "SECRET", "unit": []}',
        b'{"secret": "SECRET", "unit": "x"}',
        b'{"secret": "SECRET"}',
        b"\xff\xfe\x00",
        b"[" * 250,
        b"x" * 10_000,
        b'{"secret": "SECRET", "unit": 7}\n[]',
        b'{"secret": "SECRET", "unit": 7}\n{}',
        b'{"secret": "SECRET", "unit": 7}\n{"tasks": 5}',
        b'{"secret": "SECRET", "unit": 7}\n{"tasks": [1]}',
        b'{"secret": "SECRET", "unit": 7}\n{"latest": {}}',
        b'{"secret": "SECRET", "unit": 7}\n' + b"[" * 60_000,
        b'{"secret": "SECRET", "unit": 7}\n' + b"x" * 200_000,
    ],
)
def test_garbage_is_dropped_without_a_word(driver: Driver, failures: list[object], said: bytes) -> None:
    with connect(driver) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(said.replace(b"SECRET", driver.gate.secret.encode()) + b"\n")
        assert is_closed(connection)
    assert driver.asker(1).ask({"tasks": [0, 1]}) == {"tasks": [[0, 1]]}
    assert driver.gate.waiting() == {}
    assert not failures


def test_it_listens_on_loopback_only(driver: Driver) -> None:
    assert driver.gate._server.getsockname()[0] == "127.0.0.1"


def test_a_unit_that_leaves_is_told_to_stop_and_the_others_go_on(driver: Driver) -> None:
    one, other = driver.asker(1), driver.asker(2)
    first, second = driver.ask(one, {"latest": 5}), driver.ask(other, {"latest": 6})
    wait_until(lambda: driver.gate.waiting() == {1: 5, 2: 6})
    driver.gate.leave(1)
    assert first.result(PATIENCE) == {"stop": True}
    assert driver.ask(one, {"latest": 5}).result(PATIENCE) == {"stop": True}, "also if it asks again"
    assert not driver.gate.grant(1, 9)
    assert driver.gate.grant(2, 9)
    assert second.result(PATIENCE) == {"upto": 9}
