"""``headway prepare``: write the archive of Spark's classes from which later runs start faster."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from headway.cli.arguments import Command
from headway.cli.printing import emit
from headway.clock import WallClock
from headway.errors import RunError
from headway.extras import need_extra
from headway.options.kinds import Option
from headway.storage.temporary import make_temporary, remove_temporary

EPILOG = """\
Java saves Spark's classes, as loaded in memory, to one archive of 180 MB next to the packages of this Python
environment, and later runs map it into memory. This takes about a minute, once. Run it again when Spark or Java
changes: an archive that does not match is ignored, and Spark starts as before.

examples:
  headway prepare
  headway prepare --again
  HEADWAY_SPARK_CLASSES= headway run border.yaml      a run without the archive
"""
_LONGEST = 600.0

TRAINING = """
network: prepare
sources:
  s:
    schema: {i: bigint, k: int, name: string}
    source: {generate: {rate: 2000, count: 4000, fields: {i: i, k: {uniform: [1, 9]}, name: "'a'"}}}
boxes:
  some: {op: filter, in: s, where: k > 3}
  longer: {op: map, in: some, select: "i, k, upper(name) as name"}
  counts: {op: aggregate, in: s, select: count(*) as n, order: {on: i, by: [k]}, size: 100}
  pairs: {op: join, in: [counts, longer], on: left.k = right.k, order: [{on: i}, {on: i}], size: 1}
outputs:
  counts: {from: counts, qos: {latency: [[0, 1], [1, 1], [5, 0]]}}
  pairs: {from: pairs}
  longer: {from: longer, qos: {latency: [[0, 1], [20, 1], [60, 0]]}}
"""
"""A network that uses what most networks use: a stateful and a stateless query, a log, checkpoints and state."""


def prepare(args: argparse.Namespace) -> int:
    """Write the archive, unless it exists."""
    need_extra("spark", "headway prepare")
    from headway.engines.spark.driver.session import check_java, class_archive

    archive = class_archive(check_java())
    if archive.exists() and not args.again:
        if not args.quiet:
            emit(f"'{archive}' exists already; --again overwrites it\n")
        return 0
    print("headway: running a small network on Spark to see which classes it needs …", file=sys.stderr, flush=True)
    clock = WallClock()
    began = clock.now()
    _write(archive)
    size = archive.stat().st_size // 1_000_000
    emit(f"'{archive}' ({size} MB) written in {(clock.now() - began) / 1e9:.0f} s; Spark now starts from it\n")
    return 0


COMMAND = Command(
    "make Spark start in half the time from now on",
    EPILOG,
    prepare,
    {
        "": (
            Option("write the archive even if there is one for this Spark and Java", flag="--again"),
            Option("print nothing if there is nothing to do", flag="--quiet"),
        )
    },
)


def _write(archive: Path) -> None:
    from headway.engines.spark.driver.session import record_archive

    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"'{archive.parent}' cannot be made: {error.strerror or error}") from error
    unfinished = archive.with_name(f"{archive.name}.{os.getpid()}")
    folder = make_temporary()
    try:
        network = Path(folder, "network.yaml")
        network.write_text(TRAINING, "utf-8")
        command = [sys.executable, "-m", "headway", "run", str(network), "--engine", "spark"]
        done = subprocess.run(
            [*command, "--state", str(Path(folder, "state")), "--output", f"pairs={Path(folder, 'pairs.jsonl')}"],
            env={**os.environ, **record_archive(unfinished)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # reading it to the end waits for the JVM, too
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_LONGEST,
            check=False,
        )
        if done.returncode or not unfinished.exists():
            last = next((line for line in reversed(done.stdout.splitlines()) if line.strip()), "it printed nothing")
            raise RunError(f"the archive was not written: {last.strip()}")
        unfinished.replace(archive)
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the archive was not written: the run took more than {_LONGEST:.0f} s") from error
    finally:
        unfinished.unlink(missing_ok=True)
        remove_temporary(folder)
