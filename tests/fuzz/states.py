"""The files of a saved run with damage: what reads them says so, or has not been touched by it."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from headway.checking import CheckedNetwork, check
from headway.engines.runs import RunSettings
from headway.engines.spark.driver.state import State, lock_directory
from headway.files import load
from headway.network.schema import Schema
from headway.scheduling.schedule import Schedule
from headway.storage.log import Log, read_slice
from headway.trains import Tick
from tests.fuzz.commands import NETWORK
from tests.fuzz.judging import expect
from tests.fuzz.nasty import mutate_bytes
from tests.storage.test_log import train

SCHEMA = Schema.parse("a bigint, s string")


@lru_cache
def _saved() -> Path:
    """Return the folder of a small log; made once in a process."""
    folder = Path(mkdtemp(prefix="headway-fuzz-log-"))
    log = Log(str(folder / "log"), {"a": SCHEMA}, sync=False)
    for at in range(4):
        numbers = list(range(at * 10, at * 10 + 7))
        log.append({"a": train(numbers)}, numbers[-1], at, ticks=[Tick(numbers[-1], at)], positions={"a": 7 * (at + 1)})
    return folder


def _contents(folder: Path) -> Any:
    log = Log(str(folder), {"a": SCHEMA}, sync=False)
    trains = [read_slice(piece, SCHEMA) for piece in log.slices(["a"], -1, log.issued)]
    values = [[column.values.tolist() for column in one.columns[:1]] for one in trains]
    return log.issued, log.positions, values, [one.numbers.tolist() for one in trains]


def state(random: Random, size: int, folder: Path) -> None:
    """Damage one file of a log, or of a run's plan, and open it."""
    if random.random() < 0.5:
        _plan(random, size, folder)
        return
    place = folder / "log"
    shutil.copytree(_saved() / "log", place)
    file = random.choice(sorted(path for path in place.rglob("*") if path.is_file()))
    file.write_bytes(mutate_bytes(random, file.read_bytes(), size))
    found = _contents(place)
    expect(found == _contents(_saved() / "log"), f"damage to {file.name} is read past")


def _plan(random: Random, size: int, folder: Path) -> None:
    checked = check(load(NETWORK))
    place = folder / "state"
    place.mkdir()
    _open(place, checked)
    file = place / "plan.json"
    expect(file.is_file(), "a state has a plan")
    file.write_bytes(mutate_bytes(random, file.read_bytes(), size))
    _open(place, checked)


def _open(place: Path, checked: CheckedNetwork) -> None:
    settings = RunSettings(Schedule.parse("qos"), {}, {}, state=str(place))
    with ExitStack() as stack:
        State(lock_directory(str(place), True, stack), checked, settings, 2)
