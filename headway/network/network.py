"""The network: a loop-free graph of sources, boxes and outputs. Frozen data that never runs by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headway.errors import NetworkError
from headway.network.keeping import Keep, Roll
from headway.network.qos import Graph, QoS
from headway.network.schema import Schema, type_name
from headway.network.secrets import masked
from headway.network.trust import OWN, Trust

if TYPE_CHECKING:
    from headway.boxes.operator import Operator

_NAME = re.compile(r"\w[\w-]*")
_DEEPEST = 50
_Item = TypeVar("_Item", "Source", "Box", "Output")


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
    """The data set's description, such as ``{sql: URL, table: NAME}``."""

    def to_mapping(self) -> dict[str, Any]:
        """Return the table as it appears in a network file."""
        return {"table": self.ref if self.data is None else thaw(self.data)}


@dataclass(frozen=True, slots=True)
class Source:
    """A stream that enters the network. `connector` says where it comes from, unless the run does."""

    name: str
    schema: Schema
    connector: FrozenMap | str | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Return the source as it appears in a network file."""
        schema = {field.name: type_name(field.type) for field in self.schema}
        return _given({"schema": schema, "source": thaw(self.connector)})


@dataclass(frozen=True, slots=True)
class Box:
    """One operator with its parameters. Its inputs are arcs (``name`` or ``name.port``) or static tables."""

    name: str
    inputs: tuple[str | Table, ...]
    spec: Operator

    def to_mapping(self) -> dict[str, Any]:
        """Return the box as it appears in a network file."""
        inputs = [item.to_mapping() if isinstance(item, Table) else item for item in self.inputs]
        return {"op": self.spec.op, "in": inputs[0] if len(inputs) == 1 else inputs, **self.spec.to_mapping()}


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that leaves the network, with its QoS."""

    name: str
    input: str
    qos: QoS = QoS()  # noqa: RUF009 - frozen
    sink: FrozenMap | str | None = None
    keep: Keep | None = None
    """How much of its results stays; None: all."""
    roll: Roll | None = None
    """When a file is complete and the next one begins; None: when the run ends."""

    def to_mapping(self) -> dict[str, Any]:
        """Return the output as it appears in a network file."""
        latency, loss, value = self.qos.latency, self.qos.loss, self.qos.value
        qos = {
            "latency": latency and _points(latency),
            "loss": loss and _points(loss)[::-1],
            "value": value and {"field": value.field, "graph": _points(value.graph)},
        }
        mapping = {"from": self.input, "qos": _given(qos), "sink": thaw(self.sink)}
        return _given(mapping)


@dataclass(frozen=True, slots=True)
class Network:
    """A whole network. Sources take turns delivering tuples, in their order here.

    A Network may still be invalid as a whole (loops, unknown inputs, types); see `headway.checking.check`. `folder` is
    the directory of its file, for relative paths, and `trust` limits what it may name; neither affects equality.
    """

    name: str
    sources: tuple[Source, ...]
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]
    schedule: FrozenMap | None = None
    folder: Path | None = field(default=None, compare=False, repr=False)
    trust: Trust = field(default=OWN, compare=False, repr=False)

    def source(self, name: str) -> Source:
        """Return a source by name, or raise a KeyError."""
        return _by_name(self.sources, name)

    def box(self, name: str) -> Box:
        """Return a box by name, or raise a KeyError."""
        return _by_name(self.boxes, name)

    def output(self, name: str) -> Output:
        """Return an output by name, or raise a KeyError."""
        return _by_name(self.outputs, name)

    def to_mapping(self) -> dict[str, Any]:
        """Return the network as it appears in a file; `headway.files.load` of it gives an equal network."""
        mapping: dict[str, Any] = {
            "network": self.name,
            "sources": {source.name: source.to_mapping() for source in self.sources},
            "boxes": {box.name: box.to_mapping() for box in self.boxes},
            "outputs": {output.name: output.to_mapping() for output in self.outputs},
        }
        if self.schedule is not None:
            # What only Python can hold, such as a custom policy object, is represented by its type's name.
            told = {key: type(one).__name__ if is_object(one) else one for key, one in self.schedule.items()}
            mapping["schedule"] = thaw(told)
        return mapping


def arc_name(box: str, port: str) -> str:
    """Return the canonical name of an arc: ``box`` for the plain port, else ``box.port``."""
    return f"{box}.{port}" if port else box


def check_name(name: object, kind: str) -> str:
    """Return a valid name, or raise a NetworkError."""
    if not isinstance(name, str):
        raise NetworkError(f"a {kind}'s name is text, not {name!r}; put it in quotes")
    if not name:
        raise NetworkError(f"a {kind} has an empty name")
    if not _NAME.fullmatch(name):
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
