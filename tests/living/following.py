"""What a run that changes has to deliver: the naive reference, with seams, fed by a record of what arrived."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from headway.engines.ingest import Ingest
from tests.living.plans import Plan
from tests.reference.graph import Node
from tests.reference.tuples import Emitted, Row, Tuple


class Seamed(NamedTuple):
    """One seam as asked for: the network before and after it, and what is to become of states."""

    before: Plan
    after: Plan
    carried: frozenset[str] = frozenset()
    flushed: frozenset[str] = frozenset()


class Event(NamedTuple):
    """Something that took an arrival number."""

    number: int
    kind: str
    """tuple, seam, tick or end"""
    source: str = ""
    moment: int = 0


@dataclass
class Record:
    """Everything that has taken a number in one run, as it was given."""

    events: list[Event] = field(default_factory=list)


@contextlib.contextmanager
def recording() -> Iterator[Record]:
    """Record the arrival numbers of the one run that takes place meanwhile."""
    record = Record()
    enter, tick, seam = Ingest._enter, Ingest.tick, Ingest.seam

    def entering(self: Ingest, arrivals: Sequence[tuple[Any, Any, Any]]) -> None:
        for feed, stamps, numbers in arrivals:
            for number, stamp in zip(np.asarray(numbers).tolist(), np.asarray(stamps).tolist(), strict=True):
                record.events.append(Event(number, "tuple", feed.name, stamp))
        enter(self, arrivals)

    def ticking(self: Ingest, end: bool = False) -> None:
        record.events.append(Event(self.issued + 1, "end" if end else "tick", "", self._clock.now()))
        tick(self, end)

    def sealing(self: Ingest) -> int:
        record.events.append(Event(self.issued + 1, "seam"))
        return seam(self)

    with (
        mock.patch.object(Ingest, "_enter", entering),
        mock.patch.object(Ingest, "tick", ticking),
        mock.patch.object(Ingest, "seam", sealing),
    ):
        yield record


def expected(
    first: Plan, record: Record, rows: Mapping[str, Sequence[Row]], seams: Mapping[int, Seamed]
) -> dict[str, list[Row]]:
    """Return by output all that it has to deliver, also by those that were removed."""
    following = _Following(first)
    places: dict[str, int] = defaultdict(int)
    for event in sorted(record.events):
        match event.kind:
            case "tuple":
                row = rows[event.source][places[event.source]]
                places[event.source] += 1
                following.step({event.source: [Tuple(row, event.moment, event.number)]}, event)
            case "seam":
                following.seam(seams[event.number], event)
            case _:
                following.step({}, event, frozenset(following.nodes) if event.kind == "end" else frozenset())
    return {name: [one.row for one in shown] for name, shown in following.delivered.items()}


class _Following:
    """The network, one arrival at a time."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.nodes = plan.nodes()
        self.delivered: dict[str, list[Tuple]] = {name: [] for name in plan.shown}

    def _arc(self, reference: str) -> str:
        name, _, port = reference.partition(".")
        if name not in self.nodes:
            return reference
        if port == "else":
            return f"{name}.{self.nodes[name].operator.ports - 1}"
        return f"{name}.{int(port) - 1 if port else 0}"

    def step(self, entering: Mapping[str, list[Tuple]], event: Event, ending: frozenset[str] = frozenset()) -> None:
        arcs: dict[str, list[Tuple]] = defaultdict(list, entering)
        for name, node in self.nodes.items():
            node.operator.now = event.moment
            emitted: list[Emitted] = []
            for at, reference in enumerate(node.inputs):
                for one in arcs[self._arc(reference)]:
                    emitted += node.operator.push(at, one)
            if event.kind == "tick":
                emitted += node.operator.tick(event.number)
            if name in ending:
                emitted += node.operator.end(event.number)
            for port, one in emitted:
                arcs[f"{name}.{port}"].append(one)
        for output, reference in self.plan.shown.items():
            self.delivered[output] += arcs[self._arc(reference)]

    def seam(self, seam: Seamed, event: Event) -> None:
        """Go on with another network: unchanged boxes keep their operators."""
        assert seam.before == self.plan
        self.step({}, event, seam.flushed)
        was, now = seam.before.marks(), seam.after.marks()
        fresh = seam.after.nodes()
        self.nodes = {
            name: Node(name, self.nodes[name].operator, node.inputs)
            if name in self.nodes and (was[name] == now[name] or name in seam.carried)
            else node
            for name, node in fresh.items()
        }
        self.plan = seam.after
        for name in seam.after.shown:
            self.delivered.setdefault(name, [])
