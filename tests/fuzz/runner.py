"""Carries cases out in processes of their own, which may crash, hang or want too much memory.

A worker gets cases on its standard input, a line each, and answers each with a line of JSON. What it does not answer in
time, or dies of, is a finding, too; then another worker goes on.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.judging import Case, TooLongError, judge

SECONDS = 10
"""A case takes no longer."""
GRACE = 5
"""A worker that has not noticed by itself is killed after so long besides."""
START = 120
"""A worker may need so long to start on a busy machine."""
BYTES = 4 << 30
"""Of address space, which is more than what is used: Arrow reserves some."""
ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that went wrong, where, and what a person wants to read."""

    case: Case
    place: str
    text: str

    def __str__(self) -> str:
        return f"python -m tests.fuzz {self.case}   # {self.place}\n{self.text}"


def plan(cases: int, seed: int, kinds: Sequence[str] = ()) -> list[Case]:
    """Return so many cases, of all kinds or of these, by a seed."""
    from tests.fuzz.kinds import KINDS

    random = Random(seed)
    names = list(kinds or KINDS)
    chosen = random.choices(names, [KINDS[name][1] for name in names], k=cases)
    return [Case(kind, random.randrange(10**9), random.randrange(1, 5)) for kind in chosen]


def work() -> None:
    """Be a worker, until there are no more cases."""
    from tests.fuzz.kinds import FOR_TESTS, KINDS

    kinds = KINDS | FOR_TESTS
    lines, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    def ring(number: int, frame: Any) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, ring)
    answers.write("ready\n")
    answers.flush()
    for line in lines:
        case = Case.parse(line.strip())
        signal.alarm(SECONDS)
        try:
            found = judge(case, kinds[case.kind][0])
        except TooLongError:  # it rang on the way out
            found = None
        finally:
            signal.alarm(0)
        answers.write(json.dumps(found) + "\n")
        answers.flush()


class Worker:
    """A process that carries cases out."""

    def __init__(self) -> None:
        """Start it at the first case."""
        self._process: subprocess.Popen[str] | None = None

    def ask(self, case: Case) -> Finding | None:
        """Carry a case out."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{case}\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._dead(case, "died")
        ready, _, _ = select.select([process.stdout], [], [], SECONDS + GRACE)
        if not ready:
            process.kill()
            return self._dead(case, "hang")
        line = process.stdout.readline()
        if not line:
            return self._dead(case, "died")
        found = json.loads(line)
        return None if found is None else Finding(case, *found)

    def stop(self) -> None:
        """Let it go."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], START)[0] or not self._process.stdout.readline():
            self._process.kill()
            raise RuntimeError("no worker starts: try 'python -m tests.fuzz csv:1:1'")
        return self._process

    def _dead(self, case: Case, how: str) -> Finding:
        assert self._process is not None
        code = self._process.wait()
        self.stop()
        return Finding(case, f"{how} {code}", f"the process {how} (code {code})")


def run(cases: Sequence[Case], jobs: int, tell: Callable[[str], None] = lambda text: None) -> list[Finding]:
    """Carry cases out side by side; return the first finding of every place, as small as its seed makes it."""
    found: dict[str, Finding] = {}
    counts: dict[str, int] = {}
    left, lock, done = iter(cases), threading.Lock(), [0]
    began = time.monotonic()

    def go_on() -> None:
        worker = Worker()
        for case in _shared(left, lock):
            finding = worker.ask(case)
            with lock:
                done[0] += 1
                if done[0] % 1000 == 0:
                    tell(
                        f"{done[0]:,} of {len(cases):,} cases, {time.monotonic() - began:.0f} s, {len(found)} findings"
                    )
                new = finding is not None and finding.place not in found
                if finding is not None:
                    counts[finding.place] = counts.get(finding.place, 0) + 1
                    found.setdefault(finding.place, finding)
            if new and finding is not None:
                found[finding.place] = smallest(worker, finding)
                tell(str(found[finding.place]))
        worker.stop()

    threads = [threading.Thread(target=go_on) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [Finding(one.case, f"{place}, {counts[place]} times", one.text) for place, one in found.items()]


def smallest(worker: Worker, finding: Finding) -> Finding:
    """Return the case of the least size, with the same seed or one near it, that goes wrong at the same place."""
    for size in range(1, finding.case.size):
        for seed in range(finding.case.seed, finding.case.seed + 20):
            again = worker.ask(Case(finding.case.kind, seed, size))
            if again is not None and again.place == finding.place:
                return again
    return finding


def _shared(left: Iterator[Case], lock: threading.Lock) -> Iterator[Case]:
    while True:
        with lock:
            case = next(left, None)
        if case is None:
            return
        yield case
