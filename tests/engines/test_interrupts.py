"""The first Ctrl-C asks, the second one gives up."""

from __future__ import annotations

import contextlib
import os
import signal
import threading

import pytest

from headway.engines.interrupts import on_interrupt


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_asks_and_the_second_raises() -> None:
    asked: list[int] = []
    with on_interrupt(lambda: asked.append(1)):
        _interrupt()
        assert asked == [1]
        with pytest.raises(KeyboardInterrupt):
            _interrupt()
    assert asked == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_everything_is_as_before_afterwards() -> None:
    with contextlib.suppress(ValueError), on_interrupt(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        raise ValueError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_somebody_elses_handler_stays() -> None:
    heard: list[int] = []

    def other(number: int, frame: object) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGINT, other)
    try:
        with on_interrupt(lambda: heard.append(-1)):
            _interrupt()
            assert signal.getsignal(signal.SIGINT) is other
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


def test_other_threads_handle_no_signals() -> None:
    entered: list[bool] = []

    def body() -> None:
        with on_interrupt(lambda: None):
            entered.append(signal.getsignal(signal.SIGINT) is signal.default_int_handler)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert entered == [True]
