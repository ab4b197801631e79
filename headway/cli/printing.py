"""Printing for people: numbers, times, tables and foreign text, and an error that a user can read when it fails."""

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
"""How many warnings a run shows; 'headway check' shows all."""


def emit(text: str, to_stderr: bool = False) -> None:
    """Print text as it is and flush; raises OutputError, for instance on a full disk, or BrokenPipeError."""
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
    """Return what a check warns of, a line for each."""
    return "".join(f"warning: {printable(warning)}\n" for warning in warnings)


def warn(warnings: Sequence[str]) -> None:
    """Print what a check warns of on standard error, as `headway check` does; the first ones of many."""
    text = warning_lines(warnings[:_WARNINGS])
    if len(warnings) > _WARNINGS:
        text += f"… and {count_text(len(warnings) - _WARNINGS)} more warnings; 'headway check' shows all\n"
    with contextlib.suppress(OSError, ValueError):  # nobody looks; the run goes on
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def printing_checks() -> Iterator[None]:
    """Keep runs from logging what a check warns of: a command prints it once, however often it runs the network."""
    logger = logging.getLogger("headway.check")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def silence() -> None:
    """Let standard output go nowhere. Python flushes it once more at exit, and would complain again if it is closed."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Return a table, `align` with ``l`` or ``r`` per column. On a terminal long cells are wrapped to its width."""
    return showing.text_table(header, rows, align, columns_of(sys.stdout))


def columns_of(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream goes to; None if it goes elsewhere."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or None) if stream.isatty() else None
    except (OSError, ValueError):  # closed, or no file
        return None


def count_text(number: int) -> str:
    """Return a count with thousands apart."""
    return f"{number:,}"


def ratio_text(number: float | None) -> str:
    """Return a number with three digits, or all of those before the point; a dash for none."""
    if number is None or not math.isfinite(number):
        return "-"
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def seconds_text(seconds: float | None) -> str:
    """Return a span of time with three digits in the unit that suits it; a dash for none."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    for limit, factor, unit in ((0.9995e-3, 1e6, "µs"), (0.9995, 1e3, "ms")):
        if seconds < limit:
            return f"{_three(seconds * factor)} {unit}"
    return f"{_three(seconds)} s"


def share_text(part: float, whole: float) -> str:
    """Return a part in per cent of the whole."""
    return f"{100 * part / whole:.0f} %" if whole > 0 else "- %"


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun."""
    return f"{count_text(count)} {one if count == 1 else many or one + 's'}"


def listed(
    parts: Sequence[str], most: int, one: str = "", many: str = "", *, between: str = ", ", end: str = ""
) -> str:
    """Return the first of the parts, and how many more there are; of what is counted a noun may be given."""
    left = len(parts) - most
    counted = plural(left, f"more {one}", many and f"more {many}") if one else f"{count_text(left)} more"
    return between.join(parts[:most]) + (f"{end} and {counted}" if left > 0 else "")


def one_line(text: str) -> str:
    """Return a message as one printable line."""
    return printable("; ".join(line.strip() for line in text.splitlines() if line.strip()))


def _three(number: float) -> str:
    digits = 0 if number >= 99.95 else 1 if number >= 9.995 else 2
    return f"{number:,.{digits}f}"
