"""Text output for people: numbers, times, tables and text from elsewhere; failing to print is a readable error."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from headway.engines import showing
from headway.engines.showing import printable as printable
from headway.errors import OutputError

_WARNINGS = 10
"""How many warnings a run prints; 'headway check' prints all."""
_TINY = 0.0001
"""Numbers below this are not told apart."""


def emit(text: str, to_stderr: bool = False) -> None:
    """Print text unchanged and flush; raises OutputError, for instance on a full disk, or BrokenPipeError."""
    stream = sys.stderr if to_stderr else sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "error" if to_stderr else "output"
        raise OutputError(f"standard {name} cannot be written: {error.strerror or error}") from error


def warning_lines(warnings: Sequence[str]) -> str:
    """Format the warnings of a check, one per line."""
    return "".join(f"warning: {printable(warning)}\n" for warning in warnings)


def warn(warnings: Sequence[str]) -> None:
    """Print the first warnings of a check on standard error, as `headway check` does."""
    text = warning_lines(warnings[:_WARNINGS])
    if len(warnings) > _WARNINGS:
        text += f"… and {count_text(len(warnings) - _WARNINGS)} more warnings; 'headway check' shows all\n"
    with contextlib.suppress(OSError, ValueError):  # standard error is gone; the run continues
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def printing_checks() -> Iterator[None]:
    """Keep runs from logging a check's warnings: a command prints them once, however often it runs the network."""
    logger = logging.getLogger("headway.check")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Format a table; `align` has an ``l`` or ``r`` per column. On a terminal, long cells are wrapped to its width."""
    return showing.text_table(header, rows, align, columns_of(sys.stdout))


def columns_of(stream: TextIO) -> int | None:
    """Return the width of a stream's terminal; None if it is not a terminal."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or None) if stream.isatty() else None
    except (OSError, ValueError):  # closed, or not a file
        return None


def count_text(number: int) -> str:
    """Format a count with thousands separators."""
    return f"{number:,}"


def ratio_text(number: float | None) -> str:
    """Format a number with three digits, or more before the decimal point; a dash for None."""
    if number is None or not math.isfinite(number):
        return "-"
    if 0 < abs(number) < _TINY:  # three digits of it would be in exponential notation
        return f"<{_TINY}"
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def seconds_text(seconds: float | None) -> str:
    """Format a time span with three digits and a suitable unit; a dash for None."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for limit, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if seconds < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def share_text(part: float, whole: float) -> str:
    """Format a part as a percentage of the whole."""
    return f"{100 * part / whole:.0f} %" if whole > 0 else "- %"


def plural(count: int, one: str, many: str = "") -> str:
    """Format a count with its noun."""
    return f"{count_text(count)} {one if count == 1 else many or one + 's'}"


def listed(
    parts: Sequence[str], most: int, one: str = "", many: str = "", *, between: str = ", ", end: str = ""
) -> str:
    """Join the first parts, and say how many more there are, optionally with a noun for what is counted."""
    left = len(parts) - most
    counted = plural(left, f"more {one}", many and f"more {many}") if one else f"{count_text(left)} more"
    return between.join(parts[:most]) + (f"{end} and {counted}" if left > 0 else "")


def one_line(text: str) -> str:
    """Turn a message into one printable line."""
    return printable("; ".join(line.strip() for line in text.splitlines() if line.strip()))


def _three(number: float) -> str:
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:,.{digits}f}"
