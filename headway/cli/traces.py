"""``--trace``: a run, recorded in a file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from headway.engines.traces import Trace
from headway.errors import OutputError
from headway.paths import unusable


def add_trace_option(group: argparse._ActionsContainer) -> None:
    """Add the option that names the file."""
    group.add_argument(
        "--trace",
        metavar="FILE",
        help="record every step and why it was chosen, in a file such as run.json: open it in ui.perfetto.dev or "
        "chrome://tracing to see the schedule, or read it with 'headway explain'",
    )


def check_trace_path(path: Path) -> None:
    """Raise an OutputError now, not after a long run, if the trace cannot be written there."""
    if str(path) == "-":
        raise OutputError("trace: expected a file such as run.json, not '-'; a trace does not go to standard output")
    wrong = unusable(path)
    if wrong:
        raise OutputError(f"trace: '{path}' cannot be written: {wrong}")
    if path.is_dir():
        raise OutputError(f"trace: '{path}' is a directory; expected a file such as run.json")
    if not path.parent.is_dir():
        raise OutputError(f"trace: the folder '{path.parent}' for '{path.name}' does not exist")
    special = path.exists() and not path.is_file()
    if not os.access(path if special else path.parent, os.W_OK):
        raise OutputError(f"trace: '{path}' cannot be written: no permission")


def write_trace(path: Path, trace: Trace) -> None:
    """Write a trace; the file appears when it is whole. Raises OutputError."""
    trace.write(path)
