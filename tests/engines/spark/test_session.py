"""The session: what opening it must leave alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headway.engines.spark.classes import SETTING
from headway.engines.spark.session import hushed

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


def test_ctrl_c_stays_as_it_was_and_an_archive_of_classes_that_is_none_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "classes").write_bytes(b"these are no classes")
    # In a process of its own: this one's session is open already, and only the first opening touches Ctrl-C.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, SETTING: str(tmp_path / "classes")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "left alone\n", done.stderr


def test_what_py4j_says_in_nobody_s_name_is_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()

    def say(path: str) -> None:
        root.handle(root.makeRecord("root", logging.ERROR, path, 1, f"from {path}", (), None))

    with hushed():
        say("/site-packages/py4j/java_gateway.py")
        say("/somebody/else.py")
    say("/site-packages/py4j/later.py")
    assert caplog.messages == ["from /somebody/else.py", "from /site-packages/py4j/later.py"]
