"""Which machine, when, and which versions: what belongs beside every number."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from headway_experiments.results import processor, today

PACKAGES = ("headway", "numpy", "pyarrow", "polars", "duckdb")


def describe() -> str:
    """Return the machine, the date and the versions as a Markdown list."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return (
        f"- {os.cpu_count()} cores, {processor()}; {today()}\n"
        f"- Python {platform.python_version()}, {versions}\n"
        f"- load of the machine over the last 1, 5 and 15 minutes when this began: {load}"
    )
