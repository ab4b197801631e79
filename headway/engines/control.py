"""What somebody outside wants of a run that goes on: commands by its `Control`; that it ends, by Ctrl-C or a signal."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import Any, NamedTuple, Self

from headway.errors import PolicyError
from headway.scheduling.policy import Planner, Policy, as_policy, make_policy

_EXIT = 128
"""What a shell adds to a signal's number."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))

# Commands: what somebody outside wants. They take effect at the beginning of a round.


class Stop(NamedTuple):
    """Take no more tuples in, and end: by a signal such as ``SIGTERM``, or ``control``."""

    by: str


class Pause(NamedTuple):
    """Start no more steps until `Resume`. Tuples go on arriving while there is room."""


class Resume(NamedTuple):
    """Start steps again."""


class UsePolicy(NamedTuple):
    """Ask another policy from now on, about the same units and with the same rule for trains."""

    policy: str | Policy


class Shed(NamedTuple):
    """Shed load from now on if there is too much, or no longer, in a run that was started with load shedding."""

    active: bool


class Specify(NamedTuple):
    """Give the adaptive layer another specification."""

    settings: Mapping[str, Any]


Command = Stop | Pause | Resume | UsePolicy | Shed | Specify


class Control:
    """Gives commands to a run: ``control = hw.Control(); hw.run(..., control=control)``. For any thread."""

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._stopped = False

    def stop(self) -> None:
        """End the run as Ctrl-C does: inputs end, what has arrived is processed and delivered, `run` returns.

        On Spark with a state directory the run only stops, and can be continued. Returns at once, may be called from
        any thread, callback or signal handler, and more than once; the run ends within a moment. A control that is
        stopped stays so: a run that is given it later ends without a tuple.
        """
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether somebody has called `stop`."""
        return self._stopped

    def specify(self, settings: Mapping[str, Any]) -> None:
        """Give the adaptive layer another specification, such as ``{"objectives": {"latency": 1}}``.

        It counts from the layer's next look on. One that the layer cannot read changes nothing, and the summary says
        why. Raises a PolicyError for what is no mapping.
        """
        if not isinstance(settings, Mapping):
            raise PolicyError(
                f"a specification is a mapping such as {{'objectives': {{'latency': 1}}}}, not {settings!r}"
            )
        self._commands.put(Specify(settings))

    def pause(self) -> None:
        """Start no more steps until `resume`; sources go on being read while there is room."""
        self._commands.put(Pause())

    def resume(self) -> None:
        """Start steps again."""
        self._commands.put(Resume())

    def policy(self, policy: str | Planner) -> None:
        """Ask another policy from now on: a name such as ``fifo`` or ``random:7``, or a policy itself.

        Units, traversal and trains stay. A run with an adaptive layer, which chooses policies itself, refuses it, and
        its summary says so. Raises a PolicyError for a name that is unknown.
        """
        if isinstance(policy, str):
            make_policy(policy)
        self._commands.put(UsePolicy(policy if isinstance(policy, str) else as_policy(policy)))

    def shed(self, active: bool) -> None:
        """Shed load from now on if there is too much, or no longer: then every drop box is removed.

        A run that was not started with load shedding refuses it, and its summary says so.
        """
        self._commands.put(Shed(bool(active)))

    def commands(self) -> list[Command]:
        """Return the commands since the last call; for the engine."""
        return [self._commands.get_nowait() for _ in range(self._commands.qsize())]


# Signals. The first one asks, the second one gives up.


class TerminatedError(SystemExit):
    """A run that was given up because of SIGTERM or SIGHUP; its code is what a shell says, such as 143."""

    def __init__(self, number: int) -> None:
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

    def commands(self) -> Sequence[Command]:
        """Return what somebody outside has asked for since the last time."""
        control, by = self._control, self.by
        if control is None and by is None:
            return ()
        wanted: list[Command] = [] if control is None else control.commands()
        return wanted if by is None else [*wanted, Stop(by)]

    def begin(self) -> None:
        """From now on there is something to end in order."""
        self._begun = True

    @property
    def by(self) -> str | None:
        """Who has asked: a signal such as ``SIGTERM``, ``control``, or nobody."""
        if self._signal is None and self._control is not None and self._control.stopped:
            return "control"
        return self._signal

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
