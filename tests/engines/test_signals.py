"""The first signal asks, the second one gives up, and nothing disturbs what must not be left half done."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from headway.engines.control import Control
from headway.engines.signals import SIGNALS, Stopping, TerminatedError, at_once, exit_code, orderly

RAISED = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError, signal.SIGHUP: TerminatedError}


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """See that everything is as before afterwards."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def asked_by(stopping: Stopping) -> str | None:
    """Return who asked so far; a function, because type checkers believe that an attribute stays as it was seen."""
    return stopping.by


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_the_first_asks_and_the_second_raises(number: signal.Signals, second: signal.Signals) -> None:
    with Stopping() as stopping:
        stopping.begin()
        assert asked_by(stopping) is None
        send(number)
        assert stopping.by == number.name
        with pytest.raises(RAISED[second]):
            send(second)
        send(number)  # it cleans up: nothing disturbs that
        assert stopping.by == number.name


@pytest.mark.parametrize("number", SIGNALS)
def test_before_a_run_begins_the_first_gives_up(number: signal.Signals) -> None:
    with Stopping(), pytest.raises(RAISED[number]) as raised:
        send(number)
    if isinstance(raised.value, SystemExit):
        assert raised.value.code == exit_code(number.name) == 128 + number


def test_what_is_held_waits() -> None:
    done: list[int] = []

    def body(stopping: Stopping) -> None:
        with stopping.held():
            send(signal.SIGTERM)
            with stopping.held():
                send(signal.SIGINT)
                send(signal.SIGTERM)
            done.append(1)
        done.append(2)

    with Stopping() as stopping, pytest.raises(TerminatedError):
        body(stopping)
    assert done == [1]


def test_a_held_first_signal_asks_at_once() -> None:
    with Stopping() as stopping:
        stopping.begin()
        with stopping.held():
            send(signal.SIGHUP)
            assert stopping.by == "SIGHUP"


def test_behind_the_shield_nothing_is_heard() -> None:
    with Stopping() as stopping:
        stopping.begin()
        stopping.shield()
        for number in (*SIGNALS, *SIGNALS):
            send(number)
        assert asked_by(stopping) is None


def test_everything_is_as_before_afterwards() -> None:
    with contextlib.suppress(ValueError), Stopping():
        raise ValueError


@pytest.mark.parametrize("number", SIGNALS)
def test_somebody_elses_handler_stays(number: signal.Signals) -> None:
    heard: list[int] = []

    def other(number: int, frame: object) -> None:
        heard.append(number)

    before = signal.signal(number, other)
    try:
        with orderly(), Stopping() as stopping:
            stopping.begin()
            send(number)
            assert signal.getsignal(number) is other
            assert asked_by(stopping) is None
    finally:
        signal.signal(number, before)
    assert heard == [number]


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly(), at_once(), Stopping() as stopping:
            stopping.begin()
            send(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert asked_by(stopping) is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_handle_no_signals() -> None:
    entered: list[bool] = []
    before = signal.getsignal(signal.SIGTERM)

    def body() -> None:
        with orderly(), Stopping() as stopping:
            stopping.begin()
            entered.append(signal.getsignal(signal.SIGTERM) is before)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert entered == [True]


def test_a_command_leaves_in_order_but_a_run_in_it_asks() -> None:
    with orderly():
        with Stopping() as stopping:
            stopping.begin()
            send(signal.SIGTERM)
            assert stopping.by == "SIGTERM"
        with pytest.raises(TerminatedError):
            send(signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_where_half_a_run_is_worth_nothing_the_first_gives_up(number: signal.Signals) -> None:
    with at_once(), Stopping() as stopping:
        stopping.begin()
        with pytest.raises(RAISED[number]):
            send(number)


def test_a_control_asks_too() -> None:
    control = Control()
    with Stopping(control) as stopping:
        stopping.begin()
        assert asked_by(stopping) is None
        control.stop()
        assert stopping.by == "control"
        with contextlib.suppress(KeyboardInterrupt):
            send(signal.SIGINT)
