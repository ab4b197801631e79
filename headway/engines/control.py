"""Controlling a run from outside: commands through its `Control`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.columns import NEVER
from headway.errors import PolicyError, RunError
from headway.scheduling.policy import Planner, Policy, as_policy
from headway.scheduling.schedule import make_scheduler

if TYPE_CHECKING:
    from headway.engines.alteration import Alteration

# Commands are requests from outside. They take effect at the beginning of a round.


class Stop(NamedTuple):
    """Stop taking in tuples, and end. `by` names the origin: a signal such as ``SIGTERM``, or ``control``.

    With `drain`, what has arrived is processed even where the run could be continued.
    """

    by: str
    drain: bool = False


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


class Alter(NamedTuple):
    """Change the network at a seam."""

    alteration: Alteration
    sealed: Future[int]
    """Gets the number of the seam."""
    done: Future[int]
    """The same, when the network is exchanged."""


class Ask(NamedTuple):
    """Ask something about the run, between two rounds of the loop, or do something to single boxes."""

    question: Callable[[Any], Any]
    """Called with the carrier."""
    answer: Future[Any]


class StepOnce(NamedTuple):
    """Start one step of a paused run, of so many tuples at most."""

    tuples: int


Command = Stop | Pause | Resume | StepOnce | UsePolicy | Shed | Specify | Alter | Ask


class Timed(NamedTuple):
    """A command for a moment of a run's own time."""

    at: int
    command: Command


class Hearing:
    """What one run hears of the commands that are given."""

    def __init__(self, given: Sequence[Command | Timed], heard: int) -> None:
        """Hear what comes after the first `heard` commands."""
        self._given, self._heard = given, heard
        self._later: list[Timed] = []

    def __call__(self, now: int = NEVER) -> Sequence[Command]:
        """Return the commands since the last call that are due."""
        if self._heard == len(self._given) and not self._later:
            return ()
        due: list[Command] = []
        new = self._given[self._heard :]
        self._heard += len(new)
        for one in new:
            if isinstance(one, Timed):
                self._later.append(one)
            else:
                due.append(one)
        due += [one.command for one in self._later if one.at <= now]
        self._later = [one for one in self._later if one.at > now]
        return due

    @property
    def next(self) -> int | None:
        """The moment of the next command that is known."""
        return min([one.at for one in self._later], default=None)

    @property
    def alters(self) -> bool:
        """Whether the network will be changed at a later moment."""
        return any(isinstance(one.command, Alter) for one in self._later)


class Control:
    """Sends commands to a run: ``control = hw.Control(); hw.run(..., control=control)``. Thread-safe.

    Commands that are given before a run begins are for that run; those that come too late for it are dropped. Several
    runs at once that share a control each obey all of its commands.
    """

    def __init__(self) -> None:
        # Only ever appended to, so that it needs no lock, also in signal handlers.
        self._given: list[Command | Timed] = []
        self._past = 0  # how many of them were given before the last run ended
        self._sleepers: tuple[Callable[[], None], ...] = ()
        self._stopped = False

    def stop(self, *, drain: bool = False, at: int = 0) -> None:
        """End the run as Ctrl-C does: inputs end, what has arrived is processed and delivered, `run` returns.

        On Spark with a state directory the run only stops, and can be continued. Returns at once; may be called from
        any thread, callback or signal handler, and more than once. The run ends shortly after. A control stays stopped:
        a run that is given it later ends without taking in a tuple. With `drain`, a run with a state is processed to
        the end, too. `at` is a moment of virtual time (ns).
        """
        if at:
            self._given.append(Timed(at, Stop("control", drain)))
            return
        if drain:
            self._given.append(Stop("control", drain))
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether `stop` has been called."""
        return self._stopped

    def specify(self, settings: Mapping[str, Any], *, at: int = 0) -> None:
        """Give the adaptive layer another specification, such as ``{"objectives": {"latency": 1}}``.

        It takes effect at the layer's next look. A specification that the layer cannot read changes nothing, and the
        summary says why. Raises a PolicyError if `settings` is not a mapping.
        """
        if not isinstance(settings, Mapping):
            raise PolicyError(
                f"a specification is a mapping such as {{'objectives': {{'latency': 1}}}}, not {settings!r}"
            )
        self._append(Specify(settings), at)

    def pause(self) -> None:
        """Start no more steps until `resume`; sources are still read while there is room."""
        self._given.append(Pause())

    def resume(self) -> None:
        """Start steps again."""
        self._given.append(Resume())

    def policy(self, policy: str | Planner, *, at: int = 0) -> None:
        """Use another policy from now on: a name such as ``fifo`` or ``slope-slack:8``, or a policy object.

        Units, traversal and trains stay the same. A run with an adaptive layer, which chooses policies itself, refuses
        this, and its summary says so. Raises a PolicyError for an unknown name, and for ``threads``, which is
        not a policy but a way to run without one.
        """
        if isinstance(policy, str):
            make_scheduler(policy)
        self._append(UsePolicy(policy if isinstance(policy, str) else as_policy(policy)), at)

    def shed(self, active: bool, *, at: int = 0) -> None:
        """Allow load shedding under overload, or turn it off, which removes every drop box.

        A run that was not started with load shedding refuses it, and its summary says so. Raises a RunError if `active`
        is neither True nor False.
        """
        if not isinstance(active, bool):
            raise RunError(f"shed takes True or False, not {active!r:.100}")
        self._append(Shed(active), at)

    def give(self, command: Command, at: int = 0) -> None:
        """Give a command to the runs that listen, for a moment of theirs, and wake those that sleep.

        Not for signal handlers, as it locks.
        """
        self._append(command, at)
        for wake in self._sleepers:
            wake()

    def _append(self, command: Command, at: int = 0) -> None:
        self._given.append(Timed(at, command) if at else command)

    def rouse(self, sleeper: Callable[[], None]) -> None:
        """Call `sleeper` whenever a command is given. Called by the engine."""
        self._sleepers = (*self._sleepers, sleeper)

    def listen(self) -> Hearing:
        """Return what hears the commands for one run. Called by the engine."""
        return Hearing(self._given, self._past)

    def ended(self) -> None:
        """Note that a run has ended: what it has not obeyed is not for the next one. Called by the engine."""
        self._past = len(self._given)
