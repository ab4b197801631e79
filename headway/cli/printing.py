"""Printing, with an error that a user can read when it fails."""

from __future__ import annotations

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
