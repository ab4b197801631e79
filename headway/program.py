"""The program: which boxes read which arcs, run as one kernel, need which columns, and can be spread by which key.

It is compiled once from a checked network, for all of it or for the boxes of one Spark query, and never changes. Boxes
are numbered in topological order. Kernels are made for each run, because some adapt while they run.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from headway.boxes.operator import Operator
from headway.catalog import Topology
from headway.checking import CheckedNetwork
from headway.errors import NetworkError
from headway.kernels.chain import ChainKernel, Link
from headway.kernels.compile import compile_kernel, compile_link
from headway.kernels.kernel import Kernel
from headway.network import Table, arc_name
from headway.network.schema import Schema
from headway.structure import owner
from headway.tables import load_static


@dataclass(frozen=True, slots=True)
class ProgramBox:
    """A box with everything needed to run it."""

    index: int
    name: str
    spec: Operator
    items: tuple[str | Table, ...]
    """Its inputs: arcs and static tables."""
    inputs: tuple[str, ...]
    """Its streams: the inputs that are arcs."""
    feeders: tuple[int, ...]
    """By stream: the box that it comes from, or -1 minus the number of a source."""
    schemas: tuple[Schema, ...]
    """By input, static tables included."""
    ports: tuple[str | None, ...]
    """The arcs that its kernel writes, None for one that is not read. A link of a chain writes the first only."""
    fusible: bool
    """Whether its kernel is a link of a chain: it can be one, and no other port is read."""

    @property
    def filters(self) -> bool:
        """Whether it is a link of a chain that only drops tuples."""
        return self.fusible and self.spec.passes


@dataclass(frozen=True)
class Program:
    """A network, or a self-contained part of it, ready to run."""

    checked: CheckedNetwork
    boxes: tuple[ProgramBox, ...]
    readers: Mapping[str, tuple[int, ...]]
    """By arc: the boxes that read it, repeated if they read it more than once."""
    delivered: frozenset[str]
    """The arcs that leave the program."""
    _links: dict[int, Link] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The boxes' numbers."""
        return {box.name: box.index for box in self.boxes}

    def only_consumer(self, at: int) -> int | None:
        """Return the only reader of a box's first port; None if there are others, or another port is read."""
        first, *others = self.boxes[at].ports
        if first is None or first in self.delivered or any(others):
            return None
        readers = self.readers[first]
        return readers[0] if len(readers) == 1 else None

    def chains(self, boxes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Divide a traversal into calls: runs of neighbours that are one kernel, or single boxes.

        Neighbours are fused when both are links of a chain and the second is the only consumer of the first.
        """
        calls: list[list[int]] = []
        for at in boxes:
            before = calls[-1] if calls and self.boxes[at].fusible and self.boxes[calls[-1][-1]].fusible else None
            if before is not None and self.only_consumer(before[-1]) == at:
                before.append(at)
            else:
                calls.append([at])
        return tuple(tuple(call) for call in calls)

    # Kernels

    def load_tables(self, tables: Mapping[str, Any] | None, boxes: Container[str] | None = None) -> dict[str, pa.Table]:
        """Return the contents of the static tables of all boxes, or of some, by ref; `tables` gives some by name.

        Raises a NetworkError for one that is not as it was when the network was checked.
        """
        network = self.checked.network
        some = [box for box in self.boxes if boxes is None or box.name in boxes]
        items = {item.ref: item for box in some for item in box.items if isinstance(item, Table)}
        contents = {ref: load_static(network, items[ref], tables) for ref in sorted(items)}
        for ref, table in contents.items():
            if Schema.from_arrow(table.schema) != self.checked.tables[ref]:
                raise NetworkError(f"table '{ref}': its fields have changed since they were looked at; try again")
        return contents

    def kernels(self, tables: Mapping[str, pa.Table]) -> tuple[Kernel, ...]:
        """Return a new kernel for each box; `tables` holds the contents of static tables by ref."""
        return tuple([self.kernel(box, tables) for box in self.boxes])

    def kernel(self, box: ProgramBox, tables: Mapping[str, pa.Table]) -> Kernel:
        """Return a new kernel for a box."""
        if box.fusible:
            return self.fuse((box.index,))
        contents = [tables[item.ref] if isinstance(item, Table) else None for item in box.items]
        return compile_kernel(box.spec, box.name, box.schemas, contents, self.checked.functions)

    def fuse(self, boxes: Sequence[int], wanted: frozenset[int] | None = None) -> ChainKernel:
        """Return one kernel for links of a chain; `wanted` are the columns of its output that are read."""
        return ChainKernel(tuple(self._link(at) for at in boxes), wanted)

    def _link(self, at: int) -> Link:
        if at not in self._links:
            box = self.boxes[at]
            self._links[at] = compile_link(box.spec, box.name, box.schemas[0], self.checked.functions)
        return self._links[at]

    # Columns

    def wanted(self, at: int, within: Container[int], kernels: Sequence[Kernel]) -> frozenset[int] | None:
        """Return which columns of a filter's output are read, if a single box `within` reads it all; None: unknown."""
        reader = self.only_consumer(at) if self.boxes[at].filters else None
        return None if reader is None or reader not in within else kernels[reader].reads

    def needs(self, at: int, kernels: Sequence[Kernel]) -> frozenset[int] | None:
        """Return the columns of its input that a box and those downstream read; None if that is not known."""
        box = self.boxes[at]
        predicate = self._link(at).predicate if box.filters else None
        if predicate is None:
            return kernels[at].reads
        if box.name in self.delivered or box.spec.may_fail(box.schemas[0], self.checked.functions):
            return None
        needed = frozenset(predicate.slots)
        for reader in self.readers[box.name]:
            mine = self.needs(reader, kernels)
            if mine is None:
                return None
            needed |= mine
        return needed

    # Partitions

    @cached_property
    def spreadable(self) -> Mapping[str, tuple[str, ...]]:
        """By box that can be spread over its partitions: the fields that define these.

        Its results must keep the order of their ranks, so all boxes downstream must process each tuple by itself.
        """
        free: set[int] = set()  # boxes with only tuplewise ones downstream
        for box in reversed(self.boxes):
            behind = [reader for arc in self.arcs_of(box) for reader in self.readers[arc]]
            if all(reader in free and self.boxes[reader].spec.tuplewise for reader in behind):
                free.add(box.index)
        return {box.name: box.spec.partitions for box in self.boxes if box.index in free and box.spec.partitions}

    def arcs_of(self, box: ProgramBox) -> tuple[str, ...]:
        """Return the arcs of all ports of a box."""
        return tuple(arc_name(box.name, port) for port in box.spec.ports)

    # For policies

    @cached_property
    def topology(self) -> Topology:
        """Which box feeds which, as numbers: all that policies see of the program."""
        network = self.checked.network
        producers = [tuple(dict.fromkeys(one for one in box.feeders if one >= 0)) for box in self.boxes]
        consumers: list[list[int]] = [[] for _ in self.boxes]
        for at, feeding in enumerate(producers):
            for producer in feeding:
                consumers[producer].append(at)
        waits = [box.spec.timeout for box in self.boxes]
        return Topology(
            tuple(box.name for box in self.boxes),
            tuple(source.name for source in network.sources),
            tuple(output.name for output in network.outputs),
            tuple(output.qos for output in network.outputs),
            tuple(producers),
            tuple(tuple(one) for one in consumers),
            tuple(self.readers[source.name] for source in network.sources),
            tuple(self.index.get(owner(self.checked.outputs[output.name]), -1) for output in network.outputs),
            tuple(math.inf if one is None else float(one.seconds) for one in waits) if any(waits) else (),
        )


def compile_program(
    checked: CheckedNetwork,
    boxes: Container[str] | None = None,
    delivered: frozenset[str] | None = None,
    before: Program | None = None,
    same: Container[str] = (),
) -> Program:
    """Return the program of a network, or that of some `boxes` by name, which include all those upstream of them.

    `delivered` are the arcs that leave it: by default those of the outputs and connection points. What `before` has
    compiled for boxes that are the `same` there is used again.
    """
    members = [box for box in checked.order if boxes is None or box.name in boxes]
    if delivered is None:
        kept = [point.on for point in checked.network.points if point.on is not None]
        delivered = frozenset([*checked.outputs.values(), *kept])
    numbers = {box.name: at for at, box in enumerate(members)}
    numbers |= {source.name: -1 - at for at, source in enumerate(checked.network.sources)}
    readers: dict[str, list[int]] = {arc: [] for arc in checked.arcs}
    inputs = [tuple(item for item in checked.inputs[box.name] if isinstance(item, str)) for box in members]
    for box in checked.network.boxes:
        if box.name in numbers:
            for arc in inputs[numbers[box.name]]:
                readers[arc].append(numbers[box.name])
    made = []
    for at, box in enumerate(members):
        arcs = [arc_name(box.name, port) for port in box.spec.ports]
        ports = tuple(arc if readers[arc] or arc in delivered else None for arc in arcs)
        fusible = box.spec.fusable and not any(ports[1:])
        made.append(
            ProgramBox(
                at,
                box.name,
                box.spec,
                checked.inputs[box.name],
                inputs[at],
                tuple(numbers[owner(arc)] for arc in inputs[at]),
                checked.input_schemas(box.name),
                ports[:1] if fusible else ports,
                fusible,
            )
        )
    links = {} if before is None else {before.boxes[at].name: link for at, link in before._links.items()}
    again = {box.index: links[box.name] for box in made if box.name in links and box.name in same}
    return Program(checked, tuple(made), {arc: tuple(some) for arc, some in readers.items()}, delivered, again)
