"""Several outputs on standard output: each line says which output it is of."""

from __future__ import annotations

from collections.abc import Mapping


class Tagged(str):
    """The path ``-`` of an output that shares standard output with others.

    Its lines are ``{"output": NAME, "tuple": {...}}``: the fields have an object of their own, so that one that is
    called output stays what it is.
    """

    __slots__ = ()


TAGGED = Tagged("-")


def tag_shared(destinations: Mapping[str, object]) -> dict[str, object]:
    """Return what to write to instead, by name, where more than one destination is standard output; else nothing."""
    shared = [name for name, what in destinations.items() if what == "-" or _named(what) == "-"]
    if len(shared) < 2:
        return {}
    return {name: TAGGED for name in shared if destinations[name] == "-" or "jsonl" in _mapping(destinations[name])}


def _mapping(what: object) -> Mapping[object, object]:
    return what if isinstance(what, Mapping) else {}


def _named(what: object) -> object:
    """Return what a connector such as ``{jsonl: "-"}`` names."""
    named = list(_mapping(what).values())
    return named[0] if len(named) == 1 else None
