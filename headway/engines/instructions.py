"""What passes between the loop and a carrier: events go in, instructions come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headway.columns import NEVER
from headway.engines.control import Alter, Command
from headway.scheduling.policy import Step
from headway.scheduling.snapshot import Snapshot

if TYPE_CHECKING:
    from headway.engines.steering import Steering


class Manner(NamedTuple):
    """How engines differ for the loop."""

    only: Step | None = None
    """The only possible step, if nothing has to be decided."""
    virtual: bool = False
    """Whether time is virtual: a busy processor can switch to another unit at any moment, so that a preemptive policy
    is asked even if all are busy; and sources are not read ahead while it is busy, because that would change when
    tuples arrive."""
    ends_at_once: bool = False
    """Whether the end follows the last tuples without waiting for them to be processed: on Spark, a separate end would
    cost another micro-batch."""
    logs: bool = False
    """Whether full queues hold back only sources without rates: on Spark, the log has room for the others."""
    keeps: bool = False
    """Whether a stopped run is left as it is, because it can be continued."""


# Events: a carrier's answers


class Round(NamedTuple):
    """The start of a round: the time, the steps or calls ended since the last round, and new commands."""

    now: int
    ended: int = 0
    commands: Sequence[Command] = ()


class Started(NamedTuple):
    """The outcome of a plan."""

    begun: int
    """Steps that began, including those that have already ended."""
    again: bool = False
    """Whether there is room for another plan right away."""
    overtaken: int | None = None
    """The unit whose step was ended early."""
    postponed: int = 0
    """Nanoseconds of overhead before the period begins for which the policy said that units may wait."""


# Instructions


class Close(NamedTuple):
    """Stop reading from sources, as if all of them had ended."""


class LetTick(NamedTuple):
    """Let a clock tick arrive: a window has timed out."""


class Admit(NamedTuple):
    """Let tuples arrive."""

    asks: bool
    """Whether sources without rates are asked for more, too."""


ADMIT = Admit(False), Admit(True)
"""Both possible values, made once because there are tens of thousands of rounds per second."""


class End(NamedTuple):
    """Let the end of all inputs arrive."""


class Start(NamedTuple):
    """Start a plan's steps in order, as far as there is room. Answered by `Started`."""

    steps: tuple[Step, ...]
    snapshot: Snapshot | None
    """What the plan was based on; None if nothing had to be decided."""
    plan: int
    """The number of the plan."""
    until: int | None


class Wait(NamedTuple):
    """Wait until something happens, such as the end of a step. Answered by the next `Round`."""

    until: int
    """The moment at which there is something to do in any case: a tuple is due, a window times out, the policy wants
    to be asked. `NEVER` if there is none."""
    look: int = NEVER
    """The moment of the next look, if it is worth waking for: steps are under way, or tuples are being dropped."""


AT_ONCE = Wait(0)
"""There is more to do."""


class Seal(NamedTuple):
    """Begin a seam: let it have the next arrival number, and give boxes that end nothing of what comes after it.

    Answered by `Renewed` or None.
    """

    alter: Alter


class Swap(NamedTuple):
    """Exchange the network, as the boxes that end have processed everything up to the seam. Answered by `Renewed`."""


class Renewed(NamedTuple):
    """What steers the network as it is after a seam."""

    steering: Steering
    manner: Manner


class Finish(NamedTuple):
    """The run is over: everything is processed, or it is left as it is to be continued."""


Instruction = Close | LetTick | Admit | End | Start | Wait | Seal | Swap | Finish
