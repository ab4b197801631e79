"""The cut of a network that has changed while it runs: queries go on wherever they can.

A query is left alone if all its boxes and outputs are as before. If only outputs were added or removed, on streams
that it delivers anyway, it goes on, too: the driver delivers to other outputs from the seam on. All others end exactly
at the seam. Their successors have the same files, and so the state of every box that keeps it; a box with state never
moves to another query or shard. New outputs get queries of their own, which read the log from the seam on, and run
boxes without state once more. Only if they need what a box with state makes, they are added to its query.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from headway.engines.spark.driver.cut import chosen_spread, group_outputs, place_boxes, upstream_of
from headway.engines.spark.wire.messages import CutUnit, Placement
from headway.errors import NetworkError, choices
from headway.program import Program, compile_program

ADDED = "added while the network ran"


class Running(NamedTuple):
    """A query as it runs: what it was cut for, and the arcs that it delivers in full."""

    cut: CutUnit
    delivers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Successor:
    """A query of the changed network."""

    cut: CutUnit
    old: int | None
    """The number of the query that it continues; None for a new one."""
    runs_on: bool
    """Whether that query runs on as it is."""


@dataclass(frozen=True, slots=True)
class Recut:
    """A changed network as streaming queries."""

    units: tuple[Successor, ...]
    bounded: frozenset[int]
    """The old queries that end a micro-batch at the seam, because something is different after it."""

    @property
    def ended(self) -> frozenset[int]:
        """The old queries that stop at the seam."""
        return self.bounded - {one.old for one in self.units if one.old is not None and one.runs_on}


@dataclass(frozen=True)
class Change:
    """What a seam does to a network: which of its boxes go on with their state."""

    old: Program
    new: Program
    same: frozenset[str]
    """The boxes that are as they were, with everything before them."""
    keeping: frozenset[str] = frozenset()
    """The boxes that are not, and keep their state."""

    @property
    def anchored(self) -> frozenset[str]:
        """The boxes that have a state and keep it, so that they must stay where they are."""
        return frozenset(
            box.name for box in self.new.boxes if box.spec.stateful and box.name in self.same | self.keeping
        )

    def goes_on(self, output: str) -> bool:
        """Return whether an output delivers the same arc before and after."""
        return self.new.checked.outputs.get(output) == self.old.checked.outputs.get(output, "")

    def reads_same(self, source: str) -> bool:
        """Return whether a source is there before and after."""
        schemas = [program.checked.arcs.get(source) for program in (self.old, self.new)]
        return schemas[0] == schemas[1]


def recut(
    change: Change,
    running: Sequence[Running],
    shards: int,
    units: str | Sequence[Sequence[str]] = "qos",
    spread: str | Sequence[str] = "auto",
) -> Recut:
    """Cut the changed network. Raises a NetworkError if what is left of a query cannot be one query any more."""
    return _Recutter(change, running, shards, units, spread).recut()


class _Recutter:
    def __init__(
        self,
        change: Change,
        running: Sequence[Running],
        shards: int,
        units: str | Sequence[Sequence[str]],
        spread: str | Sequence[str],
    ) -> None:
        self.change, self.running, self.shards, self.units = change, running, shards, units
        self.new = change.new
        if not isinstance(spread, str):
            spread = [name for name in spread if name in self.new.spreadable]
        self.spreading = chosen_spread(self.new, spread)
        self.anchored = change.anchored
        self.outputs: list[list[str]] = [[name for name in one.cut.outputs if change.goes_on(name)] for one in running]
        """By old unit: the outputs that it has from the seam on."""
        self.intact = [self._intact(one) for one in running]

    def recut(self) -> Recut:
        fresh = self._join()
        groups: list[tuple[int | None, tuple[str, ...], str, set[str], set[str]]] = []
        for at, one in enumerate(self.running):
            if self.intact[at]:
                boxes, sources = set(one.cut.boxes), set(one.cut.sources)
            else:
                boxes, sources = self._reached([self.new.checked.outputs[name] for name in self.outputs[at]])
            groups.append((at, tuple(self.outputs[at]), one.cut.why, boxes, sources))
        for outputs, why in group_outputs(self.new, self.units, fresh) if fresh else ():
            boxes, sources = self._reached([self.new.checked.outputs[name] for name in outputs])
            groups.append((None, outputs, f"{why}; {ADDED}", boxes, sources))
        self._house(groups)
        found: list[Successor] = []
        for old, outputs, why, boxes, sources in groups:
            if outputs or boxes:
                found.append(self._unit(old, outputs, why, boxes, sources))
        owners = self._owners(found)
        units = []
        for at, made in enumerate(found):
            owned = frozenset(box for box in made.cut.boxes if owners[box] == at)
            units.append(replace(made, cut=replace(made.cut, owned=owned)))
        going_on = [(one.old, one.cut) for one in units if one.old is not None and one.runs_on]
        as_before = {old for old, cut in going_on if cut == self.running[old].cut}
        return Recut(tuple(units), frozenset(range(len(self.running))) - as_before)

    def _intact(self, one: Running) -> bool:
        """Return whether a query computes what the changed network does."""
        same = set(one.cut.boxes) <= self.change.same and all(map(self.change.reads_same, one.cut.sources))
        left = bool(one.cut.boxes) or any(self.change.goes_on(name) for name in one.cut.outputs)
        return same and left

    def _join(self) -> list[str]:
        """Add new outputs to the queries that have the state that they need; return those that need none."""
        known = {name for some in self.outputs for name in some}
        fresh = []
        for output, arc in self.new.checked.outputs.items():
            if output in known:
                continue
            needed = self._reached([arc])[0] & self.anchored
            if not needed:
                fresh.append(output)
                continue
            homes = [at for at, one in enumerate(self.running) if needed <= set(one.cut.boxes)]
            if not homes:
                raise NetworkError(
                    f"output '{output}': it needs the states of {choices(needed)}, which are in several queries on "
                    "Spark; start the network with it"
                )
            delivering = [at for at in homes if self.intact[at] and arc in self.running[at].delivers]
            changed = [at for at in homes if not self.intact[at]]
            at = (delivering or changed or homes)[0]
            self.outputs[at].append(output)
            self.intact[at] &= bool(delivering)
        return fresh

    def _reached(self, arcs: Sequence[str]) -> tuple[set[str], set[str]]:
        boxes, sources = upstream_of(self.new, arcs)
        return set(boxes), set(sources)

    def _house(self, groups: list[tuple[int | None, tuple[str, ...], str, set[str], set[str]]]) -> None:
        """Find a query for boxes that lead to no output: they still run, for their dead letters and counts."""
        covered = set().union(*(boxes for *_, boxes, _ in groups))
        for box in self.new.boxes:
            if box.name in covered:
                continue
            boxes, sources = self._reached([box.name])
            mine = [group for group in groups if group[0] is not None and box.name in self.running[group[0]].cut.boxes]
            others = [group for group in groups if group[0] is None or not self.intact[group[0]]]
            home = next((group for group in mine if not self.intact[group[0] or 0]), None)
            home = home or next((group for group in others if group[4] & sources), None)
            if home is None:
                groups.append((None, (), "boxes that lead to no output", boxes, sources))
            else:
                home[3].update(boxes)
                home[4].update(sources)
            covered |= boxes

    def _unit(
        self, old: int | None, outputs: tuple[str, ...], why: str, boxes: Collection[str], sources: Collection[str]
    ) -> Successor:
        before = None if old is None else self.running[old].cut
        if before is not None and self.intact[old or 0]:
            name = "+".join(outputs) or before.name
            return Successor(replace(before, name=name, outputs=outputs), old, runs_on=True)
        members = [box for box in self.new.boxes if box.name in boxes]
        pins: Mapping[str, Placement] = MappingProxyType({})
        if before is not None:
            pins = {name: before.placements[name] for name in before.boxes if name in self.anchored & set(boxes)}
        lost = self.anchored & set(boxes) - pins.keys()
        if lost:
            raise NetworkError(
                f"'{outputs[0] if outputs else members[-1].name}' needs the state of {choices(lost)}, which is in "
                "another query on Spark; begin it anew (restart)"
            )
        arcs = frozenset(self.new.checked.outputs[name] for name in outputs)
        alone = compile_program(self.new.checked, frozenset(boxes), arcs)
        spreading = (self.spreading & alone.spreadable.keys()) - pins.keys()
        placements = place_boxes(self.new, members, self.shards, spreading, pins)
        for name, pin in pins.items():
            place = placements[name]
            if (place.front, place.shard, place.by) != (pin.front, pin.shard, pin.by):
                raise NetworkError(
                    f"box '{name}' cannot keep its state on Spark: it would have to move; begin it anew (restart)"
                )
        read = [source.name for source in self.new.checked.network.sources if source.name in sources]
        names = tuple(box.name for box in members)
        name = "+".join(outputs) or names[-1]
        return Successor(CutUnit(name, outputs, tuple(read), names, placements, frozenset(), why), old, runs_on=False)

    def _owners(self, found: Sequence[Successor]) -> dict[str, int]:
        """Return by box the query that reports for it: the same as before, as far as possible."""
        owners: dict[str, int] = {}
        for at, one in enumerate(found):
            before = frozenset() if one.old is None else self.running[one.old].cut.owned
            owners.update({box: at for box in one.cut.boxes if box in before})
        for at, one in enumerate(found):
            for box in one.cut.boxes:
                owners.setdefault(box, at)
        return owners
