"""Run a loop-free graph of reference operators, one arrival at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from tests.reference.tuples import Emitted, Operator, Row, Tuple


class Node(NamedTuple):
    """A box of the graph. Inputs are written as in a network file: `s`, `box`, `box.2`, `box.else`."""

    name: str
    operator: Operator
    inputs: tuple[str, ...]


class Arrival(NamedTuple):
    """A tuple that enters the network, at a moment of the engine's clock."""

    source: str
    row: Row
    moment: int = 0


class Tick(NamedTuple):
    """The engine's clock reaches a moment and nothing arrives."""

    moment: int


class Graph(NamedTuple):
    """Boxes in topological order, and the arc that each output shows."""

    nodes: Sequence[Node]
    outputs: Mapping[str, str]


_GAP = object()


def in_turn(inputs: Mapping[str, Sequence[Row]]) -> list[Arrival]:
    """Return finite inputs in the order in which they arrive: the first of each source, the second, …."""
    rounds = zip_longest(*inputs.values(), fillvalue=_GAP)
    names = list(inputs)
    return [
        Arrival(name, row)
        for turn in rounds
        for name, row in zip(names, turn, strict=True)
        if row is not _GAP and isinstance(row, dict)
    ]


def run_reference(graph: Graph, arrivals: Sequence[Arrival | Tick], end: bool = True) -> dict[str, list[Row]]:
    """Push each arrival completely through before the next, then flush; return the rows of each output.

    Tuples that the end of the inputs lets out all carry one number, larger than all others. So a box
    with several inputs takes those of its first input before those of its second.
    """
    run = _Run(graph)
    for number, event in enumerate(arrivals):
        if isinstance(event, Tick):
            run.step({}, number, event.moment, ticking=True)
        else:
            run.step({event.source: [Tuple(event.row, event.moment, number)]}, number, event.moment)
    if end:
        run.step({}, len(arrivals), run.moment, ending=True)
    return {name: [tuple_.row for tuple_ in rows] for name, rows in run.shown.items()}


class _Run:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.operators = {node.name: node.operator for node in graph.nodes}
        self.shown: dict[str, list[Tuple]] = {name: [] for name in graph.outputs}
        self.moment = 0

    def arc(self, reference: str) -> str:
        """Return the one name of an arc: `box.port` with the port counted from 0, or the source's name."""
        name, _, port = reference.partition(".")
        if name not in self.operators:
            return reference
        if port == "else":
            return f"{name}.{self.operators[name].ports - 1}"
        return f"{name}.{int(port) - 1 if port else 0}"

    def step(
        self,
        entering: Mapping[str, list[Tuple]],
        number: int,
        moment: int,
        ticking: bool = False,
        ending: bool = False,
    ) -> None:
        """Let one arrival, tick or end pass through all boxes."""
        self.moment = moment
        arcs: dict[str, list[Tuple]] = defaultdict(list, entering)
        for node in self.graph.nodes:
            operator = node.operator
            operator.now = moment
            emitted: list[Emitted] = []
            for at, reference in enumerate(node.inputs):
                for tuple_ in arcs[self.arc(reference)]:
                    emitted += operator.push(at, tuple_)
            if ticking:
                emitted += operator.tick(number)
            if ending:
                emitted += operator.end(number)
            for port, tuple_ in emitted:
                arcs[f"{node.name}.{port}"].append(tuple_)
        for name, reference in self.graph.outputs.items():
            self.shown[name] += arcs[self.arc(reference)]
