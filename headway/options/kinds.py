"""The class of an option, and the kinds of values that options take: in words, for Python and for the JSON Schema."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import HeadwayError, choices, finite, unknown
from headway.network.trust import LEVELS

UNIT_RULES = ("qos", "loss", "one", "output")
SPREAD_RULES = ("auto", "none")
FRONTS = ("auto", "native", "kernels")
"""The names that `units`, `spread` and `front` accept; the Spark engine defines their meaning."""

Fits = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: the values allowed, in words, for Python and for the JSON Schema."""

    expected: str
    fits: Fits
    schema: Mapping[str, Any]
    names: tuple[str, ...] = ()
    """The names allowed if the value is text."""
    what: str = "rule"
    """The noun for such a name, for messages."""
    also: str = ""
    """The alternatives to the names, in words."""

    def complaint(self, name: str, value: object, *, key: bool) -> str:
        """Return a message that says what is wrong with a value, or ""; with `key`, worded for a key of a file."""
        if self.names and (isinstance(value, str) or not self.also):
            wrong = not isinstance(value, str) or value not in self.names
            return f"{name}: {unknown(self.what, str(value), self.names)}{self.also}" if wrong else ""
        if self.fits(value):
            return ""
        return f"{name}{': must be' if key else ' is'} {self.expected}, not {value!r:.100}"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_MOST = 1 << 62
"""The largest whole number that a setting may be: it fits into 64 bits, also with another one added."""
_WORKERS = 1 << 16


def _whole(value: object, most: int = _MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= most


def _from(least: float) -> Fits:
    """Return a check that a value is a number of at least `least`, or infinity."""

    def fits(value: object) -> bool:
        number = value if isinstance(value, float) and value == math.inf else finite(value)
        return number is not None and number >= least

    return fits


def _listed(value: object, fits: Fits) -> bool:
    return isinstance(value, list | tuple) and all(map(fits, value))


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _any(value: object) -> bool:
    return True


def _object(value: object) -> bool:
    """Return whether a value is no plain data, but an object; its package checks what it can do."""
    return not isinstance(value, bool | int | float | str | bytes | list | tuple | set | Mapping | None)


_NAME: Mapping[str, Any] = {"type": "string", "minLength": 1}
_NAMES: Mapping[str, Any] = {"type": "array", "items": _NAME}
_SETTINGS: Mapping[str, Any] = {"type": "object", "minProperties": 1}

KINDS: Mapping[str, Kind] = {
    "any": Kind("anything", _any, {}),
    "flag": Kind("True or False", lambda value: isinstance(value, bool), {"type": "boolean"}),
    "wait": Kind("a duration such as 10s, or off", _text, _NAME),
    "name": Kind("a name", _text, _NAME),
    "path": Kind("a path", _any, _NAME),
    "by name": Kind("a mapping by name", lambda value: isinstance(value, Mapping), {"type": "object"}),
    "names": Kind(
        "a list of names",
        lambda value: isinstance(value, list | tuple | set | frozenset) and all(map(_text, value)),
        _NAMES,
    ),
    "callable": Kind("a function of a Status", callable, {}),
    "control": Kind("a headway.Control", _object, {}),
    "clock": Kind(
        "a clock, such as headway.clock.ManualClock()", lambda value: _object(value) and "now" in dir(value), {}
    ),
    "functions": Kind("a headway.Functions", _object, {}),
    "workers": Kind(
        f"a whole number from 1 to {_WORKERS}",
        lambda value: _whole(value, _WORKERS),
        {"type": "integer", "minimum": 1, "maximum": _WORKERS},
    ),
    "positive": Kind("a whole number above 0", _whole, {"type": "integer", "minimum": 1}),
    "bytes": Kind("a number of bytes above 0", _whole, {"type": "integer", "minimum": 1}),
    "calls": Kind("a number of calls, 1 or more", _from(1), {"type": "number", "minimum": 1}),
    "seconds": Kind(
        "a number of seconds above 0", _from(math.nextafter(0, 1)), {"type": "number", "exclusiveMinimum": 0}
    ),
    "duration": Kind("a number of seconds, 0 or more", _from(0), {"type": "number", "minimum": 0}),
    "share": Kind(
        "a share above 0 and up to 1, such as 0.9",
        lambda value: isinstance(value, float) and 0 < value <= 1,
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    ),
    "policy": Kind("a name", lambda value: _text(value) or _object(value), _NAME),
    "train": Kind(
        "a whole number, one or more, or a rule such as 50%",
        lambda value: _whole(value) or _text(value),
        {"oneOf": [{"type": "integer", "minimum": 1}, _NAME]},
    ),
    "model": Kind(
        "a mapping such as {default: 1ms} or a path",
        lambda value: isinstance(value, str | Mapping) and bool(value),
        {"oneOf": [_NAME, _SETTINGS]},
    ),
    "shed": Kind(
        "off, on, a strategy or a mapping",
        lambda value: isinstance(value, str | bool | Mapping) or _object(value),
        {"oneOf": [{"type": "boolean"}, _NAME, {"type": "object"}]},
    ),
    "adaptive": Kind(
        "a layer or a mapping such as {use: amos}",
        lambda value: isinstance(value, str | bool | Mapping) or _object(value),
        {"oneOf": [_NAME, {"type": "object", "required": ["use"]}]},
    ),
    "units": Kind(
        f"one of {choices(UNIT_RULES)}, or lists of outputs such as [[a, b], [c]]",
        lambda value: _listed(value, lambda group: bool(group) and _listed(group, lambda one: isinstance(one, str))),
        {"oneOf": [{"enum": list(UNIT_RULES)}, {"type": "array", "items": {**_NAMES, "minItems": 1}}]},
        UNIT_RULES,
        also="; or lists of outputs: [[a, b], [c]]",
    ),
    "spread": Kind(
        f"one of {choices(SPREAD_RULES)}, or a list of boxes such as [a, b]",
        lambda value: _listed(value, lambda one: isinstance(one, str)),
        {"oneOf": [{"enum": list(SPREAD_RULES)}, _NAMES]},
        SPREAD_RULES,
        also="; or a list of boxes: [a, b]",
    ),
    "front": Kind("", _any, {"enum": list(FRONTS)}, FRONTS, "front"),
    "trust": Kind("a level of trust", _any, {"enum": list(LEVELS)}, LEVELS, also=" "),
    "cut": Kind("a mapping such as {'units': 'one'}", lambda value: isinstance(value, Mapping), {"type": "object"}),
}
"""By name; kinds of options that only the command line has may be missing."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. In texts, literals are in backticks; a terminal shows quotes instead."""

    help: str
    kind: str = "any"
    default: Any = None
    flag: str = ""
    """The command line's flag with its metavar, such as ``--rate SOURCE=N``; empty if it has none."""
    key: bool = False
    """Whether it is a key of a file's ``schedule``, under the option's name."""
    call: bool = True
    """Whether it is an argument of `headway.run`, under the option's name."""
    engine: str = ""
    """The only engine that supports it; empty: all."""
    group: str = "execution"
    """Its heading in the help of `headway run`, unless only one engine supports it."""
    told: str = ""
    """The default in words, if that is not the value itself."""
    takes: str = ""
    """The values that `headway.run` accepts, if its type does not say so."""
    see: str = ""
    """A link to more documentation."""
    of: str = ""
    """What its names refer to: ``source``, ``output`` or ``box``."""
    name: str = ""
    """By default that of its flag."""
    type: str = ""
    """The Python type of an argument of `headway.run`, as source text."""

    def __post_init__(self) -> None:
        """Name it after its flag, ``--allow-path DIR`` or ``[NAME ...]``, unless it has a name."""
        if not self.name:
            object.__setattr__(self, "name", self.long.strip("-[]").replace("-", "_").lower())

    @property
    def heading(self) -> str:
        """The heading under which the help of `headway run` lists it."""
        return f"engine '{self.engine}' only" if self.engine else self.group

    @property
    def long(self) -> str:
        """The flag without its metavar."""
        return self.flag.partition(" ")[0]

    @property
    def own_default(self) -> str:
        """The default in words; empty if there is none worth stating."""
        return self.told or ("" if self.default in (None, False, ()) else f"`{_short(self.default)}`")

    @property
    def default_text(self) -> str:
        """The default of an argument or a flag in words: a key of the file takes precedence over the option's own."""
        return f"the file's, or {self.own_default}" if self.own_default and self.key else self.own_default

    @property
    def key_text(self) -> str:
        """The meaning of this option as a key of a file, in one line."""
        return self.meaning(self.own_default)

    def meaning(self, default: str) -> str:
        """Return the engine that supports it, its help and its default, in one line."""
        engine = f"engine `{self.engine}`: " if self.engine else ""
        return f"{engine}{self.help}" + (f" (default: {default})" if default else "")


def check_value(option: Option, value: object, error: type[HeadwayError], *, key: bool = False) -> None:
    """Raise `error` for a value that is not of the option's kind; with `key`, worded for a key of a file."""
    complaint = KINDS[option.kind].complaint(option.name, value, key=key)
    if complaint:
        raise error(complaint)
