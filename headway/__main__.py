"""The command line as a process: ``python -m headway``, and what the script ``headway`` calls."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> int:
    """Run a command and return its exit code; Ctrl-C prints a single line, even while modules are loading."""
    # Loaded modules are never freed; collecting garbage meanwhile would take a sixth of the time.
    gc.disable()
    try:
        from headway.cli.main import main as run  # takes half a second, so import it inside the try
    except KeyboardInterrupt:
        print("headway: interrupted", file=sys.stderr, flush=True)
        os._exit(130)  # nothing has begun; CPython remembers a Ctrl-C inside exec() and would end by the signal
    gc.freeze()
    gc.enable()
    code = run()
    # The command is done: a signal during interpreter shutdown must not change its exit code.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
