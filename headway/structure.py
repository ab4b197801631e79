"""The structure of a network: its names, arcs and their consumers, and the order of its boxes. No types."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from headway.errors import NetworkError, choices, did_you_mean, unknown
from headway.network import Box, Input, Network, Point, Streamed, Table, arc_name, check_name, stream_name


class Consumer(NamedTuple):
    """A reader of an arc: an input of a box, or an output."""

    kind: str
    """``box`` or ``output``; an output may have a box's name."""
    name: str
    input: int = 0
    """Which input of the box."""


@dataclass(frozen=True)
class Structure:
    """The arcs of a network by their canonical names (``source``, ``box``, ``box.port``)."""

    order: tuple[Box, ...]
    """The boxes, each after those it reads; otherwise in the file's order."""
    inputs: Mapping[str, tuple[str | Table, ...]]
    """By box: its inputs, arcs by their canonical names."""
    outputs: Mapping[str, str]
    """By output: the arc that it delivers."""
    arcs: Collection[str]
    """All arcs: sources, then every port of every box in the file's order."""
    consumers: Mapping[str, tuple[Consumer, ...]]
    """By arc: its readers, boxes before outputs."""
    warnings: tuple[str, ...]
    """What is allowed but probably not intended."""
    points: Mapping[str, str]
    """By point on an arc, and by view: the arc."""


def check_structure(network: Network) -> Structure:
    """Return the structure, or raise a NetworkError for bad names, unknown inputs, loops, no sources or no outputs.

    Names of points and views stand for their arcs. A view counts as an output. A stored data set is a static table, and
    where it is streamed in, a source. So a network and what `headway.expansion.expand` makes of it have one structure.
    """
    _check_names(network)
    names = _Names(network)
    inputs: dict[str, tuple[str | Table, ...]] = {}
    consumers: dict[str, list[Consumer]] = {arc: [] for arc in names.arcs}
    for box in network.boxes:
        where = f"box '{box.name}': in"
        inputs[box.name] = tuple(names.item(item, box, where) for item in box.inputs)
        for number, item in enumerate(inputs[box.name]):
            if not isinstance(item, Table):
                consumers[item].append(Consumer("box", box.name, number))
    outputs = {output.name: names.arc(output.input, f"output '{output.name}': from") for output in network.outputs}
    outputs |= {view.name: names.aliases[view.name] for view in network.views}
    order = _sort(network.boxes, inputs)
    for output_name, arc in outputs.items():
        consumers[arc].append(Consumer("output", output_name))
    frozen = {arc: tuple(readers) for arc, readers in consumers.items()}
    needed = upstream(inputs, map(owner, [*outputs.values(), *names.aliases.values()]))
    warnings = [f"{kind} '{name}': no output uses it" for kind, name in _named(network) if name not in needed]
    return Structure(order, inputs, outputs, tuple(names.arcs), frozen, tuple(warnings), names.aliases)


def streams_of(network: Network) -> tuple[tuple[str, Point], ...]:
    """Return the sources that stream stored data in, by name and point, in the order of the points."""
    asked = [
        (item.point, stream_name(box.name, item.point))
        for box in network.boxes
        for item in box.inputs
        if isinstance(item, Streamed)
    ]
    found = [
        (name, point) for point in network.points if point.data is not None for key, name in asked if key == point.name
    ]
    return tuple(dict(found).items())


class _Names:
    """What the inputs in a network may name, and the arcs that they stand for."""

    def __init__(self, network: Network) -> None:
        self.ports: dict[str, tuple[str, ...]] = {source.name: ("",) for source in network.sources}
        self.stored = {point.name for point in network.points if point.data is not None}
        self.ports |= {name: ("",) for name, _ in streams_of(network)}
        self.ports |= {box.name: box.spec.ports for box in network.boxes}
        self.arcs = {arc_name(name, port): None for name, names in self.ports.items() for port in names}
        self._expanded = self.stored & {source.name for source in network.sources}
        self.aliases: dict[str, str] = {}
        """By point on an arc and by view: its arc."""
        self._views: dict[str, str] = {view.name: view.input for view in network.views}
        for point in network.points:
            if point.on is not None:
                self.aliases[point.name] = self.arc(point.on, f"point '{point.name}': on", arcs_only=True)
        for view in network.views:
            self._view(view.name, ())

    def item(self, item: Input, box: Box, where: str) -> str | Table:
        """Return what an input of a box stands for: an arc or a static table."""
        if isinstance(item, Table):
            if item.ref in self.aliases:
                raise NetworkError(f"{where}: '{item.ref}' is a stream, not stored data; write only its name")
            return item
        if isinstance(item, Streamed):
            if item.point in self.stored:
                return stream_name(box.name, item.point)
            if item.point in self.aliases:
                raise NetworkError(f"{where}: '{item.point}' is a stream already; write only its name")
            raise NetworkError(f"{where}: {unknown('stored data set', item.point, self.stored)}")
        if item in self.stored and item not in self._expanded:
            if not box.spec.takes_tables:
                raise NetworkError(
                    f"{where}: '{item}' is stored data, which only a join looks up; "
                    f"a {box.spec.op} can have it streamed in: {{point: {item}, as: stream}}"
                )
            return Table(item)
        return self.arc(item, where)

    def arc(self, name: str, where: str, arcs_only: bool = False) -> str:
        """Return the canonical name of the arc that a name stands for; `arcs_only`: not one of a point or a view."""
        if name in self._views and not arcs_only:
            return self._view(name, ())
        if name in self.aliases and not arcs_only:
            return self.aliases[name]
        if name in self.arcs and (name not in self.stored or name in self._expanded):
            return name
        if name in self.stored:
            raise NetworkError(f"{where}: '{name}' is stored data, which only boxes read")
        if name in self.aliases or name in self._views:
            raise NetworkError(f"{where}: '{name}' is no arc; choices: {choices(self.arcs)}")
        base, dot, port = name.partition(".")
        own = self.ports.get(base)
        if own is None:
            known = [*self.arcs] if arcs_only else [*self.aliases, *self._views, *self.stored, *self.arcs]
            raise NetworkError(f"{where}: {unknown('input', name, known)}")
        if not dot:
            raise NetworkError(
                f"{where}: '{base}' has several outputs; choices: {choices(arc_name(base, port) for port in own)}"
            )
        if port == "1" and own[0] == "":
            return base
        listed = [arc_name(base, port) for port in own]
        raise NetworkError(
            f"{where}: '{base}' has no output '{port}'{did_you_mean(name, listed) or ';'} choices: {choices(listed)}"
        )

    def _view(self, name: str, seen: tuple[str, ...]) -> str:
        """Return the arc of a view, which may read another view."""
        if name in self.aliases:
            return self.aliases[name]
        if name in seen:
            loop = " -> ".join([*seen[seen.index(name) :], name])
            raise NetworkError(f"views: there is a loop: {loop}; a network must be free of loops")
        below = self._views[name]
        known = below in self._views
        arc = self._view(below, (*seen, name)) if known else self.arc(below, f"view '{name}': from")
        self.aliases[name] = arc
        return arc


def owner(arc: str) -> str:
    """Return the name of the source or box that an arc comes from."""
    return arc.partition(".")[0]


def _check_names(network: Network) -> None:
    check_name(network.name, "network")
    if not network.sources:
        raise NetworkError("sources: a network needs at least one source")
    if not (network.outputs or network.views or network.points):
        raise NetworkError("outputs: a network needs at least one output")
    stored = {point.name for point in network.points if point.data is not None}
    seen: dict[str, str] = {}
    for kind, name in _named(network):
        check_name(name, kind, grafted=True)
        if name in seen:
            raise NetworkError(
                f"{kind} '{name}': the name is taken by a {seen[name]}; sources and boxes need different names"
            )
        seen[name] = kind
    for kind, name in [("point", one.name) for one in network.points] + [("view", one.name) for one in network.views]:
        check_name(name, kind)
        # A stored data set that is streamed in has become a source of its name.
        if name in seen and not (name in stored and seen[name] == "source"):
            raise NetworkError(
                f"{kind} '{name}': the name is taken by a {seen[name]}; sources, boxes, points and views need "
                "different names"
            )
        seen[name] = kind
    views = {view.name for view in network.views}
    results: set[str] = set()
    for output in network.outputs:
        check_name(output.name, "output", grafted=True)
        if output.name in results or output.name in views:
            other = "a view" if output.name in views else "another output"
            raise NetworkError(f"output '{output.name}': there is {other} of this name")
        results.add(output.name)


def _sort(boxes: tuple[Box, ...], inputs: Mapping[str, tuple[str | Table, ...]]) -> tuple[Box, ...]:
    """Return the boxes, each after those it reads, or raise a NetworkError that names a loop."""
    place = {box.name: number for number, box in enumerate(boxes)}
    sorter = TopologicalSorter(
        {
            name: [owner(arc) for arc in arcs if not isinstance(arc, Table) and owner(arc) in place]
            for name, arcs in inputs.items()
        }
    )
    try:
        sorter.prepare()
    except CycleError as error:
        loop = " -> ".join(error.args[1])
        raise NetworkError(f"boxes: there is a loop: {loop}; a network must be free of loops") from None
    ready: list[int] = []
    order: list[Box] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, place[name])
        order.append(boxes[heapq.heappop(ready)])
        sorter.done(order[-1].name)
    return tuple(order)


def upstream(inputs: Mapping[str, tuple[str | Table, ...]], names: Iterable[str]) -> dict[str, None]:
    """Return sources and boxes with all that they depend on, in the order of discovery."""
    found = dict.fromkeys(names)
    waiting = list(found)
    while waiting:
        for item in inputs.get(waiting.pop(), ()):
            if not isinstance(item, Table) and owner(item) not in found:
                found[owner(item)] = None
                waiting.append(owner(item))
    return found


def _named(network: Network) -> list[tuple[str, str]]:
    """Return the kind and the name of everything that has arcs: sources, then boxes."""
    return [("source", item.name) for item in network.sources] + [("box", item.name) for item in network.boxes]
