"""The command line as a process: ``python -m headway``, and what the script ``headway`` calls."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> int:
    """Run a command and return its exit code; Ctrl-C says one line even while the modules still load."""
    # What is loaded stays: to look for garbage in it would take a sixth of the time.
    gc.disable()
    try:
        from headway.cli.main import main as run  # takes half a second, so it is loaded within the handler's reach
    except KeyboardInterrupt:
        print("headway: interrupted", file=sys.stderr, flush=True)
        os._exit(130)  # nothing has begun; Python itself would end by the signal if Ctrl-C came within an exec
    gc.freeze()
    gc.enable()
    code = run()
    # The command is done and its code is known: a signal that comes while Python ends changes neither.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
