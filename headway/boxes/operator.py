"""What an operator declares: its keys in the file, its results' schemas, and properties that others need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from headway.boxes.foreign import check_class, check_declared, check_schemas
from headway.boxes.keys import IN, OP, Keyed, check_count, check_keys, inside
from headway.errors import FOREIGN, NetworkError, SchemaError, blamed, blaming, unknown
from headway.expressions.safety import risk
from headway.network.schema import Field, Schema

if TYPE_CHECKING:
    from headway.boxes.costs import Cost
    from headway.boxes.order import Order
    from headway.durations import Duration
    from headway.expressions import Expression, Functions


class Projection(NamedTuple):
    """A box that turns each tuple into at most one result, by expressions alone.

    A tuple goes to the port of the first predicate that is true, else to the last port; without predicates, to the only
    port. There it becomes the `results`, by name, or stays unchanged.
    """

    predicates: tuple[Expression, ...] = ()
    results: tuple[tuple[str, Expression], ...] | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions that it evaluates."""
        return (*self.predicates, *(expression for _, expression in self.results or ()))


class Origin(NamedTuple):
    """Where a field of a box's results comes from, the same for all its inputs.

    `value` is the index of an input field, or an expression over the input's fields, whose result is called `name`.
    `conditions` are predicates, each with whether it has to be true or not true for a tuple to get there.
    """

    value: int | Expression
    name: str = ""
    conditions: tuple[tuple[Expression, bool], ...] = ()


class Modelled(NamedTuple):
    """The cost that a box declares: seconds of work per tuple, and the seed from which they are drawn."""

    cost: Cost
    seed: int = 0


class Operator(Keyed, ABC):
    """The specification of an operator: frozen data that is read from a file and knows its results' schemas.

    It also declares properties: engines, load shedding, static analysis and summaries ask for these and never for a
    class. The defaults are safe for any operator.
    """

    op: ClassVar[str]
    doc: ClassVar[str]
    inputs: ClassVar[tuple[int, int | None]] = (1, 1)
    """The least and the greatest number of inputs; None: no limit."""
    takes_tables: ClassVar[bool] = False
    """Whether an input may be a static table."""
    projects: ClassVar[bool] = False
    """Whether it is a `projection`, possibly of several inputs merged."""
    passes: ClassVar[bool] = False
    """Whether every result is a tuple of an input, with its values unchanged."""
    traceable: ClassVar[bool] = False
    """Whether a result has the arrival number of the one tuple that it was made from."""
    for_strangers: ClassVar[bool] = False
    """Whether files from strangers may use it: none of its keys names a file, a host or code (docs/safety.md)."""

    @property
    def stateful(self) -> bool:
        """Whether it needs state, or its input in order; otherwise any part of a stream can be run by itself."""
        return not self.projects

    @property
    def tuplewise(self) -> bool:
        """Whether it turns each tuple of its one stream into results independently of the others."""
        return self.projects and self.inputs == (1, 1)

    @property
    def fusable(self) -> bool:
        """Whether its first port can be a link of a chain: a projection of one stream with one predicate at most."""
        return self.projects and self.inputs == (1, 1) and self.ports[0] == ""

    @property
    def ordered(self) -> bool:
        """Whether it takes several inputs in their arrival order, and not as they come."""
        return True

    @property
    def orderings(self) -> tuple[Order, ...]:
        """The orders that it expects of its inputs; where there are any, tuples wait in it for later ones."""
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

        Empty: it cannot be spread. Where it can be, its kernel gives `ranks`.
        """
        return ()

    @property
    def selectivity(self) -> float | None:
        """Tuples out per tuple in; None: depends on the data."""
        return None

    @property
    def modelled(self) -> Modelled | None:
        """The cost of a tuple, if the box itself declares it."""
        return None

    @property
    def ports(self) -> tuple[str, ...]:
        """The names of the outputs; the plain output is ``""``."""
        return ("",)

    def projection(self, schema: Schema, functions: Functions | None) -> Projection:
        """Return what it computes over its inputs' schema; called only if it `projects`."""
        return Projection()

    def may_fail(self, schema: Schema, functions: Functions | None) -> bool:
        """Return whether a tuple may become a dead letter in it; a dead letter shows all fields of the tuple."""
        if not self.projects:
            return True
        return any(risk(one, schema) is not None for one in self.projection(schema, functions).expressions)

    def lookup(self, key: str, schema: Schema, ports: Collection[str]) -> Any:
        """Return which values of a field are enough for the results on these ports: one, a pair of inclusive bounds.

        None means all. It must see the same tuples, as far as they have these values, in the same order.
        """
        return None

    def origin(self, port: str, slot: int, schema: Schema, functions: Functions | None) -> Origin | None:
        """Return where a field of a port's results comes from; None: from several tuples, so it cannot be inverted.

        `schema` is that of the inputs. Semantic shedding follows fields upstream with it.
        """
        if not self.projects:
            return Origin(slot) if self.passes else None
        predicates, results = self.projection(schema, functions)
        taken = self.ports.index(port)
        conditions = tuple((one, at == taken) for at, one in enumerate(predicates[: taken + 1]))
        if results is None:
            return Origin(slot, conditions=conditions)
        name, expression = results[slot]
        return Origin(expression if expression.field is None else expression.field, name, conditions)

    @classmethod
    def parse(cls, box: str, mapping: Mapping[str, Any]) -> Self:
        """Read the specification from a box's mapping, with or without ``op`` and ``in``; errors name box and key."""
        with inside(f"box '{box}'"):
            check_keys(mapping, (OP, IN, *cls.keys), given=("op", "in"))
            given = {key: value for key, value in mapping.items() if value is not None}
            if is_foreign(cls):
                return _read_foreign(cls, given)
            cls.check_settings(given)
            return cls.read(given)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> None:
        """Raise a NetworkError for keys of a box's mapping, without nulls, that do not go together."""

    def infer(self, box: str, inputs: Sequence[Schema], functions: Functions | None = None) -> tuple[Schema, ...]:
        """Return the schema of every port, or raise a NetworkError that starts with ``box 'NAME': ``."""
        with inside(f"box '{box}'"):
            check_count(self.op, len(inputs), self.inputs)
            return _examined(self, inputs, functions) if is_foreign(type(self)) else self.schemas(inputs, functions)

    @abstractmethod
    def schemas(self, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
        """Return the schema of every port; errors name the key."""


def is_foreign(kind: type[Operator]) -> bool:
    """Return whether an operator is not Headway's own: what such an operator does wrong is an error that names it."""
    return REGISTRY.get(kind.op) is not kind


S = TypeVar("S", bound=Operator)


def _read_foreign(kind: type[S], given: Mapping[str, Any]) -> S:
    """Return a foreign operator's specification, once all that it declares has been looked at."""
    with blaming(f"op '{kind.op}': reading its keys", NetworkError):
        kind.check_settings(given)
        spec = kind.read(given)
    with blaming(f"op '{kind.op}': its properties", NetworkError), inside(f"op '{kind.op}'"):
        check_declared(spec)
    return spec


def _examined(spec: Operator, inputs: Sequence[Schema], functions: Functions | None) -> tuple[Schema, ...]:
    """Return a foreign operator's schemas, once they and what it says of its input have been looked at."""
    op = spec.op
    with blaming(f"op '{op}': schemas", NetworkError):
        found = spec.schemas(inputs, functions)
    with inside(f"op '{op}'"):
        check_schemas(found, spec.ports)
    with blaming(f"op '{op}': projection", NetworkError):
        if spec.projects:
            _check_is(spec.projection(inputs[0], functions), Projection, op, "projection")
    with blaming(f"op '{op}': may_fail", NetworkError):
        _check_is(spec.may_fail(inputs[0], functions), bool, op, "may_fail")
    with blaming(f"op '{op}': modelled", NetworkError):
        if spec.modelled is not None:
            _check_is(spec.modelled, Modelled, op, "modelled")
    return tuple(found)


def _check_is(found: object, expected: type[object], op: str, what: str) -> None:
    if not isinstance(found, expected):
        raise NetworkError(f"op '{op}': {what} must be a {expected.__name__}, not {found!r}")


def result_schema(first: Sequence[Field], results: Sequence[tuple[str, Expression]]) -> Schema:
    """Return the schema of named results after other fields; raises a SchemaError for a duplicate name."""
    try:
        return Schema((*first, *(Field(name, expression.type) for name, expression in results)))
    except SchemaError as error:
        raise SchemaError(f"the result's {error}; name the results with 'as'") from error


REGISTRY: dict[str, type[Operator]] = {}
"""Headway's own operators by name, in the order of the documentation."""
GROUP = "headway.operators"
"""The entry points through which installed packages provide operators, by the operator's name."""

O = TypeVar("O", bound=type[Operator])  # noqa: E741


def register(spec: O) -> O:
    """Register one of Headway's own operators (a class decorator)."""
    spec.for_strangers = True
    REGISTRY[spec.op] = spec
    return spec


def operators() -> dict[str, type[Operator]]:
    """Return all operators by name: Headway's own, then those of installed packages."""
    return {op: operator_of(op) for op in _names()}


def operator_of(op: str) -> type[Operator]:
    """Return an operator by name. An installed package's is imported on first use."""
    if op in REGISTRY:
        return REGISTRY[op]
    try:
        found = load_entry(GROUP, op)
    except LookupError:
        raise NetworkError(unknown("op", op, _names())) from None
    if not isinstance(found, type) or not issubclass(found, Operator) or getattr(found, "op", None) != op:
        raise NetworkError(
            f"op '{op}': the entry point in the group {GROUP} is not an Operator with this name: {found!r}"
        )
    _check_once(op, found)
    return found


@cache
def _check_once(op: str, found: type[Operator]) -> None:
    check_class(op, found)


def _names() -> list[str]:
    return list(dict.fromkeys([*REGISTRY, *sorted(one.name for one in entry_points(group=GROUP))]))


@cache
def load_entry(group: str, op: str) -> object:
    """Return what an installed package provides for an operator; raises LookupError if none does."""
    entries = entry_points(group=group, name=op)
    if not entries:
        raise LookupError(op)
    if len({entry.value for entry in entries}) > 1:
        raise NetworkError(f"op '{op}': several installed packages give it: {', '.join(map(_package, entries))}")
    entry = next(iter(entries))
    try:
        return entry.load()
    except FOREIGN as error:
        raise blamed(f"op '{op}': {_package(entry)} cannot be loaded", error, NetworkError) from error


def _package(entry: EntryPoint) -> str:
    name = "a package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    return f"'{entry.value}' of {name}"
