"""The archive of Spark's classes: a JVM that maps one starts in half the time.

A JVM spends most of Spark's start on reading and verifying thousands of classes. Java can keep them as they are in
memory (class data sharing). `headway prepare` writes such an archive from a short run; a session maps the one that is
there. The JVM checks that it fits its own version and the jars as they are, and does without it otherwise.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

from headway.errors import RunError

SETTING = "HEADWAY_SPARK_CLASSES"
"""An environment variable: the archive to map in place of the one of this environment; empty for none."""


def place(java: str) -> Path:
    """Return where this Python environment keeps the archive for a version of Java; it goes with the environment."""
    return Path(sys.prefix) / "var" / "headway" / f"spark-{version('pyspark')}-java-{java}.jsa"


def mapping(java: str) -> str:
    """Return the options with which a JVM of this version maps the archive; nothing if there is none."""
    chosen = os.environ.get(SETTING)
    archive = place(java) if chosen is None else Path(chosen) if chosen else None
    # A quote would end the option early, and nothing is lost without the archive.
    if archive is None or '"' in str(archive) or not archive.is_file():
        return ""
    return f'"-XX:SharedArchiveFile={archive}"'


def recording(archive: Path) -> dict[str, str]:
    """Return the environment of a run whose JVM writes an archive when it ends.

    Its output goes where the run's does, so that whoever reads that to its end knows that the archive is complete.
    """
    if '"' in str(archive):
        raise RunError(f"the archive cannot be written to '{archive}': there is a quote in its name")
    return {SETTING: "", "SPARK_SUBMIT_OPTS": f'-XX:ArchiveClassesAtExit="{archive}"', "HEADWAY_SPARK_LOG": "1"}
