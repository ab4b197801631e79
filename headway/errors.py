"""One hierarchy of errors.

A message names the culprit (box, field, file), says what was expected and lists the choices.
Every error a user can cause is a `HeadwayError`; the command line turns it into one line and exit code 2.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

LONGEST = 2_500
"""The most characters of a message, since culprits are quoted verbatim from files of any content."""


class HeadwayError(Exception):
    """An error the user can fix. The message is complete without a traceback, and never longer than LONGEST."""

    def __init__(self, message: object = "") -> None:
        """Keep the message, without its middle if it is too long."""
        super().__init__(shorten(str(message)))


class NetworkError(HeadwayError):
    """A network that is not well formed."""


class SchemaError(NetworkError):
    """A type or a schema that is not valid or does not fit."""


class ExpressionError(NetworkError):
    """An expression that does not parse or does not type-check. Raised when a network is checked, never on data."""


class UnknownFunctionError(ExpressionError):
    """A function that is not registered and resembles no known name: it may be registered later."""


class PolicyError(HeadwayError):
    """A scheduling policy, unit, traversal or train that does not exist."""


class InputError(HeadwayError):
    """Input data, or a connector's settings, that cannot be read."""


class OutputError(HeadwayError):
    """An output that cannot be written."""


class RunError(HeadwayError):
    """A run that had to stop."""


def shorten(text: str, most: int = LONGEST) -> str:
    """Return the text, cut in its middle to at most `most` characters.

    A message starts with the place and the complaint and ends with what was expected; a long culprit is in between.
    """
    if len(text) <= most:
        return text
    tail = most // 3
    gap = f" … ({len(text) - most} more characters) … "
    return text[: most - tail - len(gap)] + gap + text[-tail:]


def raised(error: BaseException) -> str:
    """Return a foreign exception as text for a message: ``ZeroDivisionError: division by zero``."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def first_line(error: BaseException, most: int = 200) -> str:
    """Return the first line of a foreign exception's message, shortened: it may quote a file."""
    return shorten((str(error).splitlines() or [type(error).__name__])[0], most)


FOREIGN = (Exception, SystemExit)
"""What code of an installed package may raise; one that calls ``sys.exit`` does not end the process in silence."""


def blamed(place: str, error: BaseException, kind: type[HeadwayError]) -> HeadwayError:
    """Return the error of this kind for what a package's code raised; re-raise what a signal handler did in it."""
    if isinstance(error, SystemExit) and type(error) is not SystemExit:
        raise error
    if isinstance(error, HeadwayError):
        text = str(error)
        return kind(text if text.startswith(place) else f"{place}: {text}")
    return kind(f"{place}: {type(error).__name__}" + (f": {first_line(error)}" if str(error) else ""))


@contextmanager
def within(place: str, kind: type[HeadwayError] = PolicyError) -> Iterator[None]:
    """Put a place before the message of any HeadwayError from the body, which becomes an error of this kind."""
    try:
        yield
    except HeadwayError as error:
        raise kind(f"{place}: {error}") from None


def finite(value: object) -> float | None:
    """Return a number as a float, or None if it is not a number, NaN, infinite, or too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


@contextmanager
def blaming(place: str, kind: type[HeadwayError]) -> Iterator[None]:
    """Name the package's code that runs inside, `place`, in an error for what it raises; Headway's own errors stay."""
    try:
        yield
    except HeadwayError:
        raise
    except FOREIGN as error:
        raise blamed(place, error, kind) from error


def choices(names: Iterable[str], most: int | None = None) -> str:
    """Return the names as a readable list for a message; beyond the first `most` only how many they are."""
    listed = [str(name) for name in names]
    more = 0 if most is None else len(listed) - most
    return (", ".join(listed[:most]) if listed else "(none)") + (f" and {more:,} more" if more > 0 else "")


def nearest(word: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names that a word resembles, the most similar first."""
    folded = {str(name).lower(): str(name) for name in names}
    return [folded[name] for name in difflib.get_close_matches(str(word).lower(), list(folded), most, cutoff)]


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return a hint such as ``; did you mean 'size'?``, or an empty string when nothing is close."""
    close = nearest(word, names)
    return f"; did you mean '{close[0]}'?" if close else ""


def check_known(
    kind: str, words: Iterable[object], names: Collection[str], error: type[HeadwayError], where: str = ""
) -> None:
    """Raise an error for the first of the words that is not among the names; it begins with `where`."""
    for word in words:
        if word not in names:
            raise error((f"{where}: " if where else "") + unknown(kind, str(word), names))


def unknown(kind: str, word: str, names: Iterable[str]) -> str:
    """Return the standard sentence for a name that does not exist."""
    listed = sorted({str(name) for name in names})
    return f"unknown {kind} '{word}'{did_you_mean(word, listed) or ';'} choices: {choices(listed)}"
