"""The one loop: take events, read the network, ask the policy for a plan, hand out instructions, account for them.

A state machine. Events go in (a moment has come, steps have ended, somebody outside wants something), instructions come
out (let tuples arrive, start these steps, wait). It knows no thread, socket, disk or Spark. An engine is a `Carrier`:
it lets the loop read the network, carries its instructions out, and answers with what came of them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from headway.clock import stopwatch
from headway.engines.control import Command, Pause, Resume, Shed, Specify, Stop, UsePolicy
from headway.engines.steering import Steering
from headway.engines.traces import Recorder
from headway.errors import RunError
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Snapshot

_NAMED = 5
"""Units that an error names."""


# Events, by which a carrier answers


class Round(NamedTuple):
    """Another round: it begins at `now`, with so many steps or calls ended since the last one, and these commands."""

    now: int
    ended: int = 0
    commands: Sequence[Command] = ()


class Started(NamedTuple):
    """What became of a plan."""

    begun: int
    """Steps that began; also those that have ended already."""
    again: bool = False
    """Whether there is room for another plan at once."""
    overtaken: int | None = None
    """The unit whose step was ended early."""
    postponed: int = 0
    """Nanoseconds of overhead that pass before the time counts for which the policy said that units may wait."""


# Instructions


class Close(NamedTuple):
    """Read no more from sources, as if all of them had ended."""


class LetTick(NamedTuple):
    """Let a clock tick arrive: a window has timed out."""


class Admit(NamedTuple):
    """Let tuples arrive."""

    held: bool
    """Whether the policy lets all that is ready wait for more: then sources without rates give more in any case."""


_ADMIT = Admit(False), Admit(True)
"""Both there are: made once, because rounds come tens of thousands of times a second."""


class End(NamedTuple):
    """Let the end of all inputs arrive."""


class Start(NamedTuple):
    """Start the steps of a plan, in their order as far as there is room. Answered by `Started`."""

    steps: tuple[Step, ...]
    snapshot: Snapshot | None
    """What the plan was made from; None where nothing had to be decided."""
    plan: int
    """The number of the plan."""
    until: int | None


class Wait(NamedTuple):
    """Wait until something happens. Answered by the next `Round`."""

    until: int | None
    """At the latest until then."""
    held: bool
    """Whether the policy lets all that is ready wait."""
    admits: bool
    """Whether tuples that are due would be let in now."""


class Finish(NamedTuple):
    """All is processed, or the run shall be left as it is."""


Instruction = Close | LetTick | Admit | End | Start | Wait | Finish


class Sources(Protocol):
    """What the loop reads of the sources."""

    issued: int
    """The last arrival number given."""

    @property
    def ended(self) -> bool:
        """Whether no tuple will come any more."""


class Carrier(Protocol):
    """An engine: lets the loop read the network, and carries its instructions out."""

    @property
    def sources(self) -> Sources:
        """The sources."""

    @property
    def full(self) -> bool:
        """Whether queues hold as much as they may, so that sources are held back."""

    @property
    def free(self) -> int:
        """How many steps can be started now."""

    @property
    def busy(self) -> bool:
        """Whether steps are under way."""

    @property
    def deadline(self) -> int | None:
        """The moment at which the next window times out."""

    @property
    def ready(self) -> bool:
        """Whether anything could be done, where nothing has to be decided."""

    def snapshot(self, admits: bool, seen: bool) -> Snapshot:
        """Return what is true now; `seen` says whether the policy was asked about the snapshot before."""

    def begin(self) -> Round:
        """Return the first moment."""

    def close(self) -> None:
        """Carry out `Close`."""

    def tick(self) -> None:
        """Carry out `LetTick`."""

    def admit(self, held: bool) -> None:
        """Carry out `Admit`."""

    def end(self) -> None:
        """Carry out `End`."""

    def start(self, start: Start) -> Started:
        """Carry out `Start`."""

    def wait(self, wait: Wait) -> Round:
        """Carry out `Wait`."""


class Manner(NamedTuple):
    """In what engines differ for the loop."""

    only: Step | None = None
    """The step that every plan would consist of, where nothing has to be decided."""
    switches: bool = False
    """Whether a busy processor can be given to another unit: then a preemptive policy is also asked while all are."""
    ends_at_once: bool = False
    """Whether the end follows the last tuples without waiting until they are processed: on Spark it would cost a
    micro-batch of its own."""
    keeps: bool = False
    """Whether a run that is stopped is left as it is, because it can be continued."""


class Loop:
    """Decides what a run does next. Used by one thread."""

    def __init__(
        self,
        carrier: Carrier,
        policy: Policy | None,
        schedule: Schedule,
        steering: Steering,
        recorder: Recorder | None = None,
        manner: Manner | None = None,
        *,
        ended: bool = False,
    ) -> None:
        """Prepare to run; without a policy nobody decides, and `ended` says that the end has arrived before."""
        self._carrier = carrier
        self._policy = policy
        self._schedule = schedule
        self._steering = steering
        self._recorder = recorder
        self._manner = manner or Manner()
        only = self._manner.only
        self._only = None if only is None else Start((only,), None, 0, None)
        self._memory: Any = None if policy is None else steering.begin(policy.start())
        self._ended = ended
        self._seen = False
        self._overtaken: int | None = None
        self._until: int | None = None
        self.preemptive = policy is not None and policy.preemptive
        self.paused = False
        self.stopped_by: str | None = None
        self.plans = 0
        self.preemptions = 0
        """Steps that were ended early for another unit's."""
        self.planning = 0
        """Nanoseconds that snapshots, plans and looks have taken."""

    @property
    def planning_seconds(self) -> float:
        """How long a plan has taken on average."""
        return self.planning / 1e9 / self.plans if self.plans else 0.0

    def rounds(self, this: Round) -> Generator[Instruction, Any, None]:
        """Yield instructions, and receive what came of each: `Started`, a `Round`, or nothing. Ends with `Finish`."""
        carrier, manner, steering, sources = self._carrier, self._manner, self._steering, self._carrier.sources
        starved = held = closed = False
        while True:
            now = this.now
            for command in this.commands:
                self._obey(command, now)
            if self.stopped_by is not None and not closed:
                closed = True
                yield Close()
                if manner.keeps:
                    break
            issued, deadline = sources.issued, carrier.deadline
            if deadline is not None and deadline <= now and not sources.ended:
                yield LetTick()
            admits = starved or not carrier.full  # if nothing can be done, holding sources back would not help
            if admits:
                yield _ADMIT[held]
            if manner.ends_at_once and sources.ended and not self._ended:
                self._ended = True
                yield End()
            if now >= steering.next and self._policy is not None:
                self._look(now)
            ready, begun, refused = self.paused, 0, False
            if self._only is not None and not self.paused:
                ready = carrier.ready
                if ready:
                    self.plans += 1
                    begun = (yield self._only).begun
            elif not self.paused and self._may_plan(this, sources.issued != issued):
                while True:
                    start, ready = self._decide(admits)
                    if start is None:
                        break
                    started: Started = yield start
                    begun += started.begun
                    refused = not start.steps and start.until is None
                    self._overtaken = started.overtaken
                    if self._until is not None:
                        self._until += started.postponed
                    if not (started.begun and started.again):
                        break
            busy = carrier.busy
            idle = not busy and not begun
            starved, held = idle and not ready, idle and ready
            if sources.ended and starved:
                if self._ended:
                    break
                self._ended = True
                yield End()
                this = Round(now)
                continue
            if held and refused and (sources.ended or not admits):  # nothing will come that the policy could wait for
                raise self.unserved()
            this = yield Wait(self._until if ready or busy else None, held, admits)
        yield Finish()

    def part_ended(self, now: int, arrived: bool) -> bool:
        """Hear that a part of a long step has ended; return whether the rest of it has to wait for another plan.

        An overload does not wait for the end of a long train, nor does a preemptive policy.
        """
        if now >= self._steering.next:
            self._look(now)
        return self.preemptive and (arrived or (self._until is not None and now >= self._until))

    def _obey(self, command: Command, now: int) -> None:
        match command:
            case Stop(by):
                self.stopped_by, self.paused = self.stopped_by or by, False
            case Pause():
                self.paused = True
            case Resume():
                self.paused = False
            case Specify(settings):
                self._steering.specify(settings, now)
            case Shed(active):
                self._steering.shed(active, now)
            case UsePolicy(wanted):
                schedule = replace(self._schedule, policy=wanted)
                if self._policy is not None and self._steering.takes(schedule, now):
                    self._schedule, self._policy = schedule, schedule.make_policy()
                    self._memory, self.preemptive, self._only = self._policy.start(), self._policy.preemptive, None

    def _may_plan(self, this: Round, arrived: bool) -> bool:
        """Return whether it is time to plan; the moment at which the policy wants to be asked again passes with it."""
        switching = self._manner.switches and self.preemptive
        due = self._until is not None and this.now >= self._until
        asks = self._policy is not None and (
            self._carrier.free > 0 or (switching and (arrived or due or this.ended > 0))
        )
        if asks or not switching:
            self._until = None
        return asks

    def _look(self, now: int) -> None:
        """Let monitor, load shedder and adaptive layer look at the run."""
        begun = stopwatch()
        self._memory = self._steering.look(now, self._memory)
        self.planning += stopwatch() - begun

    def _decide(self, admits: bool) -> tuple[Start | None, bool]:
        """Ask the policy, if anything is ready that it could start; return what to start, and if anything is ready."""
        begun = stopwatch()
        try:
            self._until = None
            snapshot = self._carrier.snapshot(admits, self._seen)
            self._seen = False
            able = snapshot.ready
            if not self.preemptive and self._carrier.busy:
                able = able & ~snapshot.busy
            if not able.any():
                return None, bool(snapshot.ready.any())
            plan = self._ask(snapshot)
            self._until = plan.until
            return Start(plan.steps, snapshot, self.plans, plan.until), True
        finally:
            self.planning += stopwatch() - begun

    def _ask(self, snapshot: Snapshot) -> Plan:
        assert self._policy is not None
        plan, after = self._policy.plan(snapshot, self._memory)
        self.plans += 1
        self._seen = True
        if self._recorder is not None:
            self._recorder.plan(snapshot, self._policy, self._memory, plan)
        self._memory = after
        before, self._overtaken = self._overtaken, None
        if before is not None and plan.steps and plan.steps[0].unit != before and snapshot.waiting[before]:
            self.preemptions += 1
        return plan

    def unserved(self) -> RunError:
        """Return the error of a policy that leaves units alone although nothing else will happen."""
        snapshot = self._carrier.snapshot(False, self._seen)
        ready = [f"'{snapshot.units[at].name}'" for at in snapshot.ready.nonzero()[0].tolist()]
        names = ", ".join(ready[:_NAMED]) + (", ..." if len(ready) > _NAMED else "")
        return RunError(f"policy '{self._schedule}' serves none of the units that are ready: {names}")


def drive(loop: Loop, carrier: Carrier) -> None:
    """Let a carrier carry out what the loop says, until it is finished."""
    rounds = loop.rounds(carrier.begin())
    answer: Started | Round | None = None
    while True:
        instruction = rounds.send(answer)
        if isinstance(instruction, Admit):  # the first three come in every round, tens of thousands of times a second
            carrier.admit(instruction.held)
            answer = None
        elif isinstance(instruction, Start):
            answer = carrier.start(instruction)
        elif isinstance(instruction, Wait):
            answer = carrier.wait(instruction)
        elif isinstance(instruction, Finish):
            return
        else:
            answer = None
            match instruction:
                case LetTick():
                    carrier.tick()
                case End():
                    carrier.end()
                case Close():
                    carrier.close()
