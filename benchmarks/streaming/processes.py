"""A measurement as a process of its own, and the memory of everything that it starts."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.streaming.settings import Setting
from headway.clock import SECOND, WallClock

ROOT = Path(__file__).resolve().parents[2]
_EVERY = 1.0
_LIMIT = 900.0
"""Seconds after which a measurement is given up."""
_PAGE = resource.getpagesize()


def carry_out(setting: Setting) -> dict[str, Any]:
    """Measure in a new process; returns what it printed, with the peak memory of its process tree in megabytes.

    What cannot be measured is returned as a text under ``error``.
    """
    clock = WallClock()
    folder = tempfile.mkdtemp(prefix="headway-streaming-")
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TMPDIR": folder,
        "SPARK_LOCAL_DIRS": folder,
    }
    setting = replace(setting, spawned=clock.now())
    with tempfile.TemporaryFile("w+") as said:
        command = [sys.executable, "-m", "benchmarks.streaming.worker", setting.to_json()]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment, start_new_session=True
        )
        peak, most, seen = 0.0, 0, {process.pid}
        try:
            while True:
                try:
                    out, _ = process.communicate(timeout=_EVERY)
                    break
                except subprocess.TimeoutExpired:
                    tree = descendants(process.pid)
                    seen |= tree
                    peak, most = max(peak, resident(tree)), max(most, len(tree))
                if clock.now() > setting.spawned + int(_LIMIT * SECOND):
                    process.kill()
        finally:
            process.kill()
            process.wait()
            end(seen, process.pid)
            shutil.rmtree(folder, ignore_errors=True)
        said.seek(0)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        if not found:
            words = said.read().strip().splitlines()
            found = {"error": words[-1] if words else f"ended with exit code {process.returncode}"}
    return {"setting": json.loads(setting.to_json()), **found, "peak_mb": peak, "processes": most}


def descendants(root: int) -> set[int]:
    """Return a process and all that come from it."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                after_name = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(after_name[1]), []).append(int(entry.name))
    found, pending = {root}, [root]
    while pending:
        children = parents.get(pending.pop(), [])
        pending += [one for one in children if one not in found]
        found.update(children)
    return found


def resident(processes: Iterable[int]) -> float:
    """Return the resident memory of processes in megabytes; pages that several share count for each of them."""
    total = 0
    for number in processes:
        with contextlib.suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{number}/statm").read_text().split()[1])
    return total * _PAGE / 1e6


def end(processes: Iterable[int], session: int) -> None:
    """End what a measurement has left behind: only processes of its own session."""
    for number in processes:
        with contextlib.suppress(OSError):
            if os.getsid(number) == session:
                os.kill(number, signal.SIGKILL)
