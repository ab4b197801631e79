"""The keys of a box in the network file: their names, what values they take, and how these are read and written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headway.boxes.durations import parse_size, parse_timeout, write_size
from headway.errors import NetworkError, choices, unknown


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the network file: the kind of its value, one line of documentation, and how it is read and written.

    `kind` names a fragment of the JSON Schema (see `headway.jsonschema`), and selects the default reader and writer.
    `field` is the specification's field for the value, if it is not named like the key. `write` is the inverse of
    `read`, for values other than the field's default.
    """

    name: str
    kind: str
    doc: str
    required: bool = False
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    field: str = ""

    def value(self, written: object) -> Any:
        """Return the value of what is written in the file; errors name the key."""
        read = self.read or _READERS.get(self.kind)
        with inside(self.name):
            return written if read is None else read(written)

    def written(self, value: Any) -> Any:
        """Return a value as it is written in the file."""
        write = self.write or _WRITERS.get(self.kind)
        return value if write is None else write(value)


OP = Key("op", "op", "the operator", required=True)
IN = Key(
    "in",
    "inputs",
    "the input, or a list of inputs: names of sources or boxes, `box.port`, or {table: path}",
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
    for name in mapping:
        if name not in names:
            raise NetworkError(unknown("key", str(name), names))
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


def parse_flag(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise NetworkError(f"must be true or false, not {value!r}")
    return value


def one_of(kind: str, names: Collection[str]) -> Callable[[object], str]:
    """Return a function that reads one of some names."""

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in names:
            raise NetworkError(unknown(kind, str(value), names))
        return value

    return read


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


_READERS: dict[str, Callable[[Any], Any]] = {
    "text": parse_text,
    "select": parse_select,
    "flag": parse_flag,
    "size": parse_size,
    "duration": parse_timeout,
}
_WRITERS: dict[str, Callable[[Any], Any]] = {"size": write_size, "duration": str}
"""By kind of value."""
