"""Stream schemas: ordered fields with Spark SQL types, held as Arrow types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headway.errors import SchemaError, choices, did_you_mean, nearest

TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}
_ALIASES = {
    "bool": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "timestamp_ltz": "timestamp",
    "dec": "decimal",
    "numeric": "decimal",
}
_MEANT = {
    "number": "double",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "str": "string",
    "bytes": "binary",
    "blob": "binary",
    "datetime": "timestamp",
    "timestamptz": "timestamp",
    "list": "array",
    "row": "struct",
    "object": "struct",
}
"""Type names of other languages and systems, and the names used here."""
TYPE_NAMES = (*_SIMPLE, "decimal(p,s)", "array<type>", "struct<name:type,...>")
_NAMES = {type_: name for name, type_ in _SIMPLE.items()}
HIDDEN_PREFIX = "__hw"
"""Field names with this prefix are reserved for Headway."""
DEEPEST = 30
"""How deep arrays and structs may be nested: types are traversed recursively in many places."""


@dataclass(frozen=True, slots=True)
class Field:
    """A named field of a stream."""

    name: str
    type: pa.DataType

    def __str__(self) -> str:
        return f"{self.name} {type_name(self.type)}"


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a stream, in order. Names are unique and, as in Spark, case-insensitive."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        """Reject duplicate or reserved names."""
        seen: set[str] = set()
        for field in self.fields:
            if not field.name:
                raise SchemaError("a field has an empty name")
            if field.name.lower().startswith(HIDDEN_PREFIX):
                raise SchemaError(f"field '{field.name}': names that start with '{HIDDEN_PREFIX}' are reserved")
            if field.name.lower() in seen:
                raise SchemaError(f"field '{field.name}' appears twice")
            seen.add(field.name.lower())

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __str__(self) -> str:
        """Render the schema in Spark SQL's notation: ``sid int, time bigint``."""
        return ", ".join(str(field) for field in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The field names in order."""
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        """The field types in order."""
        return tuple(field.type for field in self.fields)

    def find(self, name: str) -> int | None:
        """Return the position of a field, by case-insensitive name, or None."""
        folded = name.lower()
        return next((position for position, field in enumerate(self.fields) if field.name.lower() == folded), None)

    def index(self, name: str) -> int:
        """Return the position of a field, or raise a SchemaError that lists the fields."""
        position = self.find(name)
        if position is None:
            raise SchemaError(
                f"unknown field '{name}'{did_you_mean(name, self.names) or ';'} fields: {choices(self.names)}"
            )
        return position

    def field(self, name: str) -> Field:
        """Return a field by name, or raise a SchemaError that lists the fields."""
        return self.fields[self.index(name)]

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema."""
        return pa.schema([(field.name, field.type) for field in self.fields])

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """Convert an Arrow schema; types without a Spark SQL name are rejected."""
        return cls(tuple(Field(field.name, normalise(field.type, field.name)) for field in schema))

    @classmethod
    def parse(cls, declaration: str | Mapping[str, object]) -> Schema:
        """Parse ``sid int, time bigint`` or ``{sid: int, time: bigint}``."""
        if isinstance(declaration, str):
            fields = [_parse_field(part) for part in _split(declaration) if part.strip()]
        elif isinstance(declaration, Mapping):
            fields = [Field(str(name), parse_type(type_, str(name))) for name, type_ in declaration.items()]
        else:
            raise SchemaError(f"a schema is a mapping or text such as 'sid int, time bigint', not {declaration!r}")
        if not fields:
            raise SchemaError("a schema needs at least one field")
        return cls(tuple(fields))


def type_name(type_: pa.DataType, depth: int = 0) -> str:
    """Return the Spark SQL name of an Arrow type; parts nested too deeply are elided."""
    if depth > DEEPEST:
        return "…"
    if type_ in _NAMES:
        return _NAMES[type_]
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{type_name(type_.value_type, depth + 1)}>"
    if pa.types.is_struct(type_):
        return "struct<" + ",".join(f"{field.name}:{type_name(field.type, depth + 1)}" for field in type_) + ">"
    if pa.types.is_null(type_):
        return "void"
    return str(type_)


def parse_type(text: object, field: str = "", depth: int = 0) -> pa.DataType:
    """Parse a Spark SQL type name such as ``bigint``, ``decimal(10,2)`` or ``array<int>``.

    `depth` is the number of enclosing arrays and structs; beyond DEEPEST a SchemaError is raised.
    """
    where = f"field '{field}': " if field else ""
    if not isinstance(text, str):
        raise SchemaError(f"{where}a type is text such as 'int', not {text!r}; types: {choices(TYPE_NAMES)}")
    word = re.sub(r"\s+", " ", text.strip().lower())
    base, _, rest = word.partition("(")
    base = _ALIASES.get(base.strip(), base.strip())
    if base == "decimal":
        return _decimal(rest, text, where)
    if base == "string" and rest:
        return pa.string()
    if not rest and base in _SIMPLE:
        return _SIMPLE[base]
    nested = word.startswith(("array<", "struct<")) and word.endswith(">")
    if nested and depth >= DEEPEST:
        raise too_deep(where)
    if nested and word.startswith("array<"):
        return pa.list_(parse_type(text.strip()[6:-1], field, depth + 1))
    if nested:
        parts = [part.partition(":") for part in _split(text.strip()[7:-1])]
        return pa.struct([(name.strip(), parse_type(inner, field, depth + 1)) for name, _, inner in parts])
    raise SchemaError(f"{where}unknown type '{text}'{_meant(word)} types: {choices(TYPE_NAMES)}")


def _meant(word: str) -> str:
    """Return a hint for an unknown type; it suggests one of TYPE_NAMES."""
    listed = {re.split("[(<]", name)[0]: name for name in TYPE_NAMES}
    known = {**_MEANT, **_ALIASES, **{name: name for name in listed}}
    close = nearest(word, known)
    return f"; did you mean '{listed[known[close[0]]]}'?" if close else ";"


def normalise(type_: pa.DataType, field: str = "") -> pa.DataType:
    """Return the Headway type that holds the values of an Arrow type, or raise a SchemaError."""
    if nesting(type_) > DEEPEST:
        raise too_deep(f"field '{field}': " if field else "")
    return _normal(type_, field)


def _normal(type_: pa.DataType, field: str) -> pa.DataType:
    if type_ in _NAMES or pa.types.is_decimal128(type_):
        return type_
    if pa.types.is_dictionary(type_):
        return _normal(type_.value_type, field)
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_timestamp(type_):
        return TIMESTAMP if type_.tz else TIMESTAMP_NTZ
    if pa.types.is_date(type_):
        return pa.date32()
    if pa.types.is_unsigned_integer(type_):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(type_.bit_width, pa.decimal128(20, 0))
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_normal(type_.value_type, field))
    if pa.types.is_struct(type_):
        return pa.struct([(inner.name, _normal(inner.type, field)) for inner in type_])
    raise SchemaError(f"field '{field}': type {type_} has no Spark SQL name; types: {choices(TYPE_NAMES)}")


def too_deep(where: str) -> SchemaError:
    """Return the error for a type that is nested too deeply."""
    return SchemaError(f"{where}arrays and structs lie within each other more than {DEEPEST} deep, which is the limit")


def nesting(type_: pa.DataType) -> int:
    """Return how deep arrays and structs are nested in any Arrow type; does not recurse."""
    deepest, pending = 0, [(type_, 0)]
    while pending:
        one, above = pending.pop()
        deepest = max(deepest, above)
        if pa.types.is_dictionary(one):
            pending.append((one.value_type, above))
        elif pa.types.is_nested(one):
            pending += [(one.field(at).type, above + 1) for at in range(one.num_fields)]
    return deepest


def _decimal(rest: str, text: str, where: str) -> pa.DataType:
    if not rest:
        return pa.decimal128(10, 0)
    match = re.fullmatch(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", rest)
    if match:
        precision, scale = int(match[1]), int(match[2] or 0)
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    raise SchemaError(f"{where}'{text}' is not a decimal type; write decimal(p,s) with 1 <= p <= 38 and s <= p")


def _parse_field(part: str) -> Field:
    words = re.split(r"\s*:\s*|\s+", part.strip(), maxsplit=1)
    if len(words) != 2:
        raise SchemaError(f"'{part.strip()}' is not a field; write 'name type', such as 'time bigint'")
    name = words[0].strip("`")
    return Field(name, parse_type(words[1], name))


def _split(text: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "(<":
            depth += 1
        elif character in ")>":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
