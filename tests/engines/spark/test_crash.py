"""kill -9 of the driver, its JVM and all workers at any moment: started again, the run ends as if nothing had been."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pytest

from tests.engines.spark.crashing import FILES, Process, run_local, start_everything, write_events

LOGGED = "log/commits/*"
PLANNED = "checkpoints/*/offsets/[0-9]*"
DELIVERED = "results/*/*.arrow"
COMMITTED = "checkpoints/*/commits/[0-9]*"
WRITING = "checkpoints/*/offsets/*"
"""Also what is not complete."""
KINDS = (WRITING, LOGGED, PLANNED, DELIVERED, COMMITTED)


class Crashes:
    """Starts a run again and again on one state, and kills it."""

    def __init__(self, folder: Path, seed: int, events: int, rate: float, train: int, units: str) -> None:
        self.chance = random.Random(seed)
        self.events, self.state, self.out = folder / "events.csv", folder / "state", folder / "out"
        self.out.mkdir()
        self._folder, self.rate, self.train, self._units = folder, rate, train, units
        self.kills = self.between = 0
        write_events(self.events, seed, events)

    def start(self) -> Process:
        how: dict[str, Any] = {"rate": self.rate, "train": self.train, "units": self._units}
        return start_everything(self.events, self.state, self.out, log=self._folder / "said", **how)

    def crash(self, until: Callable[[Process], bool]) -> None:
        """Start, and kill when `until` returns; it says whether there is still something to kill."""
        with self.start() as process:
            assert until(process), f"the run ended before it was killed:\n{process.said}"
        self.kills += 1
        self.between += uncommitted(self.state)
        assert not any((self.out / file).exists() for file in FILES.values()), "a file appeared before it was complete"

    def after(self, kind: str, count: int = 1, delay: float = 0.0) -> Callable[[Process], bool]:
        """Return what waits for new files of a kind in the state directory, and a little longer."""

        def wait(process: Process) -> bool:
            known = set(self.state.glob(kind))
            found = process.wait_for(lambda: len(set(self.state.glob(kind)) - known) >= count)
            time.sleep(delay)
            return found and not process.ended

        return wait

    def at_random(self) -> Callable[[Process], bool]:
        """Return one of all moments: while Spark starts, or behind a step of some micro-batch."""
        if self.chance.random() < 0.2:
            pause = self.chance.uniform(0.0, 12.0)

            def sleep(process: Process) -> bool:
                time.sleep(pause)
                return not process.ended

            return sleep
        delay = self.chance.choice((0.0, 0.0, self.chance.uniform(0.0, 0.4)))
        return self.after(self.chance.choice(KINDS), self.chance.randint(1, 6), delay)

    def complete(self) -> None:
        """Start for the last time; the result must be that of an undisturbed run on the local engine."""
        with self.start() as process:
            assert process.wait() == 0, process.said
            process.assert_alone()
        local = self._folder / "local"
        tables = run_local(self.events, local)
        for name, table in tables.items():
            assert_rows(name, feather.read_table(self.out / f"{name}.arrow"), table)
        for file in FILES.values():
            assert (self.out / file).read_bytes() == (local / file).read_bytes(), f"'{file}' differs"
        assert letters(self.out) == letters(local)


def letters(folder: Path) -> list[str]:
    """Return the dead letters; those of different boxes come in any order."""
    return sorted((folder / "letters.csv").read_text().splitlines())


def assert_rows(name: str, found: pa.Table, expected: pa.Table) -> None:
    """Compare row for row."""
    rows, others = found.to_pylist(), expected.to_pylist()
    first = next((at for at, pair in enumerate(zip(rows, others, strict=False)) if pair[0] != pair[1]), None)
    assert (first, len(rows)) == (None, len(others)), f"output '{name}' differs at {first}"
    assert found.schema == expected.schema


def uncommitted(state: Path) -> bool:
    """Return whether results were written of a micro-batch that Spark has not committed."""
    plan = state / "plan.json"
    for unit in json.loads(plan.read_text())["units"] if plan.exists() else ():
        results = state.glob(f"results/*/*{unit['id']}-*.arrow")
        written = [int(path.name.partition(".")[0].rpartition("-")[2]) for path in results]
        commits = [int(path.name) for path in state.glob(f"checkpoints/{unit['id']}/commits/[0-9]*")]
        if max(written, default=-1) > max(commits, default=-1):
            return True
    return False


@pytest.mark.slow  # the quick form, with several sources, is in test_crash_sources
def test_three_kills(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path, seed=1, events=400, rate=0, train=100, units="one")
    crashes.crash(crashes.after(DELIVERED))
    crashes.crash(crashes.after(COMMITTED, delay=crashes.chance.uniform(0.0, 0.4)))
    crashes.crash(crashes.after(DELIVERED, 2))
    assert crashes.between >= 1
    crashes.complete()


@pytest.mark.slow
def test_kills_while_spark_writes_the_first_offsets(tmp_path: Path) -> None:
    """What it was writing is left, and it begins no stateful query beside that."""
    crashes = Crashes(tmp_path, seed=3, events=400, rate=0, train=100, units="one")
    for _ in range(2):
        crashes.crash(crashes.after(WRITING))
    crashes.complete()


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path, seed=11, events=6000, rate=80, train=40, units="qos")
    while crashes.kills < 20:
        crashes.crash(crashes.at_random())
    assert crashes.between >= 1
    crashes.rate, crashes.train = 0.0, 1000  # the rest need not take as long
    crashes.complete()
