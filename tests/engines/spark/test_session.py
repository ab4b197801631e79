"""The session: what opening it must leave alone."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import signal
from headway.engines.spark.session import open_session

def mine(number, frame):
    pass

signal.signal(signal.SIGINT, mine)
session = open_session("local[1]")
assert signal.getsignal(signal.SIGINT) is mine, signal.getsignal(signal.SIGINT)
session.stop()
print("left alone")
"""


def test_ctrl_c_stays_as_it_was() -> None:
    # In a process of its own: this one's session is open already, and only the first opening touches Ctrl-C.
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "left alone\n", done.stderr
