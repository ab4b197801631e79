"""Which machine, when, and which versions: what belongs beside every number."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from headway.clock import SECOND, WallClock

PACKAGES = ("headway", "numpy", "pyarrow", "polars", "duckdb")


def describe() -> str:
    """Return the machine, the date and the versions as a Markdown list."""
    day = datetime.fromtimestamp(WallClock().now() / SECOND, UTC).date().isoformat()
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"- {os.cpu_count()} cores, {_processor()}; {day}\n"
        f"- Python {platform.python_version()}, {versions}\n"
        f"- load of the machine over the last 1, 5 and 15 minutes when this began: {load}"
    )


def _processor() -> str:
    """Return the processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
