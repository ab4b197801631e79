"""The structure of a network: its names, arcs and their consumers, and the order of its boxes. No types."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from headway.errors import NetworkError, choices, did_you_mean, unknown
from headway.network import Box, Network, Table, arc_name, check_name


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


def check_structure(network: Network) -> Structure:
    """Return the structure, or raise a NetworkError for bad names, unknown inputs, loops, no sources or no outputs."""
    _check_names(network)
    ports: dict[str, tuple[str, ...]] = {source.name: ("",) for source in network.sources}
    ports.update({box.name: box.spec.ports for box in network.boxes})
    arcs = {arc_name(name, port): None for name, names in ports.items() for port in names}
    inputs: dict[str, tuple[str | Table, ...]] = {}
    consumers: dict[str, list[Consumer]] = {arc: [] for arc in arcs}
    for box in network.boxes:
        resolved: list[str | Table] = []
        for number, item in enumerate(box.inputs):
            if not isinstance(item, Table):
                item = _resolve(item, ports, arcs, f"box '{box.name}': in")
                consumers[item].append(Consumer("box", box.name, number))
            resolved.append(item)
        inputs[box.name] = tuple(resolved)
    outputs = {
        output.name: _resolve(output.input, ports, arcs, f"output '{output.name}': from") for output in network.outputs
    }
    order = _sort(network.boxes, inputs)
    for output_name, arc in outputs.items():
        consumers[arc].append(Consumer("output", output_name))
    frozen = {arc: tuple(readers) for arc, readers in consumers.items()}
    needed = upstream(inputs, map(owner, outputs.values()))
    warnings = [f"{kind} '{name}': no output uses it" for kind, name in _named(network) if name not in needed]
    return Structure(order, inputs, outputs, tuple(arcs), frozen, tuple(warnings))


def owner(arc: str) -> str:
    """Return the name of the source or box that an arc comes from."""
    return arc.partition(".")[0]


def _check_names(network: Network) -> None:
    check_name(network.name, "network")
    if not network.sources:
        raise NetworkError("sources: a network needs at least one source")
    if not network.outputs:
        raise NetworkError("outputs: a network needs at least one output")
    seen: dict[str, str] = {}
    for kind, name in _named(network):
        check_name(name, kind)
        if name in seen:
            raise NetworkError(
                f"{kind} '{name}': the name is taken by a {seen[name]}; sources and boxes need different names"
            )
        seen[name] = kind
    results: set[str] = set()
    for output in network.outputs:
        check_name(output.name, "output")
        if output.name in results:
            raise NetworkError(f"output '{output.name}': there is another output of this name")
        results.add(output.name)


def _resolve(name: str, ports: Mapping[str, tuple[str, ...]], arcs: Collection[str], where: str) -> str:
    """Return the canonical name of an arc."""
    if name in arcs:
        return name
    base, dot, port = name.partition(".")
    own = ports.get(base)
    if own is None:
        raise NetworkError(f"{where}: {unknown('input', name, arcs)}")
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
