"""A fluent builder that makes, in Python, the same frozen Network as a file.

Methods parse keys and infer schemas as the file reader does, box by box, so the same mistake gives the same message,
raised at the line that makes it; only a missing order is described by its arguments here. What only the run knows
(static tables, functions not registered yet) is checked when it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.boxes.aggregate import When
from headway.boxes.costs import Cost
from headway.boxes.keys import inside
from headway.boxes.order import Order
from headway.checking import check_numeric
from headway.durations import Duration
from headway.errors import NetworkError, UnknownFunctionError, choices, did_you_mean
from headway.files import parse_box, parse_output, parse_point, parse_schedule, parse_source, parse_table, parse_view
from headway.functions import functions
from headway.network import Box, Network, Output, Point, Source, Table, View, arc_name, check_name
from headway.network.qos import QoS
from headway.network.schema import Schema
from headway.structure import check_structure

Points = Sequence[Sequence[float]]
Size = int | float | str | Duration
OrderLike = str | Mapping[str, Any] | Order
Names = str | Sequence[str]
CostLike = float | str | Duration | Mapping[str, Sequence[float | str]] | Cost


class NetworkBuilder:
    """Collects sources, boxes, points, views and outputs; `build` gives the frozen Network."""

    def __init__(self, name: str, schedule: Mapping[str, Any] | None = None, folder: Path | None = None) -> None:
        """Start an empty network; its relative paths are resolved against `folder`."""
        self._name = check_name(name, "network")
        self._schedule = None if schedule is None else parse_schedule(schedule)
        self._folder = folder
        self._sources: dict[str, Source] = {}
        self._boxes: dict[str, Box] = {}
        self._outputs: dict[str, Output] = {}
        self._points: dict[str, Point] = {}
        self._views: dict[str, View] = {}
        self._numbers: dict[str, int] = {}
        self._arcs: dict[str, Schema | None] = {}
        """The schema of every arc; None if only the run knows it: static tables or unregistered functions upstream."""

    def source(
        self,
        name: str,
        schema: str | Mapping[str, str] | Schema,
        connector: str | Mapping[str, Any] | None = None,
        *,
        push: bool = False,
    ) -> Stream:
        """Add a source; tuples of several sources arrive in turn, in the order in which they were added.

        With `push`, callers give it its tuples while the network runs.
        """
        self._free(name, "source")
        source = parse_source(name, {"schema": schema, "source": connector, "push": push})
        self._sources[name] = source
        self._arcs[name] = source.schema
        return Stream(self, name)

    def table(self, ref: str | Mapping[str, Any]) -> Table:
        """Return a static table to join with: a path, a name for which the run supplies a table, or a data set."""
        return parse_table(ref)

    def point(
        self,
        name: str,
        on: Stream | None = None,
        *,
        data: str | Path | Mapping[str, str] | None = None,
        keep: int | str | Duration | None = None,
        time: str | None = None,
        key: str | None = None,
    ) -> Stream:
        """Add a connection point on a stream, whose history it keeps, or for a stored data set.

        Returns the point as a stream, to be read by boxes. For stored data, give it to a join, which looks it up; it is
        streamed in by boxes on its `once`.
        """
        self._free(name, "point")
        mapping = {"on": None if on is None else self._own(on).name, "data": data, "keep": keep, "time": time}
        self._points[name] = parse_point(name, {**mapping, "key": key})
        self._arcs[name] = None if on is None else self._arc(on.name, f"point '{name}': on")
        return Stream(self, name, stored=on is None)

    def view(
        self,
        name: str,
        stream: Stream,
        *,
        keep: int | str | Duration | None = None,
        latency: Points | None = None,
        loss: Points | None = None,
        value: Mapping[str, Any] | tuple[str, Points] | None = None,
    ) -> Stream:
        """Add a view: keep a stream's tuples for whoever asks later. Returns the view as a stream."""
        self._free(name, "view")
        self._new_output(name)
        qos = _qos(latency, loss, value)
        view = parse_view(name, {"from": self._own(stream).name, "keep": keep, "qos": qos})
        schema = self._check_value(f"view '{name}'", view.input, view.qos)
        self._views[name], self._arcs[name] = view, schema
        return Stream(self, name)

    def build(self) -> Network:
        """Return the frozen network, equal to that of the equivalent file."""
        network = Network(
            self._name,
            tuple(self._sources.values()),
            tuple(self._boxes.values()),
            tuple(self._outputs.values()),
            self._schedule,
            self._folder,
            points=tuple(self._points.values()),
            views=tuple(self._views.values()),
        )
        check_structure(network)
        return network

    def _add_box(self, name: str | None, mapping: Mapping[str, Any]) -> Stream:
        name = self._fresh(str(mapping["op"])) if name is None else name
        self._free(name, "box")
        stored = [point.name for point in self._points.values() if point.data is not None]
        box = parse_box(name, {key: value for key, value in mapping.items() if value is not None}, stored=stored)
        schemas = self._infer(box)
        self._boxes[name] = box
        for port, schema in zip(box.spec.ports, schemas, strict=True):
            self._arcs[arc_name(name, port)] = schema
        return Stream(self, name, box.spec.ports)

    def _infer(self, box: Box) -> Sequence[Schema | None]:
        """Check a box at the line that adds it; return the schemas of its ports, None if they are not known yet."""
        unknown_yet = [None] * len(box.spec.ports)
        schemas: list[Schema] = []
        for item in box.inputs:
            found = self._arc(item, f"box '{box.name}': in") if isinstance(item, str) else None
            if found is None:  # the run supplies static tables, or the input's own schema is not known yet
                return unknown_yet
            schemas.append(found)
        try:
            return box.spec.infer(box.name, schemas, functions())
        except UnknownFunctionError:  # it may be registered before the network runs
            return unknown_yet

    def _arc(self, name: str, where: str) -> Schema | None:
        if name not in self._arcs:
            ports = [arc for arc in self._arcs if arc.partition(".")[0] == name]
            raise NetworkError(f"{where}: '{name}' has several outputs; choices: {choices(ports)}")
        return self._arcs[name]

    def _add_output(self, name: str, mapping: Mapping[str, Any]) -> None:
        self._new_output(name)
        output = parse_output(name, mapping)
        self._check_value(f"output '{name}'", output.input, output.qos)
        self._outputs[name] = output

    def _new_output(self, name: str) -> None:
        for kind, known in (("another output", self._outputs), ("a view", self._views)):
            if name in known:
                raise NetworkError(f"output '{name}': there is {kind} of this name")

    def _check_value(self, where: str, arc: str, qos: QoS) -> Schema | None:
        """Return an arc's schema, if it is known, once the field of a value graph has been looked at."""
        schema = self._arc(arc, f"{where}: from")
        if qos.value is not None and schema is not None:
            with inside(f"{where}: qos: value: field"):
                check_numeric(schema, qos.value.field)
        return schema

    def _own(self, stream: Stream) -> Stream:
        if stream._builder is not self:
            raise NetworkError(f"'{stream.name}' belongs to another network")
        return stream

    def _is_taken(self, name: str) -> bool:
        return any(name in known for known in (self._sources, self._boxes, self._points, self._views))

    def _free(self, name: str, kind: str) -> None:
        if self._is_taken(name):
            raise NetworkError(
                f"{kind} '{name}': the name is taken; sources, boxes, points and views need different names"
            )

    def _fresh(self, op: str) -> str:
        number = self._numbers.get(op, 1)
        while self._is_taken(f"{op}_{number}"):
            number += 1
        self._numbers[op] = number  # the next search starts here, not at 1
        return f"{op}_{number}"


class Stream:
    """An arc of a network that is being built. Every method adds a box that reads it, and returns its output."""

    def __init__(
        self,
        builder: NetworkBuilder,
        box: str,
        ports: Sequence[str] = ("",),
        port: str | None = None,
        stored: bool = False,
        once: bool = False,
    ) -> None:
        """Wrap an arc; called by the builder only."""
        self._builder = builder
        self._stored, self._once = stored, once
        self._box = box
        self._ports = tuple(ports)
        self._port = port

    @property
    def name(self) -> str:
        """The arc's name, as written under ``in`` in a file."""
        return arc_name(self._box, self._port or "")

    def __repr__(self) -> str:
        """Show the arc."""
        return f"Stream({self.name!r})"

    if not TYPE_CHECKING:  # type checkers report missing methods themselves

        def __getattr__(self, name: str) -> Any:
            """Raise an AttributeError that suggests a method; called only if there is none of this name."""
            known = [one for one in vars(Stream) if not one.startswith("_")]
            hint = "" if name.startswith("_") else did_you_mean(name, known) or f"; choices: {choices(known)}"
            raise AttributeError(f"a stream has no '{name}'{hint}", name=name, obj=None)  # no second hint from Python

    def route(self, number: int) -> Stream:
        """Return the output of a filter's n-th predicate, counted from 1."""
        routes = len(self._ports) - 1
        if "else" not in self._ports:
            raise NetworkError(f"'{self._box}' has no routes; only a filter has")
        if not 1 <= number <= routes:
            raise NetworkError(f"'{self._box}' has no route {number}; it has {routes}, counted from 1")
        return Stream(self._builder, self._box, self._ports, self._ports[number - 1])

    @property
    def otherwise(self) -> Stream:
        """The output of a filter's tuples for which no predicate is true."""
        if "else" not in self._ports:
            raise NetworkError(f"'{self._box}' has no else output; only a filter has")
        return Stream(self._builder, self._box, self._ports, "else")

    @property
    def once(self) -> Stream:
        """A point's stored data, streamed in once."""
        if not self._stored:
            raise NetworkError(f"'{self.name}' is no stored data set; it is a stream already")
        return Stream(self._builder, self._box, once=True)

    def filter(self, *where: str, name: str | None = None) -> Stream:
        """Route each tuple to the first predicate that is true; see `route` and `otherwise`."""
        return self._box_of("filter", name, where=list(where))

    def map(self, *select: str, name: str | None = None) -> Stream:
        """Turn each tuple into one tuple whose fields are expressions."""
        return self._box_of("map", name, select=select or None)

    def union(self, *others: Stream, ordered: bool = True, name: str | None = None) -> Stream:
        """Merge streams of the same schema."""
        return self._box_of("union", name, others, ordered=ordered)

    def universal(
        self,
        *others: Stream,
        cost: CostLike | None = None,
        selectivity: float | None = None,
        seed: int | None = None,
        mode: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """Pass tuples on at a set cost and selectivity, to model other boxes; merges `others` as a union does."""
        return self._box_of("universal", name, others, cost=cost, selectivity=selectivity, seed=seed, mode=mode)

    def bsort(
        self,
        on: str | None = None,
        *,
        order: OrderLike | None = None,
        slack: int = 0,
        by: Names = (),
        name: str | None = None,
    ) -> Stream:
        """Sort approximately, with a buffer of slack + 1 tuples per partition."""
        return self._box_of("bsort", name, order=self._order("bsort", name, order, on, slack, by))

    def aggregate(
        self,
        *select: str,
        on: str | None = None,
        order: OrderLike | None = None,
        slack: int = 0,
        by: Names = (),
        size: Size | None = None,
        advance: Size | Mapping[str, str] | When | None = None,
        align: str | None = None,
        timeout: str | Duration | None = None,
        approximate: bool = False,
        name: str | None = None,
    ) -> Stream:
        """Make one tuple per window. Give `on`, `slack` and `by`, or all three as `order`.

        With `approximate`, counts, sums and averages are estimates where load was shed, with their errors.
        """
        return self._box_of(
            "aggregate",
            name,
            select=select or None,
            order=self._order("aggregate", name, order, on, slack, by),
            size=size,
            advance=advance,
            align=align,
            timeout=timeout,
            approximate=approximate or None,
        )

    def join(
        self,
        other: Stream | Table,
        on: str,
        *,
        size: Size | None = None,
        order: OrderLike | Sequence[OrderLike] | None = None,
        select: Names | None = None,
        ordered: bool = True,
        name: str | None = None,
    ) -> Stream:
        """Pair tuples of this stream, ``left``, with those of another or of a static table, ``right``.

        `order` is one order for both streams or a list of two; a static table takes neither order nor size.
        """
        fields: dict[str, Any] = {"on": on, "size": size, "order": _orders(order), "select": select, "ordered": ordered}
        return self._box_of("join", name, (other,), **fields)

    def resample(
        self,
        other: Stream,
        *select: str,
        size: Size,
        order: OrderLike | Sequence[OrderLike],
        ordered: bool = True,
        name: str | None = None,
    ) -> Stream:
        """Make results, for each tuple of this stream, over the other's tuples within `size` of it."""
        keys: dict[str, Any] = {"select": select or None, "size": size, "order": _orders(order), "ordered": ordered}
        return self._box_of("resample", name, (other,), **keys)

    def box(self, op: str, *others: Stream | Table, name: str | None = None, **keys: Any) -> Stream:
        """Add a box with any operator, such as one of an installed package, with its keys as in a file."""
        return self._box_of(op, name, others, **keys)

    def output(
        self,
        name: str,
        *,
        latency: Points | None = None,
        loss: Points | None = None,
        value: Mapping[str, Any] | tuple[str, Points] | None = None,
        sink: str | Mapping[str, Any] | None = None,
        keep: int | str | Duration | None = None,
        roll: str | Duration | None = None,
    ) -> Stream:
        """Deliver this stream as an output, with its QoS graphs; returns the stream itself.

        `value` is ``{"field": NAME, "graph": POINTS}`` or ``(NAME, POINTS)``.
        """
        qos = _qos(latency, loss, value)
        self._builder._add_output(name, {"from": self.name, "qos": qos, "sink": sink, "keep": keep, "roll": roll})
        return self

    def _order(self, op: str, name: str | None, order: OrderLike | None, on: str | None, slack: int, by: Names) -> Any:
        """Return a box's order, which may be given as arguments of their own."""
        if order is None and on is None:
            raise NetworkError(
                f"box '{name or self._builder._fresh(op)}': on= is missing: the order field, such as on='time', or "
                "on='#' for the order of arrival; slack= and by= go with it, or all three as "
                "order={'on': ..., 'slack': ..., 'by': ...}"
            )
        if order is None:
            return {"on": on, "slack": slack, "by": by if isinstance(by, str) else list(by)}
        if on is not None or slack or by:
            raise NetworkError("order: give either order, or on with slack and by, not both")
        return _as_order(order)

    def _box_of(self, op: str, name: str | None, others: Sequence[Stream | Table] = (), **keys: Any) -> Stream:
        inputs: list[str | dict[str, Any]] = []
        for stream in (self, *others):
            if isinstance(stream, Table):
                inputs.append(stream.to_mapping())
            elif isinstance(stream, Stream):
                name_ = self._builder._own(stream).name
                inputs.append({"point": name_, "as": "stream"} if stream._once else name_)
            else:
                raise NetworkError(f"an input of a {op} is a stream or a table, not {stream!r}")
        if keys.get("ordered") is True:
            del keys["ordered"]
        return self._builder._add_box(name, {"op": op, "in": inputs, **keys})


def _qos(
    latency: Points | None, loss: Points | None, value: Mapping[str, Any] | tuple[str, Points] | None
) -> dict[str, Any]:
    if isinstance(value, tuple):
        value = dict(zip(("field", "graph"), value, strict=False))
    graphs = {"latency": latency, "loss": loss, "value": value}
    return {key: graph for key, graph in graphs.items() if graph is not None}


def _orders(order: OrderLike | Sequence[OrderLike] | None) -> Any:
    if order is None or isinstance(order, str | Mapping | Order):
        return None if order is None else _as_order(order)
    return [_as_order(one) for one in order]


def _as_order(order: OrderLike) -> Any:
    return {"on": order} if isinstance(order, str) else order
