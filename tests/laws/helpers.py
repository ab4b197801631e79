"""Networks in virtual time: arrivals at given moments, policies of a test's own, and what a trace says of queues.

Queues are counted again here, from arrivals and calls alone, so that laws do not rest on what the engine says of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import headway as hw
from headway.clock import MILLISECOND
from headway.connectors.protocol import Chunk, Malformed
from headway.engines.runs import RunResult
from headway.engines.traces import CallRecord, Trace
from headway.scheduling.policy import Plan, Policy, Step
from headway.scheduling.snapshot import Snapshot

SCHEMA = {"n": "bigint"}


class Arrivals:
    """A source whose tuples arrive at given moments (ns, ascending); each holds its own number."""

    timed, finite, live = True, True, False

    def __init__(self, moments: Sequence[int]) -> None:
        """Begin before the first moment."""
        self._moments = np.array(moments, np.int64)
        self._at = 0

    def read(self, limit: int) -> Chunk | None:
        """Return the next tuples."""
        first, self._at = self._at, min(len(self._moments), self._at + limit)
        if first == self._at:
            return None
        batch = pa.RecordBatch.from_pydict({"n": pa.array(range(first, self._at), pa.int64())})
        return Chunk(batch, self._moments[first : self._at])

    def malformed(self) -> list[Malformed]:
        """All is well formed."""
        return []

    def close(self) -> None:
        """There is nothing to close."""


@dataclass(frozen=True)
class Box:
    """A universal box: what it reads, milliseconds per tuple, and its selectivity, which is kept evenly."""

    reads: tuple[str, ...]
    cost: float
    selectivity: float = 1.0
    ordered: bool = True

    def mapping(self) -> dict[str, Any]:
        """Return the box as the file writes it."""
        inputs = list(self.reads) if len(self.reads) > 1 else self.reads[0]
        cost = self.cost / 1000
        kept = {"selectivity": self.selectivity, "mode": "even", "ordered": self.ordered}
        return {"op": "universal", "in": inputs, "cost": cost, **kept}


@dataclass(frozen=True)
class Net:
    """A network of universal boxes, and when tuples (ns) arrive at its sources."""

    arrivals: Mapping[str, Sequence[int]]
    boxes: Mapping[str, Box]
    outputs: Mapping[str, Any]
    """By output: the box that it shows, or a mapping with its QoS."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other boxes, as the file writes them."""

    def mapping(self) -> dict[str, Any]:
        """Return the network as the file writes it."""
        return {
            "network": "law",
            "sources": {name: {"schema": SCHEMA} for name in self.arrivals},
            "boxes": {**{name: box.mapping() for name, box in self.boxes.items()}, **self.more},
            "outputs": {name: {"from": one} if isinstance(one, str) else one for name, one in self.outputs.items()},
        }

    def run(self, policy: str | Mapping[str, Any], **more: Any) -> RunResult:
        """Run it in virtual time, with a trace."""
        inputs = {name: Arrivals(moments) for name, moments in self.arrivals.items()}
        return hw.run(hw.load(self.mapping()), inputs, engine="sim", policy=policy, trace=True, **more)


def trace_of(result: RunResult) -> Trace:
    """Return the trace of a run, which must be whole."""
    assert result.trace is not None
    assert result.trace.left_out == 0
    return result.trace


def calls_of(result: RunResult) -> list[tuple[str, CallRecord]]:
    """Return the calls that took tuples, with the names of their boxes, as they began."""
    trace = trace_of(result)
    return [(trace.boxes[call.boxes[0]], call) for step in trace.steps for call in step.calls if call.tuples_in]


def names_of(result: RunResult) -> str:
    """Return the boxes as they were called with tuples."""
    return " ".join(name for name, _ in calls_of(result))


def moves_of(result: RunResult) -> list[tuple[Any, ...]]:
    """Return all steps: which unit ran when, where and on how many tuples."""
    return [
        (step.unit, step.worker, step.begin, step.end, step.tuples, step.preempted, step.calls)
        for step in trace_of(result).steps
    ]


def mean_latency(result: RunResult, output: str = "out") -> float:
    """Return the mean latency of an output in milliseconds."""
    return float(result.summary["outputs"][output]["latency"]["mean"]) * 1000


# Queues, counted again


@dataclass(frozen=True)
class Span:
    """From one event to the next: what waits before each box, which boxes are at work, and on how many tuples."""

    begin: int
    end: int
    queued: tuple[int, ...]
    """By box: tuples that wait. Those of a preempted call count, too."""
    running: frozenset[int]
    held: tuple[int, ...]
    """By box: tuples in a call under way."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """By box: all its tuples: those in process need memory as well."""
        return tuple([one + other for one, other in zip(self.queued, self.held, strict=True)])


def spans(net: Net, result: RunResult) -> list[Span]:
    """Return what a run without superboxes did, event by event; every box of the network reads one arc."""
    trace = trace_of(result)
    number = {name: at for at, name in enumerate(trace.boxes)}
    readers: dict[str, list[int]] = {}
    for name, one in net.boxes.items():
        assert len(one.reads) == 1
        readers.setdefault(one.reads[0], []).append(number[name])
    changes: dict[int, list[tuple[str, int, int]]] = {}
    for source, moments in net.arrivals.items():
        for moment in moments:
            changes.setdefault(moment, []).extend([("in", at, 1) for at in readers.get(source, [])])
    for step in trace.steps:
        # A step of no length begins and ends at one moment: it never runs in any span.
        changes.setdefault(step.begin, []).append(("run", step.unit, 1))
        changes.setdefault(step.end, []).append(("run", step.unit, -1))
        for call in step.calls:
            changes.setdefault(call.begin, []).append(("take", call.boxes[0], call.tuples_in))
            done = changes.setdefault(call.end, [])
            done.append(("held", call.boxes[0], -call.tuples_in))
            done.extend([("in", at, call.tuples_out) for at in readers.get(trace.boxes[call.boxes[0]], [])])
    queued, running, held = ([0] * len(trace.boxes) for _ in range(3))
    found = []
    for begin, end in pairwise([*sorted(changes), max(changes, default=0)]):
        for kind, box, amount in changes[begin]:
            if kind == "in":
                queued[box] += amount
            elif kind == "run":
                running[box] += amount
            else:
                held[box] += amount
                queued[box] -= amount if kind == "take" else 0
        assert min(queued) >= 0
        busy = frozenset([box for box, many in enumerate(running) if many])
        found.append(Span(begin, end, tuple(queued), busy, tuple(held)))
    return found


def totals(net: Net, result: RunResult) -> tuple[list[int], list[int]]:
    """Return moments, and how many tuples are in the network from each of them on."""
    found = spans(net, result)
    return [span.begin for span in found], [sum(span.sizes) for span in found]


# Policies of a test's own


def by_box(policy: str | Policy, **parts: Any) -> dict[str, Any]:
    """Return the schedule of a policy, a test's own or one by name, over single boxes with no longest wait."""
    return {"policy": policy, "unit": "box", "wait": "off", **parts}


@dataclass(frozen=True)
class Sizes(Policy):
    """Any policy, with steps of a size that each unit has of its own, by name."""

    policy: Policy
    sizes: Mapping[str, int]

    def start(self) -> Any:
        """Return the inner policy's memory."""
        return self.policy.start()

    def plan(self, snapshot: Snapshot, memory: Any) -> tuple[Plan, Any]:
        """Return the inner policy's plan with other sizes."""
        plan, memory = self.policy.plan(snapshot, memory)
        steps = [Step(unit, self.sizes[snapshot.units[unit].name]) for unit, _ in plan.steps]
        return Plan(tuple(steps), plan.until), memory


@dataclass(frozen=True)
class Order(Policy):
    """Serves the ready unit that comes first in a list of names, on one tuple."""

    names: tuple[str, ...]

    def start(self) -> None:
        """There is nothing to remember."""

    def plan(self, snapshot: Snapshot, memory: None) -> tuple[Plan, None]:
        """Return a step of the first unit."""
        able = [unit for unit, ready in enumerate(snapshot.ready) if ready]
        return Plan((Step(min(able, key=lambda unit: self.names.index(snapshot.units[unit].name)), 1),)), None


def ms(*moments: float) -> tuple[int, ...]:
    """Return moments in milliseconds as nanoseconds."""
    return tuple(round(moment * MILLISECOND) for moment in moments)
