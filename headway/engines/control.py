"""Commands to a run that goes on, and the handle by which other threads and callbacks give them."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.errors import PolicyError
from headway.scheduling.policy import Planner, Policy, as_policy, make_policy

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
        """Start without a command."""
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
        commands: list[Command] = []
        while True:
            try:
                commands.append(self._commands.get_nowait())
            except queue.Empty:
                return commands
