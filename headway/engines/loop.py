"""The scheduling loop: take events, read the network, ask the policy for a plan, and issue instructions.

It is a state machine. Events go in (a moment is reached, steps have ended, a command arrives), instructions come out
(let tuples arrive, start these steps, wait). It knows nothing of threads, sockets, disks or Spark. An engine is a
`Carrier`: it gives the loop its view of the network, carries out instructions, and answers with their outcome.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

from headway.clock import stopwatch
from headway.columns import NEVER
from headway.engines.control import Alter, Ask, Command, Pause, Resume, Shed, Specify, StepOnce, Stop, UsePolicy
from headway.engines.instructions import (
    ADMIT,
    AT_ONCE,
    Admit,
    Close,
    End,
    Finish,
    Instruction,
    LetTick,
    Manner,
    Renewed,
    Round,
    Seal,
    Start,
    Started,
    Swap,
    Wait,
)
from headway.errors import FOREIGN, HeadwayError, RunError, blamed
from headway.scheduling.background import plan_behind
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.schedule import Schedule
from headway.scheduling.snapshot import Snapshot

if TYPE_CHECKING:  # they know of threads
    from headway.engines.ingest import Ingest
    from headway.engines.steering import Steering
    from headway.engines.traces import Recorder

_NAMED = 5
"""How many units an error lists."""


class Carrier(Protocol):
    """An engine: gives the loop its view of the network, and carries out instructions."""

    sources: Ingest

    @property
    def full(self) -> bool:
        """Whether queues exceed the memory limit, so that sources are held back."""

    @property
    def hungry(self) -> bool:
        """Whether sources without rates have more to give, and there is little left of what they gave."""

    @property
    def attentive(self) -> bool:
        """Whether it is worth waking for arrivals; not if nothing could be started before a step ends."""
        return True

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
        """Whether a step can be started, if nothing has to be decided (`Manner.only`)."""
        return False

    @property
    def awaiting(self) -> bool:
        """Whether there is more to do that no step can be started for now: a box is paused, or history is read."""
        return False

    @property
    def next_command(self) -> int | None:
        """The moment of the next command, where time is virtual."""
        return None

    @property
    def settled(self) -> bool:
        """Whether the network could be exchanged now."""
        return not self.busy

    @property
    def drained(self) -> bool:
        """Whether all boxes that end at the seam have processed everything up to it."""
        return True

    def snapshot(self, seen: bool) -> Snapshot:
        """Return the current snapshot; `seen` says whether the policy was asked about the previous one."""

    def begin(self) -> Round:
        """Return the first round."""

    def close(self) -> None:
        """Carry out `Close`."""

    def tick(self) -> None:
        """Carry out `LetTick`."""

    def admit(self, asks: bool) -> None:
        """Carry out `Admit`."""

    def end(self) -> None:
        """Carry out `End`."""

    def answer(self, ask: Ask) -> None:
        """Answer a question about the run, or do what concerns single boxes."""

    def begin_seam(self, seal: Seal) -> Renewed | None:
        """Carry out `Seal`; return what steers the network until the swap, if that is something else."""
        raise NotImplementedError

    def exchange(self) -> Renewed:
        """Carry out `Swap`."""
        raise NotImplementedError

    def start(self, start: Start) -> Started:
        """Carry out `Start`."""

    def wait(self, wait: Wait) -> Round:
        """Carry out `Wait`."""


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
        """Set up a run. `policy=None` means there is nothing to decide; `ended` that the end has already arrived."""
        self._carrier = carrier
        self.policy = policy
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
        self._wanted: list[Alter] = []
        self._sealed = False
        """Whether the first of the wanted alterations has been sealed, and its swap is due."""
        self.preemptive = policy is not None and policy.preemptive
        self.paused = False
        self.stopped_by: str | None = None
        self._drains = False
        self._stepping = 0
        """The tuples of the one step that a paused run may start."""
        self.plans = 0
        self.preemptions = 0
        """Steps ended early in favour of another unit."""
        self.planning = 0
        """Nanoseconds spent on snapshots, plans and looks."""

    def go_on(self, sealed: Alter) -> None:
        """Begin with an alteration that an earlier process has sealed."""
        self._wanted, self._sealed = [sealed], True

    @property
    def _unscheduled(self) -> str | None:
        """Why commands to the scheduler are refused, if there is none."""
        return f"policy '{self._schedule.policy}' runs without a scheduler" if self.policy is None else None

    @property
    def planning_seconds(self) -> float:
        """The mean time a plan has taken."""
        return self.planning / 1e9 / self.plans if self.plans else 0.0

    def rounds(self, this: Round) -> Generator[Instruction, Any, None]:
        """Yield instructions and receive the outcome of each: `Started`, a `Round`, or None. The last is `Finish`."""
        carrier, sources = self._carrier, self._carrier.sources
        steering, manner = self._steering, self._manner
        starved = held = closed = False
        while True:
            now = this.now
            for command in this.commands:
                self._obey(command, now)
            if self.stopped_by is not None and not closed:
                closed = True
                yield Close()
                if manner.keeps and not self._drains:
                    break
            if self._wanted and (self._sealed or not closed):
                yield from self._alter(closed)
                steering, manner = self._steering, self._manner
            issued, deadline = sources.issued, carrier.deadline
            if deadline is not None and deadline <= now and not sources.ended:
                yield LetTick()
            admits = starved or not carrier.full  # if nothing else can be done, holding sources back would not help
            if admits or manner.logs:
                yield ADMIT[admits and (held or carrier.hungry)]
            if manner.ends_at_once and sources.ended and not self._ended:
                self._ended = True
                yield End()
            if now >= steering.next and self.policy is not None:
                self._look(now)
            rests = (self.paused and not self._stepping) or self._exchanging
            ready, begun, refused = rests, 0, False
            if self._only is not None and not rests and not self._stepping:
                ready = carrier.ready
                if ready:
                    self.plans += 1
                    begun = (yield self._only).begun
            elif not rests and (self._stepping or self._may_plan(this, sources.issued != issued)):
                while True:
                    start, ready = self._decide()
                    if start is None:
                        break
                    if self._stepping:
                        start = self._single(start)
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
            if starved and sources.ended and not carrier.awaiting and not self._sealed:
                if self._ended:
                    break
                self._ended = True
                yield End()
                this = Round(now)
                continue
            if held and refused and (sources.ended or carrier.full):  # nothing will come that the policy could wait for
                raise self.unserved()
            this = yield AT_ONCE if begun and not busy else self._wait(now, busy, starved, held)
        yield Finish()

    def part_ended(self, now: int, arrived: bool) -> bool:
        """Handle the end of one part of a long step; return True if the rest must wait for a new plan.

        Neither overload detection nor a preemptive policy waits for the end of a long train.
        """
        if now >= self._steering.next:
            self._look(now)
        return self.preemptive and (arrived or (self._until is not None and now >= self._until))

    def _alter(self, closed: bool) -> Generator[Instruction, Any, None]:
        """Seal and swap as far as possible now; more than one alteration, if nothing has to be waited for.

        Once the sources are closed, only the seam that has begun is completed.
        """
        carrier = self._carrier
        while self._wanted and carrier.settled and (self._sealed or not closed):
            if not self._sealed:
                opened: Renewed | None = yield Seal(self._wanted[0])
                self._sealed = True
                if opened is not None:
                    self._adopt(opened)
            if not carrier.drained:
                return
            renewed: Renewed = yield Swap()
            self._sealed = False
            del self._wanted[0]
            self._adopt(renewed)

    def _adopt(self, renewed: Renewed) -> None:
        """Go on with what steers the network as it is now."""
        self._steering, self._manner = renewed
        only = self._manner.only
        self._only = None if only is None else Start((only,), None, 0, None)
        self._until = self._overtaken = None
        self._seen = False
        if self.policy is not None:
            self._memory = self._steering.begin(self.policy.start())

    @property
    def _exchanging(self) -> bool:
        """Whether no step may begin until those under way have ended, because the network is to be exchanged."""
        if not self._wanted or self._carrier.settled:
            return False
        return not self._sealed or self._carrier.drained

    def _obey(self, command: Command, now: int) -> None:
        match command:
            case Alter():
                self._wanted.append(command)
            case Ask():
                self._carrier.answer(command)
            case Stop(by, drain):
                self.stopped_by, self.paused = self.stopped_by or by, False
                self._drains = self._drains or drain
            case StepOnce(tuples):
                self._stepping = tuples
            case Pause():
                self.paused = self._steering.takes("pause", now, self._unscheduled)
            case Resume():
                self.paused &= not self._steering.takes("resume", now, self._unscheduled)
            case Specify(settings):
                self._steering.specify(settings, now)
            case Shed(active):
                self._steering.shed(active, now)
            case UsePolicy(wanted):
                adapts = "the adaptive layer chooses policies" if self._steering.adapts else None
                refused = self._unscheduled or adapts
                if self._steering.takes(f"policy {wanted}", now, refused):
                    schedule = replace(self._schedule, policy=wanted)
                    self._schedule, self.policy = schedule, schedule.make_policy()
                    self._memory, self.preemptive, self._only = self.policy.start(), self.policy.preemptive, None

    def _may_plan(self, this: Round, arrived: bool) -> bool:
        """Return whether it is time to plan; this clears the moment at which the policy asked for another plan."""
        switching = self._manner.virtual and self.preemptive
        due = self._until is not None and this.now >= self._until
        asks = self.policy is not None and (
            self._carrier.free > 0 or (switching and (arrived or due or this.ended > 0))
        )
        if asks or not switching:
            self._until = None
        return asks

    def _wait(self, now: int, busy: bool, starved: bool, held: bool) -> Wait:
        """Return what to wait for, as nothing can be done now."""
        carrier, manner, sources = self._carrier, self._manner, self._carrier.sources
        moments = [] if self._until is None or starved or self.paused else [self._until]
        more = not sources.ended
        if more and carrier.attentive:
            reads = starved or not carrier.full
            if reads and sources.more_in_turn and (not busy or (carrier.hungry and not manner.virtual)):
                return AT_ONCE
            due, deadline = sources.next_due(), carrier.deadline
            if sources.ended:  # looking for the next due tuple has found the end of an input
                return AT_ONCE
            if due is not None and (reads or manner.logs or due > now):
                moments.append(due)
            if deadline is not None:
                moments.append(deadline)
        command = carrier.next_command if manner.virtual else None
        if command is not None:
            moments.append(command)
        looks = self.policy is not None and (busy or (moments and self._steering.active))
        return Wait(min(moments, default=NEVER), self._steering.next if looks else NEVER)

    def _look(self, now: int) -> None:
        """Let monitor, load shedder and adaptive layer observe the run."""
        begun = stopwatch()
        self._memory = self._steering.look(now, self._memory)
        self.planning += stopwatch() - begun

    def _decide(self) -> tuple[Start | None, bool]:
        """Ask the policy if a ready unit can be started; return what to start, and whether any unit is ready."""
        begun = stopwatch()
        try:
            self._until = None
            snapshot = self._carrier.snapshot(self._seen)
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

    def _single(self, start: Start) -> Start:
        """Return the first step of a plan, of as many tuples as the command says; there is no other."""
        tuples, self._stepping = self._stepping, 0
        steps = [Step(step.unit, min(step.tuples, tuples)) for step in start.steps[:1]]
        return start._replace(steps=tuple(steps))

    def _ask(self, snapshot: Snapshot) -> Plan:
        assert self.policy is not None
        try:
            ask = self.policy.plan if snapshot.background is None else partial(plan_behind, self.policy)
            plan, after = ask(snapshot, self._memory)
            plan = _checked(plan, snapshot)
        except HeadwayError:
            raise
        except FOREIGN as error:
            raise blamed(f"policy '{self._schedule}' failed", error, RunError) from error
        self.plans += 1
        self._seen = True
        if self._recorder is not None:
            self._recorder.plan(snapshot, self.policy, self._memory, plan)
        self._memory = after
        before, self._overtaken = self._overtaken, None
        if before is not None and plan.steps and plan.steps[0].unit != before and snapshot.waiting[before]:
            self.preemptions += 1
        return plan

    def unserved(self) -> RunError:
        """Return the error for a policy that leaves ready units unserved although nothing else will happen."""
        snapshot = self._carrier.snapshot(self._seen)
        ready = [f"'{snapshot.units[at].name}'" for at in snapshot.ready.nonzero()[0].tolist()]
        names = ", ".join(ready[:_NAMED]) + (", ..." if len(ready) > _NAMED else "")
        return RunError(f"policy '{self._schedule}' serves none of the units that are ready: {names}")


def _checked(plan: Plan, snapshot: Snapshot) -> Plan:
    """Return a plan without the steps of units that have nothing to do, which would leave the run where it is.

    Raises a TypeError or ValueError for what is no plan.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"it returned {plan!r:.100} instead of a Plan")
    steps, until = plan
    ready = snapshot.ready
    count = len(ready)
    for unit, tuples in steps:
        if not (type(tuples) is int and tuples > 0 <= unit < count and ready[unit]):
            break
    else:  # the usual plan, recognised in a fraction of a microsecond
        return plan if until is None or index(until) < NEVER else Plan(steps)
    busy = snapshot.busy
    for unit, tuples in steps:
        if not 0 <= index(unit) < count or index(tuples) < 1:
            raise ValueError(f"a step is for one of units 0 to {count - 1} and at least 1 tuple, not {(unit, tuples)}")
    return plan._replace(steps=tuple([step for step in steps if ready[step.unit] or busy[step.unit]]))


def drive(loop: Loop, carrier: Carrier) -> None:
    """Carry out the loop's instructions with a carrier until the run is finished."""
    rounds = loop.rounds(carrier.begin())
    answer: Started | Round | Renewed | None = None
    while True:
        instruction = rounds.send(answer)
        if isinstance(instruction, Admit):  # the first three occur in every round, tens of thousands of times a second
            carrier.admit(instruction.asks)
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
                case Seal():
                    answer = carrier.begin_seam(instruction)
                case Swap():
                    answer = carrier.exchange()
                case Close():
                    carrier.close()
