"""Controlling a run from outside: commands through its `Control`."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.errors import PolicyError
from headway.scheduling.policy import Planner, Policy, as_policy, make_policy

# Commands are requests from outside. They take effect at the beginning of a round.


class Stop(NamedTuple):
    """Stop taking in tuples, and end. `by` names the origin: a signal such as ``SIGTERM``, or ``control``."""

    by: str


class Pause(NamedTuple):
    """Start no more steps until `Resume`. Tuples still arrive while there is room."""


class Resume(NamedTuple):
    """Start steps again."""


class UsePolicy(NamedTuple):
    """Use another policy from now on, with the same units and the same rule for trains."""

    policy: str | Policy


class Shed(NamedTuple):
    """Turn load shedding on or off, in a run that was started with it."""

    active: bool


class Specify(NamedTuple):
    """Give the adaptive layer another specification."""

    settings: Mapping[str, Any]


Command = Stop | Pause | Resume | UsePolicy | Shed | Specify


class Control:
    """Sends commands to a run: ``control = hw.Control(); hw.run(..., control=control)``. Thread-safe."""

    def __init__(self) -> None:
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._stopped = False

    def stop(self) -> None:
        """End the run as Ctrl-C does: inputs end, what has arrived is processed and delivered, `run` returns.

        On Spark with a state directory the run only stops, and can be continued. Returns at once; may be called from
        any thread, callback or signal handler, and more than once. The run ends shortly after. A control stays stopped:
        a run that is given it later ends without taking in a tuple.
        """
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether `stop` has been called."""
        return self._stopped

    def specify(self, settings: Mapping[str, Any]) -> None:
        """Give the adaptive layer another specification, such as ``{"objectives": {"latency": 1}}``.

        It takes effect at the layer's next look. A specification that the layer cannot read changes nothing, and the
        summary says why. Raises a PolicyError if `settings` is not a mapping.
        """
        if not isinstance(settings, Mapping):
            raise PolicyError(
                f"a specification is a mapping such as {{'objectives': {{'latency': 1}}}}, not {settings!r}"
            )
        self._commands.put(Specify(settings))

    def pause(self) -> None:
        """Start no more steps until `resume`; sources are still read while there is room."""
        self._commands.put(Pause())

    def resume(self) -> None:
        """Start steps again."""
        self._commands.put(Resume())

    def policy(self, policy: str | Planner) -> None:
        """Use another policy from now on: a name such as ``fifo`` or ``random:7``, or a policy object.

        Units, traversal and trains stay the same. A run with an adaptive layer, which chooses policies itself, refuses
        this, and its summary says so. Raises a PolicyError for an unknown name.
        """
        if isinstance(policy, str):
            make_policy(policy)
        self._commands.put(UsePolicy(policy if isinstance(policy, str) else as_policy(policy)))

    def shed(self, active: bool) -> None:
        """Allow load shedding under overload, or turn it off, which removes every drop box.

        A run that was not started with load shedding refuses it, and its summary says so.
        """
        self._commands.put(Shed(bool(active)))

    def commands(self) -> list[Command]:
        """Return the commands since the last call. Called by the engine."""
        return [self._commands.get_nowait() for _ in range(self._commands.qsize())]
