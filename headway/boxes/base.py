"""What every operator's specification shares: its keys in the file, how they are read, and the registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from headway.errors import NetworkError, SchemaError, choices, unknown
from headway.schema import Field, Schema

if TYPE_CHECKING:
    from headway.boxes.costs import Cost
    from headway.boxes.durations import Duration
    from headway.boxes.order import Order
    from headway.expressions import Expression, Functions

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the network file: what kind of value it takes, and one line about it.

    `kind` names a fragment of the JSON Schema (see `headway.jsonschema`).
    """

    name: str
    kind: str
    doc: str
    required: bool = False


OP = Key("op", "op", "the operator", required=True)
IN = Key(
    "in",
    "inputs",
    "the input, or a list of inputs: names of sources or boxes, `box.port`, or {table: path}",
    required=True,
)


class Settings:
    """A box's mapping, read key by key; an error names the key. NULL is the same as leaving the key out."""

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        """Wrap a mapping whose keys were checked."""
        self.mapping = mapping

    def __contains__(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self.mapping.get(key) is not None

    def need(self, key: str, read: Callable[[object], T]) -> T:
        """Return a required key's value."""
        if key not in self:
            raise NetworkError(f"{key}: is missing")
        with inside(key):
            return read(self.mapping[key])

    def get(self, key: str, read: Callable[[object], T], default: D) -> T | D:
        """Return an optional key's value."""
        return self.need(key, read) if key in self else default

    @property
    def tables(self) -> tuple[bool, ...]:
        """For each input, whether it is a static table."""
        inputs = self.mapping.get("in")
        listed = inputs if isinstance(inputs, list | tuple) else [inputs]
        return tuple(isinstance(item, Mapping) for item in listed)


class Fused(NamedTuple):
    """A box as a step of a chain: a predicate that tuples must fulfil, or else the fields that each is turned into."""

    predicate: Expression | None = None
    fields: tuple[Expression, ...] = ()


class Origin(NamedTuple):
    """Where a field of a box's results comes from, the same for all its inputs.

    `value` is a field of the input by its place, or an expression over the input's fields, whose result is called
    `name`. Only tuples get there for which each of the `conditions` is true, or not true.
    """

    value: int | Expression
    name: str = ""
    conditions: tuple[tuple[Expression, bool], ...] = ()


class Modelled(NamedTuple):
    """What a box says of its own cost: seconds of work per tuple, and the seed from which they are drawn."""

    cost: Cost
    seed: int = 0


class Operator(ABC):
    """The specification of an operator: frozen data that is read from a file and knows its result's schemas.

    It also declares what everybody else must know of the operator: engines, load shedding, static analysis and
    summaries ask for these properties and never for a class. The defaults are safe for any operator.
    """

    op: ClassVar[str]
    doc: ClassVar[str]
    keys: ClassVar[tuple[Key, ...]]
    inputs: ClassVar[tuple[int, int | None]] = (1, 1)
    """The least and the greatest number of inputs."""
    takes_tables: ClassVar[bool] = False
    """Whether an input may be a static table."""
    passes: ClassVar[bool] = False
    """Whether every result is a tuple of an input, with its values unchanged."""
    traceable: ClassVar[bool] = False
    """Whether a result has the arrival number of the one tuple that it was made of."""

    @property
    def stateful(self) -> bool:
        """Whether it needs state, or its input in order; otherwise any part of a stream can be run by itself."""
        return True

    @property
    def tuplewise(self) -> bool:
        """Whether it turns each tuple of its one stream into results by itself, whatever the others are."""
        return False

    @property
    def ordered(self) -> bool:
        """Whether it takes several inputs in their arrival order, and not as they come."""
        return True

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The orders that it expects of its inputs."""
        return ()

    @property
    def timeout(self) -> Duration | None:
        """How long it waits by the clock; None: it needs no clock."""
        return None

    @property
    def approximate(self) -> bool:
        """Whether its results are estimates that take into account what was dropped."""
        return False

    @property
    def partitions(self) -> tuple[str, ...]:
        """The fields by whose values its work can be spread: tuples that differ in them never meet.

        Empty: it cannot be spread.
        """
        return ()

    @property
    def selectivity(self) -> float | None:
        """How many tuples it makes of each; None: that depends on the data."""
        return None

    @property
    def modelled(self) -> Modelled | None:
        """What a tuple costs, where the box itself says so."""
        return None

    @property
    def fusable(self) -> bool:
        """Whether its first output can be a step of a chain; see `fused`. It has one input then."""
        return False

    def fused(self, schema: Schema, functions: Functions | None) -> Fused:
        """Return the first output as a step of a chain; asked only where it is fusable."""
        raise NotImplementedError(self.op)

    def origin(self, port: str, slot: int, schema: Schema, functions: Functions | None) -> Origin | None:
        """Return where a field of a port's results comes from; None: from several tuples, so nothing can be inverted.

        `schema` is the inputs'. Load shedding by values follows fields upstream with it.
        """
        return Origin(slot) if self.passes else None

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the outputs; the plain output is ``""``."""
        return ("",)

    @classmethod
    def parse(cls, box: str, mapping: Mapping[str, Any]) -> Self:
        """Read the specification from a box's mapping (``op`` and ``in`` may stand in it); errors name box and key."""
        with inside(f"box '{box}'"):
            check_keys(mapping, (OP, IN, *cls.keys), given=("op", "in"))
            return cls.read(Settings(mapping))

    @classmethod
    @abstractmethod
    def read(cls, settings: Settings) -> Self:
        """Read the specification from checked settings."""

    @abstractmethod
    def to_mapping(self) -> dict[str, Any]:
        """Return the file's keys, without ``op`` and ``in``; defaults are left out."""

    def infer(self, box: str, inputs: Sequence[Schema], functions: Functions | None = None) -> tuple[Schema, ...]:
        """Return the schema of every port, or raise a NetworkError that starts with ``box 'NAME': ``."""
        with inside(f"box '{box}'"):
            check_count(self.op, len(inputs), self.inputs)
            return self.schemas(inputs, functions)

    @abstractmethod
    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema of every port; errors name the key."""


REGISTRY: dict[str, type[Operator]] = {}
"""The operators by name, in the order of the documentation."""

O = TypeVar("O", bound=type[Operator])  # noqa: E741


def register(spec: O) -> O:
    """Enter an operator's specification into the registry (a class decorator)."""
    REGISTRY[spec.op] = spec
    return spec


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Put ``where: `` before the message of a NetworkError from the body; its class stays."""
    try:
        yield
    except NetworkError as error:
        raise type(error)(f"{where}: {error}") from error


def check_count(op: str, count: int, bounds: tuple[int, int | None]) -> None:
    """Raise a NetworkError when an operator has too few or too many inputs."""
    least, most = bounds
    if count < least or (most is not None and count > most):
        need = f"{least} or more inputs" if most is None else f"{least} input{'s' if least > 1 else ''}"
        raise NetworkError(f"in: {op} takes {need}, not {count}")


def check_keys(mapping: Mapping[Any, Any], keys: Sequence[Key], given: Sequence[str] = ()) -> None:
    """Raise a NetworkError for an unknown key, or for a required one that is missing and not in `given`."""
    names = [key.name for key in keys]
    for name in mapping:
        if name not in names:
            raise NetworkError(unknown("key", str(name), names))
    for key in keys:
        if key.required and key.name not in given and mapping.get(key.name) is None:
            raise NetworkError(f"{key.name}: is missing ({key.doc}); keys: {choices(names)}")


def parse_text(value: object) -> str:
    """Read text that is not empty. Numbers and truth values are taken as the text they are in SQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise NetworkError(f"must be text, not {value!r}")
    if not value.strip():
        raise NetworkError("is empty")
    return value


def parse_flag(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise NetworkError(f"must be true or false, not {value!r}")
    return value


def parse_select(value: object) -> str:
    """Read a select list: text, or a list of texts, which is the same joined by commas."""
    if isinstance(value, list | tuple):
        if not value:
            raise NetworkError("is empty")
        return ", ".join(parse_text(part) for part in value)
    return parse_text(value)


def parse_names(value: object) -> tuple[str, ...]:
    """Read a list of field names, or one name."""
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise NetworkError(f"must be a list of field names, not {value!r}")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name:
            raise NetworkError(f"a field name is text, not {name!r}")
        if name.lower() in seen:
            raise NetworkError(f"field '{name}' is named twice")
        seen.add(name.lower())
    return tuple(names)


def result_schema(fields: Sequence[Field]) -> Schema:
    """Return the schema of a result, or a SchemaError that says how to mend a doubled name."""
    try:
        return Schema(tuple(fields))
    except SchemaError as error:
        raise SchemaError(f"the result's {error}; name the results with 'as'") from error
