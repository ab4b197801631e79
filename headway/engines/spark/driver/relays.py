"""Relays: what one query delivers and another reads, by way of a log of its own.

A query that is added while the network runs may need what a box with state makes in another query, or what passes a
connection point. The query that has the box *exports* the arc: the driver appends what each micro-batch makes to the
arc's relay before the micro-batch counts, so that a repetition finds it there. For the reader the arc is a source, in a
network of its own, and its progress is how far the exporting query has come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.checking import check
from headway.columns import NEVER
from headway.engines.spark.wire.messages import CutUnit
from headway.network import Output, Source, Table
from headway.network.schema import Schema
from headway.program import Program, compile_program
from headway.storage.log import Log, LogSlice
from headway.structure import owner
from headway.trains import NOTHING, Tick, Train


def alias(arc: str) -> str:
    """Return the name of the source that an arc is for a query that reads it from a relay."""
    return arc.replace(".", "--")


def program_of(unit: CutUnit, program: Program) -> Program:
    """Return the program of a unit: the network's, or one in which what it reads from relays are sources."""
    if not unit.relays:
        return program
    checked, named = program.checked, {arc: alias(arc) for arc in unit.relays}
    network = checked.network
    boxes = []
    for box in network.boxes:
        if box.name in unit.boxes:
            items = [item if isinstance(item, Table) else named.get(item, item) for item in checked.inputs[box.name]]
            boxes.append(replace(box, inputs=tuple(items)))
    outputs = [
        replace(one, input=named.get(checked.outputs[one.name], checked.outputs[one.name]))
        for one in network.outputs
        if one.name in unit.outputs
    ]
    if not outputs:  # a network has at least one
        arcs = [*unit.exports, *(arc for arc in checked.arcs if owner(arc) == unit.boxes[-1])]
        outputs = [Output("relayed", arcs[0])]
    sources = [source for source in network.sources if source.name in unit.sources]
    sources += [Source(name, checked.arcs[arc]) for arc, name in named.items()]
    made = replace(
        network, sources=tuple(sources), boxes=tuple(boxes), outputs=tuple(outputs), points=(), schedule=None
    )
    return compile_program(check(made, checked.functions, checked.tables))


@dataclass(frozen=True, slots=True)
class Part:
    """What a unit reads of a source from one log: the arrival numbers above `low`, up to `high`."""

    log: Log
    low: int = -1
    high: int = NEVER

    def within(self, after: int, upto: int) -> tuple[int, int]:
        """Return the part of a range that lies in it; it is empty if the first is not below the second."""
        return max(after, self.low), min(upto, self.high)


class Inputs:
    """What a unit reads, by source, cut at the same arrival numbers: from the run's log, or from others."""

    def __init__(
        self, main: Log, sources: Sequence[str], parts: Mapping[str, Sequence[Part]] | None = None, since: int = NOTHING
    ) -> None:
        """Read sources from the run's log, or from `parts`; ticks and the end count above the number `since`."""
        self.main, self.since = main, since
        self.plain = not parts
        """Whether all of it is in the run's log."""
        self._sources = tuple(sources)
        self.named = {name: tuple((parts or {}).get(name, (Part(main),))) for name in sources}
        """By source: its parts."""

    @property
    def issued(self) -> int:
        """The arrival number up to which all of it is there."""
        ends = [some[-1].log.issued for some in self.named.values() if some and some[-1].high == NEVER]
        return min([self.main.issued, *ends])

    def count(self, after: int, upto: int) -> int:
        """Return how many tuples there are in (after, upto]."""
        if self.plain:
            return self.main.count(self._sources, after, upto)
        return sum(part.log.count([name], low, high) for name, part, low, high in self._within(after, upto))

    def slices(self, after: int, upto: int) -> list[LogSlice]:
        """Return the slices in (after, upto], ascending by first number."""
        if self.plain:
            return self.main.slices(self._sources, after, upto)
        found = [
            one for name, part, low, high in self._within(after, upto) for one in part.log.slices([name], low, high)
        ]
        return sorted(found, key=lambda one: one.first)

    def cut(self, after: int, tuples: int) -> int:
        """Return the largest arrival number up to which there are at most so many tuples, or the first with one."""
        if self.plain:
            return self.main.cut(self._sources, after, tuples)
        upto = max(after, self.issued)
        if self.count(after, upto) <= tuples:
            return upto
        numbers = range(after + 1, upto + 1)
        at = bisect_left(numbers, True, key=lambda number: self.count(after, number) > max(1, tuples))
        if at == 0 or not self.count(after, numbers[at - 1]):  # a single number has more tuples than that
            return numbers[bisect_left(numbers, True, key=lambda number: self.count(after, number) > 0)]
        return numbers[at - 1]

    def stamps(self, after: int, upto: int) -> tuple[int, int] | None:
        """Return the oldest and the mean stamp of the tuples in (after, upto], or None."""
        if self.plain:
            return self.main.stamps(self._sources, after, upto)
        found = [
            (stamps, part.log.count([name], low, high))
            for name, part, low, high in self._within(after, upto)
            if (stamps := part.log.stamps([name], low, high)) is not None
        ]
        if not found:
            return None
        total = sum(count for _, count in found)
        return min(one[0] for one, _ in found), sum(one[1] * count for one, count in found) // total

    def bytes_after(self, number: int) -> int:
        """Return the bytes that hold anything after a number in other logs than the run's."""
        every = [(name, part) for name, parts in self.named.items() for part in parts if part.log is not self.main]
        return sum(part.log.bytes_after({name: max(number, part.low)}) for name, part in every if number < part.high)

    @property
    def from_main(self) -> tuple[str, ...]:
        """The sources that are read from the run's log."""
        return tuple(name for name, parts in self.named.items() if any(part.log is self.main for part in parts))

    def marks(self, after: int, upto: int) -> tuple[tuple[Tick, ...], int | None]:
        """Return the ticks in (after, upto], and the end mark's number if it is in that range."""
        return self.main.marks(max(after, self.since), upto) if upto > self.since else ((), None)

    def moment_at(self, upto: int) -> int:
        """Return the moment of the first commit that covers an arrival number."""
        return self.main.moment_at(upto)

    def _within(self, after: int, upto: int) -> list[tuple[str, Part, int, int]]:
        found = [(name, part, *part.within(after, upto)) for name, parts in self.named.items() for part in parts]
        return [one for one in found if one[2] < one[3]]


class Relays:
    """The relays of a run. Appended to by Spark's callback threads, one for each arc."""

    def __init__(self, folder: str, sync: bool) -> None:
        """Keep them in a folder."""
        self._folder, self._sync = folder, sync
        self._logs: dict[str, Log] = {}
        self.names: dict[str, str] = {}
        """By arc: the name of its folder."""

    def follow(self, program: Program, names: Mapping[str, str]) -> None:
        """Have the relays of these arcs, by arc the names of their folders; others end."""
        kept = {arc: self._logs[arc] for arc, name in names.items() if self.names.get(arc) == name}
        for arc, name in names.items():
            if arc not in kept:
                schemas = {alias(arc): program.checked.arcs[arc]}
                kept[arc] = Log(f"{self._folder}/{name}", schemas, sync=self._sync, repeats=True)
        self._logs, self.names = kept, dict(names)

    def __getitem__(self, arc: str) -> Log:
        return self._logs[arc]

    def __contains__(self, arc: str) -> bool:
        return arc in self._logs

    def append(self, arc: str, train: Train | None, upto: int, moment: int) -> None:
        """Append what a micro-batch up to an arrival number has made, unless it was appended before a crash."""
        log = self._logs.get(arc)
        if log is None or upto <= log.issued:
            return
        source = alias(arc)
        count = log.positions.get(source, 0) + (0 if train is None else len(train))
        log.append({} if train is None else {source: train}, upto, moment, positions={source: count})

    def open_past(self, name: str, schemas: Mapping[str, Schema]) -> Log:
        """Return a log of history; it belongs to one query."""
        return Log(f"{self._folder}/{name}", schemas, sync=self._sync, repeats=True)

    def drop(self, reached: Mapping[str, int], now: int) -> None:
        """Forget what all readers have processed, by arc."""
        for arc, number in reached.items():
            if arc in self._logs:
                self._logs[arc].drop(number, now)
