"""Who wants a run to end: Ctrl-C, SIGTERM, SIGHUP, or its `Control`. The first signal asks, the second one gives up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import Any, Self

from headway.engines.control import Control

_EXIT = 128
"""What a shell adds to a signal's number."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class TerminatedError(SystemExit):
    """A run that was given up because of SIGTERM or SIGHUP; its code is what a shell says, such as 143."""

    def __init__(self, number: int) -> None:
        """Name the signal."""
        super().__init__(_EXIT + number)
        self.signal = signal.Signals(number)


def exit_code(name: str) -> int:
    """Return the exit code of a run that a signal has ended: 130 for ``SIGINT``, 143 for ``SIGTERM``."""
    return _EXIT + signal.Signals[name]


def leave(number: int, frame: FrameType | None) -> None:
    """Give up in an orderly way: everything that has to be cleaned up is. A run asks first where it can."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise TerminatedError(number)


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    leave(number, frame)  # another function, so that a run knows that it must not ask


def _untouched(number: int, handler: Any) -> bool:
    """Return whether nobody else cares for a signal: an ignored one (nohup) and a handler of the user's stay."""
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    return handler is usual or handler is leave


def orderly() -> AbstractContextManager[None]:
    """Return a context in which SIGTERM and SIGHUP raise, as Ctrl-C does, so that files and folders are cleaned up.

    Runs in it still end in order at the first signal.
    """
    return _taking(leave)


def at_once() -> AbstractContextManager[None]:
    """Return a context in which signals raise, also in runs: for those of which half a result is worth nothing."""
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
    """Who wants one run to end. A context: within it the run has the signals that nobody else cares for.

    Before `begin` a signal gives up at once. After it the first one only asks, and engines look at `by` in each round;
    a second one gives up: it raises KeyboardInterrupt, or TerminatedError. Within `held` that waits. Once a run gives
    up, and after `shield`, nothing disturbs: neither cleaning up nor putting all outputs in their places.

    A handler only sets a flag. It must not touch what the main thread may hold a lock of, such as an Event.

    Outside the main thread there are no signals.
    """

    def __init__(self, control: Control | None = None) -> None:
        """Listen to a control, too."""
        self._control = control
        self._signal: str | None = None
        self._begun = self._deaf = False
        self._held = 0
        self._late: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take the signals."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if _untouched(number, handler):
                    self._before[number] = handler
                    signal.signal(number, self._hear)
        return self

    def __exit__(self, *raised: object) -> None:
        """Give the signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def begin(self) -> None:
        """From now on there is something to end in order."""
        self._begun = True

    @property
    def by(self) -> str | None:
        """Who has asked: a signal such as ``SIGTERM``, ``control``, or nobody."""
        if self._signal is None and self._control is not None and self._control.stopped:
            return "control"
        return self._signal

    @property
    def signalled(self) -> bool:
        """Whether it was a signal."""
        return self._signal is not None

    def shield(self) -> None:
        """Let nothing disturb what comes now; for short work that must not be left half done."""
        self._deaf = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal that would raise wait until the body has ended."""
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


@contextmanager
def ending(control: Control | None) -> Iterator[tuple[ExitStack, Stopping]]:
    """Provide what ends a run in order: a stack of what has to be cleaned up, undisturbed, and who wants it to end."""
    with Stopping(control) as stopping, ExitStack() as stack:
        try:
            yield stack, stopping
        finally:
            stopping.shield()
