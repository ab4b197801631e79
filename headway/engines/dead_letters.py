"""The network's dead letters: all are counted and written where the user asked, the first or the last are kept."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headway.clock import Clock, WallClock
from headway.connectors.kept import Kept
from headway.connectors.texts import plain
from headway.errors import RunError
from headway.expressions.timestamps import to_python
from headway.kernels.kernel import DeadLetter
from headway.network.keep import Keep

if TYPE_CHECKING:
    from headway.connectors.protocol import Malformed

DEAD_LETTERS = pa.schema(
    [("box", pa.string()), ("reason", pa.string()), ("tuple", pa.string()), ("where", pa.string())]
)
"""The columns of a run's dead letters: `tuple` is JSON text, `where` the position of a malformed input row."""

KEPT = 10_000
LetterRow = tuple[str, str, str, str]
"""A dead letter as a row of DEAD_LETTERS."""


def letter_rows(letter: DeadLetter) -> list[LetterRow]:
    """Return the tuples on which a box failed as rows, each tuple as JSON text."""
    batch = letter.train.to_batch(letter.schema.to_arrow())
    columns = [to_python(column) for column in batch.columns]
    rows = [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [(letter.box, letter.reason, _json(row), "") for row in rows]


def _json(row: dict[str, Any]) -> str:
    """Return a tuple as JSON, with values as in a sink's: ISO 8601 times, and text for what JSON has no numbers for."""
    return json.dumps(plain(row), ensure_ascii=False, default=str)


_VALUE = ", not "
"""What precedes the value in a reason."""
_REASONS = 1000
"""How many distinct reasons are counted."""


class DeadLetters:
    """Collects tuples and rows that could not be processed; in a strict run the first one stops the run."""

    def __init__(
        self,
        strict: bool,
        write: Callable[[pa.RecordBatch], None] | None,
        keep: Keep | None = None,
        clock: Clock | None = None,
        look: Callable[[], None] | None = None,
    ) -> None:
        """Keep the first letters, or the last ones as `keep` says; pass all of them to `write` if given.

        `look` is called several times a second, for what is written to.
        """
        self._last = None if keep is None else Kept[Sequence[LetterRow]](keep, clock or WallClock(), len)
        self._strict = strict
        self._write, self._look = write, look
        self._lock = threading.Lock()
        self._kept: list[tuple[str, str, str, str]] = []
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        """By box or source and by reason without its value: a thousand invalid times share one reason."""
        self._first: dict[tuple[str, str], str] = {}
        self._several: set[tuple[str, str]] = set()
        """Those that came with more than one value."""

    @property
    def total(self) -> int:
        """Number of letters so far."""
        return sum(self.counts.values())

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        """Add tuples on which a box failed."""
        for letter in letters:
            self.add(letter_rows(letter))

    def refuse(self, rows: Sequence[Malformed]) -> None:
        """Add malformed input rows."""
        self.add([(row.source, row.reason, row.text, row.where) for row in rows])

    def add(self, rows: Sequence[LetterRow]) -> None:
        """Add letters as rows: box or source, reason, tuple, position. Raises RunError in a strict run."""
        if not rows:
            return
        box, reason, text, where = rows[0]
        if self._strict:
            raise RunError(f"box '{box}': {reason}, on the tuple {text}" if not where else f"{where}: {reason}")
        with self._lock:
            for row in rows:
                self.counts[row[0]] += 1
                self._count(row[0], row[1])
            if self._last is not None:
                self._last.add(tuple(rows))
            else:
                self._kept += rows[: max(0, KEPT - len(self._kept))]
            if self._write is not None:
                self._write(_batch(rows))

    def _count(self, box: str, reason: str) -> None:
        key = box, reason.rpartition(_VALUE)[0] or reason
        if key not in self.reasons and len(self.reasons) >= _REASONS:
            return
        self.reasons[key] += 1
        first = self._first.setdefault(key, reason)
        if first != reason:
            self._several.add(key)

    def _reason(self, key: tuple[str, str]) -> str:
        """Return a reason with its value, or with the first of several as an example."""
        first, without = self._first[key], key[1]
        return f"{without}; got {first.removeprefix(without + _VALUE)}, for example" if key in self._several else first

    def table(self) -> pa.Table:
        """Return the letters that are kept."""
        if self._last is None:
            return pa.Table.from_batches([_batch(self._kept)], DEAD_LETTERS)
        items, extra = self._last.items()
        return pa.Table.from_batches([_batch([row for rows in items for row in rows][extra:])], DEAD_LETTERS)

    @property
    def ageing(self) -> bool:
        """Whether `look` has to be called."""
        return self._last is not None or self._look is not None

    def look(self) -> None:
        """Drop the letters that are too old, and complete their file if it is due."""
        if self._last is not None:
            self._last.drop()
        if self._look is not None and self._lock.acquire(blocking=False):  # a write may block
            try:
                self._look()
            finally:
                self._lock.release()

    def summary(self) -> dict[str, Any]:
        """Return the counts and the most frequent reasons."""
        most = [
            {"box": key[0], "reason": self._reason(key), "tuples": count} for key, count in self.reasons.most_common(10)
        ]
        return {"total": self.total, "by": dict(self.counts), "reasons": most}


def _batch(rows: Sequence[tuple[str, str, str, str]]) -> pa.RecordBatch:
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(4)]
    return pa.RecordBatch.from_arrays(columns, schema=DEAD_LETTERS)
