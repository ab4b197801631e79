"""The command line as a process."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]

INTERRUPTED = """
import runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            exec("signal.raise_signal(signal.SIGINT)", {"signal": signal})

sys.meta_path.insert(0, Interrupting())
runpy.run_module("headway", run_name="__main__", alter_sys=False)
"""


def test_ctrl_c_while_modules_load_is_one_line() -> None:
    for module in ("headway.cli.main", "pyarrow", "headway.engines.control"):
        command = [sys.executable, "-c", INTERRUPTED, module]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr, done.stdout) == (130, "headway: interrupted\n", "")


def test_the_script_is_this_module() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"headway": "headway.__main__:main"}
