"""The keys of a box in the network file: what they are called, what values they take, and how these are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from headway.errors import NetworkError, choices, unknown

T = TypeVar("T")
D = TypeVar("D")


def as_written(value: Any) -> Any:
    """Return a value as it stands in the file."""
    return value


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the network file: what kind of value it takes, one line about it, and how it is read and written.

    `kind` names a fragment of the JSON Schema (see `headway.jsonschema`). `field` is where the specification keeps
    the value, if not under the key's name. `write` is the way back, for values other than the field's default.
    """

    name: str
    kind: str
    doc: str
    required: bool = False
    read: Callable[[object], Any] = as_written
    write: Callable[[Any], Any] = as_written
    field: str = ""


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
