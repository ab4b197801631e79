"""The journal: what each micro-batch of a query covered and delivered, written down before Spark commits it.

Spark's checkpoint says where a query is, the results say what it delivered; the journal holds both to account. One
record for each micro-batch: the arrival numbers that it covered, a checksum of Spark's offset file, its files of
results and letters, and a checksum of every shard's state. Records lie in ``journal/<unit>/<batch>.json``; every FOLD
of them become one ``<last batch>.jsonl``, so that a long run is verified from few files. Every file is written whole.

What drop boxes let through, and from which arrival number on, lies beside it in ``sieves.json``. A query that loses a
process, or a run that was killed, repeats its last micro-batch. It must drop the same tuples then, so what is in force
is written down before a grant that it counts for is given.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.errors import RunError
from headway.sieves import Sieve
from headway.storage.checked import seal, unseal
from headway.storage.filesystems import FAILURES, TEMPORARY, Place, reason

FOLDER = "journal"
FOLD = 256
"""Single records that are folded into one file."""
_REMEMBERED = 4
"""Records that a running query may still ask for: Spark repeats at most the last micro-batch."""
_MEND = "restore it, or give another --state"


@dataclass(frozen=True, slots=True)
class Record:
    """What one micro-batch did."""

    batch: int
    after: int
    upto: int
    """It covered the arrival numbers above `after` up to `upto`."""
    offset: int | None = None
    """The checksum of Spark's file for this offset, where it was looked at."""
    results: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)
    """By output: the file of its results, its bytes and rows."""
    letters: str | None = None
    """The name of its dead letters."""
    states: Mapping[int, int] = field(default_factory=dict)
    """By shard: the checksum of its state afterwards."""
    sieves: bool = False
    """Whether drop boxes had been adjusted by then."""

    def to_line(self) -> bytes:
        """Return one line of JSON with a checksum."""
        values = {name: getattr(self, name) for name in Record.__slots__}
        return seal({**values, "states": list(self.states.items())}) + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Record:
        """Read what `to_line` wrote; a ValueError, KeyError or TypeError for anything else."""
        values: dict[str, Any] = unseal(line)
        results = {output: (one[0], one[1], one[2]) for output, one in values["results"].items()}
        return cls(**{**values, "results": results, "states": dict(values["states"])})


class Journal:
    """The records of one unit. Without a place they are remembered, not written. Used by one thread at a time."""

    def __init__(self, place: Place | None, unit: str) -> None:
        """Begin a journal; `open` reads one."""
        self._place = place
        self._folder = f"{FOLDER}/{unit}"
        self._singles: list[int] = []
        self._recent: deque[Record] = deque(maxlen=_REMEMBERED)

    @classmethod
    def open(cls, place: Place, unit: str) -> tuple[Journal, list[Record]]:
        """Read a unit's journal; a RunError names a file of it that is missing or damaged."""
        journal = cls(place, unit)
        place.make([journal._folder], False)
        records = list(journal._read())
        for expected, record in enumerate(records):
            if record.batch != expected:
                name = place.name(journal._file(expected, "json"))
                raise RunError(f"the journal's file '{name}' is missing; {_MEND}")
        journal._recent.extend(records[-_REMEMBERED:])
        return journal, records

    def _read(self) -> Iterator[Record]:
        assert self._place is not None
        names = [file.rpartition("/")[2].partition(".") for file in self._place.files(self._folder)]
        folds = sorted(int(stem) for stem, _, suffix in names if suffix == "jsonl" and stem.isdecimal())
        singles = sorted(int(stem) for stem, _, suffix in names if suffix == "json" and stem.isdecimal())
        folded = folds[-1] if folds else -1
        self._singles = [batch for batch in singles if batch > folded]
        waste = [self._file(batch, "json") for batch in singles if batch <= folded]
        waste += [f"{self._folder}/{stem}.{suffix}" for stem, _, suffix in names if suffix.endswith(TEMPORARY)]
        self._place.delete(waste)
        for file in [*(self._file(one, "jsonl") for one in folds), *(self._file(one, "json") for one in self._singles)]:
            try:
                lines = self._place.read(file).splitlines()
                yield from [Record.from_line(line) for line in lines]
            except (*FAILURES, ValueError, KeyError, TypeError, AttributeError) as error:
                name = self._place.name(file)
                raise RunError(f"the journal's file '{name}' is damaged: {reason(error)}; {_MEND}") from error

    @property
    def last(self) -> Record | None:
        """The newest record."""
        return self._recent[-1] if self._recent else None

    def at(self, upto: int) -> Record | None:
        """Return the recent record that ended at an arrival number."""
        return next((record for record in self._recent if record.upto == upto), None)

    def of(self, batch: int) -> Record | None:
        """Return the recent record of a micro-batch."""
        return next((record for record in self._recent if record.batch == batch), None)

    def write(self, record: Record) -> None:
        """Make a record durable: the next one, or the newest again."""
        again = self.last is not None and self.last.batch == record.batch
        if self._place is not None:
            if not again and len(self._singles) >= FOLD:
                self._fold()
            try:
                self._place.write(self._file(record.batch, "json"), record.to_line(), sync=True)
            except FAILURES as error:
                name = self._place.name(self._folder)
                raise RunError(f"cannot write the journal '{name}': {reason(error)}") from error
        if again:
            self._recent.pop()
        elif self._place is not None:
            self._singles.append(record.batch)
        self._recent.append(record)

    def _fold(self) -> None:
        assert self._place is not None
        files = [self._file(batch, "json") for batch in self._singles]
        data = b"".join(self._place.each(self._place.read, files))
        self._place.write(self._file(self._singles[-1], "jsonl"), data, sync=True)
        self._place.delete(files)
        self._singles = []

    def cut(self, last: int) -> None:
        """Forget the newest record if it is beyond a micro-batch: Spark has not committed it, and never will."""
        if self.last is not None and self.last.batch > last:
            self._recent.pop()
            if self._place is not None and self._singles:
                self._place.delete([self._file(self._singles.pop(), "json")])

    def _file(self, batch: int, suffix: str) -> str:
        return f"{self._folder}/{batch:010d}.{suffix}"


def journals(place: Place) -> list[str]:
    """Return the units that have a journal."""
    return sorted({file.split("/")[1] for file in place.files(FOLDER)})


SIEVES = "sieves.json"
_MOST = 256
"""Steps of a query that are remembered at most: long before that, what they are about is committed."""


class SieveHistory:
    """By query a row of steps: an arrival number, and by source the sieve that counts above it."""

    def __init__(self, place: Place) -> None:
        """Read what an earlier process of this run has written."""
        self._place = place
        self._lock = threading.Lock()
        self._steps: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._dirty = False
        self.written = SIEVES in place.files("")
        """Whether there is a file of it."""
        if self.written:
            try:
                saved = unseal(place.read(SIEVES))["steps"]
                self._steps = {unit: [(int(at), dict(sieves)) for at, sieves in steps] for unit, steps in saved.items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RunError(f"'{place.name(SIEVES)}' is damaged; restore it, or give another --state") from error

    def put(self, unit: str, position: int, source: str, sieve: Sieve | None) -> None:
        """Let a sieve count for the tuples of a source above an arrival number; None: all pass."""
        with self._lock:
            steps = self._steps.setdefault(unit, [])
            sieves = dict(steps[-1][1]) if steps else {}
            if sieve is None:
                sieves.pop(source, None)
            else:
                sieves[source] = sieve.to_mapping()
            if (steps[-1][1] if steps else {}) == sieves:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # nothing was granted since
            steps.append((position, sieves))
            del steps[:-_MOST]
            self._dirty = True

    def clear(self, unit: str, position: int) -> None:
        """Let everything pass above an arrival number."""
        with self._lock:
            steps = self._steps.get(unit)
            if not steps:
                return
            while steps and steps[-1][0] >= position:
                steps.pop()  # written for a grant that never came
            if steps and steps[-1][1]:
                steps.append((position, {}))
            self._dirty = True

    def write(self, sync: bool) -> None:
        """Write down what has changed, before it counts."""
        with self._lock:
            if self._dirty:
                self._place.write(SIEVES, seal({"steps": self._steps}), sync=sync)
                self._dirty, self.written = False, True

    def at(self, unit: str, after: int) -> dict[str, Any]:
        """Return by source the sieves that count for a micro-batch that begins after an arrival number."""
        with self._lock:
            steps = self._steps.get(unit, [])
            place = bisect_right([position for position, _ in steps], after)
            return steps[place - 1][1] if place else {}

    def share(self, unit: str, after: int) -> float:
        """Return which share of a query's tuples passes in a micro-batch that begins after an arrival number."""
        return _share(self.at(unit, after))

    def kept(self, unit: str) -> list[tuple[int, float]]:
        """Return from which arrival numbers on which share of a query's tuples was kept."""
        with self._lock:
            return [(position + 1, _share(sieves)) for position, sieves in self._steps.get(unit, [])]


def _share(sieves: Mapping[str, Any]) -> float:
    """Return what drop boxes keep that a site has put at all its sources: the same share."""
    return float(min((sieve["keep"] for sieve in sieves.values()), default=1.0))
