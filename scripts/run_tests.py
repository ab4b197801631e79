"""Run all tests: parts of them side by side, one on each core; and at the end, alone, those that measure real time.

A part is what needs Spark (one process, so that all share a session), each folder of `tests`, and the files beside the
folders. A part's output is shown when it ends. Exit code 1 if one failed. Arguments are handed to every pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent.parent / "tests"
LONGEST = ("engines", "behaviour", "experiments", "laws", "kernels", "files", "cli", "benchmarks")
"""Parts that take minutes begin first, so that no core is idle in the end."""
NOTHING = 5
"""What pytest returns if it had nothing to do."""


class Part(NamedTuple):
    """Some tests that run in a process of their own."""

    name: str
    arguments: tuple[str, ...]


SPARK = Part("spark", ("-m", "spark and not slow and not alone", "--durations=15"))
ALONE = Part("alone", ("-m", "alone and not slow"))


def parts(tests: Path = TESTS) -> list[Part]:
    """Return what can run side by side, the longest first; every test file is in exactly one part."""
    chosen = ("-m", "not spark and not slow and not alone")
    folders = sorted({path.relative_to(tests).parts[0] for path in tests.glob("*/**/test_*.py")})
    made = [Part(name, (*chosen, str(tests / name))) for name in folders]
    made.append(Part("files", (*chosen, *sorted(map(str, tests.glob("test_*.py"))))))
    made.sort(key=lambda part: LONGEST.index(part.name) if part.name in LONGEST else len(LONGEST))
    return [SPARK, *made]


def run(part: Part, more: Sequence[str]) -> bool:
    """Run a part, show what it printed, and return whether all is well."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", *part.arguments, *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    well = done.returncode in (0, NOTHING)
    print(
        f"== {part.name}: {'passed' if well else 'FAILED'} after {time.monotonic() - began:.0f} s\n{done.stdout}",
        flush=True,
    )
    return well


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything."""
    more = sys.argv[1:] if arguments is None else arguments
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as lanes:
        under_way = {lanes.submit(run, part, more): part.name for part in parts()}
        failed += [under_way[one] for one in as_completed(under_way) if not one.result()]
    if not run(ALONE, more):
        failed.append(ALONE.name)
    print(f"FAILED: {', '.join(failed)}" if failed else "all tests passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
