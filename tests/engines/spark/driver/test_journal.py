"""The journal of micro-batches: read back whole, or the file that is not is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.engines.spark.driver.journal import Journal, Record, journals
from headway.errors import RunError
from headway.storage import records as module
from headway.storage.filesystems import Place, locate


def record(batch: int) -> Record:
    results = {"out": (f"t-0s-{batch:010d}.00000000.arrow", 100, batch)}
    return Record(batch, batch - 1, batch, 7, results, f"t-0s-{batch:010d}", {1: batch, 5: 3}, batch > 2)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(module, "FOLD", 4)
    return locate(str(tmp_path))


def write(place: Place, count: int) -> Journal:
    journal = Journal(place, "0s")
    assert journal.found == []
    for batch in range(count):
        journal.write(record(batch))
    return journal


@pytest.mark.parametrize("count", [0, 1, 4, 5, 13])
def test_records_are_read_back(place: Place, count: int) -> None:
    journal = write(place, count)
    again = Journal(place, "0s")
    assert again.found == [record(batch) for batch in range(count)]
    assert again.last == journal.last == (record(count - 1) if count else None)
    assert journals(place) == (["0s"] if count else [])
    assert len(place.files("journal")) < 8
    if count:
        assert again.at(count - 1) == again.of(count - 1) == record(count - 1)
        assert again.at(count) is None


def test_the_newest_is_written_again_or_forgotten(place: Place) -> None:
    journal = write(place, 6)
    newer = Record(5, 4, 5, states={9: 9})
    journal.write(newer)
    assert Journal(place, "0s").found[-1] == newer
    journal.cut(5)
    assert journal.last == newer
    journal.cut(4)
    assert Journal(place, "0s").found[-1] == journal.last == record(4)


def test_without_a_place_it_only_remembers() -> None:
    journal = Journal(None, "0s")
    for batch in range(1000):
        journal.write(record(batch))
    assert journal.last == record(999)
    assert journal.at(998) == record(998)
    assert journal.at(5) is None


@pytest.mark.parametrize("kind", ["flip", "shorten", "delete"])
def test_damage_is_named(place: Place, kind: str) -> None:
    write(place, 10)
    files = sorted(place.files("journal"))
    assert len(files) > 3
    for file in files[:-1] if kind == "delete" else files:  # whether the newest is missing, Spark's commits tell
        path = Path(place.base, file)
        before = path.read_bytes()
        if kind == "flip":
            path.write_bytes(before[:20] + bytes([before[20] ^ 4]) + before[21:])
        elif kind == "shorten":
            path.write_bytes(before[:-5])
        else:
            path.unlink()
        with pytest.raises(RunError, match=r"journal/0s/\d+\.jsonl?' is (damaged|missing).*another --state"):
            Journal(place, "0s")
        path.write_bytes(before)


def test_what_a_kill_leaves_is_no_damage(place: Place) -> None:
    """A file that is not complete, and single records that were folded and not deleted yet."""
    write(place, 5)
    folder = Path(place.base, "journal", "0s")
    (folder / "0000000005.json.tmp").write_bytes(b'{"check"')
    (folder / "0000000003.json").write_bytes(record(3).to_line())
    journal = Journal(place, "0s")
    assert journal.found == [record(batch) for batch in range(5)]
    assert len(list(folder.iterdir())) == 2
    journal.write(record(5))
    assert len(Journal(place, "0s").found) == 6
