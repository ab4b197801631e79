"""The keys of the network file: their names, what values they take, and how these are read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, cast

from headway.boxes.sizes import parse_size, write_size
from headway.durations import parse_timeout
from headway.errors import HeadwayError, NetworkError, check_known, choices, unknown
from headway.network.keep import Keep, Roll

Fragment = Mapping[str, Any]
"""A part of the JSON Schema of the network file."""


class KeyKind(NamedTuple):
    """A kind of value: its JSON Schema, how it is read from the file, and how it is written there; None: as it is.

    Only values other than the field's default are written.
    """

    schema: Fragment
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the network file: the kind of its value, and one line of documentation.

    `kind` is the name of one of the `KINDS`, or a kind of the operator's own. `field` is the specification's field for
    the value, if it is not named like the key.
    """

    name: str
    kind: str | KeyKind
    doc: str
    required: bool = False
    field: str = ""

    def value(self, written: object) -> Any:
        """Return the value of what is written in the file; errors name the key."""
        read = self.of_kind.read
        with inside(self.name):
            return written if read is None else read(written)

    def written(self, value: Any) -> Any:
        """Return a value as it is written in the file."""
        write = self.of_kind.write
        return value if write is None else write(value)

    @property
    def of_kind(self) -> KeyKind:
        """The kind itself."""
        if not isinstance(self.kind, str):
            return self.kind
        if self.kind not in KINDS:
            raise HeadwayError(f"key '{self.name}': {unknown('kind of key', self.kind, KINDS)}; or a KeyKind")
        return KINDS[self.kind]


class Keyed:
    """A frozen dataclass whose fields are keys of the network file."""

    __slots__ = ()
    keys: ClassVar[tuple[Key, ...]]

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """Read it from a mapping whose keys were checked; a null is as good as nothing."""
        given = [(key, settings.get(key.name)) for key in cls.keys]
        return cls(**{key.field or key.name: key.value(value) for key, value in given if value is not None})

    def to_mapping(self) -> dict[str, Any]:
        """Return its keys as they are in the file; defaults are left out."""
        defaults = {field.name: field.default for field in fields(cast(Any, self))}
        values = [(key, name, getattr(self, name)) for key in self.keys for name in (key.field or key.name,)]
        return {key.name: key.written(value) for key, name, value in values if value != defaults[name]}


OP = Key("op", "op", "the operator", required=True)
IN = Key(
    "in",
    "inputs",
    "the input, or a list of inputs: names of sources, boxes, points or views, `box.port`, {table: path}, or "
    "{point: name, as: stream}",
    required=True,
)


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
    check_known("key", mapping, names, NetworkError)
    for key in keys:
        if key.required and key.name not in given and mapping.get(key.name) is None:
            raise NetworkError(f"{key.name}: is missing ({key.doc}); keys: {choices(names)}")


def parse_text(value: object) -> str:
    """Read text that is not empty; numbers and booleans become their SQL text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise NetworkError(f"must be text, not {value!r}")
    if not value.strip():
        raise NetworkError("is empty")
    return value


def parse_count(value: object, least: int = 0) -> int:
    """Read a whole number that is not negative, or at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise NetworkError(f"must be a whole number, {'one' if least else 'zero'} or more, not {value!r}")
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


TEXT: Fragment = {"type": "string", "minLength": 1}
DURATION: Fragment = {"type": "string", "pattern": r"^(\s*\d+(\.\d+)?\s*[A-Za-zµμ]+\s*)+$"}
SIZE: Fragment = {"oneOf": [{"type": "number", "exclusiveMinimum": 0}, DURATION]}
_EXPRESSION: Fragment = {"type": ["string", "number", "boolean"], "minLength": 1}
EXPRESSIONS: Fragment = {"oneOf": [_EXPRESSION, {"type": "array", "items": _EXPRESSION, "minItems": 1}]}
_NAME: Fragment = {"type": "string", "pattern": r"^[^\s.]+$"}
_UTILITY: Fragment = {"type": "number", "minimum": 0, "maximum": 1}
_POINT: Fragment = {"type": "array", "prefixItems": [{"type": "number"}, _UTILITY], "minItems": 2, "maxItems": 2}
_INPUT: Fragment = {"oneOf": [TEXT, {"$ref": "#/$defs/table"}, {"$ref": "#/$defs/pointed"}]}


def _by_name(item: str, least: int) -> KeyKind:
    values = {"$ref": f"#/$defs/{item}"}
    return KeyKind({"type": "object", "minProperties": least, "propertyNames": _NAME, "additionalProperties": values})


KINDS: Mapping[str, KeyKind] = {
    "text": KeyKind(_EXPRESSION, parse_text),
    "select": KeyKind(EXPRESSIONS, parse_select),
    "field": KeyKind(TEXT, parse_text),
    "names": KeyKind({"oneOf": [TEXT, {"type": "array", "items": TEXT}]}, parse_names, list),
    "count": KeyKind({"type": "integer", "minimum": 0}, parse_count),
    "positive": KeyKind({"type": "integer", "minimum": 1}, lambda value: parse_count(value, 1)),
    "flag": KeyKind({"type": "boolean"}, parse_flag),
    "size": KeyKind(SIZE, parse_size, write_size),
    "duration": KeyKind(DURATION, parse_timeout, str),
    "op": KeyKind(TEXT),
    "inputs": KeyKind(
        {"oneOf": [TEXT, {"$ref": "#/$defs/pointed"}, {"type": "array", "items": _INPUT, "minItems": 1}]}
    ),
    # The parts of the file around the boxes:
    "name": KeyKind(_NAME),
    "arc": KeyKind(TEXT),
    "sources": _by_name("source", 1),
    "boxes": _by_name("box", 0),
    "outputs": _by_name("output", 1),
    "points": _by_name("point", 0),
    "views": _by_name("view", 0),
    "keep": KeyKind({"oneOf": [{"type": "integer", "minimum": 1}, TEXT]}, Keep.parse),
    "roll": KeyKind({"oneOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}]}, Roll.parse),
    "schema": KeyKind({"oneOf": [TEXT, {"type": "object", "minProperties": 1, "additionalProperties": TEXT}]}),
    "data": KeyKind({"oneOf": [TEXT, {"type": "object", "minProperties": 1, "maxProperties": 2}]}),
    "connector": KeyKind({"oneOf": [TEXT, {"type": "object", "minProperties": 1, "maxProperties": 1}]}),
    "graph": KeyKind({"type": "array", "minItems": 1, "items": _POINT}),
    **{part: KeyKind({"$ref": f"#/$defs/{part}"}) for part in ("qos", "value", "schedule")},
}
"""The kinds of values by name. An operator may have kinds of its own beside them."""


def one_of(what: str, names: Collection[str]) -> KeyKind:
    """Return the kind whose values are these names; `what` says what such a name is."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise NetworkError(unknown(what, str(value), names))
        return value

    return KeyKind({"enum": list(names)}, read)


def schema_of(keys: Sequence[Key]) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with these keys and no others."""
    required = [key.name for key in keys if key.required]
    properties = {key.name: {"description": key.doc, **key.of_kind.schema} for key in keys}
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}
