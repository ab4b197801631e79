"""Ctrl-C: the first one asks a run to come to an end, the second one gives up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(ask: Callable[[], None]) -> Iterator[None]:
    """Within the body let the first Ctrl-C call `ask`, so that no tuple is lost; a second one raises.

    Where somebody else handles Ctrl-C, or outside the main thread, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)

    def interrupt(number: int, frame: object) -> None:
        ask()
        signal.signal(signal.SIGINT, previous)

    if previous is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
