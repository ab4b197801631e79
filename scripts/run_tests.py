"""Check everything: parts side by side; and at the end, alone, the tests that measure real time.

A part is what shares a session on Spark, what starts Spark in processes of its own, some folders of `tests` each, and
the checks of style and types. There is one part more at work than there are cores: those on Spark wait much of their
time. A part's output is shown when it ends, and what failed once more at the very end, where a cut log still has it.
Exit code 1 if one failed. Arguments are handed to every pytest.
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
TOGETHER = (
    ("experiments",),
    ("behaviour",),
    ("kernels", "expressions", "laws", "scheduling", "adaptive"),
    ("engines",),
    ("cli", "benchmarks", "connectors"),
)
"""Folders that are tested in one process, the longest first. What is not named is one more part, the shortest."""
SPARK = "spark"
"""A file with tests on Spark has this word in its path or text; `conftest` sees to it."""
NOTHING = 5
"""What pytest returns if it had nothing to do."""
LAST_LINES = 60
"""How much of a failed part is shown again at the end."""


class Part(NamedTuple):
    """What runs in a process of its own: the arguments of Python."""

    name: str
    arguments: tuple[str, ...]


def tests(name: str, which: str, *arguments: object) -> Part:
    """Return a part of the tests: which marks, and which places or options."""
    return Part(name, ("-m", "pytest", "-m", f"{which} and not slow", *map(str, arguments)))


def mentioning(word: str) -> list[Path]:
    """Return the files of tests with a word in their path or text: to look into all of them takes ten seconds."""
    files = sorted(TESTS.rglob("test_*.py"))
    return [path for path in files if word in path.relative_to(TESTS).as_posix() or word in path.read_text("utf-8")]


SESSION = tests("session", "session and not alone", *mentioning(SPARK), "--durations=15")
PROCESSES = tests("spark", "spark and not session and not alone", *mentioning(SPARK), "--durations=15")
ALONE = tests("alone", "alone", *mentioning("mark.alone"))
STYLE = (
    Part("ruff", ("-m", "ruff", "check", ".")),
    Part("format", ("-m", "ruff", "format", "--check", ".")),
    Part("mypy", ("-m", "mypy")),
)


def parts() -> list[Part]:
    """Return what can run side by side; every test file is in exactly one part, but for the tests on Spark."""
    which = "not spark and not alone"
    named = {name for some in TOGETHER for name in some}
    made = [tests(some[0], which, *(TESTS / name for name in some)) for some in TOGETHER]
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/test_*.py")}
    others = [TESTS / name for name in sorted(folders - named)]
    made.append(tests("others", which, *others, *sorted(TESTS.glob("test_*.py"))))
    return [SESSION, PROCESSES, *made, *STYLE]


def run(part: Part, more: Sequence[str]) -> str | None:
    """Run a part, show what it printed, and return the end of that if it failed."""
    began = time.monotonic()
    command = [sys.executable, *part.arguments, *(more if "pytest" in part.arguments else ())]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    well = done.returncode in (0, NOTHING)
    took = f"{'passed' if well else 'FAILED'} after {time.monotonic() - began:.0f} s"
    print(f"== {part.name}: {took}\n{done.stdout}", flush=True)
    return None if well else "\n".join(done.stdout.splitlines()[-LAST_LINES:])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything."""
    more = sys.argv[1:] if arguments is None else arguments
    # Tests start hundreds of processes: where Python may not keep what it has compiled, each compiles the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    failed: dict[str, str] = {}
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as lanes:
        under_way = {lanes.submit(run, part, more): part.name for part in parts()}
        for one in as_completed(under_way):
            if (last := one.result()) is not None:
                failed[under_way[one]] = last
    if (last := run(ALONE, more)) is not None:
        failed[ALONE.name] = last
    for name, last in failed.items():
        print(f"== the end of {name}, which FAILED\n{last}\n")
    print(f"FAILED: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
