"""Twins: the same network as a file's mapping and as a graph of reference operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.reference import windows
from tests.reference.aggregate import Aggregate
from tests.reference.bsort import BSort
from tests.reference.filter import Filter, Predicate
from tests.reference.graph import Arrival, Graph, Node, Tick, in_turn, run_reference
from tests.reference.join import Combine, Condition, Join, TableJoin, side_by_side
from tests.reference.kinds import BIGINT, COUNT, Kind
from tests.reference.map import Map
from tests.reference.order import NUMBER, Order
from tests.reference.resample import Resample
from tests.reference.sessions import Sessions, When
from tests.reference.tuples import Operator, Row
from tests.reference.union import Union

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """One box twice: its settings in the file, and how to make its operator (afresh for every run)."""

    name: str
    inputs: tuple[str, ...]
    settings: Settings
    make: Callable[[], Operator]
    table: str | None = None

    def mapping(self) -> dict[str, Any]:
        """Return the box as the file writes it."""
        inputs: list[Any] = [*self.inputs, *([{"table": self.table}] if self.table else [])]
        return {**self.settings, "in": inputs if len(inputs) > 1 else inputs[0]}


@dataclass(frozen=True)
class Twin:
    """A whole network twice."""

    sources: Mapping[str, Mapping[str, str]]
    boxes: tuple[Pair, ...]
    outputs: Mapping[str, str]

    def mapping(self) -> dict[str, Any]:
        """Return the network as a file's mapping."""
        return {
            "network": "twin",
            "sources": {name: {"schema": dict(schema)} for name, schema in self.sources.items()},
            "boxes": {pair.name: pair.mapping() for pair in self.boxes},
            "outputs": {name: {"from": arc} for name, arc in self.outputs.items()},
        }

    def graph(self) -> Graph:
        """Return the network as fresh reference operators."""
        return Graph([Node(pair.name, pair.make(), pair.inputs) for pair in self.boxes], self.outputs)

    def expected(self, inputs: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
        """Return what the reference says of finite inputs that arrive in turn."""
        ordered = {name: inputs[name] for name in self.sources}
        return run_reference(self.graph(), in_turn(ordered))

    def so_far(self, arrivals: Sequence[Arrival | Tick]) -> dict[str, list[Row]]:
        """Return what the reference says before the inputs end."""
        return run_reference(self.graph(), arrivals, end=False)

    def ignored(self, inputs: Mapping[str, Sequence[Row]]) -> dict[str, int]:
        """Return how many tuples each box ignores."""
        graph = self.graph()
        run_reference(graph, in_turn({name: inputs[name] for name in self.sources}))
        return {node.name: node.operator.ignored for node in graph.nodes}


class Result(NamedTuple):
    """A result of a window: in SQL and in Python."""

    name: str
    sql: str
    function: windows.WindowFunction


def results(field: str) -> dict[str, Result]:
    """Return the built-in functions over one field, by result name."""
    listed = [
        Result("n", "count(*)", windows.count()),
        Result("present", f"count({field})", windows.count_of(field)),
        Result("kinds", f"count(distinct {field})", windows.count_distinct(field)),
        Result("total", f"sum({field})", windows.total(field)),
        Result("mean", f"avg({field})", windows.mean(field)),
        Result("low", f"min({field})", windows.low(field)),
        Result("high", f"max({field})", windows.high(field)),
        Result("head", f"first({field})", windows.first(field)),
        Result("tail", f"last({field})", windows.last(field)),
        Result("listed", f"collect_list({field})", windows.collect(field)),
        Result("middle", f"median({field})", windows.median(field)),
        Result("spread", f"stddev({field})", windows.stddev(field)),
        Result("var", f"variance({field})", windows.variance(field)),
    ]
    return {result.name: result for result in listed}


def _select(chosen: Sequence[Result]) -> tuple[str, windows.Select]:
    text = ", ".join(f"{result.sql} as {result.name}" for result in chosen)
    return text, {result.name: result.function for result in chosen}


def _order(order: Order) -> dict[str, Any]:
    return {"on": order.on, "slack": order.slack, "by": list(order.by)}


def filters(name: str, arc: str, *routes: tuple[str, Predicate]) -> Pair:
    """A filter; one predicate is written as text, several as a list."""
    texts = [text for text, _ in routes]
    where: Any = texts if len(texts) > 1 else texts[0]
    return Pair(name, (arc,), {"op": "filter", "where": where}, lambda: Filter(*[predicate for _, predicate in routes]))


def maps(name: str, arc: str, select: str, function: Callable[[Row], Row]) -> Pair:
    """A map."""
    return Pair(name, (arc,), {"op": "map", "select": select}, lambda: Map(function))


def unions(name: str, *arcs: str) -> Pair:
    """A union."""
    return Pair(name, arcs, {"op": "union"}, Union)


def bsorts(name: str, arc: str, order: Order) -> Pair:
    """A bsort."""
    return Pair(name, (arc,), {"op": "bsort", "order": _order(order)}, lambda: BSort(order))


def aggregates(
    name: str,
    arc: str,
    chosen: Sequence[Result],
    order: Order,
    size: int,
    advance: int | None = None,
    kind: Kind = BIGINT,
    align_first: bool = False,
) -> Pair:
    """An aggregate over windows of a grid; sizes are whole numbers of the kind's units."""
    kind = COUNT if order.on == NUMBER else kind
    text, select = _select(chosen)
    settings: dict[str, Any] = {"op": "aggregate", "select": text, "order": _order(order), "size": kind.size(size)}
    if advance is not None:
        settings["advance"] = kind.size(advance)
    if align_first:
        settings["align"] = "first"
    step = None if advance is None else kind.axis(advance)
    return Pair(
        name, (arc,), settings, lambda: Aggregate(select, order, kind.axis(size), step, align_first=align_first)
    )


def sessions(
    name: str,
    arc: str,
    chosen: Sequence[Result],
    order: Order,
    text: str,
    when: When,
    size: int | None = None,
    kind: Kind = BIGINT,
) -> Pair:
    """An aggregate over data-driven windows."""
    kind = COUNT if order.on == NUMBER else kind
    select_text, select = _select(chosen)
    settings: dict[str, Any] = {
        "op": "aggregate",
        "select": select_text,
        "order": _order(order),
        "advance": {"when": text},
    }
    if size is not None:
        settings["size"] = kind.size(size)
    reach = None if size is None else kind.axis(size)
    return Pair(name, (arc,), settings, lambda: Sessions(select, order, when, reach))


def joins(
    name: str,
    arcs: tuple[str, str],
    on: tuple[str, Condition],
    size: int,
    orders: tuple[Order, Order],
    kind: Kind = BIGINT,
    select: tuple[str, Combine] | None = None,
) -> Pair:
    """A join of two streams."""
    kind = COUNT if orders[0].on == NUMBER else kind
    settings: dict[str, Any] = {
        "op": "join",
        "on": on[0],
        "size": kind.size(size),
        "order": [_order(order) for order in orders],
    }
    if select:
        settings["select"] = select[0]
    combine = select[1] if select else side_by_side
    return Pair(name, arcs, settings, lambda: Join(on[1], kind.axis(size), *orders, combine))


def table_joins(name: str, arc: str, table: str, rows: Sequence[Row], on: tuple[str, Condition]) -> Pair:
    """A join of a stream with a static table."""
    return Pair(name, (arc,), {"op": "join", "on": on[0]}, lambda: TableJoin(on[1], rows), table)


def resamples(
    name: str,
    arcs: tuple[str, str],
    chosen: Sequence[Result],
    size: int,
    orders: tuple[Order, Order],
    kind: Kind = BIGINT,
) -> Pair:
    """A resample of the second stream at the tuples of the first."""
    kind = COUNT if orders[0].on == NUMBER else kind
    text, select = _select(chosen)
    settings = {
        "op": "resample",
        "select": text,
        "size": kind.size(size),
        "order": [_order(order) for order in orders],
    }
    return Pair(name, arcs, settings, lambda: Resample(select, kind.axis(size), *orders))
