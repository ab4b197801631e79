"""Check a whole network: its shape, and the schema of every arc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headway.boxes.keys import inside
from headway.boxes.operator import operators
from headway.errors import NetworkError, choices
from headway.expansion import expand
from headway.expressions.compiler import noting
from headway.functions import functions as registered
from headway.network import Network, Table, arc_name
from headway.network.qos import doubts
from headway.network.schema import Schema, type_name
from headway.structure import Structure, check_structure, upstream
from headway.tables import static_schema

if TYPE_CHECKING:
    from headway.expressions import Functions


@dataclass(frozen=True)
class CheckedNetwork(Structure):
    """A well-formed network with its inferred schemas. Arcs have their canonical names."""

    arcs: Mapping[str, Schema]
    """The schema of every arc: a source's name, a box's name, or ``box.port``."""
    network: Network
    """The plain network that engines run: points and views are expanded."""
    tables: Mapping[str, Schema]
    """The schema of every static table, by its ref."""
    functions: Functions
    """The functions that its expressions were checked with; compile with the same."""

    def input_schemas(self, box: str) -> tuple[Schema, ...]:
        """Return the schemas of a box's inputs."""
        return tuple(self.tables[item.ref] if isinstance(item, Table) else self.arcs[item] for item in self.inputs[box])

    def output_schema(self, output: str) -> Schema:
        """Return the schema of an output."""
        return self.arcs[self.outputs[output]]


def check(
    network: Network,
    functions: Functions | None = None,
    tables: Mapping[str, Any] | None = None,
    *,
    contact: bool = False,
) -> CheckedNetwork:
    """Return the network with the schema of every arc, or raise a NetworkError that names box and key.

    `functions` are the built-in functions and the user's (default: all that are registered).
    `tables` gives static tables, or their schemas, by name; others are read from their files. No other host is
    contacted for them unless the network's trust names it, or `contact` is set because a run begins.
    """
    trust = network.trust if contact else network.trust.contacting_nobody()
    network = expand(network, tables, trust)
    structure = check_structure(network)
    functions = registered() if functions is None else functions
    arcs: dict[str, Schema] = {source.name: source.schema for source in network.sources}
    statics: dict[str, Schema] = {}
    notes: list[str] = []
    for box in structure.order:
        schemas: list[Schema] = []
        for item in structure.inputs[box.name]:
            if isinstance(item, Table):
                if item.ref not in statics:
                    with inside(f"box '{box.name}': in"):
                        statics[item.ref] = static_schema(network, item, tables, trust)
                schemas.append(statics[item.ref])
            else:
                schemas.append(arcs[item])
        with noting() as noted:
            found = box.spec.infer(box.name, schemas, functions)
        notes += [f"box '{box.name}': {one}" for one in noted]
        arcs.update({arc_name(box.name, port): schema for port, schema in zip(box.spec.ports, found, strict=True)})
    _check_approximate(structure)
    for output in network.outputs:
        notes += [f"output '{output.name}': {doubt}" for doubt in doubts(output.qos)]
        value = output.qos.value
        if value is not None:
            with inside(f"output '{output.name}': qos: value: field"):
                check_numeric(arcs[structure.outputs[output.name]], value.field)
    _check_points(network, structure, {**arcs, **statics})
    found_out = {"arcs": {arc: arcs[arc] for arc in structure.arcs}, "warnings": (*structure.warnings, *notes)}
    return CheckedNetwork(**{**vars(structure), **found_out}, network=network, tables=statics, functions=functions)


def _check_points(network: Network, structure: Structure, schemas: Mapping[str, Schema]) -> None:
    """Raise a NetworkError if a point's fields are missing or of the wrong kind; `schemas` has arcs and static tables.

    Stored data that nobody reads yet is looked at when somebody does.
    """
    for point in network.points:
        schema = schemas.get(structure.points.get(point.name, point.name))
        if schema is None:
            continue
        if point.time is not None:
            with inside(f"point '{point.name}': time"):
                field = schema.field(point.time)
                if not (is_number(field.type) or pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)):
                    raise NetworkError(
                        f"field '{field.name}' is a {type_name(field.type)}; how old a tuple is needs a number, a "
                        "timestamp or a date"
                    )
        if point.key is not None:
            with inside(f"point '{point.name}': key"):
                field = schema.field(point.key)
                if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
                    raise NetworkError(
                        f"field '{field.name}' is a {type_name(field.type)}; history is sorted by a single value, such "
                        "as a number or a text"
                    )


def is_number(type_: pa.DataType) -> bool:
    """Whether a type is numeric."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _check_approximate(structure: Structure) -> None:
    """Refuse estimates downstream of boxes whose results do not show, by arrival numbers, which tuples were dropped."""
    boxes = {box.name: box for box in structure.order}
    for box in structure.order:
        if not box.spec.approximate:
            continue
        for name in upstream(structure.inputs, [box.name]):
            if name == box.name or name not in boxes or boxes[name].spec.traceable:
                continue
            op = boxes[name].spec.op
            through = [name for name, kind in operators().items() if kind.traceable]
            raise NetworkError(
                f"box '{box.name}': approximate: needs tuples that come straight from sources, through "
                f"{choices(through)} only; '{name}' is {'an' if op[0] in 'aeiou' else 'a'} {op}"
            )


def check_numeric(schema: Schema, name: str) -> None:
    """Raise a NetworkError if the field of a value graph is missing or not numeric."""
    field = schema.field(name)
    if not is_number(field.type):
        raise NetworkError(f"field '{field.name}' is a {type_name(field.type)}; a value graph needs a number")
