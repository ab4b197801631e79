"""Feed batches stored on disk, from the time their origin counts them as read until the log has them.

A feed commits a batch once it is stored here. Each batch is therefore read once, even if its origin would order it
differently the next time, and however much of it had reached the log when the process died.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from headway.connectors.protocol import Malformed
from headway.errors import InputError, RunError
from headway.storage.checked import RESTORE, read_table, write_table
from headway.storage.filesystems import FAILURES, locate, reason

_FOLDER = "batches"
_NAME = re.compile(r"(\d+)-(\d+)-(\d+)-(\d+)-(\d+)\.[0-9a-f]{8}\.arrow")
_REFUSED = b"headway.malformed"


class SpooledBatch(NamedTuple):
    """A batch in the spool: its number at its origin, and the ranges of its tuples and malformed rows."""

    batch: int
    first: int
    upto: int
    first_refused: int
    upto_refused: int

    @property
    def name(self) -> str:
        """The file name within the spool, without the checksum."""
        return f"{_FOLDER}/{self.batch:010d}-{self.first}-{self.upto}-{self.first_refused}-{self.upto_refused}.arrow"


@dataclass(frozen=True, slots=True)
class Unlogged:
    """The part of a batch that is not in the log yet."""

    table: pa.Table
    malformed: tuple[Malformed, ...]


class Spool:
    """The stored batches of one source. Used by one thread at a time."""

    def __init__(self, folder: str, schema: pa.Schema, source: str, tuples: int, refused: int) -> None:
        """Open what an earlier run left; the log already has `tuples` and `refused` of this source."""
        self._schema, self._source = schema, source
        self._tuples, self._refused = tuples, refused
        try:
            self._place = locate(folder)
            self._place.make([_FOLDER], True)
            names = [name.rpartition("/")[2] for name in self._place.files(_FOLDER)]
        except FAILURES as error:
            raise self._failed(folder, error) from error
        found = [match for match in map(_NAME.fullmatch, names) if match]
        self._names = {SpooledBatch(*map(int, match.groups())): f"{_FOLDER}/{match[0]}" for match in found}
        self._kept = sorted(self._names)
        self._check_gaps()

    def _check_gaps(self) -> None:
        """Raise if the spool lacks a batch that its origin counts as read."""
        commits = [name.rpartition("/")[2] for name in self._place.files("checkpoint/commits")]
        committed = max((int(name) for name in commits if name.isdecimal()), default=-1)
        numbers = [one.batch for one in self._kept]
        gap = next((before + 1 for before, after in pairwise(numbers) if after != before + 1), None)
        if gap is None and committed > self.newest:
            gap = committed
        if gap is None and self._kept and self._kept[0].first > self._tuples:
            gap = self._kept[0].batch - 1
        if gap is not None:
            where = self._place.name(_FOLDER)
            raise InputError(f"source '{self._source}': '{where}' has no file for batch {gap} any more; {RESTORE}")

    @property
    def newest(self) -> int:
        """The number of the last batch stored; -1 before the first."""
        return self._kept[-1].batch if self._kept else -1

    def rest(self) -> Iterator[Unlogged]:
        """Yield what the log does not have yet, in order."""
        for kept in list(self._kept):
            skip, forget = self._tuples - kept.first, self._refused - kept.first_refused
            if kept.upto <= self._tuples and kept.upto_refused <= self._refused:
                continue
            try:
                table = read_table(self._place.name(self._names[kept]))
            except RunError as error:
                raise InputError(f"source '{self._source}': {error}") from error
            rows = json.loads((table.schema.metadata or {}).get(_REFUSED, b"[]"))
            table = table.replace_schema_metadata(None)
            if not table.schema.equals(self._schema):
                raise InputError(
                    f"source '{self._source}': the saved run has taken tuples with other fields "
                    f"({table.schema.to_string().replace(chr(10), ', ')}) that are not processed yet; run the network "
                    "as it was until they are, or give another --state"
                )
            malformed = tuple(Malformed(self._source, *row) for row in rows[max(0, forget) :])
            yield Unlogged(table.slice(min(max(0, skip), table.num_rows)), malformed)

    def keep(self, batch: int, table: pa.Table, malformed: Sequence[Malformed]) -> None:
        """Store a batch; it is durable when this returns."""
        last = self._kept[-1] if self._kept else SpooledBatch(-1, 0, self._tuples, 0, self._refused)
        first, first_refused = max(last.upto, self._tuples), max(last.upto_refused, self._refused)
        kept = SpooledBatch(batch, first, first + table.num_rows, first_refused, first_refused + len(malformed))
        rows = json.dumps([[row.where, row.text, row.reason] for row in malformed])
        try:
            noted = table.replace_schema_metadata({_REFUSED: rows.encode()})
            self._names[kept], _ = write_table(self._place, kept.name, noted, sync=True)
        except FAILURES as error:
            raise self._failed(self._place.name(kept.name), error) from error
        self._kept.append(kept)

    def trim(self, tuples: int, refused: int) -> None:
        """Delete batches that are in the log, except the newest, which the origin may not have committed yet."""
        done = [one for one in self._kept[:-1] if one.upto <= tuples and one.upto_refused <= refused]
        if done:
            self._place.delete([self._names.pop(one) for one in done])
            self._kept = [one for one in self._kept if one not in done]

    def checkpoint(self) -> str:
        """Return where the origin stores its own position."""
        return self._place.name("checkpoint")

    def _failed(self, where: str, error: BaseException) -> InputError:
        return InputError(f"source '{self._source}': cannot use '{where}': {reason(error)}")
