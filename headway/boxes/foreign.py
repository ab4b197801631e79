"""What an installed package's operator must declare: mistakes are found when a network is read and checked.

Headway's own operators are tested against the same rules and are not checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from headway.boxes.keys import IN, OP, Key
from headway.boxes.order import Order
from headway.durations import Duration
from headway.errors import HeadwayError, NetworkError, choices, finite
from headway.network.schema import Schema


def check_class(op: str, kind: type[Any]) -> None:
    """Raise a NetworkError that names the operator if its class cannot be read from a file."""
    place = f"op '{op}': {kind.__name__}"
    missing = getattr(kind, "__abstractmethods__", None)
    if missing:
        raise NetworkError(f"{place} must define {choices(sorted(missing))}")
    if not is_dataclass(kind):
        raise NetworkError(f"{place} must be a frozen dataclass: its fields are the values of its keys")
    if not isinstance(getattr(kind, "doc", None), str):
        raise NetworkError(f"{place}.doc must be text: what the operator does, in a line")
    keys = getattr(kind, "keys", None)
    if not isinstance(keys, tuple) or not all(isinstance(key, Key) for key in keys):
        raise NetworkError(f"{place}.keys must be a tuple of Key(name, kind, doc), not {keys!r}")
    known = {field.name for field in fields(kind)}
    taken = {OP.name, IN.name}
    for key in keys:
        if key.name in taken:
            raise NetworkError(f"{place}.keys: '{key.name}' is taken; '{OP.name}' and '{IN.name}' are every box's")
        taken.add(key.name)
        if (key.field or key.name) not in known:
            raise NetworkError(
                f"{place}.keys: '{key.name}' has no field '{key.field or key.name}'; fields: {choices(sorted(known))}; "
                f"Key(…, field=…) names another one"
            )
        try:
            key.of_kind  # noqa: B018 - it raises if there is no such kind
        except HeadwayError as error:
            raise NetworkError(f"{place}.keys: {error}") from error
    least, most = (
        bounds if isinstance(bounds := getattr(kind, "inputs", None), tuple) and len(bounds) == 2 else (None, None)
    )
    if not isinstance(least, int) or least < 1 or not (most is None or (isinstance(most, int) and most >= least)):
        raise NetworkError(f"{place}.inputs must be the least and the greatest number of inputs, not {bounds!r}")


def check_schemas(found: object, ports: Sequence[str]) -> None:
    """Raise a NetworkError unless `schemas` of a specification returned a Schema for each port."""
    if not isinstance(found, tuple | list) or not all(isinstance(one, Schema) for one in found):
        raise NetworkError(f"schemas must return a tuple with a Schema for each port, not {found!r}")
    if len(found) != len(ports):
        raise NetworkError(f"schemas must return {_many(len(ports), 'schema')}, one for each port, not {len(found)}")


def check_declared(spec: object) -> None:
    """Raise a NetworkError if a property of a specification is not of the type that it must have."""
    for name, (fits, expected) in _DECLARED.items():
        value = getattr(spec, name)
        if not fits(value):
            raise NetworkError(f"{name} must be {expected}, not {value!r}")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _names(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value) and len({*value}) == len(value)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


_BOOL = (_flag, "True or False")
_DECLARED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "ports": (lambda value: _names(value) and len(value) > 0, "a tuple of different names, at least one"),
    **dict.fromkeys(("stateful", "tuplewise", "fusable", "ordered", "approximate", "projects", "passes"), _BOOL),
    "timeout": (lambda value: value is None or isinstance(value, Duration), "None or a Duration"),
    "orderings": (
        lambda value: isinstance(value, tuple) and all(isinstance(one, Order) for one in value),
        "a tuple of Order",
    ),
    "partitions": (_names, "a tuple of names of fields, such as ('a', 'b')"),
    "selectivity": (
        lambda value: value is None or (finite(value) is not None and value >= 0),
        "None or the number of results per tuple",
    ),
}
"""By property: whether a value fits, and what it should be."""
