"""Outputs in parts on Spark: with a state, every tuple is in one part, wherever the driver dies; without Spark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.clock import Clock, ManualClock
from headway.connectors.protocol import Writer
from headway.engines.opening import Destination
from headway.engines.spark.driver.delivery import OutputResults
from headway.errors import RunError
from headway.network import Output
from headway.network.keep import Keep, Roll
from headway.network.schema import Schema
from headway.storage.filesystems import Place, locate
from headway.trains import Train

SCHEMA = Schema.parse("a int")


class Killed(Exception):  # noqa: N818
    """The process ends here."""


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Writer]]:
    """The sinks of all processes, whose open files are closed as the system closes those of a killed process."""
    writers: list[Writer] = []
    really = Destination.open

    def open_(self: Destination, clock: Clock) -> Writer:
        writers.append(really(self, clock))
        return writers[-1]

    monkeypatch.setattr(Destination, "open", open_)
    yield writers
    die(writers)


def die(writers: list[Writer]) -> None:
    while writers:
        writers.pop().abort()


class Driver:
    """One process: delivers micro-batches, and journals them as the engine does."""

    def __init__(self, folder: Path, journal: list[str], keep: Keep | None = None) -> None:
        self.journal = journal
        output = Output("o", "b", keep=keep, roll=Roll.parse("12 B"))
        to = Destination(output, SCHEMA, folder / "parts" / "o.csv", None, given=True)
        (folder / "parts").mkdir(exist_ok=True)
        self.place = locate(str(folder / "state"))
        self.results = OutputResults(to, ManualClock(), place=self.place, delivered=list(journal))

    def deliver(self, batch: int, values: list[int]) -> None:
        made = pa.record_batch({"a": pa.array(values, pa.int32())})
        kept = self.results.deliver(Train.from_batch(made), "unit-0s", batch)
        if kept is not None and kept[0] not in self.journal:
            self.journal.append(kept[0])

    def complete(self) -> None:
        self.results.prepare()
        self.results.writer.close()


def parts(folder: Path) -> list[list[int]]:
    found = sorted(path for path in (folder / "parts").iterdir() if not path.name.startswith("."))
    return [[int(line) for line in path.read_text().splitlines()[1:]] for path in found]


def test_a_saved_run_continues_behind_its_parts(tmp_path: Path) -> None:
    journal: list[str] = []
    first = Driver(tmp_path, journal)
    first.deliver(0, [1, 2, 3])
    first.deliver(1, [4, 5, 6, 7])
    assert parts(tmp_path) == [[1, 2, 3, 4, 5]]
    again = Driver(tmp_path, journal)
    again.deliver(1, [4, 5, 6, 7])  # a replay of what was delivered
    again.deliver(2, [8])
    again.complete()
    assert parts(tmp_path) == [[1, 2, 3, 4, 5], [6, 7, 8]]
    assert Driver(tmp_path, journal).results.delivery.tuples == 8


def test_deleted_parts_do_not_come_back(tmp_path: Path) -> None:
    journal: list[str] = []
    first = Driver(tmp_path, journal)
    first.deliver(0, list(range(10)))
    first.deliver(1, [1])
    for path in (tmp_path / "parts").iterdir():
        path.unlink()
    again = Driver(tmp_path, journal)
    again.complete()
    assert parts(tmp_path) == [[1]]


@pytest.mark.parametrize("keep", [None, Keep(tuples=6)], ids=str)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), min_size=1, max_size=6),
    seed=st.integers(0, 10_000),
)
def test_every_tuple_is_in_one_part(
    tmp_path_factory: pytest.TempPathFactory,
    opened: list[Writer],
    keep: Keep | None,
    batches: list[list[int]],
    seed: int,
) -> None:
    """The process is killed at random writes: before or after a note, a name or a journal record."""
    folder, chance = tmp_path_factory.mktemp("killed"), random.Random(seed)
    journal: list[str] = []
    write = Place.write
    with pytest.MonkeyPatch.context() as patched:
        left = [3]

        def risky(self: Place, *given: object, **how: object) -> None:
            before = chance.random() < 0.5
            kill = left[0] > 0 and chance.random() < 0.2
            if not (kill and before):
                write(self, *given, **how)  # type: ignore[arg-type]
            if kill:
                left[0] -= 1
                raise Killed

        patched.setattr(Place, "write", risky)
        while True:
            try:
                driver = Driver(folder, journal, keep)
                for number, values in enumerate(batches):
                    before = list(journal)
                    driver.deliver(number, values)
                    if left[0] and chance.random() < 0.1:
                        left[0] -= 1
                        journal[:] = before  # killed before the journal had it
                        raise Killed
                driver.complete()
                break
            except Killed:
                die(opened)
    values = [value for batch in batches for value in batch]
    found = [value for part in parts(folder) for value in part]
    if keep is None:
        assert found == values
    else:
        assert found == values[len(values) - len(found) :]
        assert len(found) >= min(6, len(values))


def test_a_damaged_note_is_named(tmp_path: Path) -> None:
    journal: list[str] = []
    first = Driver(tmp_path, journal)
    first.deliver(0, list(range(10)))
    note = tmp_path / "state" / "results" / "o" / "parts.json"
    note.write_bytes(note.read_bytes().replace(b"upto", b"upta"))
    with pytest.raises(RunError, match=r"parts\.json is damaged"):
        Driver(tmp_path, journal)
