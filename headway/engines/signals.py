"""Ending a run by Ctrl-C or a signal: the first one requests a graceful stop, the second one aborts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Self

from headway.engines.control import Command, Control, Stop

_EXIT = 128
"""What a shell adds to a signal's number to form an exit code."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class TerminatedError(SystemExit):
    """A run was aborted by SIGTERM or SIGHUP; the exit code is the shell's, such as 143."""

    def __init__(self, number: int) -> None:
        super().__init__(_EXIT + number)
        self.signal = signal.Signals(number)


def exit_code(name: str) -> int:
    """Return the exit code of a run ended by a signal: 130 for ``SIGINT``, 143 for ``SIGTERM``."""
    return _EXIT + signal.Signals[name]


def leave(number: int, frame: FrameType | None) -> None:
    """Signal handler: raise, so that everything is cleaned up. A run first requests a graceful stop instead."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise TerminatedError(number)


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    leave(number, frame)  # a separate function, so that a run does not replace it by its own handler


def _untouched(number: int, handler: Any) -> bool:
    """Return whether a signal has its default handler or ours; ignored signals (nohup) and user handlers are kept."""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    return handler is usual or handler is leave


def orderly() -> AbstractContextManager[None]:
    """Return a context in which SIGTERM and SIGHUP raise, as Ctrl-C does, so that files and folders are cleaned up.

    Runs inside it still stop gracefully at the first signal.
    """
    return _taking(leave)


def at_once() -> AbstractContextManager[None]:
    """Return a context in which signals raise even during runs, for callers to whom a partial result is useless."""
    return _taking(_leave_at_once)


@contextmanager
def _taking(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    taken = [number for number in SIGNALS if _untouched(number, before[number])]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


class Stopping:
    """Requests to end one run. As a context, it takes over the signals that have no other handler.

    Before `begin` a signal aborts at once. After it, the first signal is only a request, and engines check `by` in each
    round; a second one aborts by raising KeyboardInterrupt or TerminatedError. Within `held` the abort is deferred.
    Once a run aborts, and after `shield`, signals are ignored, so that neither cleaning up nor moving outputs into
    place is interrupted.

    The handler only sets a flag. It must not touch anything whose lock the main thread may hold, such as an Event.

    Outside the main thread there are no signals.
    """

    def __init__(self, control: Control | None = None) -> None:
        """Also obey `control`, if given."""
        self._control = control
        self._hearing = None if control is None else control.listen()
        self._signals = _taking(self._hear)
        self._signal: str | None = None
        self._begun = self._deaf = False
        self._held = 0
        self._late: int | None = None

    def __enter__(self) -> Self:
        self._signals.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        self._signals.__exit__(None, None, None)
        if self._control is not None:
            self._control.ended()

    def commands(self, now: int) -> Sequence[Command]:
        """Return the commands from outside since the last call, as far as they are due."""
        by = self.by
        if self._hearing is None:  # asked in every round, tens of thousands of times a second
            return () if by is None else (Stop(by),)
        wanted = self._hearing(now)
        return wanted if by is None else [*wanted, Stop(by)]

    @property
    def next(self) -> int | None:
        """The moment of the next command that is known."""
        return None if self._hearing is None else self._hearing.next

    @property
    def alters(self) -> bool:
        """Whether the network will be changed at a later moment that is known."""
        return self._hearing is not None and self._hearing.alters

    def begin(self) -> None:
        """From now on, the first signal requests a graceful stop."""
        self._begun = True

    @property
    def by(self) -> str | None:
        """What requested the end: a signal such as ``SIGTERM``, or ``control``; None if nothing did."""
        if self._signal is None and self._control is not None and self._control.stopped:
            return "control"
        return self._signal

    def shield(self) -> None:
        """Ignore signals from now on; for short work that must not be left half done."""
        self._deaf = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Defer a signal that would raise until the body has ended."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if not self._held and self._late is not None:
            self._give_up(self._late)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._deaf:
            return
        if self._begun and self._signal is None:
            self._signal = signal.Signals(number).name
        elif self._held:
            self._late = number
        else:
            self._give_up(number)

    def _give_up(self, number: int) -> None:
        self._deaf = True
        leave(number, None)
