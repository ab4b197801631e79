"""Printing, with an error that a user can read when it fails."""

from __future__ import annotations

import contextlib
import os
import sys

from headway.errors import OutputError


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


def silence() -> None:
    """Let standard output go nowhere. Python flushes it once more at exit, and would complain again if it is closed."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
