"""The cut of a network that has changed while it runs: queries go on wherever they can.

A query is left alone if all its boxes and outputs are as before. If only outputs were added or removed, on streams
that it delivers anyway, it goes on, too: the driver delivers to other outputs from the seam on. All others end exactly
at the seam. Their successors have the same files, and so the state of every box that keeps it; a box with state never
moves to another query or shard. New outputs get queries of their own, which read the log from the seam on, and run
boxes without state once more. What they need of boxes with state, they read from relays (`relays`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from headway.engines.spark.driver.cut import chosen_spread, exported_arcs, group_outputs, place_boxes, upstream_of
from headway.engines.spark.driver.points import check_mixed
from headway.engines.spark.driver.relays import alias, program_of
from headway.engines.spark.wire.messages import CutUnit, Placement
from headway.errors import NetworkError
from headway.program import Program, compile_program
from headway.structure import owner

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
    past: frozenset[tuple[str, int]] = frozenset()
    """The boxes that begin, each with an input, of which they read history first."""

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


class _Group:
    """A query in the making."""

    def __init__(self, old: int | None, outputs: Sequence[str], why: str) -> None:
        self.old, self.outputs, self.why = old, list(outputs), why
        self.exports: list[str] = []
        self.boxes: set[str] = set()
        self.sources: set[str] = set()
        self.relays: list[str] = []
        self.pasts: list[str] = []
        self.roots: list[str] = []
        """Boxes that it runs although they lead to no output."""

    @property
    def at(self) -> int:
        """The number of the old query, if there is one."""
        assert self.old is not None
        return self.old


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
        self.homes = [
            _Group(at, [name for name in one.cut.outputs if change.goes_on(name)], one.cut.why)
            for at, one in enumerate(running)
        ]
        """By old query: what it becomes."""
        self.intact = [self._intact(one) for one in running]

    def recut(self) -> Recut:
        """Return the cut."""
        fresh = self._join()
        groups = list(self.homes)
        for outputs, why in group_outputs(self.new, self.units, fresh) if fresh else ():
            groups.append(_Group(None, outputs, f"{why}; {ADDED}"))
        for group in groups:
            self._fill(group)
        self._house(groups)
        self._export(groups)
        self._house(groups)
        found = [self._unit(group) for group in groups if group.outputs or group.boxes]
        owners = self._owners(found)
        units = []
        for at, made in enumerate(found):
            owned = frozenset(box for box in made.cut.boxes if owners[box] == at)
            units.append(replace(made, cut=replace(made.cut, owned=owned)))
        return Recut(tuple(units), self._bounded(units))

    def _bounded(self, units: Sequence[Successor]) -> frozenset[int]:
        """Return the old queries that end a micro-batch at the seam, and those whose deliveries they need for that."""
        going_on = [(one.old, one.cut) for one in units if one.old is not None and one.runs_on]
        as_before = {old for old, cut in going_on if cut == self.running[old].cut}
        bounded = set(range(len(self.running))) - as_before | self._delivering_past(units)
        while True:
            read = {arc for at in bounded for arc in self.running[at].cut.relays}
            more = {at for at, one in enumerate(self.running) if read & set(one.cut.exports)} - bounded
            if not more:
                return frozenset(bounded)
            bounded |= more

    def _delivering_past(self, units: Sequence[Successor]) -> set[int]:
        """Return the old queries that have to deliver up to the seam, because history is read up to there."""
        read = {arc for one in units if one.old is None for arc in one.cut.pasts}
        return {at for at, one in enumerate(self.running) if read & set(one.cut.exports)}

    def _intact(self, one: Running) -> bool:
        """Return whether a query computes what the changed network does."""
        sources = [name for name in one.cut.sources if name in self.change.old.checked.arcs]
        relayed = [owner(arc) in self.change.same for arc in one.cut.relays]
        same = set(one.cut.boxes) <= self.change.same and all(map(self.change.reads_same, sources)) and all(relayed)
        left = bool(one.cut.boxes) or any(self.change.goes_on(name) for name in one.cut.outputs)
        return same and left

    def _join(self) -> list[str]:
        """Let queries deliver the results of their boxes with state to new outputs; return the other new outputs."""
        known = {name for home in self.homes for name in home.outputs}
        fresh = []
        for output, arc in self.new.checked.outputs.items():
            if output in known:
                continue
            if owner(arc) in self.anchored:
                self._home(arc).outputs.append(output)
            else:
                fresh.append(output)
        return fresh

    def _home(self, arc: str) -> _Group:
        """Return the old query that delivers what a box with state makes; it is started again if it does not yet."""
        having = [home for at, home in enumerate(self.homes) if owner(arc) in self.running[at].cut.boxes]
        delivers = [arc in one.delivers for one in self.running]
        delivering = [home for home in having if self.intact[home.at] and delivers[home.at]]
        changed = [home for home in having if not self.intact[home.at]]
        home = (delivering or changed or having)[0]
        self.intact[home.at] &= bool(delivering)
        return home

    def _fill(self, group: _Group) -> None:
        """Find what a query runs and reads; what boxes with state of other queries make comes from relays."""
        before = None if group.old is None else self.running[group.old].cut
        if before is not None and self.intact[group.at]:
            group.boxes, group.sources, group.relays = set(before.boxes), set(before.sources), list(before.relays)
            group.pasts = list(before.pasts)
            return
        own = self.anchored & set(() if before is None else before.boxes)
        pending = [*(self.new.checked.outputs[name] for name in group.outputs), *group.exports, *group.roots]
        group.boxes, group.sources, group.relays, group.pasts = set(), set(), [], []
        live: set[str] = set()
        while pending:
            arc = pending.pop()
            name = owner(arc)
            live.add(arc)
            if name not in self.new.index:
                group.sources.add(name)
            elif name in self.anchored and name not in own:
                if arc not in group.relays:
                    group.relays.append(arc)
            elif name not in group.boxes:
                group.boxes.add(name)
                for place, read in enumerate(self.new.boxes[self.new.index[name]].inputs):
                    if (name, place) not in self.change.past:
                        pending.append(read)
                    elif read not in group.pasts:
                        group.pasts.append(read)
        for arc in group.pasts:
            if arc in live:
                raise check_mixed(arc)
            if owner(arc) not in self.new.index:
                group.sources.add(arc)
            elif arc not in group.relays:
                group.relays.append(arc)
        group.relays.sort()

    def _export(self, groups: Sequence[_Group]) -> None:
        """Have the arcs delivered that queries read from relays; which needs no other relays."""
        wanted = sorted({arc for group in groups for arc in group.relays} | {*exported_arcs(self.new)})
        for arc in wanted:
            having = [group for group in groups if owner(arc) in group.boxes]
            exporting = [home for home in self.homes if arc in self.running[home.at].cut.exports]
            if not exporting and (owner(arc) in self.anchored or any(home in having for home in self.homes)):
                exporting = [self._home(arc)]
            (exporting or having)[0].exports.append(arc)
        for group in groups:
            if group.old is None or not self.intact[group.old]:
                self._fill(group)

    def _house(self, groups: list[_Group]) -> None:
        """Find a query for boxes that lead to no output: they still run, for their dead letters and counts."""
        covered = set().union(*(group.boxes for group in groups))
        for box in self.new.boxes:
            if box.name in covered:
                continue
            mine = [group for group in self.homes if box.name in self.running[group.at].cut.boxes]
            others = [group for group in groups if group.old is None or not self.intact[group.old]]
            sources = upstream_of(self.new, [box.name])[1]
            home = next((group for group in mine if not self.intact[group.at]), None)
            home = home or next((group for group in others if group.sources & sources), None)
            if home is None:
                home = _Group(None, (), "boxes that lead to no output")
                groups.append(home)
            home.roots.append(box.name)
            self._fill(home)
            covered |= home.boxes

    def _unit(self, group: _Group) -> Successor:
        old, outputs, exports = group.old, tuple(group.outputs), tuple(sorted(group.exports))
        before = None if old is None else self.running[old].cut
        if before is not None and self.intact[group.at]:
            name = "+".join(outputs) or before.name
            return Successor(replace(before, name=name, outputs=outputs, exports=exports), old, runs_on=True)
        members = [box for box in self.new.boxes if box.name in group.boxes]
        pins: Mapping[str, Placement] = MappingProxyType({})
        if before is not None:
            pins = {name: before.placements[name] for name in before.boxes if name in self.anchored & group.boxes}
        arcs = frozenset(self.new.checked.outputs[name] for name in outputs) | {*exports}
        read = [source.name for source in self.new.checked.network.sources if source.name in group.sources]
        sources = (*read, *map(alias, group.relays))
        names, relays = tuple(box.name for box in members), tuple(group.relays)
        name = "+".join(outputs) or (names[-1] if names else before.name if before is not None else "")
        pasts = tuple(group.pasts)
        made = CutUnit(name, outputs, sources, names, {}, frozenset(), group.why, relays, exports, pasts)
        delivered = frozenset(alias(arc) if arc in relays else arc for arc in arcs)
        alone = compile_program(program_of(made, self.new).checked, frozenset(names), delivered)
        spreading = (self.spreading & alone.spreadable.keys()) - pins.keys()
        if relays:  # what comes from a relay may share its numbers, by which results of shards are put in order
            spreading = frozenset()
        placements = place_boxes(self.new, members, self.shards, spreading, pins)
        for box, pin in pins.items():
            place = placements[box]
            if (place.front, place.shard, place.by) != (pin.front, pin.shard, pin.by):
                raise NetworkError(
                    f"box '{box}' cannot keep its state on Spark: it would have to move; begin it anew (restart)"
                )
        return Successor(replace(made, placements=placements), old, runs_on=False)

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
