"""Recorded runs: which step ran when, and why it was chosen before others.

An engine reports plans and steps to a `Recorder`, which produces a `Trace`: readable as lines or as a table, or drawn
on a timeline. Each plan is explained when it is made, because the readings that the policy saw are only available then.
Moments are nanoseconds on the run's clock.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headway.clock import MILLISECOND, SECOND
from headway.engines import chrome
from headway.engines.ingest import Feed
from headway.engines.reasons import Reason, Terms, Values, reasons, span_text, why
from headway.errors import InputError
from headway.scheduling.policy import Plan, Policy
from headway.scheduling.snapshot import Snapshot
from headway.trains import Train

MOST = 1_000_000
"""Most records that are kept by default."""
CHANGES = 1_000
"""Most changes of a run that are kept; all are counted."""
FORMAT = "headway trace 1"

_REFUSED = 64
"""Plans in a row that may name a unit whose step is under way before some of their reasons are dropped."""


class CallRecord(NamedTuple):
    """One call within a step: a box, or neighbouring boxes called as one."""

    boxes: tuple[int, ...]
    begin: int
    end: int
    tuples_in: int
    tuples_out: int


class StepRecord(NamedTuple):
    """A step that was carried out."""

    unit: int
    worker: int
    begin: int
    end: int
    tuples: int
    calls: tuple[CallRecord, ...]
    reason: Reason
    preempted: bool
    plan: int
    """The number of the plan that asked for it, from 1; 0 if none did."""


class Change(NamedTuple):
    """A policy was switched, a drop box inserted, adjusted or removed, an overload began or ended, or a command."""

    moment: int
    """On the run's clock, in nanoseconds."""
    kind: str
    """`switch`, `allow` (a layer starts or stops allowing shedding for an output), `shed`, `overload`, or `command`."""
    subject: str
    """An output, a site, or the run."""
    what: str
    reason: str


Arrivals = tuple[tuple[int, int], ...]
"""Pairs (millisecond of the run, tuples that arrived in it), ascending."""


class Queued(NamedTuple):
    """The contents of all queues at a moment."""

    moment: int
    tuples: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded run, with its steps in the order in which they began."""

    network: str
    policy: str
    units: tuple[str, ...]
    boxes: tuple[str, ...]
    start: int
    steps: tuple[StepRecord, ...]
    counters: tuple[Queued, ...]
    left_out: int
    """Steps that were carried out after the recording was full."""
    changes: tuple[Change, ...] = ()
    """Changes of policies and drop boxes, overloads, and commands."""
    description: Mapping[str, Any] | None = None
    """The network as in its file; None in older recordings, and in those of Spark."""
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    """By source: how many tuples arrived in each millisecond of the run."""
    flows: Mapping[str, int] = field(default_factory=dict)
    """By arc: the tuples that it carried in the whole run."""

    def lines(self) -> Iterator[str]:
        """Return a readable line for each step."""
        return (explain(step, self.units, self.start) for step in self.steps)

    def table(self) -> pa.Table:
        """Return a row for each step; `moment` is in seconds since the run's start."""
        steps = self.steps
        columns = {
            "moment": pa.array([(step.begin - self.start) / SECOND for step in steps], pa.float64()),
            "worker": pa.array([step.worker for step in steps], pa.int64()),
            "unit": pa.array([self.units[step.unit] for step in steps], pa.string()),
            "tuples": pa.array([step.tuples for step in steps], pa.int64()),
            "seconds": pa.array([(step.end - step.begin) / SECOND for step in steps], pa.float64()),
            "preempted": pa.array([step.preempted for step in steps], pa.bool_()),
            "plan": pa.array([step.plan for step in steps], pa.int64()),
            "reason": pa.array([why(step.reason, self.units) for step in steps], pa.string()),
        }
        return pa.table(columns)

    def to_chrome(self) -> dict[str, Any]:
        """Return the trace in the trace event format, as one object."""
        return chrome.document(self._about(), self._events())

    def write(self, path: Path | str) -> None:
        """Write a file in the trace event format; it appears once it is complete. Raises OutputError."""
        chrome.write_events(Path(path), self._about(), self._events())

    def _about(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "network": self.network,
            "policy": self.policy,
            "start": self.start,
            "left_out": self.left_out,
            "units": list(self.units),
            "boxes": list(self.boxes),
            "description": self.description,
            "arrivals": {source: [list(pair) for pair in some] for source, some in self.arrivals.items()},
            "flows": dict(self.flows),
        }

    def _events(self) -> Iterator[chrome.Event]:
        start = self.start
        workers = sorted({step.worker for step in self.steps})
        yield from chrome.names(f"headway {self.network}", {worker: f"worker {worker}" for worker in workers})
        for step in self.steps:
            args = self._args(step)
            name, begin, end = self.units[step.unit], step.begin - start, step.end - start
            yield chrome.complete(name, "step", step.worker, begin, end, args)
            for call in step.calls:
                name = "+".join([self.boxes[box] for box in call.boxes])
                sizes = {"in": call.tuples_in, "out": call.tuples_out, "boxes": list(call.boxes)}
                yield chrome.complete(name, "call", step.worker, call.begin - start, call.end - start, sizes)
        for queued in self.counters:  # two counters, because the series of a single one would be stacked
            yield chrome.counter("queued tuples", queued.moment - start, {"tuples": queued.tuples})
            yield chrome.counter("queued bytes", queued.moment - start, {"bytes": queued.bytes})
        for change in self.changes:
            args = {"subject": change.subject, "change": change.what, "reason": change.reason}
            yield chrome.instant(f"{change.subject}: {change.what}", change.kind, change.moment - start, args)

    def _args(self, step: StepRecord) -> dict[str, Any]:
        reason = step.reason
        others = [{"unit": self.units[unit], "terms": _to_json(terms)} for unit, terms in reason.competitors]
        return {
            "tuples": step.tuples,
            "plan": step.plan,
            "why": reason.rule,
            "terms": _to_json(reason.terms),
            "competitors": others,
            "preempted": step.preempted,
        }


class Recorder:
    """Collects an engine's reports of a run.

    At most `most` records are kept: steps, calls and counters together. From the first step that does not fit, steps
    are only counted, so that the record is the beginning of the run, without gaps.

    `plan` and `queued` are called by the scheduler, `step` also by workers. A step must be reported before the next
    plan that finds its unit no longer busy: a requested step that has not been reported by then counts as refused.
    """

    def __init__(
        self,
        network: str,
        units: Sequence[str],
        boxes: Sequence[str],
        policy: str,
        *,
        start: int,
        most: int = MOST,
        description: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin a recording; `units` and `boxes` are names by number, `description` is the network's.

        Times are relative to the moment `start`.
        """
        self._blank = Trace(network, policy, tuple(units), tuple(boxes), start, (), (), 0, (), description)
        self._arrivals: dict[str, dict[int, int]] = {}
        self._policy = policy
        self._start = start
        self._room = most
        self._full = False
        self._left_out = 0
        self._plans = 0
        self._asked: dict[int, list[tuple[int, Reason]]] = {}
        self._steps: list[StepRecord] = []
        self._counters: list[Queued] = []
        self._changes: list[Change] = []
        self._lock = threading.Lock()

    def plan(self, snapshot: Snapshot, policy: Policy, memory: Any, plan: Plan) -> None:
        """Record why the steps of a plan were chosen; plans are numbered from 1.

        `memory` is what the policy was given, not what it returned.
        """
        self._plans += 1
        if self._full or not plan.steps:
            return
        found = reasons(snapshot, policy, memory, plan, self._policy)
        with self._lock:
            for unit, reason in found:
                asked = self._asked.setdefault(unit, [])
                if asked and asked[-1][0] != self._plans and not snapshot.busy[unit]:
                    asked.clear()
                elif len(asked) > _REFUSED:
                    del asked[1]  # the first may belong to the step under way
                asked.append((self._plans, reason))

    def step(
        self,
        unit: int,
        worker: int,
        begin: int,
        end: int,
        tuples: int,
        calls: Iterable[CallRecord] = (),
        preempted: bool = False,
        plan: int = 0,
    ) -> None:
        """Record a step that a plan asked for and that has ended or was preempted.

        Steps of one worker must not overlap, and calls lie within their step.
        """
        made = tuple(calls)
        with self._lock:
            if self._full or 1 + len(made) > self._room:
                self._full = True
                self._left_out += 1
                self._asked.clear()
                return
            self._room -= 1 + len(made)
            reason = self._reason(unit, plan)
            record = StepRecord(unit, worker, int(begin), int(end), int(tuples), made, reason, bool(preempted), plan)
            self._steps.append(record)

    def _reason(self, unit: int, plan: int) -> Reason:
        asked = self._asked.get(unit, [])
        for at, (number, reason) in enumerate(asked):
            if number == plan:
                del asked[at]
                return reason
        return Reason(self._policy, "not told")

    def queued(self, moment: int, tuples: int, bytes: int) -> None:
        """Record what waits in all queues; the last value of each millisecond of the run is kept."""
        queued = Queued(int(moment), int(tuples), int(bytes))
        with self._lock:
            start = self._start
            last = self._counters[-1].moment if self._counters else None
            if self._full:
                return
            if last is not None and (last - start) // MILLISECOND == (moment - start) // MILLISECOND:
                self._counters[-1] = queued
            elif self._room > 0:
                self._room -= 1
                self._counters.append(queued)

    def hear(self, feeds: Iterable[Feed]) -> None:
        """From now on, record when the tuples of these sources arrive."""
        for feed in feeds:
            feed.push = partial(self._arrived, self._arrivals.setdefault(feed.name, {}), feed.push)

    def _arrived(self, own: dict[int, int], push: Callable[[Train], None], train: Train) -> None:
        if len(train.stamps) and not self._full:
            with self._lock:
                since = np.maximum(train.stamps - self._start, 0) // MILLISECOND
                for moment, count in zip(*[one.tolist() for one in np.unique(since, return_counts=True)], strict=True):
                    if moment not in own:
                        if self._room < 1:
                            break
                        self._room -= 1
                    own[moment] = own.get(moment, 0) + count
        push(train)

    def change(self, change: Change) -> None:
        """Record a change."""
        with self._lock:
            if self._room > 0:
                self._room -= 1
                self._changes.append(change)

    def trace(self, flows: Mapping[str, int] | None = None) -> Trace:
        """Return the recording so far; `flows` are the tuples by arc, if known."""
        with self._lock:
            return replace(
                self._blank,
                steps=tuple(sorted(self._steps, key=lambda step: (step.begin, step.worker))),
                counters=tuple(self._counters),
                left_out=self._left_out,
                changes=tuple(self._changes),
                arrivals={source: tuple(sorted(own.items())) for source, own in self._arrivals.items()},
                flows=flows or {},
            )


class ChangeLog:
    """Changes made during a run and their reasons, in order. Used by the scheduler thread."""

    def __init__(self, start: int, recorder: Recorder | None = None, most: int = CHANGES) -> None:
        """Start empty; moments are relative to `start`, and `recorder` receives the changes that are kept."""
        self._start = start
        self._recorder = recorder
        self._most = most
        self.changes: list[Change] = []
        self.counts: Counter[str] = Counter()

    def add(self, moment: int, kind: str, subject: str, what: str, reason: str) -> None:
        """Record a `Change`."""
        self.counts[kind] += 1
        if len(self.changes) < self._most:
            self.changes.append(Change(moment, kind, subject, what, reason))
            if self._recorder is not None:
                self._recorder.change(self.changes[-1])

    def summary(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the changes of the given kinds for the summary; moments in seconds since the start."""
        return [
            {
                "moment": (change.moment - self._start) / SECOND,
                "subject": change.subject,
                "change": change.what,
                "reason": change.reason,
            }
            for change in self.changes
            if change.kind in kinds
        ]


def read_trace(path: Path | str) -> Trace:
    """Return a trace written by `Trace.write`. Raises InputError."""
    path = Path(path)
    about, events = chrome.read_events(path, FORMAT)
    try:
        return _read(about, events)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(f"'{path}' is not {chrome.EXPECTED}: {type(error).__name__}: {error}") from error


def explain(record: StepRecord, names: Sequence[str], start: int = 0) -> str:
    """Return a step and its reason as one line; `names` are unit names, `start` is when the run began."""
    moment = f"{(record.begin - start) / MILLISECOND:,.3f} ms"
    tuples = "1 tuple" if record.tuples == 1 else f"{record.tuples:,} tuples"
    took = span_text((record.end - record.begin) / SECOND) + (", preempted" if record.preempted else "")
    what = f"'{names[record.unit]}' on {tuples}, {took}"
    return f"{moment}  worker {record.worker}  {what}: {why(record.reason, names)}"


def _read(about: Mapping[str, Any], events: Iterable[chrome.Event]) -> Trace:
    units, boxes = (tuple([str(name) for name in about[key]]) for key in ("units", "boxes"))
    number = {name: at for at, name in enumerate(units)}
    start, policy = int(about["start"]), str(about["policy"])
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    steps: list[StepRecord] = []
    calls: list[list[CallRecord]] = []
    counters: list[Queued] = []
    changes: list[Change] = []
    for event in events:
        kind, args = event["ph"], event["args"]
        if kind == "X":
            begin, end = chrome.span(event)
            if event["cat"] == "call":
                sizes = int(args["in"]), int(args["out"])
                called = tuple([_place(box, boxes) for box in args["boxes"]])
                if not called or min(sizes) < 0:
                    raise ValueError("a call of no box, or of fewer tuples than none")
                calls[-1].append(CallRecord(called, start + begin, start + end, *sizes))
                continue
            names = tuple(args["terms"])
            others = tuple([(number[one["unit"]], _from_json(one["terms"])) for one in args["competitors"]])
            reason = Reason(policy, str(args["why"]), known.setdefault(names, names), _from_json(args["terms"]), others)
            unit, worker = number[event["name"]], chrome.thread(event)
            tuples, preempted, plan = int(args["tuples"]), bool(args["preempted"]), int(args["plan"])
            steps.append(StepRecord(unit, worker, start + begin, start + end, tuples, (), reason, preempted, plan))
            calls.append([])
        elif kind == "i":
            texts = [str(args[key]) for key in ("subject", "change", "reason")]
            changes.append(Change(start + chrome.moment(event), str(event["cat"]), *texts))
        elif kind == "C" and "tuples" in args:
            counters.append(Queued(start + chrome.moment(event), int(args["tuples"]), 0))
        elif kind == "C":
            counters[-1] = counters[-1]._replace(bytes=int(args["bytes"]))
    made = tuple([step._replace(calls=tuple(own)) for step, own in zip(steps, calls, strict=True)])
    name, left_out, told = str(about["network"]), int(about["left_out"]), _read_network(about)
    return Trace(name, policy, units, boxes, start, made, tuple(counters), left_out, tuple(changes), *told)


def _place(box: Any, boxes: Sequence[str]) -> int:
    """Return the number of a box named by a call, checked."""
    if type(box) is not int or not 0 <= box < len(boxes):
        raise ValueError(f"a call names box {box!r:.40}, but the boxes are numbered from 0 to {len(boxes) - 1}")
    return box


def _count(number: Any) -> int:
    """Return a count of tuples or milliseconds, checked."""
    if (made := int(number)) < 0:
        raise ValueError(f"{made} is less than none")
    return made


def _read_network(about: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, dict[str, Arrivals], dict[str, int]]:
    """Return a trace's network description, arrivals and flows; recordings of older versions have none."""
    description = about.get("description")
    if description is not None and not isinstance(description, Mapping):
        raise TypeError(f"its description is not that of a network: {description!r:.40}")
    arrivals = {
        str(source): tuple([(_count(moment), _count(count)) for moment, count in some])
        for source, some in about.get("arrivals", {}).items()
    }
    return description, arrivals, {str(arc): _count(count) for arc, count in about.get("flows", {}).items()}


def _to_json(terms: Terms) -> dict[str, float | str]:
    return {name: chrome.to_json(value) for name, value in terms}


def _from_json(terms: Mapping[str, float | str]) -> Values:
    return tuple([chrome.from_json(value) for value in terms.values()])
