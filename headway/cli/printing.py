"""Printing, with an error that a user can read when it fails."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence

from headway.cli.texts import count_text, printable
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
