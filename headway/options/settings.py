"""Readers of settings within an option, such as those of load shedding and of adaptive layers: a reader for each key.

A reader gets a value, and raises an error that says what it must be; its key is put before that here, and the place of
all the settings by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headway.durations import Duration
from headway.errors import PolicyError, finite, unknown, within


def read_settings(
    settings: object, readers: Mapping[str, Callable[[Any], Any]], what: str = "setting"
) -> dict[str, Any]:
    """Return the values as their readers return them. Raises a PolicyError that names the key, or lists the choices."""
    for key in mapping(settings):
        if key not in readers:
            raise PolicyError(unknown(what, str(key), readers))
    made = {}
    for key, value in mapping(settings).items():
        with within(str(key)):
            made[key] = readers[key](value)
    return made


def mapping(value: object) -> Mapping[str, Any]:
    """Read a mapping."""
    if not isinstance(value, Mapping):
        raise PolicyError(f"must be a mapping such as {{name: value}}, not {value!r}")
    return value


def number(expected: str, fits: Callable[[float], bool]) -> Callable[[object], float]:
    """Return a reader of finite numbers that fit; `expected` describes them: ``from 0 to 1``."""

    def read(value: object) -> float:
        found = finite(value)
        if found is None or not fits(found):
            raise PolicyError(f"must be a number {expected}, not {value!r}")
        return found

    return read


def whole(least: int, besides: str = "") -> Callable[[object], int]:
    """Return a reader of whole numbers; `besides` is text on what else the key accepts."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise PolicyError(f"must be a whole number of at least {least}{besides}, not {value!r}")
        return value

    return read


def positive_time(value: object) -> Duration:
    """Read a duration above 0; a plain number means seconds."""
    seconds = finite(value)
    time = Duration.parse(value) if seconds is None else Duration(round(seconds * 1_000_000))
    if time.microseconds <= 0:
        raise PolicyError(f"must be more than 0, not {value!r}")
    return time
