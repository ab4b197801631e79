"""The network: a loop-free graph of sources, boxes and outputs. Frozen data that never runs by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headway.errors import NetworkError
from headway.network.keep import DEFAULT_KEEP, KEEP_ALL, Keep, Roll
from headway.network.qos import Graph, QoS
from headway.network.schema import Schema, type_name
from headway.network.secrets import masked
from headway.network.trust import OWN, Trust

if TYPE_CHECKING:
    from headway.boxes.operator import Operator

_NAME = re.compile(r"\w[\w-]*")
_GRAFTED = re.compile(rf"{_NAME.pattern}/{_NAME.pattern}")
_DEEPEST = 50
_Item = TypeVar("_Item", "Source", "Box", "Output", "Point", "View")


class FrozenMap(Mapping[str, Any]):
    """An immutable mapping, compared and hashed by value. It keeps its order, which does not affect equality."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Any]) -> None:
        """Wrap entries whose values are already frozen; otherwise use `freeze`."""
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({masked(self._entries)!r})"  # what is shown of a network holds no password


@dataclass(frozen=True, slots=True)
class Table:
    """A static table as a box's input: a path, or a name that the run resolves, or that of a stored data set."""

    ref: str
    data: FrozenMap | None = field(default=None, repr=False)
    """The data set's description, such as ``{sql: URL, table: NAME}``; that of a point is with the point."""

    def to_mapping(self) -> dict[str, Any]:
        """Return the table as it appears in a network file."""
        return {"table": self.ref if self.data is None else thaw(self.data)}


@dataclass(frozen=True, slots=True)
class Streamed:
    """A point's stored data set as a box's input, streamed in once; in a file ``{point: NAME, as: stream}``."""

    point: str


Input = str | Table | Streamed
"""An input of a box: an arc, a point or a view by name, a static table, or a stored data set that is streamed in."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream that enters the network. `connector` says where it comes from, unless the run does.

    With `push`, callers give it its tuples while the network runs, and there is no connector.
    """

    name: str
    schema: Schema
    connector: FrozenMap | str | None = None
    push: bool = False

    def to_mapping(self) -> dict[str, Any]:
        """Return the source as it appears in a network file."""
        schema = {field.name: type_name(field.type) for field in self.schema}
        return _given({"schema": schema, "source": thaw(self.connector), "push": self.push or None})


@dataclass(frozen=True, slots=True)
class Box:
    """One operator with its parameters. Its inputs are arcs (``name`` or ``name.port``) or static tables.

    As users write it, an input may also name a point or a view; `headway.expansion.expand` replaces these.
    """

    name: str
    inputs: tuple[Input, ...]
    spec: Operator

    def to_mapping(self) -> dict[str, Any]:
        """Return the box as it appears in a network file."""
        inputs = [_written_input(item) for item in self.inputs]
        return {"op": self.spec.op, "in": inputs[0] if len(inputs) == 1 else inputs, **self.spec.to_mapping()}


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that leaves the network, with its QoS.

    `keep` says how much of what was delivered stays readable, and `roll` when a file sink begins its next file. `view`
    marks the output that `headway.expansion.expand` makes of a view: no application has asked for its results yet.
    """

    name: str
    input: str
    qos: QoS = QoS()  # noqa: RUF009 - frozen
    sink: FrozenMap | str | None = None
    keep: Keep | None = None
    """How much of its results stays; None: all."""
    roll: Roll | None = None
    """When a file is complete and the next one begins; None: when the run ends."""
    view: bool = False

    def to_mapping(self) -> dict[str, Any]:
        """Return the output as it appears in a network file."""
        return _given(
            {
                "from": self.input,
                "qos": _written_qos(self.qos),
                "sink": thaw(self.sink),
                "keep": self.keep and self.keep.to_mapping(),
                "roll": self.roll and self.roll.to_mapping(),
            }
        )


@dataclass(frozen=True, slots=True)
class Point:
    """A connection point: what passes the arc `on` is kept as history; or, with `data`, a stored data set.

    `time` is the field that `keep` and `since` mean, by default the moment of arrival; `key` the field by which history
    is stored and found, by default the order of arrival. A stored data set, a *dangling point*, has nothing upstream.
    """

    name: str
    on: str | None = None
    keep: Keep = DEFAULT_KEEP
    time: str | None = None
    key: str | None = None
    data: FrozenMap | str | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Return the point as it appears in a network file."""
        usual = KEEP_ALL if self.data is not None else DEFAULT_KEEP
        kept = None if self.keep == usual else self.keep.to_mapping()
        return _given({"on": self.on, "data": thaw(self.data), "keep": kept, "time": self.time, "key": self.key})


@dataclass(frozen=True, slots=True)
class View:
    """A path that no application reads yet: its results are kept up to date, as its QoS says they matter."""

    name: str
    input: str
    keep: Keep = DEFAULT_KEEP
    qos: QoS = QoS()  # noqa: RUF009 - frozen

    def to_mapping(self) -> dict[str, Any]:
        """Return the view as it appears in a network file."""
        kept = None if self.keep == DEFAULT_KEEP else self.keep.to_mapping()
        return _given({"from": self.input, "keep": kept, "qos": _written_qos(self.qos)})


@dataclass(frozen=True, slots=True)
class Network:
    """A whole network. Sources take turns delivering tuples, in their order here.

    A Network may still be invalid as a whole (loops, unknown inputs, types); see `headway.checking.check`. `folder` is
    the directory of its file, for relative paths, and `trust` limits what it may name; neither affects equality.
    Engines run networks without views, whose inputs are arcs and static tables: see `headway.expansion.expand`.
    """

    name: str
    sources: tuple[Source, ...]
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]
    schedule: FrozenMap | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)
    trust: Trust = field(default=OWN, compare=False, repr=False)
    points: tuple[Point, ...] = ()
    views: tuple[View, ...] = ()

    def source(self, name: str) -> Source:
        """Return a source by name, or raise a KeyError."""
        return _by_name(self.sources, name)

    def box(self, name: str) -> Box:
        """Return a box by name, or raise a KeyError."""
        return _by_name(self.boxes, name)

    def output(self, name: str) -> Output:
        """Return an output by name, or raise a KeyError."""
        return _by_name(self.outputs, name)

    def point(self, name: str) -> Point:
        """Return a point by name, or raise a KeyError."""
        return _by_name(self.points, name)

    def view(self, name: str) -> View:
        """Return a view by name, or raise a KeyError."""
        return _by_name(self.views, name)

    def stored(self, name: str) -> Point | None:
        """Return the dangling point of a name, if there is one."""
        return next((point for point in self.points if point.name == name and point.data is not None), None)

    def streamed(self, source: str) -> Point | None:
        """Return the dangling point whose data a source of the expanded network streams in, if it is such a source."""
        return self.stored(source.rpartition("/")[2])

    def to_mapping(self) -> dict[str, Any]:
        """Return the network as it appears in a file; `headway.files.load` of it gives an equal network."""
        if any(output.view for output in self.outputs) or any(point.data is not None for point in self.points):
            written = self._written()
            if written != self:
                return written.to_mapping()
        mapping: dict[str, Any] = {
            "network": self.name,
            "sources": {source.name: source.to_mapping() for source in self.sources},
            "points": {point.name: point.to_mapping() for point in self.points},
            "boxes": {box.name: box.to_mapping() for box in self.boxes},
            "views": {view.name: view.to_mapping() for view in self.views},
            "outputs": {output.name: output.to_mapping() for output in self.outputs},
        }
        kept = self.points or self.views
        mapping = {key: part for key, part in mapping.items() if part or key not in ("points", "views")}
        if kept and not self.outputs:
            del mapping["outputs"]
        if self.schedule is not None:
            # What only Python can hold, such as a custom policy object, is represented by its type's name.
            told = {key: type(one).__name__ if is_object(one) else one for key, one in self.schedule.items()}
            mapping["schedule"] = thaw(told)
        return mapping

    def _written(self) -> Network:
        """Return an expanded network as a file can hold it: with its views, and with stored data where it is read."""
        keeps = {point.name: point.keep for point in self.points}
        views = [View(one.name, one.input, keeps[one.name], one.qos) for one in self.outputs if one.view]
        hidden = {view.name for view in views}
        points = {source.name: self.streamed(source.name) for source in self.sources}
        streamed = {name: point.name for name, point in points.items() if point is not None}

        def written(box: Box) -> Box:
            inputs = (
                Streamed(streamed[item]) if isinstance(item, str) and item in streamed else item for item in box.inputs
            )
            return replace(box, inputs=tuple(inputs))

        return replace(
            self,
            sources=tuple(source for source in self.sources if source.name not in streamed),
            boxes=tuple(map(written, self.boxes)),
            outputs=tuple(output for output in self.outputs if not output.view),
            points=tuple(point for point in self.points if point.name not in hidden),
            views=(*self.views, *views),
        )


def stream_name(box: str, point: str) -> str:
    """Return the name of the source that streams a point's stored data into a box: a fragment has one of its own."""
    fragment, slash, _ = box.rpartition("/")
    return f"{fragment}{slash}{point}"


def arc_name(box: str, port: str) -> str:
    """Return the canonical name of an arc: ``box`` for the plain port, else ``box.port``."""
    return f"{box}.{port}" if port else box


def check_name(name: object, kind: str, grafted: bool = False) -> str:
    """Return a valid name, or raise a NetworkError; with `grafted`, also that of a fragment's part: ``busiest/box``."""
    if not isinstance(name, str):
        raise NetworkError(f"a {kind}'s name is text, not {name!r}; put it in quotes")
    if not name:
        raise NetworkError(f"a {kind} has an empty name")
    if not _NAME.fullmatch(name) and not (grafted and _GRAFTED.fullmatch(name)):
        raise NetworkError(f"{kind} '{name}': a name has letters, digits, '_' and '-' only, no dots and no spaces")
    return name


def freeze(value: object, where: str = "", depth: int = 0) -> Any:
    """Convert plain data (text, numbers, lists, mappings) to tuples and FrozenMaps; reject everything else."""
    if depth > _DEEPEST:
        raise NetworkError(f"{where}: nested more than {_DEEPEST} levels deep")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        # YAML parses the key `null` as None.
        return FrozenMap(
            {"null" if key is None else str(key): freeze(inner, where, depth + 1) for key, inner in value.items()}
        )
    if isinstance(value, list | tuple):
        return tuple(freeze(inner, where, depth + 1) for inner in value)
    raise NetworkError(
        f"{where}: {type(value).__name__} values cannot be in a network; use text, numbers, lists, mappings"
    )


def is_object(value: object) -> bool:
    """Whether a value is anything but plain data: text, a number, None, a path, a list or a mapping."""
    return value is not None and not isinstance(value, str | bool | int | float | Path | Mapping | list | tuple)


def thaw(value: Any) -> Any:
    """Convert frozen data to plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: thaw(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [thaw(inner) for inner in value]
    return value


def _written_input(item: Input) -> Any:
    if isinstance(item, Table):
        return item.to_mapping()
    return {"point": item.point, "as": "stream"} if isinstance(item, Streamed) else item


def _written_qos(qos: QoS) -> dict[str, Any]:
    latency, loss, value = qos.latency, qos.loss, qos.value
    graphs = {
        "latency": latency and _points(latency),
        "loss": loss and _points(loss)[::-1],
        "value": value and {"field": value.field, "graph": _points(value.graph)},
    }
    return _given(graphs)


def _given(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping without what is None or empty."""
    return {key: value for key, value in mapping.items() if value not in (None, {})}


def _points(graph: Graph) -> list[list[float]]:
    return [[_short(x), _short(y)] for x, y in graph.points]


def _short(number: float) -> float:
    """Write integral floats without a fraction."""
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def _by_name(items: Sequence[_Item], name: str) -> _Item:
    for item in items:
        if item.name == name:
            return item
    raise KeyError(name)
